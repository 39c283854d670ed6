//! Contention: carrier sense, NAV and backoff of all stations.
//!
//! Backoff slots count while the channel is idle and freeze while it is busy (IEEE 802.11-2016,
//! 10.3.4.3). The channel counts as idle once it has been so for DIFS, or for EIFS after a frame
//! that was not decoded (10.3.2.3.7). The NAV, the virtual carrier sense, keeps it busy for the
//! time that a decoded frame reserves (10.3.2.4).
//!
//! There is no event for each slot: a running countdown is one timer at its last slot. When the
//! channel turns busy, the whole slots that have passed are subtracted; when it turns idle, the
//! rest resumes. A countdown that ends at the very instant at which another station begins to
//! transmit is not stopped. Neither station can have sensed the other, and both transmit.

use super::timers::Timers;
use crate::phy::Phy;

/// Carrier sense and backoff of one station.
#[derive(Clone, Debug, Default)]
struct Countdown {
    /// Whether the station senses the channel busy.
    busy: bool,
    /// When the channel has been idle for DIFS or EIFS. Meaningful while not busy.
    clear_from_ns: u64,
    /// End of the NAV.
    nav_until_ns: u64,
    /// End of EIFS after a frame that was not decoded, or 0.
    eifs_until_ns: u64,
    /// Remaining backoff slots, or `None` without a countdown.
    slots: Option<u64>,
    /// When the first of these slots began to count. Meaningful while the timer is running.
    counted_from_ns: u64,
}

/// Carrier sense and backoff of all stations.
pub(super) struct Contention {
    phy: Phy,
    countdowns: Vec<Countdown>,
    timers: Timers,
}

impl Contention {
    /// Creates `stations` on a channel that has been idle for long.
    pub(super) fn new(stations: usize, phy: Phy) -> Self {
        Self {
            phy,
            countdowns: vec![Countdown::default(); stations],
            timers: Timers::new(stations),
        }
    }

    /// Returns whether `station` may send without backoff: its channel has been idle for DIFS.
    pub(super) fn is_clear(&self, station: usize, now_ns: u64) -> bool {
        let countdown = &self.countdowns[station];
        !countdown.busy && countdown.clear_from_ns <= now_ns
    }

    /// Starts a countdown of `slots`. It replaces one in progress.
    pub(super) fn start(&mut self, station: usize, slots: u32, now_ns: u64) {
        self.countdowns[station].slots = Some(u64::from(slots));
        if !self.countdowns[station].busy {
            self.run(station, now_ns);
        }
    }

    /// Cancels the countdown.
    pub(super) fn stop(&mut self, station: usize) {
        self.countdowns[station].slots = None;
        self.timers.stop(station);
    }

    /// Handles the start of a busy period at `station`: freezes its countdown.
    pub(super) fn handle_busy(&mut self, station: usize, now_ns: u64) {
        let countdown = &mut self.countdowns[station];
        countdown.busy = true;

        // A countdown that ends at this instant is not stopped: the station has already decided to
        // transmit.
        if self.timers.of(station).is_none_or(|at_ns| at_ns <= now_ns) {
            return;
        }

        // Freeze. Only whole slots count (10.3.4.3).
        self.timers.stop(station);
        let passed = now_ns.saturating_sub(countdown.counted_from_ns) / self.phy.slot_ns;
        countdown.slots = countdown.slots.map(|slots| slots.saturating_sub(passed));
    }

    /// Handles the end of a busy period at `station`: resumes its countdown after NAV and DIFS, and
    /// not before the end of EIFS.
    pub(super) fn handle_idle(&mut self, station: usize, now_ns: u64) {
        // DIFS begins when both physical and virtual carrier sense are idle. EIFS already includes
        // a DIFS.
        let countdown = &mut self.countdowns[station];
        countdown.busy = false;
        let idle_from_ns = now_ns.max(countdown.nav_until_ns);
        countdown.clear_from_ns = (idle_from_ns + self.phy.difs_ns).max(countdown.eifs_until_ns);
        if countdown.slots.is_some() {
            self.run(station, now_ns);
        }
    }

