//! Round-trip times of a connection, and the retransmission timeout that follows from them.

use ncmesh_engine::time::Duration;

/// Least allowance for the variation of round-trip times (Linux: `TCP_RTO_MIN`).
pub(super) const MIN_VARIATION: Duration = Duration::from_millis(200);

/// Round-trip times (RFC 6298), with the variation as Linux estimates it: one that grows at once
/// and shrinks once per round-trip, so that a queue that fills does not look like a dead path.
#[derive(Debug)]
pub(super) struct RoundTrips {
    pub smoothed: Option<Duration>,
    pub least: Option<Duration>,
    /// Four times the mean deviation, and its maximum in this round-trip.
    deviation: Duration,
    deviation_max: Duration,
    /// What a retransmission timeout adds to the smoothed round-trip time.
    pub variation: Duration,
    /// Offset whose acknowledgment ends the round-trip.
    round_end: u64,
}

impl RoundTrips {
    pub(super) fn new() -> Self {
        Self {
            smoothed: None,
            least: None,
            deviation: Duration::ZERO,
            deviation_max: MIN_VARIATION,
            variation: MIN_VARIATION,
            round_end: 0,
        }
    }

    /// Adds a round-trip time. `una` and `next` are the sender's.
    pub(super) fn add(&mut self, rtt: Duration, una: u64, next: u64) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(rtt);
            self.deviation = rtt * 2;
            self.variation = self.deviation.max(MIN_VARIATION);
            self.deviation_max = self.variation;
            self.round_end = next;
            return;
        };
        self.smoothed = Some((smoothed * 7 + rtt) / 8);

        // A round-trip time that falls is no reason to expect a longer one: it counts an eighth.
        let deviation = smoothed.max(rtt) - smoothed.min(rtt);
        let mean = self.deviation / 4;
        if deviation <= mean {
            self.deviation = self.deviation.saturating_sub(mean - deviation);
        } else if rtt < smoothed {
            self.deviation += (deviation - mean) / 8;
        } else {
            self.deviation += deviation - mean;
        }

        self.deviation_max = self.deviation_max.max(self.deviation);
        self.variation = self.variation.max(self.deviation_max);
        if una > self.round_end {
            if self.deviation_max < self.variation {
                self.variation -= (self.variation - self.deviation_max) / 4;
            }
            self.round_end = next;
            self.deviation_max = MIN_VARIATION;
        }
    }
}
