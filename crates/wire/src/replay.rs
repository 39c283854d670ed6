//! The replay window: accepts each frame of one start of a sender once.
//!
//! The window holds one bit for each of the last [`WIDTH`] counters up to the highest one received,
//! like the sliding window of RFC 4303 (IPsec ESP), section 3.4.3. Frames may arrive out of order
//! within the window; older frames are rejected. The bits are a ring, indexed by the counter modulo
//! the width, so that the window moves without shifting.

/// Number of counters that the window distinguishes.
pub const WIDTH: u32 = 1024;
const WORDS: usize = (WIDTH / 64) as usize;

/// Received frames of one start of a sender.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// The highest counter received.
    highest: u32,
    /// One bit for each of the counters from `highest + 1 - WIDTH` to `highest`.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Returns a window that takes the counters above `counter`, and none up to it.
    #[must_use]
    pub fn after(counter: u32) -> Self {
        Self { highest: counter, seen: [u64::MAX; WORDS] }
    }

    /// Returns the highest counter received.
    #[must_use]
    pub fn highest(&self) -> u32 {
        self.highest
    }

    /// Returns whether a frame is new. The window does not change: the caller authenticates the
    /// frame and then calls [`record`](Self::record).
    #[must_use]
    pub fn is_new(&self, counter: u32) -> bool {
        counter > self.highest || (self.highest - counter < WIDTH && !self.bit(counter))
    }

    /// Records an authentic frame, for which [`is_new`](Self::is_new) returned true.
    pub fn record(&mut self, counter: u32) {
        if counter > self.highest {
            // The window moves up. The bits of the counters that enter it still hold the counters
            // that leave it, one width below, so they are cleared.
            let skipped = (counter - self.highest).min(WIDTH);
            for step in 0..skipped {
                let (word, mask) = Self::place(counter - step);
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
    fn a_window_takes_nothing_up_to_where_it_begins() {
        let mut w = ReplayWindow::after(5000);
        assert!(!w.is_new(5000) && !w.is_new(4999) && !w.is_new(0));
        assert!(w.is_new(5001));
        w.record(5010);
        assert!(w.is_new(5001) && !w.is_new(5000) && !w.is_new(5010));
        w.record(5010 + WIDTH);
        assert!(!w.is_new(5010) && w.is_new(5011));
    }

    proptest! {
        #[test]
        fn no_counter_passes_twice(counters in prop::collection::vec(0u32..3000, 0..400)) {
            let mut w = ReplayWindow::after(0);
            let mut taken = BTreeSet::from([0]);
            for c in counters {
                let new = w.is_new(c);
                let highest = taken.last().copied().unwrap_or(0);
                let expected = !taken.contains(&c) && (c > highest || highest - c < WIDTH);
                prop_assert_eq!(new, expected);
                if new {
                    w.record(c);
                    taken.insert(c);
                }
            }
        }
    }
}
