//! A report that goes out by broadcast, in as many copies as its link needs.
//!
//! The MAC repeats a unicast frame over a poor link for longer than several broadcast copies take,
//! and holds the channel meanwhile. So a report is broadcast again after a few packet times, until
//! it is unlikely that all copies were lost.

use crate::time::{Duration, Instant};

/// How often a report is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportPolicy {
    /// Probability that all copies are lost which is low enough.
    pub loss: f64,
    /// Copies at most.
    pub copies: u32,
    /// Packet times from one copy to the next.
    pub between: f64,
}

/// When the next copy of a report goes out, if one does.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportTimer {
    due: Option<Instant>,
    progress: Option<Progress>,
}

/// A report of which copies were sent and others are to follow.
#[derive(Clone, Copy, Debug)]
struct Progress {
    sent: u32,
    /// Probability that all of them were lost.
    lost: f64,
    /// Copies beyond those that the policy asks for.
    extra: u32,
}

impl ReportTimer {
    /// Lets the report, or its next copy, go out at `at`, unless it is due before.
    pub fn request(&mut self, at: Instant) {
        if self.due.is_none() {
            self.progress = None;
        }
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Returns when the next copy goes out.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns whether a copy goes out now.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|at| at <= now)
    }

    /// Returns whether no copy of it was sent yet.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.progress.is_none()
    }

    /// Notes that a copy is sent over a link that delivers this share of frames, or a frame that
    /// says the same. `extra` copies more than the policy asks for are sent if this is the first.
    /// Returns whether enough were sent.
    pub fn note_sent(
        &mut self,
        delivery: f64,
        extra: u32,
        policy: &ReportPolicy,
        packet_time: Duration,
        now: Instant,
    ) -> bool {
        // Nobody acknowledges a report, so it is repeated until all copies are lost only rarely.
        let new = Progress { sent: 0, lost: 1.0, extra };
        let progress = self.progress.get_or_insert(new);
        progress.sent += 1;
        progress.lost *= 1.0 - delivery;

        // It is over when the copies so far were probably not all lost, or there were as many as
        // there may be.
        let is_enough = progress.lost <= policy.loss;
        let is_last = progress.sent >= policy.copies || (is_enough && progress.extra == 0);

        progress.extra -= u32::from(is_enough && !is_last);
        if is_last {
            self.due = None;
        } else if self.due.is_some() {
            self.due = Some(now + packet_time.mul_f64(policy.between));
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: ReportPolicy = ReportPolicy { loss: 0.05, copies: 4, between: 4.0 };
    const PACKET_TIME: Duration = Duration::from_millis(1);

    /// Sends a report and returns the moments of its copies, ms.
    fn copies(delivery: f64, extra: u32) -> Vec<u128> {
        let mut timer = ReportTimer::default();
        let mut sent = Vec::new();
        timer.request(Instant::default());
        while let Some(at) = timer.due() {
            sent.push(at.since(Instant::default()).as_millis());
            timer.note_sent(delivery, extra, &POLICY, PACKET_TIME, at);
        }
        sent
    }

    #[test]
    fn the_poorer_the_link_the_more_copies() {
        let counts = [1.0, 0.96, 0.9, 0.8, 0.7, 0.5, 0.0].map(|d| copies(d, 0).len());
        assert_eq!(counts, [1, 1, 2, 2, 3, 4, 4]);
        assert_eq!(copies(0.9, 1), [0, 4, 8]);
        assert_eq!(copies(0.9, 9).len(), 4);
    }

    #[test]
    fn a_report_that_is_asked_for_early_goes_out_early_and_only_once() {
        let mut timer = ReportTimer::default();
        let second = Duration::from_secs(1);
        timer.request(Instant::default() + second);
        timer.request(Instant::default());
        timer.request(Instant::default() + second);
        assert!(timer.is_due(Instant::default()));
        assert!(timer.note_sent(1.0, 0, &POLICY, PACKET_TIME, Instant::default()));
        assert!(!timer.is_due(Instant::default() + second));
    }

    proptest! {
        #[test]
        fn copies_end(deliveries in prop::collection::vec(0.0..1.0f64, 4), extra in 0..9u32) {
            let mut timer = ReportTimer::default();
            timer.request(Instant::default());
            let mut ends = deliveries.iter().map(|delivery| {
                timer.note_sent(*delivery, extra, &POLICY, PACKET_TIME, Instant::default())
            });
            prop_assert!(ends.any(|is_last| is_last));
        }
    }
}
