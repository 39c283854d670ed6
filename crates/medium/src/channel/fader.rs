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
    Rayleigh(Box<Exponential>),
    /// Gamma distributed with mean 1.
    Nakagami(Gamma<f64>),
}

impl Fader {
    /// Creates the fader of a validated `fading`.
    pub(super) fn new(fading: Fading) -> Self {
        match fading {
            Fading::None => Self::Constant,
            Fading::Rayleigh => Self::Rayleigh(Box::new(Exponential::new())),
            Fading::Nakagami { m } => Gamma::new(m, 1.0 / m).map_or(Self::Constant, Self::Nakagami),
        }
    }

    /// Draws the factor of one frame at one receiver.
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Rayleigh(exponential) => exponential.of(rng.next_u32()),
            Self::Nakagami(gamma) => gamma.sample(rng),
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
        for fading in [Fading::Rayleigh, Fading::Nakagami { m: 0.5 }, Fading::Nakagami { m: 3.0 }] {
            assert!(distance(fading) < critical, "{fading:?}: {}", distance(fading));
        }
    }
}
