//! Exponential variables from uniform draws, without a branch.
//!
//! The variable is -ln(u) of a uniform u. The logarithm is evaluated by table look-up and
//! polynomial: u = 2^octave · c · (1 + r) with c from a table of 128 values, so
//! ln u = octave · ln 2 + ln c + ln(1 + r), and four terms of the series of ln(1 + r) suffice.

/// Steps in an octave, a power of two.
const STEPS: usize = 128;

/// Tables for the logarithm between 1 and 2.
pub(super) struct Exponential {
    /// For each step, 1 / c and ln c, where c is the start of the step.
    steps: [(f64, f64); STEPS],
}

impl Exponential {
    /// Computes the tables.
    pub(super) fn new() -> Self {
        let step = |i: usize| {
            let c = 1.0 + i as f64 / STEPS as f64;
            (1.0 / c, libm::log(c))
        };
        Self { steps: std::array::from_fn(step) }
    }

    /// Returns the greatest draw whose variable is at least `floor`, within one.
    pub(super) fn last_draw(floor: f64) -> u32 {
        libm::round(libm::exp(-floor) * 4_294_967_295.0) as u32
    }

    /// Returns the exponential variable of mean 1 for a 32-bit draw: -ln((`draw` + 1/2) / 2^32),
    /// within 10^-11.
    #[inline]
    pub(super) fn of(&self, draw: u32) -> f64 {
        // Split (2 draw + 1) / 2^33 into a mantissa from 1 to below 2, and an octave.
        let odd = 2 * u64::from(draw) + 1;
        let zeros = odd.leading_zeros();
        let shifted = odd << zeros << 1;
        let mantissa = f64::from_bits(1.0_f64.to_bits() | shifted >> 12);
        let octave = f64::from(zeros) - 30.0;

        // The leading bits of the mantissa select the step, and r is the rest.
        let (inverse, ln) = self.steps[(shifted >> (64 - STEPS.ilog2())) as usize];
        let r = mantissa * inverse - 1.0;
        let series = r * (1.0 - r * (1.0 / 2.0 - r * (1.0 / 3.0 - r * (1.0 / 4.0))));
        octave * std::f64::consts::LN_2 - ln - series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(draw: u32) {
        let exact = -libm::log((f64::from(draw) + 0.5) / 4_294_967_296.0);
        let ours = Exponential::new().of(draw);
        assert!((ours - exact).abs() < 1e-11, "{draw}: {ours}, not {exact}");
    }

    #[test]
    fn the_ends_are_exact() {
        [0, 1, 2, u32::MAX - 1, u32::MAX, 1 << 31, (1 << 31) - 1].into_iter().for_each(check);
    }

    #[test]
    fn the_last_draw_is_the_last_that_reaches_the_floor() {
        let exponential = Exponential::new();
        for floor in [0.01, 0.7, 5.0, 13.8] {
            let last = Exponential::last_draw(floor);
            assert!(
                exponential.of(last - 1) >= floor && exponential.of(last + 1) <= floor,
                "{floor}"
            );
        }
        assert_eq!(Exponential::last_draw(0.0), u32::MAX);
    }

    proptest! {
        #[test]
        fn all_between_are_exact(draw: u32) {
            check(draw);
        }
    }
}
