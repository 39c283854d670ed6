//! Pacing of frames under a rate limit, or by the driver's back-pressure.

use crate::config::Rate;
use ncmesh_engine::toolkit::average::DurationAverage;
use std::time::{Duration, Instant};

/// Largest delay that later frames may make up for. It covers a few scheduling delays of a busy
/// machine, so that the rate is kept, but not the time a process slept.
const MAX_CATCH_UP: Duration = Duration::from_millis(20);

/// Most that is sent if neither the configuration nor the driver says more: the lowest rate in the
/// 2.4 GHz band, at which Wi-Fi sends broadcasts there by default.
pub(super) const DEFAULT_RATE: Rate = Rate { bits_per_second: 1e6 };

/// Returns what holds frames back under this rate; without one, the driver's back-pressure does, or
/// the default rate.
pub(super) fn limits(rate: Option<Rate>, now: Instant) -> (Pacing, BackPressure) {
    let bits_per_second = rate.unwrap_or(DEFAULT_RATE).bits_per_second;
    (Pacing::new(bits_per_second, now), BackPressure::new(rate.is_none(), now))
}

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

/// Frames that are sent one after the other to see whether the driver holds them back.
const PROBE_FRAMES: u32 = 3;
/// Time between two such attempts.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// Attempts after which a driver counts as one without back-pressure.
const PROBES: u32 = 3;
/// Airtime of a frame measured by back-pressure is at least this share of that at the rate limit:
/// 54 Mbit/s at the default.
const SHORTEST: u32 = 54;

/// Longest and shortest time of a frame at which the number of frames in the driver changes.
const FAST: Duration = Duration::from_millis(2);
const SLOW: Duration = Duration::from_millis(4);
/// Time after which a driver that is fast is measured again, with one frame in it.
const FAST_FOR: Duration = Duration::from_secs(10);
/// Weight of the newest frame in the mean time of one.
const NEWEST: f64 = 0.125;

/// How many frames wait in the driver.
///
/// A frame that waits there can neither be coded anew nor be overtaken, and what is said of it by
/// others before it is on the air is misread: on a channel of 2 Mbit/s three frames are 20 ms. So
/// one frame is there at a time, and the next one is made when it has left. Where a frame takes no
/// longer than a process needs to wake up, the channel would be idle meanwhile; several wait then.
///
/// One frame does not decide: where the queue allows a burst, the first frame after a pause leaves
/// at once on a slow channel, too. So the mean begins slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depth {
    /// Since when the driver is fast.
    fast_since: Option<Instant>,
    mean: DurationAverage,
}

impl Default for Depth {
    fn default() -> Self {
        Self { fast_since: None, mean: DurationAverage::starting_at(SLOW, NEWEST) }
    }
}

impl Depth {
    /// Notes that a long frame took this time to leave the driver, once it was its turn. Returns
    /// whether [`is_fast`](Self::is_fast) changed.
    pub(super) fn note(&mut self, took: Duration, now: Instant) -> bool {
        self.mean.add(took);
        let mean = self.mean.value();
        match self.fast_since {
            // The time of a frame is known exactly while it is alone.
            Some(since) if mean >= SLOW || now >= since + FAST_FOR => *self = Self::default(),
            None if mean < FAST => self.fast_since = Some(now),
            _ => return false,
        }
        true
    }

    /// Returns whether several frames wait in the driver.
    pub(super) fn is_fast(self) -> bool {
        self.fast_since.is_some()
    }
}

/// Cost of a frame that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Time for which it uses the channel, as far as is known.
    pub(super) airtime: Duration,
    /// Whether the next frame waits for the rate limit.
    pub(super) is_paced: bool,
}

/// Whether the driver holds frames back while the channel is busy, so that no rate need be known.
///
/// Only a sender without a configured rate asks: now and then it sends a few frames without pacing,
/// and sees whether they fill half the send buffer.
#[derive(Debug)]
pub(super) struct BackPressure {
    /// Whether no rate is configured.
    asks: bool,
    is_felt: bool,
    probes: u32,
    /// Frames of the present attempt that are still to be sent.
    left: u32,
    next_probe: Instant,
    /// When the last frame was sent.
    sent_at: Instant,
}

impl BackPressure {
    /// Returns a driver of which nothing is known.
    pub(super) fn new(asks: bool, now: Instant) -> Self {
        Self { asks, is_felt: false, probes: 0, left: 0, next_probe: now, sent_at: now }
    }

