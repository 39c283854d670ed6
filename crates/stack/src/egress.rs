//! Airtime scheduler: decides which part of a node gets the channel.
//!
//! Control goes before data, and data before those in the background. Among data, the part that has
//! used the least airtime for its weight goes first, so that engines share the channel by time and
//! not by bytes or frames. A part that was idle has saved little: it would silence the others for
//! as long.

use ncmesh_engine::time::Duration;
use ncmesh_engine::{Class, Offer};

/// Airtime for which a slot that was idle goes before others. It has saved no more.
const SAVED: Duration = Duration::from_millis(50);

/// Airtime that each slot has used.
#[derive(Debug)]
pub(crate) struct Egress {
    airtime: Vec<Duration>,
    /// Airtime of each slot by its weight.
    charged: Vec<Duration>,
    /// Greatest charge of an engine when it was served.
    served: Duration,
}

impl Egress {
    /// Returns a scheduler of `slots` that have used nothing.
    pub(crate) fn new(slots: usize) -> Self {
        let none = vec![Duration::ZERO; slots];
        Self { airtime: none.clone(), charged: none, served: Duration::ZERO }
    }

    /// Returns the slot to ask first, and its offer; `offers` are in the order of slots. They are
    /// looked at up to the first one of control.
    pub(crate) fn choose(
        &self,
        offers: impl Iterator<Item = Option<Offer>>,
    ) -> Option<(usize, Offer)> {
        let mut best = None;
        for (slot, offer) in offers.enumerate() {
            let Some(offer) = offer else { continue };
            if offer.class == Class::Control {
                return Some((slot, offer));
            }
            let rank = |slot, offer: Offer| (offer.background.is_some(), self.charge(slot));
            if best.is_none_or(|(other, of_other)| rank(slot, offer) < rank(other, of_other)) {
                best = Some((slot, offer));
            }
        }

        best
    }

    /// Returns the airtime that all slots have used.
    pub(crate) fn total(&self) -> Duration {
        self.airtime.iter().sum()
    }

    /// Charges a slot for a transmission. Control, which goes first anyway, has no weight.
    pub(crate) fn used(&mut self, slot: usize, airtime: Duration, weight: Option<f64>) {
        self.airtime[slot] += airtime;
        if let Some(weight) = weight {
            let before = self.charge(slot);
            self.charged[slot] = before + airtime.mul_f64(1.0 / weight);
            self.served = self.served.max(before);
        }
    }

    /// Returns what a slot is charged now.
    fn charge(&self, slot: usize) -> Duration {
        self.charged[slot].max(self.served.saturating_sub(SAVED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_goes_first_then_the_slot_with_the_least_airtime() {
        let control = Some(Offer::of(Class::Control));
        let data = Some(Offer::of(Class::Data));
        let mut egress = Egress::new(3);
        let slot = |egress: &Egress, offers: [Option<Offer>; 3]| {
            egress.choose(offers.into_iter()).map(|(slot, _)| slot)
        };
        assert_eq!(slot(&egress, [None, None, None]), None);
        assert_eq!(slot(&egress, [data, data, control]), Some(2));
        assert_eq!(slot(&egress, [None, data, data]), Some(1));
        egress.used(1, Duration::from_millis(5), Some(1.0));
        assert_eq!(slot(&egress, [None, data, data]), Some(2));
        egress.used(0, Duration::from_millis(1), None);
        assert_eq!(egress.total(), Duration::from_millis(6));
    }

    #[test]
    fn engines_get_airtime_by_weight_and_idle_ones_save_little() {
        let data = Some(Offer::of(Class::Data));
        let mut egress = Egress::new(3);
        let mut serve = |offers: [Option<Offer>; 3], frames: usize| {
            let mut served = [0, 0, 0];
            for _ in 0..frames {
                let (slot, _) = egress.choose(offers.into_iter()).unwrap();
                egress.used(slot, Duration::from_millis(1), Some([1.0, 3.0, 1.0][slot]));
                served[slot] += 1;
            }
            served
        };
        assert_eq!(serve([None, data, data], 400), [0, 300, 100]);

        // After ten seconds of idleness it goes first for as long as it could save.
        serve([None, data, None], 10_000);
        let [_, _, late] = serve([None, data, data], 50);
        assert_eq!(late, 50);
        assert!(serve([None, data, data], 400)[1] > 280);
    }
}
