//! When the next frame may leave under a rate cap.

use std::time::{Duration, Instant};

/// A late frame lets the next ones follow sooner, but by no more than this: a few turns of a busy machine's
/// scheduler are made up for, so that the rate is kept, what a sleeping process missed is not.
const MAX_CATCH_UP: Duration = Duration::from_millis(20);

/// The pacing clock.
#[derive(Debug)]
pub(super) struct Pacing {
    bits_per_second: f64,
    next: Instant,
}

impl Pacing {
    pub(super) fn new(bits_per_second: f64, now: Instant) -> Self {
        Self { bits_per_second, next: now }
    }

    /// When the next frame may leave.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// How long `bytes` use the channel.
    pub(super) fn airtime(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8.0 / self.bits_per_second)
    }

    /// A frame of `bytes` leaves at `now`.
    pub(super) fn sent(&mut self, bytes: usize, now: Instant) {
        let earliest = now.checked_sub(MAX_CATCH_UP).unwrap_or(now);
        self.next = self.next.max(earliest) + self.airtime(bytes);
    }

    /// Nothing leaves before `pause` is over.
    pub(super) fn pause(&mut self, pause: Duration, now: Instant) {
        self.next = self.next.max(now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_rate_though_woken_late_but_makes_no_bursts() {
        let start = Instant::now();
        let mut pacing = Pacing::new(8e6, start);
        // 1,000 bytes take 1 ms; every frame leaves 0.4 ms late.
        for _ in 0..100 {
            let at = pacing.next() + Duration::from_micros(400);
            pacing.sent(1000, at);
        }
        assert_eq!(pacing.next() - start, Duration::from_millis(100));
        // Then the process does not run for 15 ms.
        pacing.sent(1000, pacing.next() + Duration::from_millis(15));
        assert_eq!(pacing.next() - start, Duration::from_millis(101));
        let woken = start + Duration::from_secs(9);
        pacing.sent(1000, woken);
        assert_eq!(woken - pacing.next(), MAX_CATCH_UP - Duration::from_millis(1));
    }
}
