//! Errors per second at one bit rate, tabulated by SINR: the exact functions cost more than all else about a
//! frame together.

use super::bit_errors::bit_error_probability;
use crate::phy::Modulation;

/// The table begins at this SINR, -24 dB, with what holds below it too.
const LOWEST: f64 = 1.0 / 256.0;

/// It ends at this one, 39 dB. There all rates are without error.
const HIGHEST: f64 = 8192.0;

/// Steps in each octave, equal in SINR.
const STEPS: u64 = 128;

/// What the bits of a ratio's mantissa after the step can be.
const RESTS: u64 = (1 << 52) / STEPS;

/// Errors per second, straight between the table's points. A point is at most 1 / 128 in SINR from the next,
/// which keeps the error of the bit error probability below 1 %, or 0.01 dB.
pub(super) struct ErrorRate {
    points: Vec<f64>,
}

impl ErrorRate {
    /// Of bits sent at `rate_bps`.
    pub(super) fn new(modulation: Modulation, rate_bps: u64) -> Self {
        let first = place(LOWEST);
        let point = |i: usize| {
            let p = bit_error_probability(modulation, rate_bps, ratio(first + i as u64));
            -libm::log1p(-p) * rate_bps as f64
        };
        Self { points: (0..=(place(HIGHEST) - first) as usize).map(point).collect() }
    }

    /// The least SINR in the table at which less than one error in 10^9 s is to be expected.
    pub(super) fn certain_from(&self) -> f64 {
        let errors = self.points.iter().rposition(|rate| *rate >= 1e-9);
        ratio(place(LOWEST) + errors.map_or(0, |last| last as u64 + 1))
    }

    /// Errors per second at `sinr`: of a part of t seconds a share exp(-errors t) is read without any.
    pub(super) fn at(&self, sinr: f64) -> f64 {
        if sinr >= HIGHEST {
            return 0.0;
        }
        // Not a number only where there is no signal.
        let sinr = sinr.max(LOWEST);
        let here = place(sinr);
        let i = (here - place(LOWEST)) as usize;
        let (below, above) = (self.points[i], self.points[i + 1]);
        // All steps of an octave are as wide: what follows the leading bits is the share.
        let share = (sinr.to_bits() & (RESTS - 1)) as f64 * (1.0 / RESTS as f64);
        below + share * (above - below)
    }
}

/// The leading bits of a positive ratio: its octave and the step in it.
fn place(ratio: f64) -> u64 {
    ratio.to_bits() / RESTS
}

/// The ratio at which a place begins.
fn ratio(place: u64) -> f64 {
    f64::from_bits(place * RESTS)
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
                    let sinr = 10.0_f64.powf(-2.4 + f64::from(step) * 1e-3);
                    let p = bit_error_probability(modulation, rate_bps, sinr);
                    let exact = -(-p).ln_1p() * rate_bps as f64;
                    // Where a frame of 1 ms has a chance, and is not certain either.
                    if (1e-3..1e6).contains(&exact) {
                        let error = table.at(sinr) / exact - 1.0;
                        assert!(error.abs() < 0.01, "{rate_bps} at {sinr}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_table_hold_beyond_it() {
        let table = ErrorRate::new(Modulation::Ofdm, 54_000_000);
        assert_eq!(table.at(f64::INFINITY), 0.0);
        assert!(table.at(HIGHEST.next_down()) < 1e-100);
        for little in [0.0, 1e-300, LOWEST, f64::NAN] {
            assert_eq!(table.at(little), table.at(LOWEST));
        }
    }
}