    /// Handles a decoded frame at `station`, whose channel is still busy: cancels EIFS and extends
    /// the NAV to `nav_until_ns`.
    pub(super) fn handle_decoded(&mut self, station: usize, nav_until_ns: u64) {
        // A decoded frame synchronizes the station with the exchange, so EIFS is not needed any
        // more (10.3.2.3.7). A shorter reservation never replaces a longer one (10.3.2.4).
        let countdown = &mut self.countdowns[station];
        countdown.eifs_until_ns = 0;
        countdown.nav_until_ns = countdown.nav_until_ns.max(nav_until_ns);
    }

    /// Handles the end of a frame that `station` did not decode, while its channel is still busy:
    /// starts EIFS.
    pub(super) fn handle_rx_error(&mut self, station: usize, now_ns: u64) {
        self.countdowns[station].eifs_until_ns = now_ns + self.phy.eifs_ns();
    }

    /// Returns whether the NAV of `station` reserves the channel now.
    pub(super) fn is_nav_set(&self, station: usize, now_ns: u64) -> bool {
        self.countdowns[station].nav_until_ns > now_ns
    }

    /// Starts the timer of a countdown on an idle channel.
    fn run(&mut self, station: usize, now_ns: u64) {
        // Slots count from the end of DIFS or EIFS, or from now if that has passed.
        let countdown = &mut self.countdowns[station];
        countdown.counted_from_ns = countdown.clear_from_ns.max(now_ns);
        let slots = countdown.slots.unwrap_or(0);
        self.timers.start(station, countdown.counted_from_ns + slots * self.phy.slot_ns);
    }

    /// Returns when the next countdown ends.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.timers.first_ns()
    }

    /// Takes the next station whose countdown ends at `now_ns` or earlier.
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
        contention.handle_busy(0, 0);
        contention.handle_idle(0, 100);
        assert!(!contention.is_clear(0, 149));
        assert!(contention.is_clear(0, 150));
        contention.start(0, 5, 100);
        assert_eq!(contention.next_ns(), Some(150 + 5 * 20));
        // Two and a half slots have passed, and three remain.
        contention.handle_busy(0, 150 + 50);
        assert_eq!(contention.next_ns(), None);
        contention.handle_idle(0, 1_000);
        assert_eq!(contention.next_ns(), Some(1_000 + 50 + 3 * 20));
        // The channel turns busy within DIFS, and no slot has counted.
        contention.handle_busy(0, 1_049);
        contention.handle_idle(0, 2_000);
        assert_eq!(contention.take_due(2_109), None);
        assert_eq!(contention.take_due(2_110), Some(0));
        assert_eq!(contention.next_ns(), None);
    }

    #[test]
    fn the_nav_delays_and_eifs_delays_until_a_frame_is_decoded() {
        let mut contention = one();
        contention.handle_busy(0, 0);
        contention.handle_decoded(0, 400);
        contention.handle_idle(0, 100);
        assert!(contention.is_nav_set(0, 399) && !contention.is_nav_set(0, 400));
        contention.start(0, 1, 100);
        assert_eq!(contention.next_ns(), Some(400 + 50 + 20));
        contention.handle_busy(0, 410);
        contention.handle_rx_error(0, 1_000);
        contention.handle_idle(0, 1_000);
        // EIFS of 802.11b with a DIFS of 50 ns: 10 + 304 us.
        assert_eq!(contention.next_ns(), Some(1_000 + 314_050 + 20));
        contention.handle_busy(0, 2_000);
        contention.handle_decoded(0, 0);
        contention.handle_idle(0, 3_000);
        assert_eq!(contention.next_ns(), Some(3_000 + 50 + 20));
    }

    #[test]
    fn an_ending_countdown_is_not_stopped_by_a_frame_of_the_same_instant() {
        let mut contention = one();
        contention.start(0, 2, 0);
        contention.handle_busy(0, 40);
        assert_eq!(contention.take_due(40), Some(0));
    }
}
