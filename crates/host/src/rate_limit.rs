//! Limit on what a node says of its own because of what others send it.

use ncmesh_engine::time::{Duration, Instant};

/// Counter of messages, which allows up to `per_second` of them in each second.
#[derive(Debug)]
pub(crate) struct RateLimit {
    per_second: u32,
    window_start: Option<Instant>,
    taken: u32,
}

impl RateLimit {
    /// Returns a limit of which nothing is taken yet.
    pub(crate) fn new(per_second: u32) -> Self {
        Self { per_second, window_start: None, taken: 0 }
    }

    /// Takes one message from the limit. Returns whether there was one left.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        if self.window_start.is_none_or(|start| now >= start + Duration::from_secs(1)) {
            self.window_start = Some(now);
            self.taken = 0;
        }
        let is_left = self.taken < self.per_second;
        self.taken += u32::from(is_left);
        is_left
    }
}
