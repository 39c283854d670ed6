//! A value that must outlive the host: written whenever it changed, and again until writing
//! succeeds.
//!
//! Only one write is under way at a time. After a failure the next one waits for a backoff, by the
//! driver's clock. What counts as saved is what was written, never what was to be
//! written.

use crate::PAUSES;
use ncmesh_engine::time::{Duration, Instant};

/// Keeps a copy of a value on disk up to date.
#[derive(Clone, Debug)]
pub struct Saver<T> {
    /// Value on disk; `None` after a failure, which may have left the old value or the new one.
    saved: Option<T>,
    state: State<T>,
    /// Failures since the last success.
    failures: u32,
}

#[derive(Clone, Debug)]
enum State<T> {
    Idle,
    /// This value is being written.
    Writing(T),
    /// Writing failed: not again before then.
    Waiting(Instant),
}

impl<T: Clone + PartialEq> Saver<T> {
    /// Returns a saver of a value whose copy on disk is `saved`.
    #[must_use]
    pub fn new(saved: T) -> Self {
        Self { saved: Some(saved), state: State::Idle, failures: 0 }
    }

    /// Returns whether a value is safely on disk.
    #[must_use]
    pub fn is_saved(&self, value: &T) -> bool {
        self.saved.as_ref() == Some(value)
    }

    /// When [`begin`](Self::begin) is to be called again though nothing changed.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Waiting(until) => Some(until),
            State::Idle | State::Writing(_) => None,
        }
    }

    /// Returns the value to write now, if `current` is not on disk and nothing is being written.
    /// Answer by [`handle_written`](Self::handle_written).
    pub fn begin(&mut self, current: &T, now: Instant) -> Option<T> {
        let may_write = match self.state {
            State::Idle => true,
            State::Writing(_) => false,
            State::Waiting(until) => now >= until,
        };

        if !may_write {
            return None;
        }
        if self.is_saved(current) {
            self.state = State::Idle;
            return None;
        }

        self.state = State::Writing(current.clone());
        Some(current.clone())
    }

    /// Takes what came of writing. Returns the time until the next attempt if it failed.
    pub fn handle_written(&mut self, succeeded: bool, now: Instant) -> Option<Duration> {
        let state = core::mem::replace(&mut self.state, State::Idle);
        // An answer to no question changes nothing.
        let State::Writing(value) = state else {
            self.state = state;
            return None;
        };

        if succeeded {
            self.saved = Some(value);
            self.failures = 0;
            return None;
        }

        // A write that failed may have left a part on the disk, so even the value before is to be
        // written.
        self.saved = None;
        let backoff = PAUSES.pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Waiting(now + backoff);
        Some(backoff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn what_changed_is_written_once() {
        let mut saver = Saver::new(1);
        assert_eq!(saver.begin(&1, at(0)), None);
        assert_eq!(saver.begin(&2, at(0)), Some(2));
        assert_eq!(saver.begin(&3, at(0)), None, "one is under way");
        assert!(saver.is_saved(&1) && !saver.is_saved(&3));
        assert_eq!(saver.handle_written(true, at(1)), None);
        assert!(saver.is_saved(&2) && saver.poll_timeout().is_none());
        assert_eq!((saver.begin(&2, at(1)), saver.begin(&3, at(1))), (None, Some(3)));
    }

    #[test]
    fn what_failed_is_not_saved_and_is_tried_again_ever_more_seldom() {
        let mut saver = Saver::new(1);
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert_eq!(saver.begin(&2, at(now)), Some(2));
            let backoff = saver.handle_written(false, at(now)).unwrap().as_secs();
            assert!(!saver.is_saved(&1) && !saver.is_saved(&2));
            assert_eq!(saver.poll_timeout(), Some(at(now + backoff)));
            assert_eq!(saver.begin(&2, at(now + backoff - 1)), None);
            waits.push(backoff);
            now += backoff;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!(saver.begin(&3, at(now)), Some(3));
        assert_eq!(saver.handle_written(true, at(now)), None);
        assert!(saver.is_saved(&3) && saver.poll_timeout().is_none());
        saver.begin(&4, at(now));
        assert_eq!(saver.handle_written(false, at(now)).unwrap().as_secs(), 1, "from the start");
    }

    #[test]
    fn a_failure_may_have_left_either_value_so_the_old_one_is_written_too() {
        let mut saver = Saver::new(1);
        saver.begin(&2, at(0));
        saver.handle_written(false, at(0));
        assert_eq!(saver.begin(&1, at(1)), Some(1));
        assert_eq!(saver.handle_written(true, at(1)), None);
        assert_eq!(saver.handle_written(true, at(1)), None, "nothing was under way");
        assert!(saver.is_saved(&1));
    }
}
