//! Flooding over lossy broadcast.
//!
//! Announcements must reach every node, and no broadcast is acknowledged. A node repeats a new item
//! until it has overheard every neighbour send it too, or until it has sent it twelve times. Pauses
//! between repetitions double, and are random so that neighbours do not stay in step.
//!
//! In a crowd that is too often: each node has dozens of neighbours, which all have the item from
//! one another long before each was overheard. So a node that heard an item from many does not
//! repeat it for neighbours that got it from others in all probability.

use crate::rng::unit;
use crate::time::{Duration, Instant};
use crate::topology::Topology;
use ncmesh_wire::NodeId;
use rand_core::RngCore;
use std::collections::{BTreeMap, BTreeSet};

/// First transmissions are spread over this time: neighbours hear an item at the same moment, and
/// must not all repeat it at once.
const JITTER: Duration = Duration::from_millis(20);
/// Mean pause before the first repetition; the pause is 0.5 to 1.5 times as long. Each further one
/// is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(120);
/// Most doublings of the pause.
const MAX_DOUBLINGS: u8 = 3;
/// Most transmissions of one version.
const MAX_SENDS: u8 = 12;
/// Least transmissions of one version: there may be a neighbour that is not known yet.
const MIN_SENDS: u8 = 2;

/// Neighbours that were overheard to send an item from which on others may have served the rest.
/// With 8, meshes of twenty nodes are a crowd, too, and a node that missed an item there begins
/// late; with more, dense meshes repeat more. Dense meshes are as fast with both.
const CROWD: usize = 12;
/// Nodes that a neighbour hears better than this one from which on it is left to those. With 8, 2 %
/// more packets are sent in dense meshes; with fewer, nodes at the edge get fewer copies.
const NEARER: usize = 5;
/// Share of its measured delivery that a link is believed to have while an item is flooded: all
/// repeat it in the same moment.
const DURING_FLOOD: f64 = 0.5;
/// Probability to have missed all copies that is low enough. A neighbour that missed them hears of
/// the next version.
const MISSED: f64 = 0.01;

/// Items that this node floods. Each has a key, and a version that grows.
#[derive(Debug)]
pub struct Flood<K, V> {
    items: BTreeMap<K, Item<V>>,
}

#[derive(Debug)]
struct Item<V> {
    version: V,
    /// Transmissions so far.
    sent: u8,
    /// When it is sent next.
    due: Instant,
    /// Neighbours that have this version or a later one.
    have: BTreeSet<NodeId>,
}

impl<V> Item<V> {
    /// Returns whether a neighbour to which this node's link delivers the share `own` is served by
    /// others.
    fn is_served(&self, topology: &Topology, neighbour: NodeId, own: f64) -> bool {
        if self.have.contains(&neighbour) {
            return true;
        }

        // Several others reach it more easily.
        let Some(state) = topology.state(neighbour) else { return false };
        if state.hears.values().filter(|delivery| **delivery > own).count() >= NEARER {
            return true;
        }

        // Or it has missed the copies of all that were overheard only in a rare case.
        let deliveries = self.have.iter().map(|sender| topology.delivery(*sender, neighbour));
        deliveries.map(|delivery| 1.0 - DURING_FLOOD * delivery).product::<f64>() <= MISSED
    }
}

impl<K, V> Default for Flood<K, V> {
    fn default() -> Self {
        Self { items: BTreeMap::new() }
    }
}

impl<K: Ord, V: Ord> Flood<K, V> {
    /// Returns a flood without items.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to flood `version` of `key`. It replaces an older version.
    pub fn publish(&mut self, key: K, version: V, now: Instant, rng: &mut impl RngCore) {
        let due = now + JITTER.mul_f64(unit(rng));
        let have = BTreeSet::new();
        self.items.insert(key, Item { version, sent: 0, due, have });
    }

    /// Notes that a neighbour was heard to send `version` of `key`.
    pub fn overheard(&mut self, key: &K, version: &V, neighbour: NodeId) {
        if let Some(item) = self.items.get_mut(key)
            && *version >= item.version
        {
            item.have.insert(neighbour);
        }
    }

    /// Stops flooding `key`.
    pub fn withdraw(&mut self, key: &K) {
        self.items.remove(key);
    }

    /// Removes the items that all `neighbours` are known to have, if this node has sent them often
    /// enough itself. Only then are the neighbours asked for.
    pub fn drop_acknowledged<I: Iterator<Item = NodeId>>(&mut self, neighbours: impl Fn() -> I) {
        let is_known = |item: &Item<V>| neighbours().all(|node| item.have.contains(&node));
        self.items.retain(|_, item| item.sent < MIN_SENDS || !is_known(item));
    }

    /// Removes the items that are due to be repeated in a crowd, if each neighbour of `me` has them
    /// in all probability.
    pub fn drop_served(&mut self, topology: &Topology, me: NodeId, now: Instant) {
        self.items.retain(|_, item| {
            let is_repeated = item.due <= now && item.sent > 0 && item.have.len() >= CROWD;
            let mut neighbours = topology.links_from(me);
            !is_repeated || !neighbours.all(|(node, own)| item.is_served(topology, node, own))
        });
    }

