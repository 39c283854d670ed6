//! Bit error probabilities of the rates of 802.11b and 802.11a/g over white noise.
//!
//! - 1 Mbit/s: DBPSK, exp(-Eb/N0)/2. 2 Mbit/s: DQPSK, the asymptotic form of Ferrari and Corazza
//!   (Electronics Letters 40(20), 2004). Both have the processing gain of bandwidth over bit rate.
//! - 5.5 and 11 Mbit/s: union bounds over the CCK code words (IEEE 802.15.2-2003, 5.3.2).
//! - OFDM: hard decisions on BPSK to 64-QAM, then the union bound for the punctured convolutional
//!   code of constraint length 7 (Proakis, "Digital Communications", 8.2.4) with the bit weights of
//!   Haccoun and Begin (IEEE Trans. Commun. 37(11), 1989).

use crate::phy::Modulation;

/// Returns the probability that a bit sent at `rate_bps` is decoded wrongly, at most 0.5.
///
/// `sinr` is the ratio of signal power to noise and interference in the channel's bandwidth (22 MHz
/// DSSS, 20 MHz OFDM). A rate between two rates of the standard counts as the higher one.
pub(super) fn bit_error_probability(modulation: Modulation, rate_bps: u64, sinr: f64) -> f64 {
    let p = match modulation {
        Modulation::Dsss => dsss(modulation.bandwidth_hz(), rate_bps, sinr),
        Modulation::Ofdm => ofdm(rate_bps, sinr),
    };
    // Bounds and asymptotic forms may exceed 0.5 at low ratios. NaN means no signal and no noise.
    if p < 0.5 { p } else { 0.5 }
}

/// Returns the bit error probability of DSSS and CCK.
fn dsss(bandwidth_hz: f64, rate_bps: u64, sinr: f64) -> f64 {
    // A union bound: terms of (number of code words, gain of their distance).
    let q_sum = |terms: &[(f64, f64)]| -> f64 {
        terms.iter().map(|(count, gain)| count * q(libm::sqrt(gain * sinr))).sum()
    };

    match rate_bps {
        ..=1_000_000 => 0.5 * libm::exp(-sinr * bandwidth_hz / 1e6),
        1_000_001..=2_000_000 => {
            let eb_n0 = sinr * bandwidth_hz / 2e6;
            let root = std::f64::consts::SQRT_2;
            let scale = (root + 1.0) / libm::sqrt(8.0 * std::f64::consts::PI * root);
            scale / libm::sqrt(eb_n0) * libm::exp(-(2.0 - root) * eb_n0)
        }
        2_000_001..=5_500_000 => 8.0 / 15.0 * q_sum(&[(14.0, 8.0), (1.0, 16.0)]),
        _ => {
            let words =
                [(24.0, 4.0), (16.0, 6.0), (174.0, 8.0), (16.0, 10.0), (24.0, 12.0), (1.0, 16.0)];
            128.0 / 255.0 * q_sum(&words)
        }
    }
}

/// Returns the Gaussian tail probability.
fn q(x: f64) -> f64 {
    0.5 * libm::erfc(x / std::f64::consts::SQRT_2)
}

/// A punctured convolutional code.
struct Code {
    /// Free distance.
    distance: u32,
    /// Step between the distances that have a weight.
    step: u32,
    /// Input bits in a puncturing period.
    inputs: f64,
    /// Numbers of bit errors on all paths of each distance, from the free distance on.
    weights: &'static [f64],
}

const HALF: Code = Code {
    distance: 10,
    step: 2,
    inputs: 1.0,
    weights: &[36.0, 211.0, 1404.0, 11633.0, 77433.0, 502690.0, 3322763.0, 21292910.0],
};
const TWO_THIRDS: Code = Code {
    distance: 6,
    step: 1,
    inputs: 2.0,
    weights: &[3.0, 70.0, 285.0, 1276.0, 6160.0, 27128.0, 117019.0, 498860.0],
};
const THREE_QUARTERS: Code = Code {
    distance: 5,
    step: 1,
    inputs: 3.0,
    weights: &[42.0, 201.0, 1492.0, 10469.0, 62935.0, 379644.0, 2253373.0, 13073811.0],
};

