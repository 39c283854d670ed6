//! Links to neighbours that are probably gone: what this node makes of their silence.

use super::Route;
use crate::links::Links as PortLinks;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::{LinkState, Topology};
use ncmesh_wire::NodeId;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Delivery from which a neighbour notices the death of a node soon.
const GOOD: f64 = 0.5;
/// Number of neighbours whose word counts, and how many of them are enough.
const WITNESSES: usize = 3;
const MAJORITY: usize = 2;
/// Time for which a loss is remembered: poor links may be silent for so long.
pub(super) const LOSS_COUNTS: Duration = Duration::from_secs(60);
/// Most losses that are remembered.
const MAX_LOST: usize = 1024;
/// Delivery of a link that is not lost by chance.
const SURE: f64 = 0.75;
/// Delivery from which two nodes count as being in the same place.
const TOGETHER: f64 = 0.3;

/// Returns the nodes to which a node has lost a sure link, by its old and its new state. After a
/// restart it has not measured anything yet.
pub(super) fn lost_links(old: &LinkState, new: &LinkState) -> Vec<NodeId> {
    let has_restarted = old.version.0 != new.version.0;
    let sure = old.hears.iter().filter(|(_, delivery)| !has_restarted && **delivery >= SURE);
    sure.filter(|(node, _)| !new.hears.contains_key(node)).map(|(node, _)| *node).collect()
}

/// Returns whether somebody has lost a sure link to `node`, or to a node that it hears, later than
/// `since`. If `node` has been silent since then, the same has probably happened to both: they have
/// moved away, or something has come between.
pub(super) fn is_lost_with_others(
    topology: &Topology,
    lost: &BTreeMap<NodeId, Instant>,
    node: NodeId,
    since: Instant,
) -> bool {
    let is_lost = |node: &NodeId| lost.get(node).is_some_and(|at| *at > since);
    let near = topology.state(node).into_iter().flat_map(|state| &state.hears);
    let mut near = near.filter(|(_, delivery)| **delivery >= TOGETHER).map(|(near, _)| near);
    is_lost(&node) || near.any(is_lost)
}

impl Route {
    /// Notes nodes to which somebody has lost a sure link.
    pub(super) fn note_lost(&mut self, nodes: &[NodeId], now: Instant) {
        for node in nodes {
            if self.lost.len() < MAX_LOST || self.lost.contains_key(node) {
                self.lost.insert(*node, now);
            }
        }
    }

    /// Returns those among neighbours that are gone to which this node told a sure link.
    pub(super) fn surely_lost(&self, gone: &[NodeId]) -> Vec<NodeId> {
        let Some(own) = self.topology.state(self.me) else { return Vec::new() };
        let is_sure = |node: &&NodeId| own.hears.get(node).is_some_and(|d| *d >= SURE);
        gone.iter().filter(is_sure).copied().collect()
    }

    /// Removes our links to neighbours that are gone: they cannot tell that they do not hear us any
    /// more. What they told last holds again if they are heard again and have not told otherwise.
    pub(super) fn doubt_links_to(&mut self, gone: Vec<NodeId>, neighbours: &BTreeSet<NodeId>) {
        let topology = Arc::make_mut(&mut self.topology);
        for node in gone {
            let version = topology.state(node).map(|state| state.version);
            let delivery = topology.set_link(self.me, node, None);
            self.doubted.extend(version.zip(delivery).map(|told| (node, told)));
        }

        // A neighbour that is back, and whose state is still the one in which it told of our link.
        let again = |node: &NodeId| neighbours.contains(node);
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
    pub(super) fn dead_neighbours(&self, now: Instant, link: &PortLinks) -> Vec<NodeId> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn state(epoch: u64, hears: &[(u16, f64)]) -> LinkState {
        let hears = hears.iter().map(|(node, d)| (NodeId(*node), *d)).collect();
        LinkState { version: (epoch, 1), hears, ..LinkState::default() }
    }

    #[test]
    fn a_node_loses_the_sure_links_that_it_tells_no_more_unless_it_has_restarted() {
        let old = state(1, &[(2, 0.9), (3, 0.9), (4, 0.6)]);
        assert_eq!(lost_links(&old, &state(1, &[(2, 0.1)])), [NodeId(3)]);
        assert_eq!(lost_links(&old, &state(2, &[])), []);
    }

    #[test]
    fn a_silent_node_may_be_lost_with_one_that_it_hears() {
        let mut topology = Topology::new(0.05);
        topology.learn(NodeId(5), state(1, &[(6, 0.9), (7, 0.1)]));
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let lost_since = |lost: u16, since| {
            is_lost_with_others(&topology, &[(NodeId(lost), at(10))].into(), NodeId(5), at(since))
        };
        assert!(lost_since(5, 9) && lost_since(6, 9));
        // It was heard later; or hardly hears the other, or not at all.
        assert!(!lost_since(6, 10) && !lost_since(7, 9) && !lost_since(8, 9));
    }
}
