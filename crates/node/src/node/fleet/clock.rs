//! Time as roll-outs see it.

use ncmesh_engine::time::{Duration, Instant};

/// Returns the time since the node's clock began.
pub(super) fn since_start(now: Instant) -> Duration {
    now.since(Instant::default())
}

/// Returns the moment at this time.
pub(super) fn moment(at: Duration) -> Instant {
    Instant::default() + at
}
