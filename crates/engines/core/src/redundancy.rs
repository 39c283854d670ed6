//! How many packets are sent for those that are to arrive (CORE, 6.3).

/// How far a node goes beyond what is enough on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Redundancy {
    /// By this factor: x.
    Extra(f64),
    /// As far as eq. 35 asks for, so that with this probability nothing more has to be requested.
    Enough(f64),
}

impl Redundancy {
    /// Packets to be sent over a link that delivers the share `success`, 0.05 to 1, for `packets` to arrive: g x / r.
    pub(crate) fn transmissions(self, packets: usize, success: f64) -> f64 {
        match self {
            Self::Extra(x) => packets as f64 * x / success,
            Self::Enough(probability) => enough(packets, success, probability) as f64,
        }
    }

    /// The share of that for one of them.
    pub(crate) fn each(self, packets: usize, success: f64) -> f64 {
        self.transmissions(packets, success) / packets.max(1) as f64
    }
}

/// The fewest packets of which at least `wanted` arrive with this probability, below 1: floor(g x / r) for the least x by which
/// eq. 35 gives it. It is summed over the packet with which the last one wanted arrives, whose number is distributed as
/// C(n - 1, g - 1) r^g (1 - r)^(n - g).
fn enough(wanted: usize, success: f64, probability: f64) -> usize {
    if wanted == 0 {
        return 0;
    }
    let (mut sent, mut last) = (wanted, success.powi(wanted as i32));
    let mut arrived = last;
    while arrived < probability && sent < MOST * wanted {
        last *= (1.0 - success) * sent as f64 / (sent + 1 - wanted) as f64;
        arrived += last;
        sent += 1;
    }
    sent
}

/// No more than so many are sent for one.
const MOST: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Eq. 35 as printed, for n packets sent.
    fn decoded(g: usize, r: f64, n: usize) -> f64 {
        let (mut term, mut fewer) = ((1.0 - r).powi(n as i32), 0.0);
        for i in 0..g {
            fewer += term;
            term *= r / (1.0 - r) * (n - i) as f64 / (i + 1) as f64;
        }
        1.0 - fewer
    }

    /// `ncmesh_papers.core_nc.decode_probability(60, 0.7, x)` is 0.506 with x = 1, 85 packets, and 0.920 with x = 1.1, 94; the paper's
    /// text has 0.53 and 0.93.
    #[test]
    fn equation_35_gives_the_redundancy() {
        for (sent, probability) in [(85, 0.506), (94, 0.920)] {
            assert!((decoded(60, 0.7, sent) - probability).abs() < 5e-4);
            assert_eq!(enough(60, 0.7, probability - 1e-3), sent);
        }
        assert_eq!(Redundancy::Enough(0.93).transmissions(60, 0.7), 95.0);
        assert_eq!(Redundancy::Enough(0.99).transmissions(64, 1.0), 64.0);
        assert_eq!(Redundancy::Enough(0.99).transmissions(0, 0.7), 0.0);
        assert_eq!(Redundancy::Extra(1.06).transmissions(50, 0.5), 106.0);
    }

    proptest! {
        #[test]
        fn it_is_the_least_that_is_enough(g in 1_usize..=120, r in 0.1_f64..0.99, wanted in 0.1_f64..0.999) {
            let sent = enough(g, r, wanted);
            prop_assert!(decoded(g, r, sent) >= wanted - 1e-9);
            prop_assert!(sent == g || decoded(g, r, sent - 1) < wanted + 1e-9);
        }
    }
}
