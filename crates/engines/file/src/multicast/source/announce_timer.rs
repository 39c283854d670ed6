//! When the source announces its transfer: often at first, then more and more rarely.

use ncmesh_engine::time::{Duration, Instant};

/// First pause between two announcements. Doubles each time, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Timer of a transfer's announcements.
#[derive(Debug)]
pub(super) struct AnnounceTimer {
    next_at: Instant,
    pause: Duration,
    /// Announcements so far.
    count: u32,
}

impl AnnounceTimer {
    /// Returns a timer that is due at `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self { next_at: now, pause: FIRST_PAUSE, count: 0 }
    }

    /// Returns when the next announcement is due.
    pub(super) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Begins with short pauses anew, because there is somebody new to reach.
    pub(super) fn reset(&mut self, now: Instant) {
        self.pause = FIRST_PAUSE;
        self.next_at = self.next_at.min(now + FIRST_PAUSE);
    }

    /// Notes an announcement. Returns its number, from 1.
    pub(super) fn note_announced(&mut self, now: Instant) -> u32 {
        self.next_at = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.count += 1;
        self.count
    }
}
