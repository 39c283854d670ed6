//! How power varies from frame to frame.

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore as _;
use rand_distr::{Distribution, Gamma};
use statrs::function::gamma::gamma_ur;

use super::exponential::Exponential;
use crate::MediumError;

/// What multiplies the mean power of a link, anew for each frame and receiver; its mean is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fading {
    /// Always 1.
    #[default]
    None,
    /// Many paths of like strength: exponentially distributed power.
    Rayleigh,
    /// Gamma distributed power of shape `m`, 0.5 to 100: 1 is Rayleigh, more is milder.
    Nakagami {
        /// The shape.
        m: f64,
    },
}

impl Fading {
    /// The probability that the factor exceeds `x`, at least 0.
    pub fn exceeds(self, x: f64) -> f64 {
        match self {
            Self::None => f64::from(u8::from(x < 1.0)),
            Self::Rayleigh => libm::exp(-x),
            Self::Nakagami { .. } if x <= 0.0 => 1.0,
            Self::Nakagami { m } => gamma_ur(m, m * x),
        }
    }

    /// The factor that is exceeded with probability `p`, by bisection.
    pub(crate) fn exceeded_with(self, p: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        while self.exceeds(high) > p {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.exceeds(middle) > p { low = middle } else { high = middle }
        }
        high
    }

    pub(crate) fn validate(self) -> Result<(), MediumError> {
        match self {
            Self::Nakagami { m } if !(0.5..=100.0).contains(&m) => {
                Err(MediumError::BadPropagation { fault: "Nakagami's m must be 0.5 to 100" })
            }
            _ => Ok(()),
        }
    }
}

/// Draws factors.
pub(super) enum Fader {
    /// Always 1.
    Constant,
    /// From a 32-bit draw.
    Rayleigh(Box<Exponential>),
    /// Of mean 1.
    Nakagami(Gamma<f64>),
}

impl Fader {
    /// For validated `fading`.
    pub(super) fn new(fading: Fading) -> Self {
        match fading {
            Fading::None => Self::Constant,
            Fading::Rayleigh => Self::Rayleigh(Box::new(Exponential::new())),
            Fading::Nakagami { m } => Gamma::new(m, 1.0 / m).map_or(Self::Constant, Self::Nakagami),
        }
    }

    /// The factor of one frame on its way to one receiver.
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

    /// The greatest distance of the empirical distribution from the stated one (Kolmogorov-Smirnov).
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

    #[test]
    fn quantiles_invert_the_distribution() {
        for fading in [Fading::Rayleigh, Fading::Nakagami { m: 2.0 }] {
            assert!((fading.exceeds(fading.exceeded_with(1e-6)) / 1e-6 - 1.0).abs() < 1e-6);
        }
        assert!((Fading::Rayleigh.exceeded_with(1e-6) - 13.8155).abs() < 1e-3);
    }
}
