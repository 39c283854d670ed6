//! Which of a node's services gets the channel: control first, then whoever is furthest behind in airtime.

use ncmesh_engine::time::Duration;
use ncmesh_engine::{Class, Offer};

/// Airtime each service has had.
#[derive(Debug)]
pub(crate) struct Egress {
    airtime: Vec<Duration>,
}

impl Egress {
    pub(crate) fn new(services: usize) -> Self {
        Self { airtime: vec![Duration::ZERO; services] }
    }

    /// The service to ask first; `offers` are in the services' order.
    pub(crate) fn choose(&self, offers: impl Iterator<Item = Option<Offer>>) -> Option<usize> {
        let made = offers.enumerate().filter_map(|(i, offer)| Some((i, offer?)));
        let rank = |(i, offer): &(usize, Offer)| match offer.class {
            Class::Control => (Class::Control, Duration::ZERO, *i),
            Class::Data => (Class::Data, self.airtime[*i], *i),
        };
        made.min_by_key(rank).map(|(i, _)| i)
    }

    pub(crate) fn used(&mut self, service: usize, airtime: Duration) {
        self.airtime[service] += airtime;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_first_then_the_one_behind() {
        let control = Some(Offer::of(Class::Control));
        let data = Some(Offer::of(Class::Data));
        let mut egress = Egress::new(3);
        assert_eq!(egress.choose([None, None, None].into_iter()), None);
        assert_eq!(egress.choose([data, data, control].into_iter()), Some(2));
        assert_eq!(egress.choose([None, data, data].into_iter()), Some(1));
        egress.used(1, Duration::from_millis(5));
        assert_eq!(egress.choose([None, data, data].into_iter()), Some(2));
    }
}
