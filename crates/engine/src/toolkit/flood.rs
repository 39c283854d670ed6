//! Flooding over lossy broadcast: a node repeats what is new until it has overheard every neighbour repeat
//! it too, or has tried often enough.

use crate::rng::unit;
use crate::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use rand_core::RngCore;
use std::collections::{BTreeMap, BTreeSet};

/// First transmissions are spread over this time, so that neighbours do not all repeat at once.
const JITTER: Duration = Duration::from_millis(20);
/// The first pause before a repetition, times 0.5 to 1.5; each further one is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(120);
/// So often the pause is doubled.
const DOUBLINGS: u8 = 3;
/// How often one version is sent at most.
const TRIES: u8 = 12;
/// And at least: a neighbour may be there that is not known yet.
const LEAST: u8 = 2;

/// Items under way, each known by a key and carrying a version that grows.
#[derive(Debug)]
pub struct Flood<K, V> {
    items: BTreeMap<K, Item<V>>,
}

#[derive(Debug)]
struct Item<V> {
    version: V,
    tried: u8,
    next: Instant,
    /// From here on it goes along with what is due.
    may_go: Instant,
    have: BTreeSet<NodeId>,
}

impl<K: Ord + Clone, V: Ord + Clone> Flood<K, V> {
    /// Returns a flood with nothing under way.
    pub fn new() -> Self {
        Self { items: BTreeMap::new() }
    }

    /// Begins to flood `version` of `key`; an older version under way is replaced.
    pub fn publish(&mut self, key: K, version: V, now: Instant, rng: &mut impl RngCore) {
        let next = now + JITTER.mul_f64(unit(rng));
        self.items
            .insert(key, Item { version, tried: 0, next, may_go: now, have: BTreeSet::new() });
    }

    /// Tells a neighbour that has just come up: all `others` have `version` of `key` already.
    pub fn tell(
        &mut self,
        key: &K,
        version: V,
        others: &BTreeSet<NodeId>,
        now: Instant,
        rng: &mut impl RngCore,
    ) {
        self.publish(key.clone(), version, now, rng);
        if let Some(item) = self.items.get_mut(key) {
            item.have.clone_from(others);
        }
    }

    /// A neighbour was heard to have `version` of `key`.
    pub fn overheard(&mut self, key: &K, version: &V, neighbor: NodeId) {
        if let Some(item) = self.items.get_mut(key)
            && *version >= item.version
        {
            item.have.insert(neighbor);
        }
    }

    /// Stops flooding `key`.
    pub fn withdraw(&mut self, key: &K) {
        self.items.remove(key);
    }

    /// Drops what every one of `neighbors` is known to have, once sent here.
    pub fn settle(&mut self, neighbors: &BTreeSet<NodeId>) {
        self.items.retain(|_, item| item.tried < LEAST || !item.have.is_superset(neighbors));
    }

    /// When, later than `after`, something falls due.
    pub fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.items.values().map(|item| item.next).filter(|t| *t > after).min()
    }

    /// What is due at `now`.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = &K> + '_ {
        self.items.iter().filter(move |(_, item)| item.next <= now).map(|(key, _)| key)
    }

    /// What may go out in one frame at `now`: what is due, the longest due first, then what would be due soon,
    /// half of its pause being over.
    pub fn together(&self, now: Instant) -> Vec<K> {
        let mut going: Vec<_> = self.items.iter().filter(|(_, i)| i.may_go <= now).collect();
        going.sort_by(|(a, x), (b, y)| x.next.cmp(&y.next).then_with(|| a.cmp(b)));
        going.into_iter().map(|(key, _)| key.clone()).collect()
    }

    /// `key` was sent.
    pub fn sent(&mut self, key: &K, now: Instant, rng: &mut impl RngCore) {
        let Some(item) = self.items.get_mut(key) else { return };
        let doubled = f64::from(1u32 << item.tried.min(DOUBLINGS));
        item.tried += 1;
        let pause = PAUSE.mul_f64(doubled * (0.5 + unit(rng)));
        item.next = now + pause;
        item.may_go = now + pause / 2;
        if item.tried >= TRIES {
            self.items.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    #[test]
    fn repeats_until_all_neighbours_have_it() {
        let mut rng = stream(1, NodeId(1), "test", "flood");
        let mut flood = Flood::new();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        flood.publish("a", 2, at(0), &mut rng);
        assert_eq!(flood.due(at(30)).collect::<Vec<_>>(), [&"a"]);
        flood.sent(&"a", at(30), &mut rng);
        assert_eq!(flood.due(at(40)).count(), 0);
        flood.sent(&"a", at(500), &mut rng);
        let neighbors = BTreeSet::from([NodeId(2), NodeId(3)]);
        flood.overheard(&"a", &2, NodeId(2));
        flood.overheard(&"a", &1, NodeId(3));
        flood.settle(&neighbors);
        assert_eq!(flood.due(at(5000)).count(), 1);
        flood.overheard(&"a", &3, NodeId(3));
        flood.settle(&neighbors);
        assert_eq!(flood.poll_timeout(at(0)), None);
    }

    #[test]
    fn pauses_grow_as_documented() {
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
    fn gives_up_after_some_tries() {
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
        assert_eq!(sent, TRIES);
    }
}
