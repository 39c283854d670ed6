//! Sequence numbers that wrap (RFC 1982), and windows over those received lately.
//!
//! The replay window of [`ncmesh_wire`] is another mechanism on purpose: its counters never wrap
//! within an epoch, and it is sixteen times as wide.

/// A sequence number that wraps.
pub trait Serial: Copy + Eq {
    /// Returns how far this number lies ahead of `other`, counting upwards and wrapping.
    fn ahead_of(self, other: Self) -> u32;

    /// Number of values, less one.
    const MAX: u32;

    /// Returns whether this number is newer than `other`: ahead of it by at most half the numbers.
    fn is_newer_than(self, other: Self) -> bool {
        (1..=Self::MAX / 2).contains(&self.ahead_of(other))
    }
}

impl Serial for u16 {
    const MAX: u32 = u16::MAX as u32;

    fn ahead_of(self, other: Self) -> u32 {
        self.wrapping_sub(other).into()
    }
}

impl Serial for u32 {
    const MAX: u32 = u32::MAX;

    fn ahead_of(self, other: Self) -> u32 {
        self.wrapping_sub(other)
    }
}

/// Numbers behind a node's latest one that count as older. A greater distance comes from a node
/// that started anew: it counts from a random number on.
const OLDER: u16 = 1024;

/// Returns whether a frame with this number was sent before the frame with number `latest`, by a
/// node that begins at a random number whenever it starts.
#[must_use]
pub fn is_older(number: u16, latest: u16) -> bool {
    (1..=u32::from(OLDER)).contains(&latest.ahead_of(number))
}

/// The latest number received, and which of the 64 before it were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceWindow<S> {
    latest: S,
    /// Bit i: the number i + 1 before the latest was received.
    before: u64,
}

/// Result of receiving a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is newer than all before, by so much.
    Ahead(u32),
    /// It is older than the latest, by so much, and was not received before.
    Late(u32),
    /// It was received before.
    Duplicate,
    /// It is older than the window reaches.
    TooOld,
}

impl<S: Serial> SequenceWindow<S> {
    /// Numbers before the latest that are told apart.
    pub const WIDTH: u32 = 64;

    /// Returns a window in which `first` is the only number received.
    #[must_use]
    pub fn new(first: S) -> Self {
        Self { latest: first, before: 0 }
    }

    /// Returns the latest number received.
    #[must_use]
    pub fn latest(&self) -> S {
        self.latest
    }

    /// Returns which numbers before the latest were received; bit i stands for the one i + 1
    /// before.
    #[must_use]
    pub fn before(&self) -> u64 {
        self.before
    }

    /// Records that `number` was received.
    pub fn receive(&mut self, number: S) -> Received {
        if number == self.latest {
            return Received::Duplicate;
        }
        if number.is_newer_than(self.latest) {
            // The window moves up: what was the latest number becomes a bit behind the new one.
            let ahead = number.ahead_of(self.latest);
            let shifted = self.before.checked_shl(ahead).unwrap_or(0);
            self.before = shifted | 1u64.checked_shl(ahead - 1).unwrap_or(0);
            self.latest = number;
            return Received::Ahead(ahead);
        }

        // A late number is new if its bit is not set, and the window reaches back so far.
        let behind = self.latest.ahead_of(number);
        let bit = 1u64.checked_shl(behind - 1).unwrap_or(0);
        if bit == 0 {
            return Received::TooOld;
        }
        if self.before & bit != 0 {
            return Received::Duplicate;
        }
        self.before |= bit;
        Received::Late(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn newer_means_ahead_by_less_than_half() {
        assert!(1u16.is_newer_than(u16::MAX));
        assert!(!u16::MAX.is_newer_than(1));
        assert!(!7u16.is_newer_than(7));
        assert!(0x8000u16.is_newer_than(1) && !0x8001u16.is_newer_than(1));
    }

    #[test]
    fn a_number_far_behind_is_of_another_start() {
        assert!([4, 3, u16::MAX, 5u16.wrapping_sub(OLDER)].iter().all(|n| is_older(*n, 5)));
        assert!([5, 6, 1000, 5u16.wrapping_sub(OLDER + 1)].iter().all(|n| !is_older(*n, 5)));
    }

    proptest! {
        /// Numbers in any order, beginning anywhere: each is new once while the window reaches it.
        #[test]
        fn each_number_is_new_once(
            start: u16,
            steps in prop::collection::vec(0..150u16, 1..200),
        ) {
            let mut window = SequenceWindow::new(start);
            let mut seen = BTreeSet::from([0u16]);
            let mut newest = 0u16;
            for step in steps {
                let expected = if step > newest {
                    Received::Ahead(u32::from(step - newest))
                } else if seen.contains(&step) && newest - step <= 64 {
                    Received::Duplicate
                } else if newest - step > 64 {
                    Received::TooOld
                } else {
                    Received::Late(u32::from(newest - step))
                };
                prop_assert_eq!(window.receive(start.wrapping_add(step)), expected);
                seen.insert(step);
                newest = newest.max(step);
                for i in 0..u16::min(64, newest) {
                    let received = seen.contains(&(newest - 1 - i));
                    prop_assert_eq!(window.before() >> i & 1 == 1, received);
                }
            }
        }
    }
}
