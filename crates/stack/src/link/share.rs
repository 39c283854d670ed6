//! Share of a neighbour's frames that arrives, from counts of frames sent and heard.
//!
//! Counts fade: the last few hundred frames decide. If the latest frames contradict the rest, the
//! rest is forgotten at once.

/// Frames after which a count has faded to half.
const MEMORY: f64 = 256.0;
/// Numbers of the latest frames that are held against the others: a great step shows in few.
const RECENT: [u32; 3] = [8, 16, 32];
/// Most frames that are remembered one by one.
const MOST_RECENT: u32 = u32::BITS;
/// Frames over which the share that met no others is averaged.
const LATEST: f64 = 16.0;
/// Probability of what the latest frames show below which it is not put down to chance.
const UNLIKELY: f64 = 3e-5;

/// Fading counts of the frames that a neighbour sent and of those that arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    sent: f64,
    heard: f64,
    /// One bit for each of the latest frames, the newest lowest: whether it arrived.
    recent: u32,
    /// How many of these bits are set or clear because a frame was sent.
    known: u32,
    /// Share of the latest frames that met no others, as far as is known.
    clear: Option<f64>,
}

impl Share {
    /// Counts `sent` frames, of which `heard` arrived, and of which a share `clear` met no others
    /// as far as is known. Returns whether they contradict what was counted before, so that only
    /// the latest count from now on.
    pub(super) fn add(&mut self, sent: u32, heard: u32, clear: f64) -> bool {
        if sent == 0 {
            return false;
        }
        let heard = heard.min(sent);

        // Memory fades by frames, not by time: a quiet link keeps what it has shown.
        let keep = 1.0 / (1.0 + f64::from(sent) / MEMORY);
        self.sent = self.sent * keep + f64::from(sent) * clear;
        self.heard = self.heard * keep + f64::from(heard);
        let before = self.clear.unwrap_or(clear);
        let weight = (f64::from(sent) / LATEST).min(1.0);
        self.clear = Some(before + weight * (clear - before));

        // The order of arrivals between two hellos is not known; of many frames, as many stand for
        // the others.
        let bits = sent.min(MOST_RECENT);
        let arrived = (f64::from(heard) * f64::from(bits) / f64::from(sent)).round() as u32;
        for index in 0..bits {
            self.recent = self.recent << 1 | u32::from(index < arrived);
        }

        self.known = self.known.saturating_add(sent).min(MOST_RECENT);
        self.forget_before_a_step()
    }

    /// Returns the number of frames that the share comes from, those that met no others, the faded
    /// ones less.
    pub(super) fn weight(&self) -> f64 {
        self.sent
    }

    /// Returns the number of frames that arrived, the faded ones less. By chance more may arrive
    /// than met no others.
    pub(super) fn heard(&self) -> f64 {
        self.heard.min(self.sent)
    }

    /// Returns the share that arrives. Few frames are not trusted to be 0 or 1.
    pub(super) fn value(&self) -> f64 {
        (self.heard() + 0.5) / (self.sent + 1.0)
    }

    /// If the latest frames differ from the others by more than chance explains, forgets the
    /// others. Returns whether it did.
    fn forget_before_a_step(&mut self) -> bool {
        // The window grows from few frames to many: a few show a link that breaks, and only many
        // show one that becomes somewhat worse.
        let mut forgot = false;
        for frames in RECENT {
            let clear = self.clear.unwrap_or(1.0);
            let others = self.sent - f64::from(frames) * clear;
            if self.known < frames || others < f64::from(frames) {
                break;
            }
            let arrived = (self.recent & (u32::MAX >> (u32::BITS - frames))).count_ones();

            // Half a frame is added to both outcomes. Without it, a link that never lost a frame
            // would call its first loss impossible.
            let before = (self.heard - f64::from(arrived) + 0.5).max(0.0) / (others + 1.0);
            if chance(frames, arrived, clear * before.clamp(0.01, 0.99)) < UNLIKELY {
                self.sent = f64::from(frames) * clear;
                self.heard = f64::from(arrived);
                forgot = true;
            }
        }

        forgot
    }
}

/// Returns the chance that as few of `frames` arrive as `arrived`, or as many, whichever is less
/// likely, over a link with this delivery.
fn chance(frames: u32, arrived: u32, delivery: f64) -> f64 {
    // The terms of the binomial distribution, each from the one before it.
    let odds = delivery / (1.0 - delivery);
    let mut exactly = libm::pow(1.0 - delivery, f64::from(frames));
    let mut fewer = 0.0;
    let mut more = 0.0;
    for count in 0..=frames {
        if count <= arrived {
            fewer += exactly;
        }
        if count >= arrived {
            more += exactly;
        }
        exactly *= odds * f64::from(frames - count) / f64::from(count + 1);
    }

    f64::min(fewer, more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::rng::{stream, unit};
    use ncmesh_wire::NodeId;

    #[test]
    fn hundreds_of_frames_are_remembered() {
        let mut share = Share::default();
        for _ in 0..1000 {
            share.add(1, 1, 1.0);
        }
        assert!((150.0..300.0).contains(&share.weight()), "{}", share.weight());
        assert!(share.value() > 0.99);
    }

    #[test]
    fn a_link_that_fails_is_noticed_before_its_memory_fades() {
        let mut share = Share::default();
        for _ in 0..300 {
            share.add(1, 1, 1.0);
        }
        for (frames, least) in [(16, 0.65), (16, 0.45)] {
            for i in 0..frames {
                share.add(1, u32::from(i % 4 == 0), 1.0);
            }
            assert!(share.value() < least, "{}", share.value());
        }
    }

    #[test]
    fn an_even_link_keeps_its_memory() {
        let mut rng = stream(1, NodeId(1), "test", "share");
        for delivery in [0.2, 0.5, 0.9] {
            let mut share = Share::default();
            let mut forgot = 0;
            for _ in 0..20_000 {
                share.add(1, u32::from(unit(&mut rng) < delivery), 1.0);
                forgot += u32::from(share.weight() < 17.0);
            }
            assert!(forgot < 60, "{forgot} times at {delivery}");
            assert!((share.value() - delivery).abs() < 0.12);
        }
    }

    #[test]
    fn a_neighbour_that_says_it_sent_less_than_was_heard_does_no_harm() {
        let mut share = Share::default();
        share.add(2, u32::MAX, 1.0);
        assert!(share.value() <= 1.0);
        share.add(u32::MAX, u32::MAX, 1.0);
        assert!((0.0..=1.0).contains(&share.value()));
        share.add(u32::MAX, 0, 1.0);
        assert!((0.0..=1.0).contains(&share.value()));
    }
}
