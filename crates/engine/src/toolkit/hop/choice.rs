//! Choice between the neighbour that is the next hop, or the parent, and one that looks better.

use crate::time::{Duration, Instant};

/// When a better neighbour takes the place of the present one. Estimates waver, and each change
/// costs what is on its way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChoicePolicy {
    /// How many times as long as the other way the present one must be.
    pub better: f64,
    /// Time for which it must be.
    pub lasting: Duration,
}

/// Lengths of two ways, ETX. One that leads nowhere is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ways {
    /// Over the present neighbour.
    pub present: f64,
    /// Over the one that looks best.
    pub best: f64,
}

/// Memory of a choice.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    better_since: Option<Instant>,
}

impl Choice {
    /// Returns whether the present neighbour is to be left: at once if it is `urgent`, or if its
    /// way leads nowhere.
    pub fn leaves(
        &mut self,
        ways: Ways,
        is_urgent: bool,
        policy: &ChoicePolicy,
        now: Instant,
    ) -> bool {
        if ways.present <= policy.better * ways.best {
            self.better_since = None;
            return false;
        }
        let since = *self.better_since.get_or_insert(now);
        let leaves = is_urgent || ways.present.is_infinite() || now.since(since) >= policy.lasting;
        if leaves {
            self.better_since = None;
        }
        leaves
    }

    /// Begins anew, as there is another neighbour, or none.
    pub fn reset(&mut self) {
        self.better_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: ChoicePolicy = ChoicePolicy { better: 1.3, lasting: Duration::from_secs(2) };

    fn leaves(choice: &mut Choice, present: f64, ms: u64) -> bool {
        let now = Instant::default() + Duration::from_millis(ms);
        choice.leaves(Ways { present, best: 2.0 }, false, &POLICY, now)
    }

    #[test]
    fn another_way_must_be_clearly_better_for_some_time() {
        let mut choice = Choice::default();
        assert!(!leaves(&mut choice, 2.6, 0), "a little better is not enough");
        assert!(!leaves(&mut choice, 2.7, 1000) && !leaves(&mut choice, 2.7, 2999));
        assert!(!leaves(&mut choice, 2.5, 3000), "it wavered");
        assert!(!leaves(&mut choice, 2.7, 3001) && !leaves(&mut choice, 2.7, 5000));
        assert!(leaves(&mut choice, 2.7, 5001));
        assert!(!leaves(&mut choice, 2.7, 5002), "the choice begins anew");
    }

    #[test]
    fn a_way_that_leads_nowhere_or_is_urgent_to_leave_is_left_at_once() {
        let mut choice = Choice::default();
        assert!(leaves(&mut choice, f64::INFINITY, 0));
        let ways = Ways { present: 3.0, best: 2.0 };
        assert!(choice.leaves(ways, true, &POLICY, Instant::default()));
        let ways = Ways { present: 2.5, ..ways };
        assert!(!choice.leaves(ways, true, &POLICY, Instant::default()), "it is no better");
    }
}
