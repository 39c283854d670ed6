//! Controlled delay, RFC 8289: which packets of a queue to drop so that its connection slows down before the queue
//! becomes long. What matters is how long packets wait, not how many there are.

use ncmesh_engine::time::{Duration, Instant};

/// Delay that is taken as it is. Many times what a packet takes on a slow channel that others share, as Linux has it
/// for slow stations (mac80211).
const TARGET: Duration = Duration::from_millis(50);
/// How long packets must have waited longer than that: a slow mesh's round-trip time.
const INTERVAL: Duration = Duration::from_millis(300);
/// In so many intervals after it ended a state of dropping is taken up again where it was.
const MEMORY: u32 = 16;

/// The state of one queue.
#[derive(Debug, Default)]
pub(super) struct Codel {
    /// When delay will have been too long for an interval.
    late_from: Option<Instant>,
    dropping: bool,
    next_drop: Instant,
    /// Packets dropped in this state of dropping, and the first count of it.
    count: u32,
    first_count: u32,
}

impl Codel {
    /// A packet leaves the queue after `wait`, perhaps as the last one there. Says whether it is to be dropped.
    pub(super) fn drops(&mut self, wait: Duration, is_last: bool, now: Instant) -> bool {
        let late = self.is_late(wait, is_last, now);
        match (self.dropping, late) {
            (_, false) => {
                self.dropping = false;
                false
            }
            (true, true) if now < self.next_drop => false,
            (true, true) => {
                self.count += 1;
                self.next_drop = self.next_drop + self.pause();
                true
            }
            (false, true) => {
                self.begin(now);
                true
            }
        }
    }

    fn is_late(&mut self, wait: Duration, is_last: bool, now: Instant) -> bool {
        if wait < TARGET || is_last {
            self.late_from = None;
            return false;
        }
        *self.late_from.get_or_insert(now + INTERVAL) <= now
    }

    /// The first packet is dropped, at the pace of the last time where that is not long ago.
    fn begin(&mut self, now: Instant) {
        let more = self.count - self.first_count;
        let recent = now < self.next_drop + INTERVAL * MEMORY;
        self.count = if recent && more > 1 { more } else { 1 };
        self.first_count = self.count;
        self.dropping = true;
        self.next_drop = now + self.pause();
    }

    /// Until the next drop.
    fn pause(&self) -> Duration {
        INTERVAL.div_f64(f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// When packets are dropped of one every 10 ms from `from` to `to` that waited for `wait` ms.
    fn dropped(codel: &mut Codel, (from, to): (u64, u64), wait: u64) -> Vec<u64> {
        let leaves = (from..to).step_by(10);
        leaves.filter(|ms| codel.drops(Duration::from_millis(wait), false, at(*ms))).collect()
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
        let last = |ms: u64| codel.drops(Duration::from_secs(1), true, at(3000 + 10 * ms));
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
