//! CoDel, controlled delay (RFC 8289), for one queue.
//!
//! A packet that leaves the queue after more than [`TARGET`] starts a timer. If every packet for an
//! [`INTERVAL`] waited that long, the queue is a standing one: CoDel drops one packet, and then
//! more at shrinking intervals (`INTERVAL / sqrt(count)`), until one packet leaves in time.

use ncmesh_engine::time::{Duration, Instant};

/// Delay that is acceptable. Many times what a packet takes on a slow channel that others share, as
/// Linux sets it for slow stations (mac80211).
const TARGET: Duration = Duration::from_millis(50);
/// Time that the delay must exceed the target before anything is dropped: a slow mesh's round-trip
/// time.
const INTERVAL: Duration = Duration::from_millis(300);
/// Intervals within which a new drop state continues at the rate of the last one.
const MEMORY: u32 = 16;

/// CoDel state of one queue. The fields are those of RFC 8289, section 5.3.
#[derive(Debug, Default)]
pub(super) struct Codel {
    /// When the delay will have exceeded the target for one interval (`first_above_time`).
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    /// Packets dropped since the queue entered the drop state.
    count: u32,
    /// `count` when it entered the drop state.
    last_count: u32,
}

impl Codel {
    /// Notes that a packet leaves the queue after `wait`; `is_last` if none is left behind it.
    /// Returns whether to drop it.
    pub(super) fn handle_dequeue(&mut self, wait: Duration, is_last: bool, now: Instant) -> bool {
        match (self.dropping, self.update_delay(wait, is_last, now)) {
            // A packet left in time: the queue drains by itself.
            (_, false) => {
                self.dropping = false;
                false
            }

            // In the drop state, between two drops.
            (true, true) if now < self.drop_next => false,
            // Each further drop comes sooner than the one before, until the queue drains.
            (true, true) => {
                self.count += 1;
                self.drop_next = self.drop_next + self.drop_interval();
                true
            }
            (false, true) => {
                self.enter_drop_state(now);
                true
            }
        }
    }

    /// Returns whether every packet of the last interval waited for longer than the target.
    fn update_delay(&mut self, wait: Duration, is_last: bool, now: Instant) -> bool {
        if wait < TARGET || is_last {
            self.first_above = None;
            return false;
        }
        *self.first_above.get_or_insert(now + INTERVAL) <= now
    }

    /// Starts to drop: at the rate that the last drop state reached, if that is not long ago.
    fn enter_drop_state(&mut self, now: Instant) {
        // How many drops it took last time is a first guess of how many it takes now.
        let increase = self.count - self.last_count;
        let is_recent = now < self.drop_next + INTERVAL * MEMORY;
        self.count = if is_recent && increase > 1 { increase } else { 1 };

        self.last_count = self.count;
        self.dropping = true;
        self.drop_next = now + self.drop_interval();
    }

    /// Time until the next drop (the control law of RFC 8289, section 3.3).
    fn drop_interval(&self) -> Duration {
        INTERVAL.div_f64(f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Times, in ms, at which a queue drops that gives out a packet every 10 ms from `from` to
    /// `to`, each after a wait of `wait` ms.
    fn dropped(codel: &mut Codel, (from, to): (u64, u64), wait: u64) -> Vec<u64> {
        let leaves = (from..to).step_by(10);
        leaves
            .filter(|ms| codel.handle_dequeue(Duration::from_millis(wait), false, at(*ms)))
            .collect()
    }

    #[test]
    fn a_standing_queue_is_dropped_from_ever_more_often() {
        let mut codel = Codel::default();
        assert!(dropped(&mut codel, (0, 1000), 49).is_empty());
        // After an interval; then after 300, 300/sqrt(2), 300/sqrt(3) ms.
        assert_eq!(dropped(&mut codel, (1000, 2200), 50), [1300, 1600, 1820, 1990, 2140]);
        assert!(dropped(&mut codel, (2200, 2300), 10).is_empty());
    }

    #[test]
    fn short_bursts_and_the_last_packet_pass() {
        let mut codel = Codel::default();
        for burst in [0, 1000, 2000] {
            assert!(dropped(&mut codel, (burst, burst + 300), 200).is_empty());
            assert!(dropped(&mut codel, (burst + 300, burst + 320), 0).is_empty());
        }
        let last = |ms: u64| codel.handle_dequeue(Duration::from_secs(1), true, at(3000 + 10 * ms));
        assert_eq!((0..200).map(last).filter(|dropped| *dropped).count(), 0);
    }

    #[test]
    fn it_goes_on_at_its_pace_where_the_queue_comes_back_soon() {
        let pauses = |pause: u64| {
            let mut codel = Codel::default();
            let first = dropped(&mut codel, (0, 4000), 100);
            assert!(dropped(&mut codel, (4000, 4000 + pause), 0).is_empty());
            let again = dropped(&mut codel, (4000 + pause, 6000 + pause), 100);
            (first[1] - first[0], again[1] - again[0])
        };
        let (slow, fast) = pauses(100);
        assert!(3 * fast < slow, "{slow} {fast}");
        assert_eq!(pauses(5000), (300, 300));
    }
}
