//! Pacing of frames under a rate limit.

use std::time::{Duration, Instant};

/// Largest delay that later frames may make up for. It covers a few scheduling delays of a busy
/// machine, so that the rate is kept, but not the time a process slept.
const MAX_CATCH_UP: Duration = Duration::from_millis(20);

/// Clock that paces frames.
#[derive(Debug)]
pub(super) struct Pacing {
    bits_per_second: f64,
    next: Instant,
}

impl Pacing {
    pub(super) fn new(bits_per_second: f64, now: Instant) -> Self {
        Self { bits_per_second, next: now }
    }

    /// Returns the time at which the next frame may be sent.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Returns the time for which `bytes` use the channel.
    pub(super) fn airtime(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8.0 / self.bits_per_second)
    }

    /// Notes that a frame of `bytes` is sent at `now`.
    pub(super) fn sent(&mut self, bytes: usize, now: Instant) {
        let earliest = now.checked_sub(MAX_CATCH_UP).unwrap_or(now);
        self.next = self.next.max(earliest) + self.airtime(bytes);
    }

    /// Delays the next frame until `pause` is over.
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
        // 1,000 bytes take 1 ms, and every frame is sent 0.4 ms late.
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
