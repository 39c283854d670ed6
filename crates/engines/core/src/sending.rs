//! How much of a generation a node is to send yet, and when it asks whether that was enough (CORE, 6.3).

use super::frame::Name;
use super::rules::Rules;
use ncmesh_engine::time::{Duration, Instant};

/// Who was asked to no avail so often is not counted with.
const QUIET: u32 = 3;
/// Who has all there is is asked again after so many times the wait: the rest is not its fault.
const STOPPED: u32 = 4;

/// A transmission: credits are sums of fractions, which may come to less by rounding.
const ONE: f64 = 1.0 - 1e-9;

/// The longest pause, in the same unit.
const LONGEST: u32 = 32;

/// The credits of one generation at one node, and what is known of the next one.
#[derive(Debug)]
pub(super) struct Sending {
    /// Transmissions to make, if its packets go alone.
    alone: f64,
    /// On top of that, while they are combined with another generation of which the receiver does not know all.
    debt: f64,
    /// That one, and the debt for each packet alone.
    with: Option<(Name, f64)>,
    /// Since when there is something to send, or something was sent.
    since: Instant,
    /// When something was sent, asked or answered.
    news_at: Instant,
    /// When the next node last answered.
    answered_at: Option<Instant>,
    /// Something was sent since the next node was asked.
    fresh: bool,
    /// How often it was asked since the generation got on.
    polls: u32,
    /// How often since it answered.
    unanswered: u32,
    /// It was asked in copies.
    copied: bool,
    /// The question that is being asked: its number, and copies of it that were sent.
    asking: Option<(u16, u32)>,
    /// The node before asks.
    asked: bool,
    /// The next node has all there is.
    stopped: bool,
    /// As it reported.
    progress: u16,
}

impl Sending {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            alone: 0.0,
            debt: 0.0,
            with: None,
            since: now,
            news_at: now,
            answered_at: None,
            fresh: false,
            polls: 0,
            unanswered: 0,
            copied: false,
            asking: None,
            asked: false,
            stopped: false,
            progress: 0,
        }
    }

    // ---- credits

    /// A packet to be sent on came: so many transmissions more.
    pub(super) fn earn(&mut self, transmissions: f64, now: Instant) {
        if !self.has_credit() {
            self.since = now;
        }
        self.alone += transmissions;
        self.debt += self.with.map_or(0.0, |(_, ratio)| ratio * transmissions);
        (self.fresh, self.news_at) = (true, now);
    }

    /// A packet was sent.
    pub(super) fn spend(&mut self, combined: bool, now: Instant) {
        let paid = if combined { self.debt.min(1.0) } else { 0.0 };
        self.debt -= paid;
        self.alone = (self.alone + paid - 1.0).max(0.0);
        (self.since, self.news_at, self.fresh, self.asking) = (now, now, true, None);
    }

    pub(super) fn has_credit(&self) -> bool {
        self.alone >= ONE || self.alone + self.debt >= ONE
    }

    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Transmissions to make alone.
    pub(super) fn alone(&self) -> f64 {
        self.alone
    }

    /// Transmissions to make combined with another generation, for each packet alone `ratio` more.
    pub(super) fn combined(&self, with: &Name, ratio: f64) -> f64 {
        match self.with {
            Some((known, _)) if known == *with => self.alone + self.debt,
            _ => self.alone * (1.0 + ratio),
        }
    }

    /// Is combined with that generation from now on.
    pub(super) fn pair(&mut self, with: Name, ratio: f64) {
        if self.with.is_none_or(|(known, _)| known != with) {
            self.debt = self.alone * ratio;
        }
        self.with = Some((with, ratio));
    }

    /// Is combined no more.
    pub(super) fn part(&mut self) {
        (self.with, self.debt) = (None, 0.0);
    }

    /// With which generation it is combined.
    pub(super) fn with(&self) -> Option<Name> {
        self.with.map(|(name, _)| name)
    }

    // ---- answers

    /// The next node has all there is.
    pub(super) fn stop(&mut self, progress: u16, now: Instant) {
        (self.alone, self.debt, self.stopped) = (0.0, 0.0, true);
        self.answer(progress, now);
    }

    /// The next node lacks so much: transmissions alone, and on top of that combined if that is known.
    pub(super) fn need(&mut self, alone: f64, debt: Option<f64>, progress: u16, now: Instant) {
        let debt = debt.or(self.with.map(|(_, ratio)| ratio * alone)).unwrap_or(0.0);
        self.alone = alone;
        self.debt = if self.with.is_some() { debt } else { 0.0 };
        (self.stopped, self.since) = (false, now);
        self.is_wanted(progress, now);
    }

    /// Somebody behind it wants more: there is hope.
    pub(super) fn is_wanted(&mut self, progress: u16, now: Instant) {
        self.polls = 0;
        self.answer(progress, now);
    }

    /// The next node, or one behind it, has answered.
    pub(super) fn answer(&mut self, progress: u16, now: Instant) {
        if progress > self.progress {
            (self.progress, self.polls) = (progress, 0);
        }
        (self.news_at, self.answered_at) = (now, Some(now));
        (self.asking, self.unanswered) = (None, 0);
    }

    pub(super) fn progress(&self) -> u16 {
        self.progress
    }

    pub(super) fn answered_at(&self) -> Option<Instant> {
        self.answered_at
    }

    // ---- asking

    /// The node before asks how the generation stands.
    pub(super) fn ask(&mut self) {
        (self.asked, self.asking) = (true, None);
    }

    /// The next node is asked, in so many copies or by unicast; `number` if it is another question. Says which number it has.
    pub(super) fn polled(&mut self, copies: Option<u32>, number: u16, now: Instant) -> u16 {
        let (number, sent) = self.asking.unwrap_or((number, 0));
        self.asking = copies.filter(|copies| sent + 1 < *copies).map(|_| (number, sent + 1));
        self.copied |= copies.is_some();
        if self.asking.is_none() {
            (self.polls, self.unanswered) = (self.polls + 1, self.unanswered + 1);
            (self.asked, self.fresh, self.news_at) = (false, false, now);
        }
        number
    }

    /// Whether it did not answer when it was last asked.
    pub(super) fn is_asked_again(&self) -> bool {
        self.unanswered > 0
    }

    /// Whether it was asked to no avail too often to count with it.
    pub(super) fn is_quiet(&self) -> bool {
        self.polls >= QUIET
    }

    /// Whether it was asked as often as is allowed, and was given its time.
    pub(super) fn is_hopeless(&self, rules: &Rules, now: Instant) -> bool {
        self.polls >= self.most(rules) && now >= self.news_at + self.pause(rules)
    }

    /// How often it is asked to no avail; copies may have met others' frames all at once.
    fn most(&self, rules: &Rules) -> u32 {
        rules.requests + u32::from(self.copied)
    }

    /// When the next node is to be asked, with everything sent. `own`: on this node's own account, not only when asked.
    pub(super) fn polls_at(&self, own: bool, rules: &Rules) -> Option<Instant> {
        if self.asked || self.asking.is_some() {
            return Some(self.news_at);
        }
        if !own || self.polls >= self.most(rules) {
            return None;
        }
        let at_once = self.fresh && !self.stopped;
        Some(if at_once { self.news_at } else { self.news_at + self.pause(rules) })
    }

    /// When hope ends.
    pub(super) fn ends_at(&self, rules: &Rules) -> Instant {
        self.news_at + self.pause(rules)
    }

    fn pause(&self, rules: &Rules) -> Duration {
        let stopped = if self.stopped { STOPPED } else { 1 };
        rules.wait() * (stopped << self.polls.min(5)).min(LONGEST)
    }
}
