//! Round-trip times of a connection, and the retransmission timeout that follows from them.

use ncmesh_engine::time::Duration;

/// Smallest allowance for the variation of round-trip times (Linux: `TCP_RTO_MIN`), where the
/// scenario states no least timeout.
pub(super) const MIN_VARIATION: Duration = Duration::from_millis(200);

/// Estimator of round-trip times (RFC 6298). The variation is Linux's: it grows at once and shrinks
/// once in a round-trip, so that a queue that fills does not look like a dead path.
#[derive(Debug)]
pub(super) struct RttEstimator {
    pub smoothed: Option<Duration>,
    pub min: Option<Duration>,
    /// Smallest allowance for the variation.
    min_variation: Duration,
    /// Four times the mean deviation, and its maximum in this round-trip.
    deviation: Duration,
    deviation_max: Duration,
    /// Part of a retransmission timeout beyond the smoothed round-trip time.
    pub variation: Duration,
    /// Offset whose acknowledgment ends the round-trip.
    round_end: u64,
}

impl RttEstimator {
    /// Returns an estimator without samples, whose variation is at least `min_variation`.
    pub(super) fn new(min_variation: Duration) -> Self {
        Self {
            smoothed: None,
            min: None,
            min_variation,
            deviation: Duration::ZERO,
            deviation_max: min_variation,
            variation: min_variation,
            round_end: 0,
        }
    }

    /// Adds a round-trip time. `una` and `next` are the sender's.
    pub(super) fn add(&mut self, rtt: Duration, una: u64, next: u64) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));

        // The first sample (RFC 6298, 2.2): the deviation is half of it, here four times that.
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(rtt);
            self.deviation = rtt * 2;
            self.variation = self.deviation.max(self.min_variation);
            self.deviation_max = self.variation;
            self.round_end = next;
            return;
        };

        // SRTT with alpha = 1/8 (RFC 6298, 2.3).
        self.smoothed = Some((smoothed * 7 + rtt) / 8);

        // The mean deviation, with beta = 1/4. A round-trip time that falls is no reason to expect
        // a longer one, so its deviation counts an eighth.
        let deviation = smoothed.max(rtt) - smoothed.min(rtt);
        let mean = self.deviation / 4;
        if deviation <= mean {
            self.deviation = self.deviation.saturating_sub(mean - deviation);
        } else if rtt < smoothed {
            self.deviation += (deviation - mean) / 8;
        } else {
            self.deviation += deviation - mean;
        }

        // The variation follows the largest deviation at once. After each round-trip it falls by a
        // quarter of the difference, and the maximum begins anew.
        self.deviation_max = self.deviation_max.max(self.deviation);
        self.variation = self.variation.max(self.deviation_max);
        if una > self.round_end {
            if self.deviation_max < self.variation {
                self.variation -= (self.variation - self.deviation_max) / 4;
            }
            self.round_end = next;
            self.deviation_max = self.min_variation;
        }
    }
}
