//! Roll-outs as the API and the console show them, and the names of their nodes.

use super::clock::moment;
use super::operator::Lead;
use super::words::{stage_word, word};
use crate::api::fleet::{FleetMember, FleetNode, FleetRollout};
use crate::node::names::name_of;
use ncmesh_console::schema::{RolloutNodeState, RolloutState, seconds};
use ncmesh_engine::time::Instant;
use ncmesh_fleet::rollout::Member;
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;

/// Nodes of a roll-out.
pub(crate) struct FleetNodes {
    /// These.
    pub(crate) nodes: Vec<NodeId>,
    /// Whether nodes that come up later take part as well.
    pub(crate) is_open: bool,
}

/// Returns how far the node is as one that takes part.
pub(super) fn taken(member: &Member) -> FleetMember {
    let facts = member.facts();
    let report = member.report();
    FleetMember {
        model: facts.model.clone(),
        running: facts.running.to_string(),
        version: member.version().map(ToString::to_string),
        operator: report.as_ref().map(|report| report.operator.to_string()),
        standing: report.as_ref().map(|report| word(report.standing).into()),
        why: report.and_then(|report| report.why).map(|why| why.to_string()),
    }
}

/// Returns how far a roll-out is.
pub(super) fn led(stack: &Stack, lead: &Lead, now: Instant) -> FleetRollout {
    let rollout = &lead.rollout;
    let release = lead.manifest.release();
    let batches = rollout.batches();
    let nodes = rollout.rows().iter().map(|(node, row)| {
        let batch = batches.iter().position(|batch| batch.contains(node));
        let heard = lead.heard.get(node).map(|at| now.since(*at).as_secs_f64());
        FleetNode {
            id: node.0,
            name: name_of(stack, NodeId(node.0)),
            model: lead.models.get(node).cloned(),
            running: row.running.as_ref().map(ToString::to_string),
            standing: row.standing.map(|standing| word(standing).into()),
            why: row.why.as_ref().map(ToString::to_string),
            batch: batch.map(|at| at + 1),
            last_heard_s: heard,
        }
    });

    let (stage, batch) = stage_word(rollout.stage());
    let begins_at = rollout.begins_at().map(|at| moment(at).since(now).as_secs_f64());
    FleetRollout {
        number: rollout.number(),
        name: release.head().name.clone(),
        version: release.head().version.to_string(),
        release: release.id().to_string(),
        stage: stage.into(),
        waits_for: rollout.waits_for(),
        begins_in_s: begins_at,
        batches: batches.len(),
        batch,
        nodes: nodes.collect(),
    }
}

/// Returns the state of a roll-out for a console.
pub(super) fn shown(lead: &Lead) -> RolloutState {
    let rollout = &lead.rollout;
    let batches = rollout.batches();
    let nodes = rollout.rows().iter().map(|(node, row)| {
        let batch = batches.iter().position(|batch| batch.contains(node));
        RolloutNodeState {
            node: node.0,
            model: lead.models.get(node).cloned(),
            running: row.running.as_ref().map(ToString::to_string),
            standing: row.standing.map(|standing| word(standing).into()),
            why: row.why.as_ref().map(ToString::to_string).unwrap_or_default(),
            batch: batch.map(|at| at as u64 + 1),
            // A time, not an age: it stays the same until the node is heard again.
            heard_s: lead.heard.get(node).map(|at| seconds(at.as_secs_f64())),
        }
    });

    let (stage, batch) = stage_word(rollout.stage());
    RolloutState {
        stage: stage.into(),
        waits_for: rollout.waits_for(),
        batch: batch.map(|batch| batch as u64),
        batches: batches.len() as u64,
        nodes: nodes.collect(),
    }
}