    /// Notes that the driver holds frames back. Returns whether that is news.
    pub(super) fn felt(&mut self) -> bool {
        let is_news = self.is_missing();
        (self.is_felt, self.left) = (true, 0);
        is_news
    }

    /// Notes that a frame was sent that takes `airtime` at the rate limit. Returns what it costs.
    pub(super) fn sent(&mut self, airtime: Duration, now: Instant) -> Cost {
        // With a configured rate nothing is measured: the user knows better.
        let since = now.saturating_duration_since(self.sent_at);
        self.sent_at = now;
        if !self.asks {
            return Cost { airtime, is_paced: true };
        }

        if self.is_felt {
            // The driver takes frames one by one: the time since the last one is that of a frame.
            // The time that a frame was in the driver alone is nearer to the truth after a pause,
            // but connections over hidden hops were slower with it: engines wait by this time.
            return Cost { airtime: since.clamp(airtime / SHORTEST, airtime), is_paced: false };
        }

        // Now and then a few frames go without pacing, to see whether they fill the buffer.
        if self.left == 0 && now >= self.next_probe {
            self.left = PROBE_FRAMES;
            self.probes += 1;
            self.next_probe = now + PROBE_INTERVAL;
        }

        let is_paced = self.left == 0;
        self.left = self.left.saturating_sub(1);
        Cost { airtime, is_paced }
    }

    /// Returns whether the driver was seen to hold frames back.
    pub(super) fn is_felt(&self) -> bool {
        self.is_felt
    }

    /// Returns when the last frame was sent.
    pub(super) fn sent_at(&self) -> Instant {
        self.sent_at
    }

    /// Returns whether a rate should be configured.
    pub(super) fn is_missing(&self) -> bool {
        self.asks && !self.is_felt && self.probes > PROBES
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

    #[test]
    fn several_frames_wait_in_a_driver_that_is_fast() {
        let mut depth = Depth::default();
        let ms = Duration::from_millis;
        let now = Instant::now();
        // A first frame that leaves at once says little.
        assert!(!depth.note(ms(0), now) && !depth.note(ms(7), now) && !depth.is_fast());
        // Within some frames it is known to be fast; a pause of 10 ms does not change that.
        let changed = (0..40).filter(|_| depth.note(Duration::from_micros(600), now)).count();
        assert!(changed == 1 && depth.is_fast());
        assert!(!depth.note(ms(10), now) && depth.is_fast());
        // Between both limits nothing changes, and a slow channel is one again.
        assert!((0..40).all(|_| !depth.note(ms(3), now)));
        assert_eq!((0..40).filter(|_| depth.note(ms(7), now)).count(), 1);
        assert!(!depth.is_fast());
        // After a while it is measured again, and what it was before does not count.
        let changed = (0..40).filter(|_| depth.note(ms(1), now)).count();
        assert!(changed == 1 && depth.is_fast());
        assert!(depth.note(ms(1), now + FAST_FOR) && !depth.is_fast());
        assert!(!depth.note(ms(3), now + FAST_FOR));
    }

    #[test]
    fn a_driver_is_asked_now_and_then_whether_it_holds_frames_back() {
        let start = Instant::now();
        let mut pressure = BackPressure::new(true, start);
        let airtime = Duration::from_millis(12);
        let mut now = start;
        let mut unpaced = Vec::new();
        for frame in 0..4000 {
            let cost = pressure.sent(airtime, now);
            assert_eq!(cost.airtime, airtime);
            if cost.is_paced {
                now += airtime;
            } else {
                unpaced.push(frame);
            }
        }
        // Three frames each ten seconds, and after three attempts in vain people are told.
        assert_eq!(unpaced[..4], [0, 1, 2, 837]);
        assert!(pressure.is_missing());

        // One that is felt is all the limit there is.
        assert!(pressure.felt() && !pressure.felt() && !pressure.is_missing());
        pressure.sent(airtime, now);
        let cost = pressure.sent(airtime, now + airtime / 4);
        assert_eq!(cost, Cost { airtime: airtime / 4, is_paced: false });

        let mut configured = BackPressure::new(false, start);
        assert!(!configured.felt());
        assert_eq!(configured.sent(airtime, start), Cost { airtime, is_paced: true });
    }
}
