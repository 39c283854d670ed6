//! Bit errors per second at one bit rate, as a table over the SINR.
//!
//! The exact functions would cost more than everything else about a frame. The table has
//! [`STEPS`] points in each octave of SINR. The index of a point is the exponent and the leading
//! mantissa bits of the SINR's floating-point representation, so no logarithm is needed. Between
//! two points the rate is interpolated linearly, which keeps the error of the bit error probability
//! below 1 %, or 0.01 dB.

use super::bit_errors::bit_error_probability;
use crate::phy::Modulation;

/// The SINR of the first point, -24 dB. Its rate also holds below.
const LOWEST: f64 = 1.0 / 256.0;

/// The SINR of the last point, 39 dB. All rates are error-free above.
const HIGHEST: f64 = 8192.0;

/// Points in each octave, at equal steps of the SINR.
const STEPS: u64 = 128;

/// Number of values of the mantissa bits below those that select the point.
const FRACTIONS: u64 = (1 << 52) / STEPS;

/// Bit errors per second at one bit rate.
pub(super) struct ErrorRate {
    points: Vec<f64>,
}

impl ErrorRate {
    /// Tabulates the errors of bits sent at `rate_bps`.
    pub(super) fn new(modulation: Modulation, rate_bps: u64) -> Self {
        let first = leading_bits(LOWEST);
        let point = |i: usize| {
            let p = bit_error_probability(modulation, rate_bps, ratio_of_bits(first + i as u64));
            -libm::log1p(-p) * rate_bps as f64
        };
        Self { points: (0..=(leading_bits(HIGHEST) - first) as usize).map(point).collect() }
    }

    /// Returns the least SINR in the table with less than one expected error in 10^9 s.
    pub(super) fn error_free_sinr(&self) -> f64 {
        let last = self.points.iter().rposition(|rate| *rate >= 1e-9);
        ratio_of_bits(leading_bits(LOWEST) + last.map_or(0, |last| last as u64 + 1))
    }

    /// Returns the errors per second at `sinr`. A part of t seconds is error-free with probability
    /// exp(-errors t).
    pub(super) fn per_second(&self, sinr: f64) -> f64 {
        if sinr >= HIGHEST {
            return 0.0;
        }

        // `max` also replaces NaN, which means no signal and no noise.
        let sinr = sinr.max(LOWEST);
        let i = (leading_bits(sinr) - leading_bits(LOWEST)) as usize;
        let below = self.points[i];
        let above = self.points[i + 1];

        // All steps of an octave have the same width, so the lower mantissa bits are the position
        // between the two points.
        let fraction = (sinr.to_bits() & (FRACTIONS - 1)) as f64 * (1.0 / FRACTIONS as f64);
        below + fraction * (above - below)
    }
}

/// Returns the bits of a positive ratio that select its point: octave, and step in the octave.
fn leading_bits(ratio: f64) -> u64 {
    ratio.to_bits() / FRACTIONS
}

/// Returns the least ratio with these leading bits.
fn ratio_of_bits(bits: u64) -> f64 {
    f64::from_bits(bits * FRACTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_within_a_hundredth_of_the_functions() {
        for (modulation, rates) in [
            (Modulation::Dsss, vec![1, 2, 5, 11]),
            (Modulation::Ofdm, vec![6, 9, 12, 18, 24, 36, 48, 54]),
        ] {
            for rate_bps in rates.into_iter().map(|rate| rate * 1_000_000) {
                let table = ErrorRate::new(modulation, rate_bps);
                for step in 0..6_000 {
                    let sinr = libm::pow(10.0, -2.4 + f64::from(step) * 1e-3);
                    let p = bit_error_probability(modulation, rate_bps, sinr);
                    let exact = -libm::log1p(-p) * rate_bps as f64;
                    // Rates at which a frame of 1 ms may or may not be decoded.
                    if (1e-3..1e6).contains(&exact) {
                        let error = table.per_second(sinr) / exact - 1.0;
                        assert!(error.abs() < 0.01, "{rate_bps} at {sinr}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_table_hold_beyond_it() {
        let table = ErrorRate::new(Modulation::Ofdm, 54_000_000);
        assert_eq!(table.per_second(f64::INFINITY), 0.0);
        assert!(table.per_second(HIGHEST.next_down()) < 1e-100);
        for little in [0.0, 1e-300, LOWEST, f64::NAN] {
            assert_eq!(table.per_second(little), table.per_second(LOWEST));
        }
    }
}
