//! Repetition of one message until it is acknowledged or was sent often enough.
//!
//! ```text
//!            sent                 acknowledged, or tried often enough
//!  Queued ---------> Sent ----------------------------------------> Ended
//!    ^                 |
//!    +-----------------+  the MAC gave up, or it is to be repeated
//! ```
//!
//! While it is `Sent`, the message falls due again after a pause that doubles with every attempt.

use super::backoff::Backoff;
use crate::time::{Duration, Instant};
use crate::transmission::TxResult;

/// How a message is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts at most.
    pub attempts: u32,
    /// Pause after an attempt of which nothing is heard.
    pub unanswered: Backoff,
    /// Pause after the MAC gave up; grows linearly with the attempts.
    pub failed: Duration,
}

/// State of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryState {
    /// It waits to be sent, not before a time.
    Queued {
        /// First moment at which it may be sent.
        from: Instant,
    },
    /// It was sent, and falls due again unless it is acknowledged.
    Sent {
        /// Moment at which it falls due again.
        again: Instant,
    },
    /// It is acknowledged, or was given up.
    Ended,
}

/// One message on its way over a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    state: RetryState,
    attempts: u32,
}

impl Retry {
    /// Returns a message that may be sent at `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { state: RetryState::Queued { from: now }, attempts: 0 }
    }

    /// Returns its state.
    #[must_use]
    pub fn state(&self) -> RetryState {
        self.state
    }

    /// Returns whether it will be sent again, sooner or later, unless it is acknowledged.
    #[must_use]
    pub fn is_open(&self, policy: &RetryPolicy) -> bool {
        self.next(policy).is_some()
    }

    /// Returns whether it is to be sent at `now`.
    #[must_use]
    pub fn is_due(&self, policy: &RetryPolicy, now: Instant) -> bool {
        self.next(policy).is_some_and(|at| at <= now)
    }

    /// Returns the moment at which it is to be sent next.
    #[must_use]
    pub fn next(&self, policy: &RetryPolicy) -> Option<Instant> {
        match self.state {
            RetryState::Queued { from } => Some(from),
            RetryState::Sent { again } => Some(again).filter(|_| self.attempts < policy.attempts),
            RetryState::Ended => None,
        }
    }

    /// Notes that it was handed to the MAC.
    pub fn sent(&mut self, policy: &RetryPolicy, now: Instant) {
        self.attempts += 1;
        let pause = policy.unanswered.pause(self.attempts - 1);
        self.state = RetryState::Sent { again: now + pause };
    }

    /// Notes the MAC's report. An outcome that the MAC does not know leaves it as it is.
    pub fn report(&mut self, policy: &RetryPolicy, result: TxResult, now: Instant) {
        // A late report of the MAC is about an attempt that is over.
        if !matches!(self.state, RetryState::Sent { .. }) {
            return;
        }
        match result {
            TxResult::Acked => self.end(),
            TxResult::Failed => self.repeat(policy, now + policy.failed * self.attempts),
            TxResult::Sent => {}
        }
    }

    /// Queues it again from a moment on, unless it was sent often enough.
    pub fn repeat(&mut self, policy: &RetryPolicy, from: Instant) {
        let open = self.attempts < policy.attempts;
        self.state = if open { RetryState::Queued { from } } else { RetryState::Ended };
    }

    /// Puts it off until `from`; that is no attempt.
    pub fn postpone(&mut self, from: Instant) {
        self.state = RetryState::Queued { from };
    }

    /// Ends it: it is acknowledged, or given up.
    pub fn end(&mut self) {
        self.state = RetryState::Ended;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: RetryPolicy = RetryPolicy {
        attempts: 5,
        unanswered: Backoff { first: Duration::from_millis(10), longest: Duration::from_secs(1) },
        failed: Duration::from_millis(4),
    };

    #[test]
    fn an_unanswered_message_is_sent_as_often_as_allowed() {
        let mut retry = Retry::new(Instant::default());
        let mut sent = 0;
        let mut pauses = Vec::new();
        let mut last = Instant::default();
        while let Some(at) = retry.next(&POLICY) {
            pauses.push(at.since(last).as_millis());
            sent += 1;
            last = at;
            retry.sent(&POLICY, at);
        }
        assert_eq!((sent, pauses), (5, vec![0, 10, 20, 40, 80]));
    }

    proptest! {
        /// Whatever happens to it, it is open exactly while attempts are left, and is never sent
        /// after it is settled.
        #[test]
        fn attempts_are_bounded(steps in prop::collection::vec((0..4u8, 0..300u64), 1..100)) {
            let mut retry = Retry::new(Instant::default());
            let mut now = 0;
            let mut sent = 0;
            for (step, wait) in steps {
                now += wait;
                let at = Instant::from_nanos(now * 1_000_000);
                let settled = retry.state() == RetryState::Ended;
                match step {
                    0 if retry.is_due(&POLICY, at) => {
                        prop_assert!(!settled);
                        retry.sent(&POLICY, at);
                        sent += 1;
                    }
                    1 => retry.report(&POLICY, TxResult::Failed, at),
                    2 => retry.report(&POLICY, TxResult::Sent, at),
                    3 if !settled => retry.repeat(&POLICY, at),
                    _ => {}
                }
                prop_assert_eq!(retry.is_open(&POLICY), sent < POLICY.attempts);
            }
            retry.end();
            prop_assert_eq!(retry.next(&POLICY), None);
        }
    }
}