    /// Returns the first time later than `after` at which an item is due.
    pub fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.items.values().map(|item| item.due).filter(|t| *t > after).min()
    }

    /// Returns the items that are due at `now`.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = &K> + '_ {
        self.items.iter().filter(move |(_, item)| item.due <= now).map(|(key, _)| key)
    }

    /// Notes that `key` was sent, and sets the pause until its next transmission.
    pub fn sent(&mut self, key: &K, now: Instant, rng: &mut impl RngCore) {
        let Some(item) = self.items.get_mut(key) else { return };
        let factor = f64::from(1u32 << item.sent.min(MAX_DOUBLINGS));
        item.sent += 1;

        // The pause is drawn at random, so that neighbours that heard the same announcement do not
        // send it at the same time.
        item.due = now + PAUSE.mul_f64(factor * (0.5 + unit(rng)));
        if item.sent >= MAX_SENDS {
            self.items.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;
    use crate::testing::symmetric;

    #[test]
    fn an_item_is_repeated_until_all_neighbours_have_it() {
        let mut rng = stream(1, NodeId(1), "test", "flood");
        let mut flood = Flood::new();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        flood.publish("a", 2, at(0), &mut rng);
        assert_eq!(flood.due(at(30)).collect::<Vec<_>>(), [&"a"]);
        flood.sent(&"a", at(30), &mut rng);
        assert_eq!(flood.due(at(40)).count(), 0);
        flood.sent(&"a", at(500), &mut rng);
        let neighbours = || [NodeId(2), NodeId(3)].into_iter();
        flood.overheard(&"a", &2, NodeId(2));
        flood.overheard(&"a", &1, NodeId(3));
        flood.drop_acknowledged(neighbours);
        assert_eq!(flood.due(at(5000)).count(), 1);
        flood.overheard(&"a", &3, NodeId(3));
        flood.drop_acknowledged(neighbours);
        assert_eq!(flood.poll_timeout(at(0)), None);
    }

    #[test]
    fn pauses_double_up_to_eight_times_the_first() {
        let mut rng = stream(1, NodeId(1), "test", "flood");
        let mut flood = Flood::new();
        flood.publish(1, 1, Instant::default(), &mut rng);
        let mut now = flood.poll_timeout(Instant::default()).unwrap();
        for pause_ms in [120, 240, 480, 960, 960] {
            flood.sent(&1, now, &mut rng);
            let next = flood.poll_timeout(now).unwrap();
            let pause = next.since(now).as_millis();
            assert!((pause_ms / 2..=pause_ms * 3 / 2).contains(&pause), "{pause} of {pause_ms}");
            now = next;
        }
    }

    #[test]
    fn an_item_is_sent_a_bounded_number_of_times() {
        let mut rng = stream(1, NodeId(1), "test", "flood");
        let mut flood = Flood::new();
        flood.publish(1, 1, Instant::default(), &mut rng);
        let mut sent = 0;
        let mut now = Instant::default();
        while let Some(at) = flood.poll_timeout(now) {
            now = at;
            flood.sent(&1, at, &mut rng);
            sent += 1;
        }
        assert_eq!(sent, MAX_SENDS);
    }

    /// Returns whether node 1 repeats what it sent once and heard of nodes 2 to `heard`. All of
    /// nodes 1 to 20 hear each other, and of node 21 what `links` say.
    fn repeats(heard: u16, links: &[(u16, u16, f64)]) -> bool {
        let pairs = (1..=20u16).flat_map(|a| (a + 1..=20).map(move |b| (a, b, 0.9)));
        let topology = symmetric(&pairs.chain(links.iter().copied()).collect::<Vec<_>>());
        let mut rng = stream(1, NodeId(1), "test", "flood");
        let mut flood = Flood::new();
        flood.publish("a", 1, Instant::default(), &mut rng);
        flood.sent(&"a", Instant::default(), &mut rng);
        (2..=heard).for_each(|node| flood.overheard(&"a", &1, NodeId(node)));
        let now = flood.poll_timeout(Instant::default()).unwrap();
        flood.drop_served(&topology, NodeId(1), now);
        flood.due(now).count() > 0
    }

    #[test]
    fn in_a_crowd_an_item_that_others_served_is_not_repeated() {
        assert!(!repeats(13, &[]), "seven were not overheard, and have it from twelve others");
        assert!(repeats(12, &[]), "eleven are no crowd");
        assert!(repeats(20, &[(1, 21, 0.3)]), "node 21 hears this one alone");
        assert!(repeats(20, &[(1, 21, 0.3), (2, 21, 0.8)]), "it may have missed both");
        let better: Vec<_> = (2..=6).map(|node| (node, 21, 0.8)).collect();
        assert!(
            !repeats(20, &[better, vec![(1, 21, 0.3)]].concat()),
            "five others serve it better"
        );
    }

    #[test]
    fn in_a_crowd_an_item_is_sent_once_at_least() {
        let topology = symmetric(&(2..=20u16).map(|node| (1, node, 0.9)).collect::<Vec<_>>());
        let mut rng = stream(1, NodeId(1), "test", "flood");
        let mut flood = Flood::new();
        flood.publish("a", 1, Instant::default(), &mut rng);
        (2..=20).for_each(|node| flood.overheard(&"a", &1, NodeId(node)));
        let now = flood.poll_timeout(Instant::default()).unwrap();
        flood.drop_served(&topology, NodeId(1), now);
        assert_eq!(flood.due(now).count(), 1);
    }
}
