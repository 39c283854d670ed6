//! Measures how far the medium is behind the wall clock.

use std::time::Duration;

/// Mean and largest lag, and whether the limit was exceeded for too long.
#[derive(Debug)]
pub(super) struct LagMeter {
    limit_ns: u64,
    timeout_ns: u64,
    behind_since_ns: Option<u64>,
    too_much: bool,
    samples: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl LagMeter {
    /// Returns a meter for which a lag above `limit` that lasts for `timeout` is too much.
    pub(super) fn new(limit: Duration, timeout: Duration) -> Self {
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self {
            limit_ns: ns(limit),
            timeout_ns: ns(timeout),
            behind_since_ns: None,
            too_much: false,
            samples: 0,
            sum_ns: 0,
            max_ns: 0,
        }
    }

    /// Notes that an event due at `due_ns` is handled at wall time `wall_ns`.
    pub(super) fn sample(&mut self, wall_ns: u64, due_ns: u64) {
        let lag_ns = wall_ns.saturating_sub(due_ns);
        self.samples += 1;
        self.sum_ns += u128::from(lag_ns);
        self.max_ns = self.max_ns.max(lag_ns);
        if lag_ns <= self.limit_ns {
            return self.caught_up();
        }

        // The lag has exceeded the limit from that moment on, even if no event was handled between.
        let since_ns = self.behind_since_ns.get_or_insert(due_ns + self.limit_ns);
        self.too_much |= wall_ns - *since_ns >= self.timeout_ns;
    }

    /// Notes that no event is due.
    pub(super) fn caught_up(&mut self) {
        self.behind_since_ns = None;
    }

    /// Returns whether the lag has ever exceeded its limit for longer than allowed.
    pub(super) fn is_too_much(&self) -> bool {
        self.too_much
    }

    /// Returns the largest lag, ns.
    pub(super) fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the mean of all samples, ns.
    pub(super) fn mean_ns(&self) -> u64 {
        (self.sum_ns / u128::from(self.samples.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lag_that_lasts_is_too_much() {
        let mut meter = LagMeter::new(Duration::from_nanos(10), Duration::from_nanos(100));
        meter.sample(50, 30);
        meter.sample(139, 120);
        assert!(!meter.is_too_much());
        meter.sample(139, 135);
        meter.sample(150, 130);
        assert!(!meter.is_too_much());
        meter.sample(240, 220);
        assert!(meter.is_too_much());
        assert_eq!((meter.max_ns(), meter.mean_ns()), (20, 16));
    }
}
