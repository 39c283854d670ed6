//! How closely the frames of flows follow each other at this node.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;

/// Packet times between two frames, in the mean, above which nobody waits for the channel. With 4,
/// round trips beside a TCP connection are 0.97 as good; with 16, an idle ping counts as traffic
/// over long paths.
const QUIET: f64 = 8.0;
/// Packet times that one pause counts at most, so that the mean follows within 25 frames when a
/// flow begins.
const LONGEST_PAUSE: f64 = 128.0;

/// The pace of frames at a node.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Mean time from one frame to the next.
    between: DurationAverage,
    last_at: Instant,
}

impl Traffic {
    /// Notes a data frame that was heard, or is sent.
    pub(crate) fn note_frame(&mut self, packet_time: Duration, now: Instant) {
        let longest = packet_time.mul_f64(LONGEST_PAUSE);
        self.between.add(now.since(self.last_at).min(longest));
        self.last_at = now;
    }

    /// Returns whether flows leave most of the time unused.
    pub(crate) fn is_quiet(&self, packet_time: Duration) -> bool {
        self.between.value() > packet_time.mul_f64(QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET_TIME: Duration = Duration::from_millis(1);

    /// Notes `count` frames, each this long after the one before. Returns the time of the last.
    fn note(traffic: &mut Traffic, count: u32, apart: Duration, from: Instant) -> Instant {
        let times = (1..=count).map(|i| from + apart * i);
        times.inspect(|at| traffic.note_frame(PACKET_TIME, *at)).last().unwrap_or(from)
    }

    #[test]
    fn a_ping_over_many_hops_leaves_the_channel_quiet() {
        let mut traffic = Traffic::default();
        let mut now = Instant::default();
        for _ in 0..20 {
            now = note(&mut traffic, 1, Duration::from_millis(200), now);
            now = note(&mut traffic, 6, PACKET_TIME, now);
            assert!(traffic.is_quiet(PACKET_TIME));
        }
    }

    #[test]
    fn a_flow_that_fills_the_channel_is_seen_within_30_frames() {
        let mut traffic = Traffic::default();
        let idle_until = note(&mut traffic, 5, Duration::from_secs(1), Instant::default());
        assert!(traffic.is_quiet(PACKET_TIME));
        note(&mut traffic, 30, PACKET_TIME, idle_until);
        assert!(!traffic.is_quiet(PACKET_TIME));
    }
}
