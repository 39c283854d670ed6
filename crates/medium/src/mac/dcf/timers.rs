//! One timer for each station in a binary heap that knows where each stands, so that stopping a timer
//! leaves nothing behind: backoff stops and restarts far more often than it ends.

/// Timers by station, ordered by (instant in ns, station).
pub(super) struct Timers {
    heap: Vec<(u64, usize)>,
    /// By station: its place in the heap.
    places: Vec<Option<usize>>,
}

impl Timers {
    /// No timer running among `stations`.
    pub(super) fn new(stations: usize) -> Self {
        Self { heap: Vec::new(), places: vec![None; stations] }
    }

    /// The earliest timer.
    pub(super) fn first(&self) -> Option<(u64, usize)> {
        self.heap.first().copied()
    }

    /// When `station`'s timer ends, if it runs.
    pub(super) fn of(&self, station: usize) -> Option<u64> {
        self.places[station].map(|place| self.heap[place].0)
    }

    /// Starts `station`'s timer, in place of one that runs.
    pub(super) fn start(&mut self, station: usize, at_ns: u64) {
        self.stop(station);
        self.places[station] = Some(self.heap.len());
        self.heap.push((at_ns, station));
        self.rise(self.heap.len() - 1);
    }

    /// Stops `station`'s timer, if it runs.
    pub(super) fn stop(&mut self, station: usize) {
        let Some(place) = self.places[station].take() else {
            return;
        };
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            self.places[self.heap[place].1] = Some(place);
            self.sink(place);
            self.rise(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else {
                return;
            };
            if self.heap[place] <= self.heap[least] {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.places[self.heap[a].1] = Some(a);
        self.places[self.heap[b].1] = Some(b);
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
                prop_assert_eq!(timers.first(), first);
            }
        }
    }
}
