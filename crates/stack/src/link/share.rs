//! Share of a neighbour's frames that arrives, from counts of frames sent and heard.
//!
//! Counts fade: on a quiet link the last few hundred frames decide, on a busy one those of the last
//! seconds. If the latest frames contradict the rest, the rest is forgotten at once.

use ncmesh_engine::time::Duration;

/// Frames after which a count has faded to half, on a quiet link.
const MEMORY_FRAMES: f64 = 256.0;
/// The same on a busy link, s.
const MEMORY_S: f64 = 1.0;
/// Number of the latest frames that are held against the others.
const RECENT: u32 = 16;
/// Deviation of the recent frames from what is expected, in standard deviations, beyond which it is
/// hardly chance.
const STEP: f64 = 3.5;

/// Fading counts of the frames that a neighbour sent and of those that arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    sent: f64,
    heard: f64,
    /// One bit for each of the latest frames, the newest lowest: whether it arrived.
    recent: u32,
    /// How many of these bits are set or clear because a frame was sent.
    known: u32,
}

impl Share {
    /// Counts `sent` frames, of which `heard` arrived, in the time `elapsed`.
    pub(super) fn add(&mut self, sent: u32, heard: u32, elapsed: Duration) {
        if sent == 0 {
            return;
        }
        let heard = heard.min(sent);
        let by_frames = 1.0 / (1.0 + f64::from(sent) / MEMORY_FRAMES);
        let by_time = 1.0 / (1.0 + elapsed.as_secs_f64() / MEMORY_S);
        let keep = by_frames.max(by_time);
        self.sent = self.sent * keep + f64::from(sent);
        self.heard = self.heard * keep + f64::from(heard);

        // The order of arrivals between two hellos is not known; of many frames, as many stand for
        // the others.
        let bits = sent.min(RECENT);
        let arrived = (f64::from(heard) * f64::from(bits) / f64::from(sent)).round() as u32;
        for index in 0..bits {
            self.recent = self.recent << 1 | u32::from(index < arrived);
        }
        self.known = self.known.saturating_add(sent).min(RECENT);
        self.forget_before_a_step();
    }

    /// Returns the number of frames that the share comes from, the faded ones less.
    pub(super) fn weight(&self) -> f64 {
        self.sent
    }

    /// Returns the number of frames that arrived, the faded ones less.
    pub(super) fn heard(&self) -> f64 {
        self.heard
    }

    /// Returns the share that arrives, counting `missed` further frames as lost. Few frames are
    /// not trusted to be 0 or 1.
    pub(super) fn value(&self, missed: u32) -> f64 {
        (self.heard + 0.5) / (self.sent + f64::from(missed) + 1.0)
    }

    /// If the latest frames differ from the others by more than chance explains, only they count.
    fn forget_before_a_step(&mut self) {
        let others = self.sent - f64::from(RECENT);
        if self.known < RECENT || others < f64::from(RECENT) {
            return;
        }
        let arrived = f64::from((self.recent & ((1 << RECENT) - 1)).count_ones());
        let before = ((self.heard - arrived + 0.5) / (others + 1.0)).clamp(0.0, 1.0);
        let expected = before * f64::from(RECENT);
        let deviation = libm::sqrt(expected * (1.0 - before)).max(1.0);
        if (arrived - expected).abs() > STEP * deviation {
            self.sent = f64::from(RECENT);
            self.heard = arrived;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::rng::{stream, unit};
    use ncmesh_wire::NodeId;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_quiet_link_remembers_hundreds_of_frames_and_a_busy_one_seconds() {
        let (mut quiet, mut busy) = (Share::default(), Share::default());
        for _ in 0..1000 {
            quiet.add(1, 1, SECOND);
            busy.add(200, 200, SECOND);
        }
        assert!((150.0..300.0).contains(&quiet.weight()), "{}", quiet.weight());
        assert!((300.0..500.0).contains(&busy.weight()), "{}", busy.weight());
        assert!(quiet.value(0) > 0.99);
    }

    #[test]
    fn a_step_on_a_busy_link_is_followed_within_five_seconds() {
        for (before, after) in [(180, 80), (80, 180), (100, 95)] {
            let mut share = Share::default();
            (0..60).for_each(|_| share.add(200, before, SECOND));
            (0..5).for_each(|_| share.add(200, after, SECOND));
            let value = share.value(0);
            assert!((value - f64::from(after) / 200.0).abs() < 0.03, "{value} after {after}");
        }
    }

    #[test]
    fn a_quiet_link_that_fails_is_noticed_before_its_memory_fades() {
        let mut share = Share::default();
        (0..300).for_each(|_| share.add(1, 1, SECOND));
        for (frames, least) in [(16, 0.65), (16, 0.45)] {
            (0..frames).for_each(|i| share.add(1, u32::from(i % 4 == 0), SECOND));
            assert!(share.value(0) < least, "{}", share.value(0));
        }
    }

    #[test]
    fn an_even_link_keeps_its_memory() {
        let mut rng = stream(1, NodeId(1), "test", "share");
        for delivery in [0.2, 0.5, 0.9] {
            let mut share = Share::default();
            let mut forgot = 0;
            for _ in 0..20_000 {
                share.add(1, u32::from(unit(&mut rng) < delivery), SECOND);
                forgot += u32::from(share.weight() < 17.0);
            }
            assert!(forgot < 60, "{forgot} times at {delivery}");
            assert!((share.value(0) - delivery).abs() < 0.12);
        }
    }

    #[test]
    fn a_neighbour_that_says_it_sent_less_than_was_heard_does_no_harm() {
        let mut share = Share::default();
        share.add(2, u32::MAX, Duration::ZERO);
        assert!(share.value(0) <= 1.0);
        share.add(u32::MAX, u32::MAX, Duration::from_secs(u64::from(u32::MAX)));
        assert!((0.0..=1.0).contains(&share.value(u32::MAX)));
    }
}
