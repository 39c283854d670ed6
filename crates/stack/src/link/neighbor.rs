//! One neighbour, as known from its probes.
//!
//! Under load, probes are lost to collisions too, but what schemes plan with is the loss of the
//! link. So probes of quiet times alone decide once there are enough of them, unless so few arrive
//! under load that the link itself must have changed.

use super::schedule::Schedule;
use ncmesh_engine::time::{Duration, Instant};
use std::collections::VecDeque;

/// Probability of a silence, by chance, below which a neighbour is given up.
const SILENCE_PROBABILITY: f64 = 1e-3;
/// Delivery that a good link is assumed to have on a busy channel, when silence is judged.
const BUSY_DELIVERY: f64 = 0.5;
/// Least number of probes due before delivery is reported.
const MIN_PROBES: u32 = 4;
/// Number of probes due in quiet times from which they alone decide.
const MIN_QUIET: u32 = 20;
/// Share of the quiet delivery below which delivery under load means that the link has changed.
const CHANGED: f64 = 0.25;

/// Which of a neighbour's probes arrived.
#[derive(Clone, Debug)]
pub(super) struct Neighbor {
    epoch: u64,
    /// First probe that could have been heard.
    first: u32,
    highest: u32,
    heard_at: Instant,
    /// When any of its frames was last heard.
    sign_of_life: Instant,
    schedule: Schedule,
    /// Probes heard within the window, in order.
    heard: VecDeque<Run>,
}

/// A probe that was heard, after others that were not.
#[derive(Clone, Copy, Debug)]
struct Run {
    seq: u32,
    /// Probes due since the previous one heard, this one included.
    due: u32,
    /// No data was on the air in that time.
    quiet: bool,
}

/// Numbers of probes due and heard.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    due: u32,
    heard: u32,
}

impl Count {
    fn add(&mut self, due: u32, heard: u32) {
        self.due += due;
        self.heard += heard;
    }

    fn share(self) -> f64 {
        f64::from(self.heard) / f64::from(self.due.max(1))
    }
}

/// A probe that was heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub epoch: u64,
    pub seq: u32,
    pub schedule: Schedule,
    pub at: Instant,
    /// When data was last on the air here.
    pub busy_at: Option<Instant>,
}

