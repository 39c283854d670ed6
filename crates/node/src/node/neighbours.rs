//! Neighbours as the node remembers them, and log entries about them, about frames that were sealed
//! with another key or written in the name of this node, and about coding that stops.

use super::names::name_of;
use super::view::{IMPERSONATED, liar_hint};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Shortest time between two warnings of frames with a wrong key, so that their sender cannot fill
/// the log.
const WARNING_INTERVAL: Duration = Duration::from_secs(600);

/// Neighbours that were heard, and the entries about them that were logged last.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// When neighbours were heard last. At most one entry for each id.
    last_heard: BTreeMap<NodeId, Instant>,
    /// Neighbours for which nothing was coded, when last looked at, by scheme. As many as the
    /// engines keep.
    coding_stopped: BTreeSet<(&'static str, NodeId)>,
    /// Neighbours that were there. At most one entry for each id.
    neighbours: BTreeSet<NodeId>,
    /// Frames with a wrong key that a warning has counted, and when it was logged.
    wrong_key: u64,
    warned: Option<Instant>,
    /// Whether somebody sends frames in this node's name.
    is_impersonated: bool,
    /// Neighbours that were blamed for false packets, when last looked at.
    liars: BTreeSet<NodeId>,
}

impl Noted {
    /// Returns the size of each of its tables.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> [usize; 3] {
        [self.last_heard.len(), self.coding_stopped.len(), self.neighbours.len()]
    }

    /// Takes the present neighbours. Returns those that have come and those that have gone.
    fn neighbours(&mut self, present: BTreeSet<NodeId>) -> [Vec<NodeId>; 2] {
        let come = present.difference(&self.neighbours).copied().collect();
        let gone = self.neighbours.difference(&present).copied().collect();
        self.neighbours = present;
        [come, gone]
    }

    /// Takes the number of frames with a wrong key since the start. Returns how many of them are to
    /// be warned of now.
    fn wrong_key(&mut self, frames: u64, now: Instant) -> Option<u64> {
        let is_early = self.warned.is_some_and(|at| now.since(at) < WARNING_INTERVAL);
        let new = frames - self.wrong_key;
        if new == 0 || is_early {
            return None;
        }

        self.wrong_key = frames;
        self.warned = Some(now);
        Some(new)
    }

    /// Takes whether somebody sends frames in this node's name. Returns whether that is news.
    fn impersonated(&mut self, is_impersonated: bool) -> bool {
        let is_news = is_impersonated && !self.is_impersonated;
        self.is_impersonated = is_impersonated;
        is_news
    }

    /// Notes that a frame of `neighbour` was heard.
    pub(super) fn hear(&mut self, neighbour: NodeId, now: Instant) {
        self.last_heard.insert(neighbour, now);
    }

    /// Returns when a neighbour was heard last.
    pub(super) fn last_heard(&self, neighbour: NodeId) -> Option<Instant> {
        self.last_heard.get(&neighbour).copied()
    }

    /// Forgets neighbours that the stack has forgotten.
    pub(super) fn forget_unknown(&mut self, stack: &Stack) {
        let topology = stack.topology();
        let inbound = stack.inbound();
        let inbound: BTreeMap<NodeId, f64> = inbound.collect();
        let is_known = |node| topology.state(node).is_some() || inbound.contains_key(&node);
        self.last_heard.retain(|node, _| is_known(*node));
    }

    /// Logs which neighbours have come and gone since the last call, and warns of frames that were
    /// sealed with another key or written in this node's name, and of false packets.
    pub(super) fn log_neighbours(&mut self, stack: &Stack, now: Instant) {
        // Compared with the last call, so that a neighbour is logged when it comes or goes.
        let [come, gone] = self.neighbours(stack.inbound().map(|(node, _)| node).collect());
        for node in come {
            tracing::info!("neighbour {} (id {node}) is heard", name_of(stack, node));
        }
        for node in gone {
            tracing::info!("neighbour {} (id {node}) is heard no more", name_of(stack, node));
        }

        let frames = stack.counters().dropped(DropReason::Unauthentic);
        // Limited, so that a flood of foreign frames does not fill the log.
        if let Some(new) = self.wrong_key(frames, now) {
            tracing::warn!(
                "{new} frames were not sealed with this network's key; if they come from your own \
                 nodes, give all the same [node] key"
            );
        }
        if self.impersonated(stack.is_impersonated()) {
            tracing::warn!("{IMPERSONATED}");
        }

        for liar in stack.liars().filter(|liar| !self.liars.contains(&liar.node)) {
            tracing::warn!("{}", liar_hint(stack, liar));
        }
        self.liars = stack.liars().map(|liar| liar.node).collect();
    }

    /// Logs for whom coding has stopped, and for whom it goes on, since the last call.
    pub(super) fn log_coding(&mut self, stack: &Stack) {
        let statuses = stack.coding().into_iter();
        let stopped: BTreeMap<_, _> = statuses
            .flat_map(|(scheme, status)| {
                status.stopped.into_iter().map(move |(node, why)| ((scheme, node), why))
            })
            .collect();

        // Only changes are logged.
        for ((scheme, node), why) in &stopped {
            if !self.coding_stopped.contains(&(*scheme, *node)) {
                let name = name_of(stack, *node);
                tracing::warn!("{scheme} codes no more for {name} for a while: it {why}");
            }
        }
        for (scheme, node) in &self.coding_stopped {
            if !stopped.contains_key(&(*scheme, *node)) {
                tracing::info!("{scheme} codes for {} again", name_of(stack, *node));
            }
        }
        self.coding_stopped = stopped.into_keys().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_told_of_when_it_comes_and_when_it_goes() {
        let mut noted = Noted::default();
        let set = |ids: &[u16]| ids.iter().copied().map(NodeId).collect::<BTreeSet<_>>();
        let list = |ids: &[u16]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
        assert_eq!(noted.neighbours(set(&[2, 3])), [list(&[2, 3]), list(&[])]);
        assert_eq!(noted.neighbours(set(&[2, 3])), [list(&[]), list(&[])]);
        assert_eq!(noted.neighbours(set(&[3, 4])), [list(&[4]), list(&[2])]);
    }

    #[test]
    fn an_impostor_is_warned_of_when_it_begins() {
        let mut noted = Noted::default();
        let told = [false, true, true, false, true].map(|is_there| noted.impersonated(is_there));
        assert_eq!(told, [false, true, false, false, true]);
    }

    #[test]
    fn wrong_keys_are_warned_of_now_and_then() {
        let mut noted = Noted::default();
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        assert_eq!(noted.wrong_key(0, at(0)), None);
        assert_eq!(noted.wrong_key(5, at(10)), Some(5));
        assert_eq!(noted.wrong_key(900, at(20)), None);
        assert_eq!(noted.wrong_key(1000, at(610)), Some(995));
        assert_eq!(noted.wrong_key(1000, at(9_000)), None);
    }
}
