//! Neighbours that sent false packets.
//!
//! A packet is false if it is no combination of the generation that it names. A node that passes
//! packets on before it has the whole generation cannot know that, so it is blamed only when it
//! does so again. One that has the whole generation has checked it, and is blamed at once.
//!
//! Whoever has the network's key can send packets under any id, so the blame may fall on a node
//! whose name was taken. It therefore ends soon, and costs the node no more than that others are
//! preferred to it.

use crate::time::{Duration, Instant};
use crate::toolkit::bounded::make_room;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Time for which a neighbour is avoided after a false packet, and for which it is named.
const AVOIDED: Duration = Duration::from_secs(30);
const NAMED: Duration = Duration::from_secs(300);
/// Most neighbours that are kept.
const MAX_BLAMED: usize = 64;

/// Packets of a generation that one sender gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// True ones.
    pub genuine: u32,
    /// False ones of a generation that the sender had whole.
    pub vouched: u32,
    /// False ones of a generation that the sender had a part of.
    pub unchecked: u32,
}

impl Given {
    /// Returns the number of false packets.
    #[must_use]
    pub fn false_packets(&self) -> u32 {
        self.vouched + self.unchecked
    }
}

/// The evidence against one neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    packets: u64,
    /// When a false packet of it was found last.
    at: Instant,
    /// When it was last blamed.
    blamed_at: Option<Instant>,
}

/// A neighbour that sent false packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liar {
    /// Id under which they came.
    pub node: NodeId,
    /// False packets that were found.
    pub packets: u64,
}

/// Neighbours that sent false packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blame {
    entries: BTreeMap<NodeId, Entry>,
}

impl Blame {
    /// Notes what a neighbour gave of a generation. Returns whether it is to blame.
    pub fn note(&mut self, node: NodeId, given: Given, now: Instant) -> bool {
        if given.false_packets() == 0 {
            return false;
        }

        // Old evidence makes room before new is taken, so that invented senders cannot fill the
        // list for long.
        self.entries.retain(|_, entry| now.since(entry.at) < NAMED);
        make_room(&mut self.entries, &node, MAX_BLAMED, |entry| entry.at);

        // A node that could not know is to blame if it goes on soon.
        let before = self.entries.get(&node).copied();
        let is_again = before.is_some_and(|entry| now.since(entry.at) < AVOIDED);
        let is_to_blame = given.vouched > 0 || is_again;
        let former = before.and_then(|entry| entry.blamed_at);

        let entry = Entry {
            packets: before.map_or(0, |entry| entry.packets) + u64::from(given.false_packets()),
            at: now,
            blamed_at: if is_to_blame { Some(now) } else { former },
        };

        self.entries.insert(node, entry);
        is_to_blame
    }

    /// Returns whether a neighbour is to be avoided.
    #[must_use]
    pub fn is_avoided(&self, node: NodeId, now: Instant) -> bool {
        let blamed = self.entries.get(&node).and_then(|entry| entry.blamed_at);
        blamed.is_some_and(|at| now.since(at) < AVOIDED)
    }

    /// Returns the neighbours that were blamed in the last minutes.
    pub fn liars(&self, now: Instant) -> impl Iterator<Item = Liar> + '_ {
        let blamed = move |entry: &Entry| entry.blamed_at.is_some_and(|at| now.since(at) < NAMED);
        let named = self.entries.iter().filter(move |(_, entry)| blamed(entry));
        named.map(|(node, entry)| Liar { node: *node, packets: entry.packets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    fn named(blame: &Blame, s: u64) -> Vec<(u16, u64)> {
        blame.liars(at(s)).map(|liar| (liar.node.0, liar.packets)).collect()
    }

    #[test]
    fn a_liar_is_avoided_for_a_while_and_named_for_longer() {
        let mut blame = Blame::default();
        let node = NodeId(1);
        assert!(!blame.note(node, Given { genuine: 9, ..Given::default() }, at(0)));
        assert!(!blame.is_avoided(node, at(0)));
        assert!(blame.note(node, Given { vouched: 3, ..Given::default() }, at(0)));
        assert!(blame.is_avoided(node, at(29)) && !blame.is_avoided(node, at(30)));
        assert_eq!(named(&blame, 299), [(1, 3)]);
        assert_eq!(named(&blame, 300), []);
    }

    #[test]
    fn a_node_that_could_not_know_is_blamed_when_it_goes_on() {
        let mut blame = Blame::default();
        let node = NodeId(1);
        let unchecked = Given { unchecked: 2, ..Given::default() };
        assert!(!blame.note(node, unchecked, at(0)));
        assert!(!blame.note(node, unchecked, at(40)), "it was long ago");
        assert_eq!(named(&blame, 40), []);
        assert!(blame.note(node, unchecked, at(50)));
        assert_eq!(named(&blame, 50), [(1, 6)]);
    }

    #[test]
    fn no_more_neighbours_are_kept_than_there_is_room_for() {
        let mut blame = Blame::default();
        let given = Given { vouched: 1, ..Given::default() };
        for node in 0..1000 {
            blame.note(NodeId(node), given, at(u64::from(node) / 10));
        }
        assert_eq!(blame.liars(at(100)).count(), MAX_BLAMED);
        assert!(blame.is_avoided(NodeId(999), at(100)));
    }
}
