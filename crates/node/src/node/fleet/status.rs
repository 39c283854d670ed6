//! Roll-outs as the API shows them, and the names of their nodes.

use super::super::Node;
use super::super::names::{name_of, resolve_name};
use super::Fleet;
use super::operator::Lead;
use crate::api::fleet::{FleetMember, FleetNode, FleetRollout, FleetStatus};
use crate::api::types::{ApiError, ErrorCode, Recipients};
use ncmesh_engine::time::Instant;
use ncmesh_fleet::rollout::{self, Stage, Standing};
use ncmesh_fleet::{Manifest, Refusal, Trust};
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;

/// Nodes of a roll-out.
pub(crate) struct FleetNodes {
    /// These.
    pub(crate) nodes: Vec<NodeId>,
    /// Whether nodes that come up later take part as well.
    pub(crate) is_open: bool,
}

impl Node {
    /// Returns how far roll-outs are.
    pub(crate) fn fleet_status(&self) -> FleetStatus {
        let Fleet { member, operator } = &self.fleet;
        let member = member.as_ref().map(|side| {
            let facts = side.member.facts();
            let report = side.member.report();
            FleetMember {
                model: facts.model.clone(),
                running: facts.running.to_string(),
                version: side.member.version().map(ToString::to_string),
                operator: report.as_ref().map(|report| report.operator.to_string()),
                standing: report.as_ref().map(|report| word(report.standing).into()),
                why: report.and_then(|report| report.why).map(|why| why.to_string()),
            }
        });

        let lead = operator.as_ref().and_then(|side| side.lead.as_ref());
        let rollout = lead.map(|lead| shown(&self.stack, lead, self.clock.now()));
        FleetStatus { member, rollout }
    }

    /// Checks a release that is to be pushed as the nodes will, where this node knows how: it has
    /// the keys if it takes part itself.
    pub(crate) fn check_release(&self, manifest: &Manifest) -> Result<(), Refusal> {
        let trust: Option<&Trust> = self.fleet.trust();
        trust.map_or(Ok(()), |trust| trust.check(manifest).map(drop))
    }

    /// Returns the nodes that are meant. One that is off may be named by its id.
    pub(crate) fn fleet_nodes(&self, to: &Recipients) -> Result<FleetNodes, ApiError> {
        let me = self.id();
        let takes_part = self.fleet.member.is_some();
        let names = match to {
            Recipients::All(_) => {
                let others = self.stack.topology().nodes().filter(|node| *node != me);
                let nodes = others.chain(takes_part.then_some(me)).collect();
                return Ok(FleetNodes { nodes, is_open: true });
            }
            Recipients::Named(names) => names,
        };

        let mut nodes = Vec::new();
        for name in names {
            let own = *name == me.to_string() || *name == self.stack.name();
            let node = match resolve_name(&self.stack, name, || None) {
                _ if own => me,
                Ok(node) => node,
                Err(e) => name
                    .parse()
                    .ok()
                    .filter(|id| (1..u16::MAX).contains(id))
                    .map(NodeId)
                    .ok_or(e)?,
            };
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        if nodes.is_empty() {
            return Err(ApiError::new(ErrorCode::BadRequest, "no nodes given"));
        }
        Ok(FleetNodes { nodes, is_open: false })
    }
}

fn shown(stack: &Stack, lead: &Lead, now: Instant) -> FleetRollout {
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

    let (stage, batch) = match rollout.stage() {
        Stage::Pushing => ("pushing", None),
        Stage::Pushed => ("pushed", None),
        Stage::Applying(at) => ("applying", Some(at + 1)),
        Stage::Done => ("done", None),
        Stage::Stopped(_) => ("stopped", None),
        Stage::RollingBack => ("rolling_back", None),
        Stage::RolledBack => ("rolled_back", None),
    };
    FleetRollout {
        number: rollout.number(),
        name: release.head().name.clone(),
        version: release.head().version.to_string(),
        release: release.id().to_string(),
        stage: stage.into(),
        waits_for: rollout.waits_for(),
        batches: batches.len(),
        batch,
        nodes: nodes.collect(),
    }
}

/// Returns the word of the API for how far a node is.
fn word(standing: rollout::Standing) -> &'static str {
    match standing {
        Standing::Staging => "staging",
        Standing::Staged => "staged",
        Standing::Applying => "applying",
        Standing::Trial => "trial",
        Standing::Kept => "kept",
        Standing::RollingBack => "rolling_back",
        Standing::RolledBack => "rolled_back",
        Standing::Refused => "refused",
        Standing::Failed => "failed",
        Standing::Aborted => "aborted",
    }
}
