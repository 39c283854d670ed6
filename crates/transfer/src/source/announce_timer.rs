//! When the source announces its transfer: often at first, then more and more rarely.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;

/// Pauses between two announcements.
pub(crate) const PAUSES: Backoff =
    Backoff { first: Duration::from_millis(250), longest: Duration::from_secs(4) };

/// Timer of a transfer's announcements.
#[derive(Debug)]
pub(crate) struct AnnounceTimer {
    next_at: Instant,
    /// Announcements since somebody new was there.
    repetitions: u32,
    /// Announcements so far.
    count: u32,
}

impl AnnounceTimer {
    /// Returns a timer that is due at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Self { next_at: now, repetitions: 0, count: 0 }
    }

    /// Returns when the next announcement is due.
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Begins with short pauses anew, because there is somebody new to reach.
    pub(crate) fn reset(&mut self, now: Instant) {
        self.repetitions = 0;
        self.next_at = self.next_at.min(now + PAUSES.first);
    }

    /// Makes an announcement due at `now`.
    pub(crate) fn hasten(&mut self, now: Instant) {
        self.repetitions = 0;
        self.next_at = self.next_at.min(now);
    }

    /// Returns the number of the latest announcement; 0 if there was none.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Notes an announcement. Returns its number, from 1.
    pub(crate) fn note_announced(&mut self, now: Instant) -> u32 {
        self.next_at = now + PAUSES.pause(self.repetitions);
        self.repetitions = self.repetitions.saturating_add(1);
        self.count += 1;
        self.count
    }
}
