//! Bounds what false signatures cost.
//!
//! A check takes milliseconds on a router. An id costs nothing, and neither does an address: a
//! member may send each lie under another one. So senders share the checks that may fail in a
//! second. A sender may cause more only as far as checks of what it told have succeeded. However
//! many ids a liar uses, no more checks fail than succeed, and those that all senders share.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Checks that may fail in a second, and at once, of all senders together.
const SHARED_PER_S: f64 = 5.0;
const MOST_SHARED: f64 = 50.0;
/// Most checks that may fail because others of the same sender have succeeded.
const MOST_EARNED: u32 = 50;
/// Most senders that have earned checks.
const MAX_EARNERS: usize = 1_024;
/// Time after which what a sender has earned is void.
const EARNED_TIME: Duration = Duration::from_secs(600);

/// Checks that a sender has earned.
#[derive(Clone, Copy, Debug)]
struct Earned {
    checks: u32,
    /// When one succeeded last.
    at: Instant,
}

/// Checks that may still fail.
#[derive(Debug)]
pub(super) struct Checks {
    shared: f64,
    /// When the shared ones were counted.
    at: Instant,
    earned: BTreeMap<NodeId, Earned>,
}

impl Default for Checks {
    fn default() -> Self {
        Self { shared: MOST_SHARED, at: Instant::default(), earned: BTreeMap::new() }
    }
}

impl Checks {
    /// Returns whether a signature that `sender` told may be checked.
    pub(super) fn may_check(&mut self, sender: NodeId, now: Instant) -> bool {
        let regained = SHARED_PER_S * now.since(self.at).as_secs_f64();
        self.shared = (self.shared + regained).min(MOST_SHARED);
        self.at = now;
        let is_recent = |earned: &Earned| now.since(earned.at) < EARNED_TIME;
        let earned = self.earned.get(&sender).filter(|earned| is_recent(earned));
        self.shared >= 1.0 || earned.is_some_and(|earned| earned.checks > 0)
    }

    /// Notes that a check of what `sender` told has succeeded.
    pub(super) fn note_success(&mut self, sender: NodeId, now: Instant) {
        make_room(&mut self.earned, &sender, MAX_EARNERS, |earned| earned.at);
        let earned = self.earned.entry(sender).or_insert(Earned { checks: 0, at: now });
        earned.checks = (earned.checks + 1).min(MOST_EARNED);
        earned.at = now;
    }

    /// Notes that a check has failed because of what `sender` told.
    pub(super) fn note_failure(&mut self, sender: NodeId) {
        // Its own checks go first, so that those of all remain for senders that are new.
        match self.earned.get_mut(&sender).filter(|earned| earned.checks > 0) {
            Some(earned) => earned.checks -= 1,
            None => self.shared -= 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    proptest! {
        /// A liar that uses a new id for each lie makes a node check no more than one with one id.
        #[test]
        fn failures_are_bounded_by_time_and_successes_whatever_ids_are_used(
            told in prop::collection::vec((any::<u16>(), 0..40_u64, 0..4_u8), 0..600),
        ) {
            let mut checks = Checks::default();
            let mut now = 0;
            let mut failed = 0.0;
            let mut succeeded = 0.0;
            for (sender, pause, kind) in told {
                now += pause;
                if !checks.may_check(NodeId(sender), at(now)) {
                    continue;
                }
                if kind == 0 {
                    succeeded += 1.0;
                    checks.note_success(NodeId(sender), at(now));
                } else {
                    failed += 1.0;
                    checks.note_failure(NodeId(sender));
                }
            }
            let shared = MOST_SHARED + SHARED_PER_S * now as f64 / 1e3;
            prop_assert!(failed <= succeeded + shared + 1.0, "{failed} {succeeded} {shared}");
        }
    }

    #[test]
    fn a_sender_that_told_the_truth_is_read_while_others_lie() {
        let mut checks = Checks::default();
        let honest = NodeId(1);
        assert!(checks.may_check(honest, at(0)));
        checks.note_success(honest, at(0));
        for liar in 100..1000 {
            if checks.may_check(NodeId(liar), at(1)) {
                checks.note_failure(NodeId(liar));
            }
        }
        assert!(!checks.may_check(NodeId(2), at(2)));
        assert!(checks.may_check(honest, at(2)));
        assert!(checks.may_check(NodeId(2), at(1_000)), "they come back with time");
    }
}
