//! Links to neighbours that are probably gone: what this node makes of their silence.

use super::Route;
use crate::link::Link;
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::LinkState;
use ncmesh_wire::NodeId;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Delivery from which a neighbour notices the death of a node soon.
const GOOD: f64 = 0.5;
/// Number of neighbours whose word counts, and how many of them are enough.
const WITNESSES: usize = 3;
const MAJORITY: usize = 2;

impl Route {
    /// Removes our links to neighbours that are gone: they cannot tell that they do not hear us any
    /// more. What they told last holds again if they are heard again and have not told otherwise.
    pub(super) fn doubt_links_to(&mut self, gone: Vec<NodeId>, neighbors: &BTreeSet<NodeId>) {
        let topology = Arc::make_mut(&mut self.topology);
        for node in gone {
            let version = topology.state(node).map(|state| state.version);
            let delivery = topology.set_link(self.me, node, None);
            self.doubted.extend(version.zip(delivery).map(|told| (node, told)));
        }
        let again = |node: &NodeId| neighbors.contains(node);
        for (node, (version, delivery)) in self.doubted.extract_if(.., |node, _| again(node)) {
            if topology.state(node).is_some_and(|state| state.version == version) {
                topology.set_link(self.me, node, Some(delivery));
            }
        }
    }

    /// Returns the state of a node as it told it. The state here lacks the link from this node
    /// while that is in doubt, but others must not learn so: they would never be told otherwise.
    pub(super) fn as_told(&self, node: NodeId) -> Option<Cow<'_, LinkState>> {
        let state = self.topology.state(node)?;
        let doubted = self.doubted.get(&node).filter(|(version, _)| *version == state.version);
        Some(doubted.map_or(Cow::Borrowed(state), |(_, delivery)| {
            let mut told = state.clone();
            told.hears.insert(self.me, *delivery);
            Cow::Owned(told)
        }))
    }

    /// Returns the neighbours that were given up by those who hear them best, and who notice sooner
    /// than we can: by several while we miss them too, or by the best while we doubt them.
    pub(super) fn dead_neighbors(&self, now: Instant, link: &Link) -> Vec<NodeId> {
        let is_given_up = |node: &NodeId| {
            let Some(state) = self.topology.state(*node) else { return false };
            let others = state.hears.iter().filter(|(n, d)| **n != self.me && **d >= GOOD);
            let mut others: Vec<(&NodeId, &f64)> = others.collect();
            others.sort_by(|a, b| b.1.total_cmp(a.1));
            let states = others.into_iter().filter_map(|(n, _)| self.topology.state(*n));
            let given_up = states.map(|witness| !witness.hears.contains_key(node));
            let given_up: Vec<bool> = given_up.take(WITNESSES).collect();
            let votes = given_up.iter().filter(|given_up| **given_up).count();
            votes >= MAJORITY || (given_up.first() == Some(&true) && link.is_doubtful(*node))
        };
        link.late(now).filter(is_given_up).collect()
    }
}
