//! Flooding over lossy broadcast.
//!
//! Announcements must reach every node, and no broadcast is acknowledged. A node repeats a new item
//! until it has overheard every neighbour send it too, or until it has sent it twelve times. Pauses
//! between repetitions double, and are random so that neighbours do not stay in step.

use crate::rng::unit;
use crate::time::{Duration, Instant};
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
}
