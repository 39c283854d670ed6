//! The replay window: each frame of a sender is accepted once.

/// How many counters below the highest seen are still told apart.
const WIDTH: u32 = 1024;
const WORDS: usize = (WIDTH / 64) as usize;

/// What has been heard of one sender: its latest epoch, and which counters of it.
///
/// An epoch older than the latest is refused whole; a newer one starts the window afresh.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    epoch: u64,
    highest: u32,
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// A window that has seen nothing and refuses epochs before `oldest_epoch`.
    #[must_use]
    pub fn new(oldest_epoch: u64) -> Self {
        Self { epoch: oldest_epoch, highest: 0, seen: [0; WORDS] }
    }

    /// The latest epoch heard.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether ([`epoch`](Self::epoch), `counter`) is new. Changes nothing: authenticate first, then
    /// [`record`](Self::record).
    #[must_use]
    pub fn is_new(&self, epoch: u64, counter: u32) -> bool {
        if epoch != self.epoch {
            return epoch > self.epoch;
        }
        if counter > self.highest {
            return true;
        }
        self.highest - counter < WIDTH && !self.bit(counter)
    }

    /// Records an authenticated frame. Call only after [`is_new`](Self::is_new) said yes.
    pub fn record(&mut self, epoch: u64, counter: u32) {
        if epoch > self.epoch {
            *self = Self { epoch, highest: counter, seen: [0; WORDS] };
        } else if counter > self.highest {
            let skipped = (counter - self.highest).min(WIDTH);
            for step in 1..=skipped {
                let (word, mask) = Self::place(self.highest.wrapping_add(step));
                self.seen[word] &= !mask;
            }
            self.highest = counter;
        }
        let (word, mask) = Self::place(counter);
        self.seen[word] |= mask;
    }

    fn bit(&self, counter: u32) -> bool {
        let (word, mask) = Self::place(counter);
        self.seen[word] & mask != 0
    }

    fn place(counter: u32) -> (usize, u64) {
        let slot = counter % WIDTH;
        ((slot / 64) as usize, 1 << (slot % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn old_epochs_and_seen_counters_are_refused() {
        let mut w = ReplayWindow::new(5);
        assert!(!w.is_new(4, 9));
        assert!(w.is_new(5, 0));
        w.record(5, 0);
        assert!(!w.is_new(5, 0));
        w.record(5, 5000);
        assert!(!w.is_new(5, 5000 - WIDTH));
        assert!(w.is_new(5, 5000 - WIDTH + 1));
        assert!(w.is_new(6, 0));
        w.record(6, 0);
        assert!(!w.is_new(5, 6000));
    }

    proptest! {
        #[test]
        fn no_counter_passes_twice(counters in prop::collection::vec(0u32..3000, 0..400)) {
            let mut w = ReplayWindow::new(1);
            let mut taken = BTreeSet::new();
            for c in counters {
                let new = w.is_new(1, c);
                let highest = taken.last().copied().unwrap_or(0);
                let expected = !taken.contains(&c) && (c > highest || highest - c < WIDTH);
                prop_assert_eq!(new, expected);
                if new {
                    w.record(1, c);
                    taken.insert(c);
                }
            }
        }
    }
}
