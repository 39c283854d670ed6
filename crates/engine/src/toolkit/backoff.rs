//! Exponential backoff: pauses that double up to a longest one.

use crate::time::Duration;

/// Pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Pause before anything is doubled.
    pub first: Duration,
    /// Longest pause.
    pub longest: Duration,
}

impl Backoff {
    /// Returns the pause after this many doublings of the first one.
    #[must_use]
    pub fn pause(&self, doublings: u32) -> Duration {
        let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.first.checked_mul(factor).unwrap_or(self.longest).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pauses_double_and_stay_below_the_longest(
            first_ms in 1..10_000u64,
            longest_ms in 1..1_000_000u64,
            doublings in 0..200u32,
        ) {
            let longest = Duration::from_millis(longest_ms);
            let backoff = Backoff { first: Duration::from_millis(first_ms), longest };
            let pause = backoff.pause(doublings);
            let next = backoff.pause(doublings + 1);
            prop_assert_eq!(backoff.pause(0), backoff.first.min(longest));
            prop_assert_eq!(next, pause.saturating_mul(2).min(longest));
        }
    }
}
