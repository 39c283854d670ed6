//! Exponentially weighted moving average of durations.

use crate::time::Duration;

/// Weight of the newest sample.
const NEWEST: f64 = 0.1;

/// Returns the average after `newest`; `newest` itself if there was no sample before (zero).
#[must_use]
pub fn mean(old: Duration, newest: Duration) -> Duration {
    if old.is_zero() {
        return newest;
    }
    old.mul_f64(1.0 - NEWEST) + newest.mul_f64(NEWEST)
}
