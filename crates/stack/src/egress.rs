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

    /// Returns the slot to ask first; `offers` are in the order of slots.
    pub(crate) fn choose(&self, offers: impl Iterator<Item = Option<Offer>>) -> Option<usize> {
        let made = offers.enumerate().filter_map(|(i, offer)| Some((i, offer?)));
        let rank = |(i, offer): &(usize, Offer)| match offer.class {
            Class::Control => (Class::Control, Duration::ZERO, *i),
            Class::Data => (Class::Data, self.airtime[*i], *i),
        };
        made.min_by_key(rank).map(|(i, _)| i)
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
        assert_eq!(egress.choose([None, None, None].into_iter()), None);
        assert_eq!(egress.choose([data, data, control].into_iter()), Some(2));
        assert_eq!(egress.choose([None, data, data].into_iter()), Some(1));
        egress.used(1, Duration::from_millis(5));
        assert_eq!(egress.choose([None, data, data].into_iter()), Some(2));
        egress.used(0, Duration::from_millis(1));
        assert_eq!(egress.total(), Duration::from_millis(6));
    }
}
