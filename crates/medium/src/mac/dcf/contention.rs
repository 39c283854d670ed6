//! Backoff: slots counted while the channel is idle, frozen while it is busy (IEEE 802.11-2016, 10.3.4.3).
//!
//! No event per slot: a running countdown is one timer at its last slot. When the channel turns busy the
//! whole slots that have passed are subtracted; when it turns idle the rest resumes after DIFS or EIFS. A countdown
//! that ends at the very instant another station begins is not stopped, as neither can have sensed the
//! other: both send.

use super::timers::Timers;
use crate::Phy;

#[derive(Clone, Debug, Default)]
struct Countdown {
    busy: bool,
    /// When the channel, idle again, has been so for DIFS or EIFS. Meaningful while not busy.
    clear_from_ns: u64,
    /// Frames heard claim the channel until then (NAV).
    nav_until_ns: u64,
    /// Not clear before that, since the last frame could not be read.
    eifs_until_ns: u64,
    /// Slots to go; none if no countdown is under way.
    slots: Option<u64>,
    /// When the first of these slots began to count. Meaningful while the timer runs.
    counted_from_ns: u64,
}

/// The backoff of all stations.
pub(super) struct Contention {
    phy: Phy,
    countdowns: Vec<Countdown>,
    timers: Timers,
}

impl Contention {
    /// `stations` on a channel that has long been idle.
    pub(super) fn new(stations: usize, phy: Phy) -> Self {
        Self {
            phy,
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
        let passed = now_ns.saturating_sub(countdown.counted_from_ns) / self.phy.slot_ns;
        countdown.slots = countdown.slots.map(|slots| slots.saturating_sub(passed));
    }

    /// The channel at `station` turned idle.
    pub(super) fn turn_idle(&mut self, station: usize, now_ns: u64) {
        let countdown = &mut self.countdowns[station];
        countdown.busy = false;
        let idle_from_ns = now_ns.max(countdown.nav_until_ns);
        countdown.clear_from_ns = (idle_from_ns + self.phy.difs_ns).max(countdown.eifs_until_ns);
        if countdown.slots.is_some() {
            self.run(station, now_ns);
        }
    }

    /// `station`, its channel busy still, has received a frame: one that is read cancels EIFS and claims the
    /// channel until `nav_until_ns`, one that is not starts EIFS (IEEE 802.11-2016, 10.3.2.3.7, 10.3.2.4).
    pub(super) fn receive(&mut self, station: usize, now_ns: u64, read: Option<u64>) {
        let countdown = &mut self.countdowns[station];
        match read {
            Some(nav_until_ns) => {
                countdown.eifs_until_ns = 0;
                countdown.nav_until_ns = countdown.nav_until_ns.max(nav_until_ns);
            }
            None => countdown.eifs_until_ns = now_ns + self.phy.eifs_ns(),
        }
    }

    /// Whether a frame heard by `station` claims the channel now.
    pub(super) fn is_claimed(&self, station: usize, now_ns: u64) -> bool {
        self.countdowns[station].nav_until_ns > now_ns
    }

    fn run(&mut self, station: usize, now_ns: u64) {
        let countdown = &mut self.countdowns[station];
        countdown.counted_from_ns = countdown.clear_from_ns.max(now_ns);
        let slots = countdown.slots.unwrap_or(0);
        self.timers.start(station, countdown.counted_from_ns + slots * self.phy.slot_ns);
    }

    /// When the next countdown ends.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.timers.first_ns()
    }

    /// Takes the next station whose countdown ends at `now_ns` or before.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<usize> {
        self.timers.first_ns().filter(|&at_ns| at_ns <= now_ns)?;
        let station = self.timers.first()?;
        self.stop(station);
        Some(station)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Contention {
        Contention::new(1, Phy { slot_ns: 20, difs_ns: 50, ..Phy::DOT11B })
    }

    #[test]
    fn whole_slots_are_counted_across_a_busy_period() {
        let mut contention = one();
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
    fn a_claim_delays_and_a_garbled_frame_delays_until_one_is_read() {
        let mut contention = one();
        contention.turn_busy(0, 0);
        contention.receive(0, 100, Some(400));
        contention.turn_idle(0, 100);
        assert!(contention.is_claimed(0, 399) && !contention.is_claimed(0, 400));
        contention.start(0, 1, 100);
        assert_eq!(contention.next_ns(), Some(400 + 50 + 20));
        contention.turn_busy(0, 410);
        contention.receive(0, 1_000, None);
        contention.turn_idle(0, 1_000);
        // EIFS of 802.11b, but with a DIFS of 50 ns: 10 + 304 us.
        assert_eq!(contention.next_ns(), Some(1_000 + 314_050 + 20));
        contention.turn_busy(0, 2_000);
        contention.receive(0, 3_000, Some(0));
        contention.turn_idle(0, 3_000);
        assert_eq!(contention.next_ns(), Some(3_000 + 50 + 20));
    }

    #[test]
    fn an_ending_countdown_is_not_stopped_by_a_frame_of_the_same_instant() {
        let mut contention = one();
        contention.start(0, 2, 0);
        contention.turn_busy(0, 40);
        assert_eq!(contention.take_due(40), Some(0));
    }
}