/// Returns the bit error probability of OFDM after decoding.
fn ofdm(rate_bps: u64, sinr: f64) -> f64 {
    let (points, code) = match rate_bps {
        ..=6_000_000 => (2.0, &HALF),
        6_000_001..=9_000_000 => (2.0, &THREE_QUARTERS),
        9_000_001..=12_000_000 => (4.0, &HALF),
        12_000_001..=18_000_000 => (4.0, &THREE_QUARTERS),
        18_000_001..=24_000_000 => (16.0, &HALF),
        24_000_001..=36_000_000 => (16.0, &THREE_QUARTERS),
        36_000_001..=48_000_000 => (64.0, &TWO_THIRDS),
        _ => (64.0, &THREE_QUARTERS),
    };

    // The probability of a wrong bit before decoding: BPSK, or square QAM with Gray mapping and
    // errors to nearest neighbours only.
    let p: f64 = if points == 2.0 {
        q(libm::sqrt(2.0 * sinr))
    } else {
        let levels = libm::sqrt(points);
        let symbol = 2.0 * (1.0 - 1.0 / levels) * q(libm::sqrt(3.0 * sinr / (points - 1.0)));
        symbol / libm::log2(levels)
    };

    // The union bound over the paths of the code, with the Chernoff bound of each distance.
    let d = libm::sqrt(4.0 * p * (1.0 - p));
    let exponents = (code.distance..).step_by(code.step as usize);
    let sum: f64 = code.weights.iter().zip(exponents).map(|(c, n)| c * powi(d, n)).sum();
    sum / (2.0 * code.inputs)
}

/// Returns `x` to the power of `n` by repeated multiplication, the same on every machine.
fn powi(x: f64, n: u32) -> f64 {
    (0..n).fold(1.0, |product, _| product * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates of each modulation, Mbit/s.
    const RATES: [(Modulation, &[u64]); 2] =
        [(Modulation::Dsss, &[1, 2, 5, 11]), (Modulation::Ofdm, &[6, 9, 12, 18, 24, 36, 48, 54])];

    /// Returns the SINR at which 1 % of 1536-byte frames are lost, dB.
    fn needed_db(modulation: Modulation, rate_bps: u64) -> f64 {
        let lost = |db: f64| {
            let p = bit_error_probability(modulation, rate_bps, libm::pow(10.0, db / 10.0));
            1.0 - libm::pow(1.0 - p, 12_288.0)
        };
        (-300..400).map(|tenth| f64::from(tenth) / 10.0).find(|db| lost(*db) < 0.01).unwrap()
    }

    #[test]
    fn faster_rates_need_more_signal() {
        for (modulation, rates) in RATES {
            let needed: Vec<f64> =
                rates.iter().map(|rate| needed_db(modulation, rate * 1_000_000)).collect();
            // 9 Mbit/s (BPSK 3/4) needs more than 12 Mbit/s (QPSK 1/2), so it is left out.
            let ordered: Vec<f64> =
                needed.iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, db)| *db).collect();
            assert!(ordered.is_sorted(), "{needed:?}");
        }
    }

    #[test]
    fn probabilities_agree_with_a_calculation_by_hand() {
        let at = |modulation, rate, sinr| bit_error_probability(modulation, rate, sinr);
        assert!((at(Modulation::Dsss, 1_000_000, 0.5) - 0.5 * libm::exp(-11.0)).abs() < 1e-12);
        // Eb/N0 = 11: 2.4142 / 5.9618 / sqrt(11) * exp(-0.58579 * 11).
        let two = 0.404_94 / 11.0_f64.sqrt() * libm::exp(-0.585_786 * 11.0);
        assert!((at(Modulation::Dsss, 2_000_000, 1.0) / two - 1.0).abs() < 1e-3);
        // 6 Mbit/s at 3 dB: p = Q(2) = 0.02275, D = 0.29821. The term 36 D^10 leads.
        let d: f64 = (4.0_f64 * 0.022_750_1 * 0.977_249_9).sqrt();
        let lead = 18.0 * libm::pow(d, 10.0);
        let six = at(Modulation::Ofdm, 6_000_000, 2.0);
        assert!(six > lead && six < 4.0 * lead, "{six} and {lead}");
    }

    #[test]
    fn no_signal_gives_one_half_and_a_strong_signal_no_errors() {
        for (modulation, rates) in RATES {
            for rate in rates.iter().map(|rate| rate * 1_000_000) {
                assert_eq!(bit_error_probability(modulation, rate, 0.0), 0.5);
                assert_eq!(bit_error_probability(modulation, rate, f64::NAN), 0.5);
                assert!(bit_error_probability(modulation, rate, 1e4) < 1e-12);
                assert_eq!(bit_error_probability(modulation, rate, f64::INFINITY), 0.0);
            }
        }
    }
}
