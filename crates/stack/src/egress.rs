//! Airtime scheduler: decides which part of a node gets the channel.
//!
//! Control goes before data. Among data, the part that has used the least airtime goes first, so
//! that engines share the channel by time and not by bytes or frames.

use ncmesh_engine::time::Duration;
use ncmesh_engine::{Class, Offer};

/// Airtime that each slot has used.
#[derive(Debug)]
pub(crate) struct Egress {
    airtime: Vec<Duration>,
}

impl Egress {
    /// Returns a scheduler of `slots` that have used nothing.
    pub(crate) fn new(slots: usize) -> Self {
        Self { airtime: vec![Duration::ZERO; slots] }
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
            if best.is_none_or(|(best, _)| self.airtime[slot] < self.airtime[best]) {
                best = Some((slot, offer));
            }
        }
        best
    }

    /// Returns the airtime that all slots have used.
    pub(crate) fn total(&self) -> Duration {
        self.airtime.iter().sum()
    }

    /// Charges a slot for a transmission.
    pub(crate) fn used(&mut self, slot: usize, airtime: Duration) {
        self.airtime[slot] += airtime;
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
        egress.used(1, Duration::from_millis(5));
        assert_eq!(slot(&egress, [None, data, data]), Some(2));
        egress.used(0, Duration::from_millis(1));
        assert_eq!(egress.total(), Duration::from_millis(6));
    }
}
