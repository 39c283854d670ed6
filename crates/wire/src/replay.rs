//! The replay window: accepts each frame of a sender once.
//!
//! The window holds one bit for each of the last [`WIDTH`] counters up to the highest one received,
//! like the sliding window of RFC 4303 (IPsec ESP), section 3.4.3. Frames may arrive out of order
//! within the window; older frames are rejected. The bits are a ring, indexed by the counter modulo
//! the width, so that the window moves without shifting.

/// Number of counters that the window distinguishes.
const WIDTH: u32 = 1024;
const WORDS: usize = (WIDTH / 64) as usize;

/// Received frames of one sender: its latest epoch, and the counters received in it.
///
/// Frames of older epochs are rejected. A newer epoch starts with an empty window.
#[derive(Clone, Debug)]
pub(crate) struct ReplayWindow {
    epoch: u64,
    /// The highest counter received.
    highest: u32,
    /// One bit for each of the counters from `highest + 1 - WIDTH` to `highest`.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Creates an empty window that rejects epochs before `oldest_epoch`.
    #[must_use]
    pub(crate) fn new(oldest_epoch: u64) -> Self {
        Self { epoch: oldest_epoch, highest: 0, seen: [0; WORDS] }
    }

    /// Returns the latest epoch.
    #[must_use]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns whether the frame `(epoch, counter)` is new. The window does not change: the caller
    /// authenticates the frame and then calls [`record`](Self::record).
    #[must_use]
    pub(crate) fn is_new(&self, epoch: u64, counter: u32) -> bool {
        if epoch != self.epoch {
            return epoch > self.epoch;
        }
        if counter > self.highest {
            return true;
        }
        self.highest - counter < WIDTH && !self.bit(counter)
    }

    /// Records an authenticated frame, for which [`is_new`](Self::is_new) returned true.
    pub(crate) fn record(&mut self, epoch: u64, counter: u32) {
        if epoch > self.epoch {
            *self = Self { epoch, highest: counter, seen: [0; WORDS] };
        } else if counter > self.highest {
            // The window moves up. The bits of the counters that enter it still hold the counters
            // that leave it, one width below, so they are cleared.
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

    /// Returns whether `counter`, which is in the window, was received.
    fn bit(&self, counter: u32) -> bool {
        let (word, mask) = Self::place(counter);
        self.seen[word] & mask != 0
    }

    /// Returns the word and the bit mask of `counter` in the ring.
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
