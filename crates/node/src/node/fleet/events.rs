//! Events of a roll-out: changes of its stage and of its nodes, for programs that follow it.

use super::words::{stage_word, word};
use crate::api::fleet::FleetEvent;
use ncmesh_fleet::rollout::{self, Rollout, Standing, Why};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Most events that are kept. Each node has about six in a roll-out.
const MAX_EVENTS: usize = 4096;

/// Events of a roll-out, with what they have told already.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Events {
    /// The latest, the oldest first.
    pub(super) kept: VecDeque<FleetEvent>,
    /// Number of the last one.
    number: u64,
    stage: Option<String>,
    nodes: BTreeMap<rollout::Node, NodeState>,
}

/// State of a node that an event has told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NodeState {
    standing: Option<Standing>,
    why: Option<Why>,
}

impl Events {
    /// Notes what has changed since the last call. `name` names a node.
    pub(super) fn note(
        &mut self,
        unix_s: u64,
        rollout: &Rollout,
        name: impl Fn(rollout::Node) -> String,
    ) {
        let event = |node: Option<rollout::Node>, state: &str, why: Option<String>| FleetEvent {
            number: 0,
            unix_s,
            rollout: rollout.number(),
            node: node.map(|node| node.0),
            name: node.map(&name),
            state: state.to_owned(),
            why,
        };

        let mut new = Vec::new();
        for (node, row) in rollout.rows() {
            let state = NodeState { standing: row.standing, why: row.why.clone() };
            let Some(standing) = state.standing else { continue };
            if self.nodes.get(node) != Some(&state) {
                let why = state.why.as_ref().map(ToString::to_string);
                new.push(event(Some(*node), word(standing), why));
                self.nodes.insert(*node, state);
            }
        }

        // The stage follows from the nodes, so it is told after them.
        let stage = format!("{:?}", rollout.stage());
        if self.stage.as_ref() != Some(&stage) {
            let word = stage_word(rollout.stage()).0;
            new.push(event(None, word, Some(rollout.waits_for())));
            self.stage = Some(stage);
        }

        for event in new {
            self.number += 1;
            self.kept.push_back(FleetEvent { number: self.number, ..event });
        }
        while self.kept.len() > MAX_EVENTS {
            self.kept.pop_front();
        }
    }
}
