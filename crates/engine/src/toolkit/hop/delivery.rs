//! Delivery of a link as counted by an engine, beside what link state promised.
//!
//! Link state measures with short frames of control while the channel is mostly quiet. Data frames
//! also collide, with each other and with those of nodes that the sender does not hear. An engine
//! that knows how many packets it sent and how many arrived counts for itself, and begins with the
//! promise.

use crate::toolkit::average::FadingShare;

/// Packets that the promise counts for before any is sent. Fewer believe the first few packets,
/// more hold on to a promise that was luck: half 0.98, twice 0.99 for files; 1.00 for packets.
const PRIOR: f64 = 16.0;
/// Least delivery that is believed. Bounds what one lost packet counts for.
const LEAST: f64 = 0.02;
/// Share of the promise below which a link is poor, and the same if hardly anybody else was heard:
/// then no collisions explain the losses, and the promise was luck.
const POOR: f64 = 0.3;
const POOR_IN_QUIET: f64 = 0.6;

/// How deliveries are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeliveryPolicy {
    /// Packets after which a count has faded to half.
    pub half_life: f64,
    /// Packets from which a count is evidence that a link is poor. The promise counts among them.
    pub evidence: f64,
}

/// Share of packets that arrive over a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountedDelivery {
    arrived: FadingShare,
    promised: f64,
}

impl CountedDelivery {
    /// Returns a count that starts at what link state `promised`.
    #[must_use]
    pub fn new(promised: f64, policy: &DeliveryPolicy) -> Self {
        let promised = promised.max(LEAST);
        Self { arrived: FadingShare::starting_at(promised, PRIOR, policy.half_life), promised }
    }

    /// Counts packets that were `sent` and the ones among them that `arrived`.
    pub fn count(&mut self, sent: f64, arrived: f64) {
        self.arrived.add(sent, arrived);
    }

    /// Returns the share of packets that arrive, from 0.02 to 1.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.arrived.value().clamp(LEAST, 1.0)
    }

    /// Returns the share that arrives of what link state promised at first.
    #[must_use]
    pub fn share_of_promise(&self) -> f64 {
        self.value() / self.promised
    }

    /// Returns the share that link state promised at first.
    #[must_use]
    pub fn promised(&self) -> f64 {
        self.promised
    }

    /// Returns how many packets were counted, the faded ones less.
    #[must_use]
    pub fn counted(&self) -> f64 {
        (self.arrived.trials() - PRIOR).max(0.0)
    }

    /// Returns the share of packets that arrive, if it is far below what link state promises now
    /// and enough were counted. If `in_quiet`, less far is enough.
    #[must_use]
    pub fn poor(&self, promised: f64, in_quiet: bool, policy: &DeliveryPolicy) -> Option<f64> {
        let limit = if in_quiet { POOR_IN_QUIET } else { POOR };
        let is_poor = self.arrived.trials() >= policy.evidence && self.value() < limit * promised;
        is_poor.then(|| self.value())
    }

    /// Returns the share of packets that arrive, if it is far below what link state promised at
    /// first and enough were counted.
    #[must_use]
    pub fn poor_for_its_promise(&self, policy: &DeliveryPolicy) -> Option<f64> {
        self.poor(self.promised, false, policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: DeliveryPolicy = DeliveryPolicy { half_life: 64.0, evidence: 48.0 };

    #[test]
    fn a_link_that_breaks_its_promise_is_poor_once_there_is_evidence() {
        let mut delivery = CountedDelivery::new(0.8, &POLICY);
        delivery.count(20.0, 0.0);
        assert_eq!(delivery.poor_for_its_promise(&POLICY), None);
        delivery.count(60.0, 2.0);
        assert_eq!(delivery.poor_for_its_promise(&POLICY), Some(delivery.value()));
        assert!((delivery.share_of_promise() - delivery.value() / 0.8).abs() < 1e-12);
        // Link state has found out as well.
        assert_eq!(delivery.poor(0.1, false, &POLICY), None);
    }

    #[test]
    fn losses_that_no_collisions_explain_make_a_link_poor_sooner() {
        let mut delivery = CountedDelivery::new(0.8, &POLICY);
        delivery.count(400.0, 160.0);
        assert_eq!(delivery.poor(0.8, false, &POLICY), None);
        assert_eq!(delivery.poor(0.8, true, &POLICY), Some(delivery.value()));
    }

    proptest! {
        #[test]
        fn what_is_counted_is_learned_and_stays_a_share(
            promised in -1.0..2.0f64,
            delivers in 0.05..1.0f64,
        ) {
            let mut delivery = CountedDelivery::new(promised, &POLICY);
            for _ in 0..40 {
                delivery.count(16.0, 16.0 * delivers);
                prop_assert!((LEAST..=1.0).contains(&delivery.value()));
            }
            prop_assert!((delivery.value() - delivers).abs() < 0.05);
        }
    }
}
