//! One timer for each station, as the leaves of a tree in which each node has the earlier of the two below
//! it. Backoff stops and restarts far more often than it ends, and most changes go no more than a few nodes up.

/// The instant of a timer that does not run.
const NEVER: u64 = u64::MAX;

/// Timers by station, ordered by (instant in ns, station).
pub(super) struct Timers {
    /// The root at 1, below node n nodes 2 n and 2 n + 1, the stations from the middle on.
    tree: Vec<u64>,
}

impl Timers {
    /// No timer running among `stations`.
    pub(super) fn new(stations: usize) -> Self {
        Self { tree: vec![NEVER; 2 * stations.next_power_of_two()] }
    }

    /// When the earliest timer ends.
    pub(super) fn first_ns(&self) -> Option<u64> {
        Some(self.tree[1]).filter(|&at_ns| at_ns != NEVER)
    }

    /// Whose timer is the earliest, if any runs.
    pub(super) fn first(&self) -> Option<usize> {
        let at_ns = self.first_ns()?;
        let mut node = 1;
        while node < self.leaves() {
            node = 2 * node + usize::from(self.tree[2 * node] != at_ns);
        }
        Some(node - self.leaves())
    }

    /// When `station`'s timer ends, if it runs.
    pub(super) fn of(&self, station: usize) -> Option<u64> {
        Some(self.tree[self.leaves() + station]).filter(|&at_ns| at_ns != NEVER)
    }

    /// Starts `station`'s timer, in place of one that runs.
    pub(super) fn start(&mut self, station: usize, at_ns: u64) {
        let (mut node, mut earliest_ns) = (self.leaves() + station, at_ns);
        while self.tree[node] != earliest_ns {
            self.tree[node] = earliest_ns;
            if node == 1 {
                return;
            }
            earliest_ns = earliest_ns.min(self.tree[node ^ 1]);
            node /= 2;
        }
    }

    /// Stops `station`'s timer, if it runs.
    pub(super) fn stop(&mut self, station: usize) {
        self.start(station, NEVER);
    }

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
        fn timers_agree_with_a_map(steps in proptest::collection::vec((0usize..8, 0u64..20, any::<bool>()), 0..200)) {
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
