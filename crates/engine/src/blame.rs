//! Neighbours that sent false packets.
//!
//! A packet is false if it is no combination of the generation that it names. A node that passes
//! packets on before it has the whole generation cannot know that, so it is blamed only when it
//! does so again after it could have found out. One that has the whole generation has checked it,
//! and is blamed at once.
//!
//! Whoever has the network's key can send packets under any id, so the blame may fall on a node
//! whose name was taken. It therefore ends soon, and costs the node no more than that others are
//! preferred to it, by the share of what it gives that is true.

use crate::time::{Duration, Instant};
use crate::toolkit::bounded::make_room;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Time for which a neighbour is avoided after a false packet, and for which it is named.
const AVOIDED: Duration = Duration::from_secs(30);
const NAMED: Duration = Duration::from_secs(300);
/// Time in which a node finds out that it was lied to. Generations that it had a part of by then
/// are under way, and may be false as well.
const FINDS_OUT: Duration = Duration::from_secs(2);
/// Most neighbours that are kept.
const MAX_BLAMED: usize = 64;
/// Share of true packets below which a neighbour is avoided. One that gives more may be the one
/// whose name was taken: it is preferred to others by what it gives.
const WORTHLESS: f64 = 0.2;

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

    fn true_share(self) -> f64 {
        f64::from(self.genuine) / f64::from((self.genuine + self.false_packets()).max(1))
    }
}

/// The evidence against one neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    packets: u64,
    /// When false packets of it were found first, and last.
    since: Instant,
    at: Instant,
    /// When it was last blamed.
    blamed_at: Option<Instant>,
    /// Its packets of the last generation with a false one among them.
    last: Given,
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

        // A node that could not know is to blame if it goes on when it could.
        let before = self.entries.get(&node).copied();
        let recent = before.filter(|entry| now.since(entry.at) < AVOIDED);
        let since = recent.map_or(now, |entry| entry.since);
        let is_late = now.since(since) >= FINDS_OUT;
        let is_to_blame = given.vouched > 0 || is_late;
        let former = before.and_then(|entry| entry.blamed_at);

        let entry = Entry {
            packets: before.map_or(0, |entry| entry.packets) + u64::from(given.false_packets()),
            since,
            at: now,
            blamed_at: if is_to_blame { Some(now) } else { former },
            // Lies that it could not know of do not make it worth less.
            last: if is_late { given } else { Given { unchecked: 0, ..given } },
        };

        self.entries.insert(node, entry);
        is_to_blame
    }

    /// Returns whether a neighbour is to be avoided: it was blamed a short time ago, and hardly
    /// gave anything true.
    #[must_use]
    pub fn is_avoided(&self, node: NodeId, now: Instant) -> bool {
        self.true_share(node, now) < WORTHLESS
    }

    /// Returns the share of a neighbour's packets that is true, as far as is known.
    #[must_use]
    pub fn true_share(&self, node: NodeId, now: Instant) -> f64 {
        let entry = self.entries.get(&node);
        let is_blamed = |entry: &&Entry| entry.blamed_at.is_some_and(|at| now.since(at) < AVOIDED);
        entry.filter(is_blamed).map_or(1.0, |entry| entry.last.true_share())
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

        // Packets that were under way when it was lied to are no lies of its own.
        let mut blame = Blame::default();
        assert!(!blame.note(node, unchecked, at(0)) && !blame.note(node, unchecked, at(1)));
        assert!(blame.note(node, unchecked, at(2)));
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

    #[test]
    fn a_neighbour_that_gives_true_packets_as_well_is_worth_their_share() {
        let mut blame = Blame::default();
        let half = Given { genuine: 10, vouched: 10, unchecked: 0 };
        assert!(blame.note(NodeId(1), half, at(0)));
        assert!(!blame.is_avoided(NodeId(1), at(1)));
        assert_eq!([1, 2].map(|node| blame.true_share(NodeId(node), at(1))), [0.5, 1.0]);
        assert_eq!(named(&blame, 1), [(1, 10)]);
        assert_eq!(blame.true_share(NodeId(1), at(30)), 1.0);
        let few = Given { genuine: 1, vouched: 9, unchecked: 0 };
        assert!(blame.note(NodeId(1), few, at(31)));
        assert!(blame.is_avoided(NodeId(1), at(31)));

        // One that was lied to, and whose name was taken as well.
        let lied_to = Given { genuine: 80, vouched: 20, unchecked: 100 };
        assert!(blame.note(NodeId(2), lied_to, at(40)));
        assert_eq!(blame.true_share(NodeId(2), at(40)), 0.8);
        assert!(blame.note(NodeId(2), lied_to, at(42)));
        assert_eq!(blame.true_share(NodeId(2), at(42)), 0.4);
    }
}