impl Neighbor {
    /// Returns a neighbour first heard by `probe`, after this node has listened for `listening`.
    /// Probes that it missed in that time count as lost.
    pub(super) fn new(probe: Probe, listening: Duration) -> Self {
        let before = probe.schedule.at(probe.seq).checked_sub(listening);
        let missed =
            before.map_or(probe.seq, |t| (probe.seq - probe.schedule.last_by(t)).saturating_sub(1));
        Self {
            epoch: probe.epoch,
            first: probe.seq - missed,
            highest: probe.seq,
            heard_at: probe.at,
            sign_of_life: probe.at,
            schedule: probe.schedule,
            heard: VecDeque::from([Run {
                seq: probe.seq,
                due: missed + 1,
                quiet: probe.busy_at.is_none(),
            }]),
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn handle_probe(&mut self, probe: Probe, window: Duration) {
        if probe.seq <= self.highest {
            return;
        }
        let (due, quiet) = (probe.seq - self.highest, self.was_quiet(probe.busy_at));
        self.highest = probe.seq;
        self.heard_at = probe.at;
        self.sign_of_life = probe.at;
        self.schedule = probe.schedule;
        self.heard.push_back(Run { seq: probe.seq, due, quiet });
        let low = self.low(self.highest, window);
        while self.heard.front().is_some_and(|run| run.seq < low) {
            self.heard.pop_front();
        }
    }

    /// Returns whether no data was on the air since the last probe heard.
    fn was_quiet(&self, busy_at: Option<Instant>) -> bool {
        busy_at.is_none_or(|at| at < self.heard_at)
    }

    /// Returns the share of its probes that arrived within `window`, with data last on the air at
    /// `busy_at`; `None` while too few were due.
    pub(super) fn delivery(
        &self,
        now: Instant,
        busy_at: Option<Instant>,
        window: Duration,
    ) -> Option<f64> {
        // Counts probes of the window, apart by whether data was on the air.
        let overdue = self.overdue(self.heard_at, now);
        let low = self.low(self.highest.saturating_add(overdue), window);
        let (mut quiet, mut busy) = (Count::default(), Count::default());
        for run in self.heard.iter().rev().take_while(|run| run.seq >= low) {
            let count = if run.quiet { &mut quiet } else { &mut busy };
            count.add(run.due.min(run.seq - low + 1), 1);
        }

        // Probes that are overdue count as lost.
        let count = if self.was_quiet(busy_at) { &mut quiet } else { &mut busy };
        count.add(overdue, 0);

        // Quiet times decide if there are enough of them and the link has not changed.
        let mut all = quiet;
        all.add(busy.due, busy.heard);
        let changed = busy.due >= MIN_QUIET && busy.share() < CHANGED * quiet.share();
        let told = if quiet.due >= MIN_QUIET && !changed { quiet } else { all };
        (all.due >= MIN_PROBES).then(|| told.share())
    }

    /// Notes that one of its frames was heard.
    pub(super) fn note_alive(&mut self, now: Instant) {
        self.sign_of_life = now;
    }

    /// Returns whether the silence since its last frame is hardly chance.
    pub(super) fn is_silent(&self, now: Instant, window: Duration) -> bool {
        let missed = self.overdue(self.sign_of_life, now);
        let before = self.delivery(self.heard_at, None, window).unwrap_or(BUSY_DELIVERY);
        (1.0 - before.min(BUSY_DELIVERY)).powf(f64::from(missed)) < SILENCE_PROBABILITY
    }

    /// Returns the number of probes that should have been heard since.
    fn overdue(&self, since: Instant, now: Instant) -> u32 {
        let at = |t: Instant| self.schedule.at(self.highest) + t.since(self.heard_at);
        let last = self.schedule.last_by(at(now));
        // A probe is overdue half a period after it was expected, since periods are jittered.
        let expected = last.checked_sub(1).map(|before| {
            let late = at(now) - self.schedule.at(last);
            late < self.schedule.gap(before) / 2
        });
        let last = last - u32::from(expected == Some(true));
        last.saturating_sub(self.schedule.last_by(at(since)))
    }

    fn low(&self, last: u32, window: Duration) -> u32 {
        let before = self.schedule.at(last).checked_sub(window);
        let low = before.map_or(0, |t| self.schedule.last_by(t).saturating_add(1));
        self.first.max(low.min(last.saturating_sub(MIN_PROBES - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(100);
    const SCHEDULE: Schedule = Schedule {
        quick: 0,
        quick_period: Duration::from_millis(100),
        period: Duration::from_secs(1),
    };

    fn probe(seq: u32, at_s: u64) -> Probe {
        let at = Instant::from_nanos(at_s * 1_000_000_000);
        Probe { epoch: 1, seq, schedule: SCHEDULE, at, busy_at: None }
    }

    #[test]
    fn delivery_counts_probes_missed_before_the_first_and_after_the_last() {
        // Up for 10 s, the neighbour's probe 7 is the first heard: 7 were missed (0 to 6).
        let mut n = Neighbor::new(probe(7, 10), Duration::from_secs(10));
        assert_eq!(n.delivery(probe(7, 10).at, None, WINDOW), Some(1.0 / 8.0));
        n.handle_probe(probe(9, 12), WINDOW);
        assert_eq!(n.delivery(probe(9, 12).at, None, WINDOW), Some(2.0 / 10.0));
        assert_eq!(n.delivery(probe(0, 15).at, None, WINDOW), Some(2.0 / 12.0));
        assert!(n.delivery(probe(0, 500).at, None, WINDOW).unwrap() < 0.01);
    }

    #[test]
    fn the_end_of_quick_probes_is_no_silence() {
        let schedule = Schedule { quick: 40, ..SCHEDULE };
        let at_ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let heard = |seq: u32, ms: u64| Probe { schedule, at: at_ms(ms), ..probe(seq, 0) };
        let mut n = Neighbor::new(heard(0, 0), Duration::ZERO);
        for seq in 1..40 {
            n.handle_probe(heard(seq, 100 * u64::from(seq)), WINDOW);
        }
        // Probes 40, the last to follow quickly, 41 and 42 are lost.
        assert!(!n.is_silent(at_ms(7400), WINDOW));
        assert_eq!(n.delivery(at_ms(6400), None, WINDOW), Some(40.0 / 42.0));
        n.handle_probe(heard(43, 7000), WINDOW);
        assert_eq!(n.delivery(at_ms(7000), None, WINDOW), Some(41.0 / 44.0));
        // A node that came up before the neighbour and hears it late knows what it missed.
        let late = Neighbor::new(heard(43, 7000), Duration::from_secs(100));
        assert_eq!(late.delivery(at_ms(7000), None, WINDOW), Some(1.0 / 44.0));
        let later = Neighbor::new(heard(43, 7000), Duration::from_millis(3050));
        assert_eq!(later.delivery(at_ms(7000), None, WINDOW), Some(1.0 / 4.0));
    }

    #[test]
    fn the_window_forgets() {
        let mut n = Neighbor::new(probe(0, 0), Duration::ZERO);
        for seq in 300..400 {
            n.handle_probe(probe(seq, u64::from(seq)), WINDOW);
        }
        assert_eq!(n.delivery(probe(0, 399).at, None, WINDOW), Some(1.0));
        assert!(n.heard.len() <= 100);
    }

    #[test]
    fn collisions_under_load_are_not_taken_for_the_links_loss() {
        let mut n = Neighbor::new(probe(0, 0), Duration::ZERO);
        for seq in 1..=30 {
            n.handle_probe(probe(seq, u64::from(seq)), WINDOW);
        }
        // Under load every other probe is lost.
        for seq in (32..=60).step_by(2) {
            let heard = probe(seq, u64::from(seq));
            n.handle_probe(Probe { busy_at: Some(heard.at), ..heard }, WINDOW);
        }
        let busy = Some(probe(60, 60).at);
        assert_eq!(n.delivery(probe(60, 60).at, busy, WINDOW), Some(1.0));
        // Too few are left of the quiet time: now all count.
        assert!(n.delivery(probe(60, 80).at, busy, Duration::from_secs(60)).unwrap() < 0.6);
        // So few arrive under load that the link has changed.
        let late = n.delivery(probe(60, 80).at, busy, Duration::from_secs(200)).unwrap();
        assert!(late > 0.9, "{late}");
        let late = n.delivery(probe(60, 160).at, busy, Duration::from_secs(200)).unwrap();
        assert!(late < 0.4, "{late}");
    }

    #[test]
    fn a_good_link_falls_silent_soon_a_bad_one_late() {
        let mut good = Neighbor::new(probe(0, 0), Duration::ZERO);
        let mut bad = Neighbor::new(probe(0, 0), Duration::ZERO);
        for seq in 1..=40 {
            good.handle_probe(probe(seq, u64::from(seq)), WINDOW);
            if seq % 8 == 0 {
                bad.handle_probe(probe(seq, u64::from(seq)), WINDOW);
            }
        }
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        assert!(!good.is_silent(at(45), WINDOW));
        assert!(good.is_silent(at(51), WINDOW));
        assert!(!bad.is_silent(at(70), WINDOW));
        assert!(bad.is_silent(at(110), WINDOW));
        bad.note_alive(at(109));
        assert!(!bad.is_silent(at(110), WINDOW));
    }

    #[test]
    fn the_last_number_there_is_does_no_harm() {
        let last = Neighbor::new(probe(u32::MAX, 10), Duration::from_secs(10));
        assert!(last.delivery(probe(0, 11).at, None, WINDOW).is_some());
    }
}
