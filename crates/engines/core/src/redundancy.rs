//! Redundancy: how many packets are sent so that enough of them arrive (CORE, section 6.3).
//!
//! A link with success ratio `r` delivers `n r` of `n` packets on average. A sender that
//! stops there needs another round of feedback half of the time, so it goes further: by a fixed
//! factor x, or until eq. 35 gives the probability that was asked for.

/// Most packets that are sent for one that is to arrive. Bounds the sum of eq. 35.
const MAX_SENT_FOR_ONE: usize = 200;

/// How far a node goes beyond what is enough on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Redundancy {
    /// By this factor: x.
    Factor(f64),
    /// Until enough packets arrive with this probability, below 1 (eq. 35).
    Probability(f64),
}

impl Redundancy {
    /// Returns the number of transmissions after which `packets` arrive over a link with success
    /// ratio `success`, 0.05 to 1: g x / r.
    pub(crate) fn transmissions(self, packets: usize, success: f64) -> f64 {
        match self {
            Self::Factor(x) => packets as f64 * x / success,
            Self::Probability(probability) => {
                least_transmissions(packets, success, probability) as f64
            }
        }
    }

    /// Returns the credit for one packet of a generation of `packets`: C of section 6.3.
    pub(crate) fn credit(self, packets: usize, success: f64) -> f64 {
        self.transmissions(packets, success) / packets.max(1) as f64
    }
}

/// Returns the least number of transmissions, floor(g x / r), of which `wanted` packets arrive with
/// at least `probability` by eq. 35.
fn least_transmissions(wanted: usize, success: f64, probability: f64) -> usize {
    if wanted == 0 {
        return 0;
    }

    // Eq. 35 as a sum over the transmission n with which the last packet arrives. Its number has a
    // negative binomial distribution, C(n - 1, g - 1) r^g (1 - r)^(n - g), and each term follows
    // from the one before.
    let mut sent = wanted;
    let mut last = libm::pow(success, wanted as f64);
    let mut arrived = last;
    while arrived < probability && sent < MAX_SENT_FOR_ONE * wanted {
        last *= (1.0 - success) * sent as f64 / (sent + 1 - wanted) as f64;
        arrived += last;
        sent += 1;
    }

    sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns eq. 35 as printed, for n packets sent.
    fn decoded(g: usize, r: f64, n: usize) -> f64 {
        let mut term = libm::pow(1.0 - r, n as f64);
        let mut fewer = 0.0;
        for i in 0..g {
            fewer += term;
            term *= r / (1.0 - r) * (n - i) as f64 / (i + 1) as f64;
        }
        1.0 - fewer
    }

    /// `ncmesh_papers.core_nc.decode_probability(60, 0.7, x)` is 0.506 with x = 1, 85 packets, and
    /// 0.920 with x = 1.1, 94 packets; the paper's text has 0.53 and 0.93.
    #[test]
    fn equation_35_gives_the_redundancy() {
        for (sent, probability) in [(85, 0.506), (94, 0.920)] {
            assert!((decoded(60, 0.7, sent) - probability).abs() < 5e-4);
            assert_eq!(least_transmissions(60, 0.7, probability - 1e-3), sent);
        }
        assert_eq!(Redundancy::Probability(0.93).transmissions(60, 0.7), 95.0);
        assert_eq!(Redundancy::Probability(0.99).transmissions(64, 1.0), 64.0);
        assert_eq!(Redundancy::Probability(0.99).transmissions(0, 0.7), 0.0);
        assert_eq!(Redundancy::Factor(1.06).transmissions(50, 0.5), 106.0);
    }

    proptest! {
        #[test]
        fn no_fewer_transmissions_reach_the_probability(
            g in 1_usize..=120,
            r in 0.1_f64..0.99,
            wanted in 0.1_f64..0.999,
        ) {
            let sent = least_transmissions(g, r, wanted);
            prop_assert!(decoded(g, r, sent) >= wanted - 1e-9);
            prop_assert!(sent == g || decoded(g, r, sent - 1) < wanted + 1e-9);
        }
    }
}
