//! Pauses that keep data frames of a path from colliding.
//!
//! Nodes two hops apart do not hear each other, and the node between them hears neither if both
//! send. So after a frame of its next hop a node leaves the channel to the node beyond, which now
//! sends on what that frame brought. Where few frames arrive in spite of that, it waits at random.

use crate::rng::unit;
use crate::time::{Duration, Instant};
use rand_core::RngCore;

/// Frames are taken to collide if less than this share arrives of what link state promised. A
/// higher share waits where nothing collides: twice 0.98 for files and 0.95 for packets, half 1.00
/// and 0.99.
const COLLIDING: f64 = 0.5;

/// How long a node pauses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingPolicy {
    /// Length of a slot, in packet times: a packet and the gap before it.
    pub slot: f64,
    /// Mean wait where half of the share arrives that counts as colliding, slots. It is longer the
    /// less arrives.
    pub ease: f64,
    /// Longest mean wait, slots.
    pub most_ease: f64,
}

/// Time before which a node sends no data.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    policy: PacingPolicy,
    until: Instant,
}

impl Pacing {
    /// Returns a pacing that allows to send from `now` on.
    #[must_use]
    pub fn new(policy: PacingPolicy, now: Instant) -> Self {
        Self { policy, until: now }
    }

    /// Returns when data may be sent again.
    #[must_use]
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Leaves a slot to the node that sends on what was heard just now.
    pub fn make_way(&mut self, packet_time: Duration, now: Instant) {
        self.hold(now + packet_time.mul_f64(self.policy.slot));
    }

    /// Waits at random if `share`, which arrives of what link state promised, is so small that
    /// others who cannot be heard probably send at the same time.
    pub fn ease(
        &mut self,
        share: f64,
        packet_time: Duration,
        now: Instant,
        rng: &mut impl RngCore,
    ) {
        let PacingPolicy { slot, ease, most_ease } = self.policy;
        if share < COLLIDING {
            // The fewer arrive, the longer it waits in the mean, up to a bound. The wait is random
            // so that nodes which collided do not do so again.
            let slots = (ease * (COLLIDING / share - 1.0)).min(most_ease);
            self.hold(now + packet_time.mul_f64(slot * slots * 2.0 * unit(rng)));
        }
    }

    fn hold(&mut self, until: Instant) {
        self.until = self.until.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    const POLICY: PacingPolicy = PacingPolicy { slot: 1.5, ease: 2.0, most_ease: 8.0 };
    const PACKET: Duration = Duration::from_millis(2);

    #[test]
    fn a_slot_is_left_and_never_taken_back() {
        let mut pacing = Pacing::new(POLICY, Instant::default());
        pacing.make_way(PACKET, Instant::default() + PACKET);
        assert_eq!(pacing.until().since(Instant::default()).as_millis(), 5);
        pacing.make_way(PACKET, Instant::default());
        assert_eq!(pacing.until().since(Instant::default()).as_millis(), 5);
    }

    proptest! {
        #[test]
        fn the_less_arrives_the_longer_it_waits_up_to_a_bound(
            seed: u64,
            less in 0.001..1.5f64,
            more in 0.001..1.5f64,
        ) {
            let waits = |share| {
                let mut pacing = Pacing::new(POLICY, Instant::default());
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                pacing.ease(share, PACKET, Instant::default(), &mut rng);
                pacing.until().since(Instant::default())
            };
            prop_assert!(waits(less.min(more)) >= waits(less.max(more)));
            // Twice the longest mean of 8 slots, each 1.5 packet times of 2 ms.
            prop_assert!(waits(less) <= Duration::from_millis(48));
            prop_assert_eq!(waits(less.max(0.5)), Duration::ZERO);
        }

        #[test]
        fn where_half_of_the_share_arrives_it_waits_as_the_policy_says(seed: u64) {
            const DRAWS: u32 = 2000;
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let all: Duration = (0..DRAWS)
                .map(|_| {
                    let mut pacing = Pacing::new(POLICY, Instant::default());
                    pacing.ease(COLLIDING / 2.0, PACKET, Instant::default(), &mut rng);
                    pacing.until().since(Instant::default())
                })
                .sum();
            // 2 slots of 3 ms on average; the mean of uniform draws deviates by 0.08 ms.
            let mean_ms = (all / DRAWS).as_secs_f64() * 1e3;
            prop_assert!((mean_ms - 6.0).abs() < 0.5, "{mean_ms}");
        }
    }
}
