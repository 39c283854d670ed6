//! One timer for each station, in a tournament tree.
//!
//! The leaves are the timers; each inner node holds the earlier of the two below it, so the root is
//! the earliest of all. Backoff timers stop and restart far more often than they end, and most
//! changes rise only a few nodes.

/// The instant of a timer that is not running.
const NEVER: u64 = u64::MAX;

/// Timers of all stations, ordered by (instant in ns, station).
pub(super) struct Timers {
    /// The root is node 1. Nodes 2 n and 2 n + 1 are below node n. The second half are the
    /// stations.
    tree: Vec<u64>,
}

impl Timers {
    /// Creates the timers of `stations`. None is running.
    pub(super) fn new(stations: usize) -> Self {
        Self { tree: vec![NEVER; 2 * stations.next_power_of_two()] }
    }

    /// Returns when the earliest timer ends.
    pub(super) fn first_ns(&self) -> Option<u64> {
        Some(self.tree[1]).filter(|&at_ns| at_ns != NEVER)
    }

    /// Returns the station with the earliest timer, the lowest of several.
    pub(super) fn first(&self) -> Option<usize> {
        // Descend from the root to a leaf with the earliest time. Where both sides have it, the
        // left one is the lower station.
        let at_ns = self.first_ns()?;
        let mut node = 1;
        while node < self.leaves() {
            node = 2 * node + usize::from(self.tree[2 * node] != at_ns);
        }
        Some(node - self.leaves())
    }

    /// Returns when the timer of `station` ends, if it is running.
    pub(super) fn of(&self, station: usize) -> Option<u64> {
        Some(self.tree[self.leaves() + station]).filter(|&at_ns| at_ns != NEVER)
    }

    /// Starts or restarts the timer of `station`.
    pub(super) fn start(&mut self, station: usize, at_ns: u64) {
        // Rise until a node does not change.
        let mut node = self.leaves() + station;
        let mut earliest_ns = at_ns;
        while self.tree[node] != earliest_ns {
            self.tree[node] = earliest_ns;
            if node == 1 {
                return;
            }

            earliest_ns = earliest_ns.min(self.tree[node ^ 1]);
            node /= 2;
        }
    }

    /// Stops the timer of `station`.
    pub(super) fn stop(&mut self, station: usize) {
        self.start(station, NEVER);
    }

    /// Returns the number of leaves, which is also the node of the first leaf.
    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn timers_agree_with_a_map(
            steps in proptest::collection::vec((0usize..8, 0u64..20, any::<bool>()), 0..200),
        ) {
            let mut timers = Timers::new(8);
            let mut model = BTreeMap::new();
            for (station, at_ns, start) in steps {
                if start {
                    timers.start(station, at_ns);
                    model.insert(station, at_ns);
                } else {
                    timers.stop(station);
                    model.remove(&station);
                }
                prop_assert_eq!(timers.of(station), model.get(&station).copied());
                let first = model.iter().map(|(&station, &at_ns)| (at_ns, station)).min();
                prop_assert_eq!(timers.first_ns().zip(timers.first()), first);
            }
        }
    }
}
