//! Backoff: slots counted while the channel is idle, frozen while it is busy (IEEE 802.11-2016, 10.3.4.3).
//!
//! No event per slot: a running countdown is one timer at its last slot. When the channel turns busy the
//! whole slots that have passed are subtracted; when it turns idle the rest resumes after DIFS. A countdown
//! that ends at the very instant another station begins is not stopped, as neither can have sensed the
//! other: both send.

use super::timers::Timers;

#[derive(Clone, Debug, Default)]
struct Countdown {
    busy: bool,
    /// When the channel, idle again, has been so for DIFS. Meaningful while not busy.
    clear_from_ns: u64,
    /// Slots to go; none if no countdown is under way.
    slots: Option<u64>,
    /// When the first of these slots began to count. Meaningful while the timer runs.
    counted_from_ns: u64,
}

/// The backoff of all stations.
pub(super) struct Contention {
    slot_ns: u64,
    difs_ns: u64,
    countdowns: Vec<Countdown>,
    timers: Timers,
}

impl Contention {
    /// `stations` on a channel that has long been idle.
    pub(super) fn new(stations: usize, slot_ns: u64, difs_ns: u64) -> Self {
        Self {
            slot_ns,
            difs_ns,
            countdowns: vec![Countdown::default(); stations],
            timers: Timers::new(stations),
        }
    }

    /// Whether `station` may send without backoff: its channel has been idle for DIFS.
    pub(super) fn is_clear(&self, station: usize, now_ns: u64) -> bool {
        let countdown = &self.countdowns[station];
        !countdown.busy && countdown.clear_from_ns <= now_ns
    }

    /// Starts a countdown of `slots`, in place of one that may be under way.
    pub(super) fn start(&mut self, station: usize, slots: u32, now_ns: u64) {
        self.countdowns[station].slots = Some(u64::from(slots));
        if !self.countdowns[station].busy {
            self.run(station, now_ns);
        }
    }

    /// Abandons the countdown.
    pub(super) fn stop(&mut self, station: usize) {
        self.countdowns[station].slots = None;
        self.timers.stop(station);
    }

    /// The channel at `station` turned busy.
    pub(super) fn turn_busy(&mut self, station: usize, now_ns: u64) {
        let countdown = &mut self.countdowns[station];
        countdown.busy = true;
        if self.timers.of(station).is_none_or(|at_ns| at_ns <= now_ns) {
            return;
        }
        self.timers.stop(station);
        let passed = now_ns.saturating_sub(countdown.counted_from_ns) / self.slot_ns;
        countdown.slots = countdown.slots.map(|slots| slots.saturating_sub(passed));
    }

    /// The channel at `station` turned idle.
    pub(super) fn turn_idle(&mut self, station: usize, now_ns: u64) {
        let countdown = &mut self.countdowns[station];
        countdown.busy = false;
        countdown.clear_from_ns = now_ns + self.difs_ns;
        if countdown.slots.is_some() {
            self.run(station, now_ns);
        }
    }

    fn run(&mut self, station: usize, now_ns: u64) {
        let countdown = &mut self.countdowns[station];
        countdown.counted_from_ns = countdown.clear_from_ns.max(now_ns);
        let slots = countdown.slots.unwrap_or(0);
        self.timers.start(station, countdown.counted_from_ns + slots * self.slot_ns);
    }

    /// When the next countdown ends.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.timers.first().map(|(at_ns, _)| at_ns)
    }

    /// Takes the next station whose countdown ends at `now_ns` or before.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<usize> {
        let (_, station) = self.timers.first().filter(|&(at_ns, _)| at_ns <= now_ns)?;
        self.stop(station);
        Some(station)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_slots_are_counted_across_a_busy_period() {
        let mut contention = Contention::new(1, 20, 50);
        contention.turn_busy(0, 0);
        contention.turn_idle(0, 100);
        assert!(!contention.is_clear(0, 149));
        assert!(contention.is_clear(0, 150));
        contention.start(0, 5, 100);
        assert_eq!(contention.next_ns(), Some(150 + 5 * 20));
        // Two slots and a half have passed: three remain.
        contention.turn_busy(0, 150 + 50);
        assert_eq!(contention.next_ns(), None);
        contention.turn_idle(0, 1_000);
        assert_eq!(contention.next_ns(), Some(1_000 + 50 + 3 * 20));
        // Busy within DIFS: nothing was counted.
        contention.turn_busy(0, 1_049);
        contention.turn_idle(0, 2_000);
        assert_eq!(contention.take_due(2_109), None);
        assert_eq!(contention.take_due(2_110), Some(0));
        assert_eq!(contention.next_ns(), None);
    }

    #[test]
    fn an_ending_countdown_is_not_stopped_by_a_frame_of_the_same_instant() {
        let mut contention = Contention::new(1, 20, 50);
        contention.start(0, 2, 0);
        contention.turn_busy(0, 40);
        assert_eq!(contention.take_due(40), Some(0));
    }
}
