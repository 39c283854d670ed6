//! What is known of one neighbour from its probes.

use crate::time::{Duration, Instant};
use std::collections::VecDeque;

/// A link is given up when so long a silence had at most this probability.
const SILENCE_PROBABILITY: f64 = 1e-3;
/// On a busy channel even a good link loses probes to collisions: for the silence it counts as no better.
const BUSY_DELIVERY: f64 = 0.5;
/// Delivery is told only from this many probes on.
const MIN_PROBES: u32 = 4;

/// A neighbour's probes: which of them arrived.
#[derive(Clone, Debug)]
pub(super) struct Neighbor {
    epoch: u64,
    /// The first probe that could have been heard.
    first: u32,
    highest: u32,
    heard_at: Instant,
    /// When any frame of it was heard last.
    sign_of_life: Instant,
    period: Duration,
    /// Sequence numbers heard within the window, ascending.
    heard: VecDeque<u32>,
}

/// A probe as heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub epoch: u64,
    pub seq: u32,
    pub period: Duration,
    pub at: Instant,
}

impl Neighbor {
    /// A neighbour first heard by `probe`, when this node has been listening for `listening`.
    pub(super) fn new(probe: Heard, listening: Duration) -> Self {
        let missed = whole_periods(listening, probe.period).min(probe.seq);
        Self {
            epoch: probe.epoch,
            first: probe.seq - missed,
            highest: probe.seq,
            heard_at: probe.at,
            sign_of_life: probe.at,
            period: probe.period,
            heard: VecDeque::from([probe.seq]),
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn hear(&mut self, probe: Heard, window: Duration) {
        if probe.seq <= self.highest {
            return;
        }
        self.highest = probe.seq;
        self.heard_at = probe.at;
        self.sign_of_life = probe.at;
        self.period = probe.period;
        self.heard.push_back(probe.seq);
        let low = self.low(self.highest, window);
        while self.heard.front().is_some_and(|seq| *seq < low) {
            self.heard.pop_front();
        }
    }

    /// Share of its probes that arrived within `window`; `None` while too few were due.
    pub(super) fn delivery(&self, now: Instant, window: Duration) -> Option<f64> {
        let last = self.highest.saturating_add(self.overdue(self.heard_at, now));
        let low = self.low(last, window);
        let due = last - low + 1;
        if due < MIN_PROBES {
            return None;
        }
        let heard = self.heard.iter().rev().take_while(|seq| **seq >= low).count();
        Some(heard as f64 / f64::from(due))
    }

    /// Any frame of it was heard.
    pub(super) fn is_alive(&mut self, now: Instant) {
        self.sign_of_life = now;
    }

    /// Whether the silence since its last frame can hardly be chance.
    pub(super) fn is_silent(&self, now: Instant, window: Duration) -> bool {
        let missed = self.overdue(self.sign_of_life, now);
        let before = self.delivery(self.heard_at, window).unwrap_or(BUSY_DELIVERY);
        (1.0 - before.min(BUSY_DELIVERY)).powf(f64::from(missed)) < SILENCE_PROBABILITY
    }

    /// Probes that should have been heard since.
    fn overdue(&self, since: Instant, now: Instant) -> u32 {
        // A probe is overdue half a period after it was expected, since periods are jittered.
        let late = now.since(since).saturating_sub(self.period / 2);
        whole_periods(late, self.period)
    }

    fn low(&self, last: u32, window: Duration) -> u32 {
        let width = whole_periods(window, self.period).max(MIN_PROBES);
        self.first.max(last.saturating_sub(width - 1))
    }
}

fn whole_periods(time: Duration, period: Duration) -> u32 {
    u32::try_from(time.as_nanos() / period.as_nanos().max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(100);
    const PERIOD: Duration = Duration::from_secs(1);

    fn probe(seq: u32, at_s: u64) -> Heard {
        Heard { epoch: 1, seq, period: PERIOD, at: Instant::from_nanos(at_s * 1_000_000_000) }
    }

    #[test]
    fn delivery_counts_probes_missed_before_the_first_and_after_the_last() {
        // Up for 10 s, the neighbour's probe 7 is the first heard: 7 were missed (0 to 6).
        let mut n = Neighbor::new(probe(7, 10), Duration::from_secs(10));
        assert_eq!(n.delivery(probe(7, 10).at, WINDOW), Some(1.0 / 8.0));
        n.hear(probe(9, 12), WINDOW);
        assert_eq!(n.delivery(probe(9, 12).at, WINDOW), Some(2.0 / 10.0));
        assert_eq!(n.delivery(probe(0, 15).at, WINDOW), Some(2.0 / 12.0));
        assert!(n.delivery(probe(0, 500).at, WINDOW).unwrap() < 0.01);
    }

    #[test]
    fn the_window_forgets() {
        let mut n = Neighbor::new(probe(0, 0), Duration::ZERO);
        for seq in 300..400 {
            n.hear(probe(seq, u64::from(seq)), WINDOW);
        }
        assert_eq!(n.delivery(probe(0, 399).at, WINDOW), Some(1.0));
        assert!(n.heard.len() <= 100);
    }

    #[test]
    fn a_good_link_falls_silent_soon_a_bad_one_late() {
        let mut good = Neighbor::new(probe(0, 0), Duration::ZERO);
        let mut bad = Neighbor::new(probe(0, 0), Duration::ZERO);
        for seq in 1..=40 {
            good.hear(probe(seq, u64::from(seq)), WINDOW);
            if seq % 8 == 0 {
                bad.hear(probe(seq, u64::from(seq)), WINDOW);
            }
        }
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        assert!(!good.is_silent(at(45), WINDOW));
        assert!(good.is_silent(at(51), WINDOW));
        assert!(!bad.is_silent(at(70), WINDOW));
        assert!(bad.is_silent(at(110), WINDOW));
        bad.is_alive(at(109));
        assert!(!bad.is_silent(at(110), WINDOW));
    }
}
