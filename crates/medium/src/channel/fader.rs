//! Draws fading factors.

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore as _;
use rand_distr::{Distribution, Gamma};

use super::exponential::Exponential;
use crate::propagation::Fading;

/// Draws the factors of a [`Fading`].
pub(super) enum Fader {
    /// Always 1.
    Constant,
    /// One 32-bit draw for each factor.
    Single(SingleDraw),
    /// Gamma distributed with mean 1.
    Nakagami(Gamma<f64>),
}

/// Factors that are functions of one exponential variable.
pub(super) struct SingleDraw {
    exponential: Box<Exponential>,
    /// Whether the factor is the root of the variable, scaled to mean 1, or the variable itself.
    is_root: bool,
}

/// The square of the factor, over the exponential variable that it is a root of. The mean of that
/// root is sqrt(pi) / 2.
const SQUARED_OVER_VARIABLE: f64 = 4.0 / std::f64::consts::PI;

impl SingleDraw {
    fn new(is_root: bool) -> Self {
        Self { exponential: Box::new(Exponential::new()), is_root }
    }

    /// Returns the factor of a draw.
    #[inline]
    pub(super) fn of(&self, draw: u32) -> f64 {
        let variable = self.exponential.of(draw);
        if self.is_root { libm::sqrt(SQUARED_OVER_VARIABLE * variable) } else { variable }
    }

    /// Returns the greatest draw whose factor is at least `floor`, within one.
    fn last_draw(&self, floor: f64) -> u32 {
        let variable = if self.is_root { floor * floor / SQUARED_OVER_VARIABLE } else { floor };
        Exponential::last_draw(variable)
    }
}

impl Fader {
    /// Creates the fader of a validated `fading`.
    pub(super) fn new(fading: Fading) -> Self {
        match fading {
            Fading::None => Self::Constant,
            Fading::Rayleigh => Self::Single(SingleDraw::new(false)),
            Fading::Glomosim => Self::Single(SingleDraw::new(true)),
            Fading::Nakagami { m } => Gamma::new(m, 1.0 / m).map_or(Self::Constant, Self::Nakagami),
        }
    }

    /// Draws the factor of one frame at one receiver.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Single(single) => single.of(rng.next_u32()),
            Self::Nakagami(gamma) => gamma.sample(rng),
        }
    }

    /// Returns the greatest draw whose factor is at least `floor`, within one, if one draw decides.
    pub(super) fn last_draw(&self, floor: f64) -> u32 {
        match self {
            Self::Single(single) => single.last_draw(floor),
            Self::Constant | Self::Nakagami(_) => u32::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream};

    const DRAWS: usize = 100_000;

    /// Returns the greatest distance of the empirical distribution from the expected one
    /// (Kolmogorov-Smirnov).
    fn distance(fading: Fading) -> f64 {
        let mut rng = stream(1, Purpose::Fading, 0);
        let fader = Fader::new(fading);
        let mut factors: Vec<f64> = (0..DRAWS).map(|_| fader.draw(&mut rng)).collect();
        factors.sort_by(f64::total_cmp);
        let gap = |(i, x): (usize, &f64)| {
            let stated = 1.0 - fading.exceeds(*x);
            let below = i as f64 / DRAWS as f64;
            (stated - below).abs().max((stated - below - 1.0 / DRAWS as f64).abs())
        };
        factors.iter().enumerate().map(gap).fold(0.0, f64::max)
    }

    #[test]
    fn factors_follow_their_distribution() {
        // The 0.1 % quantile of the Kolmogorov-Smirnov statistic: 1.95 / sqrt(n).
        let critical = 1.95 / (DRAWS as f64).sqrt();
        for fading in [
            Fading::Rayleigh,
            Fading::Glomosim,
            Fading::Nakagami { m: 0.5 },
            Fading::Nakagami { m: 3.0 },
        ] {
            assert!(distance(fading) < critical, "{fading:?}: {}", distance(fading));
        }
    }

    #[test]
    fn the_last_draw_is_the_last_that_reaches_the_floor() {
        for is_root in [false, true] {
            let single = SingleDraw::new(is_root);
            for floor in [0.01, 0.7, 3.0] {
                let last = single.last_draw(floor);
                assert!(single.of(last - 1) >= floor && single.of(last + 1) <= floor, "{floor}");
            }
        }
    }
}
