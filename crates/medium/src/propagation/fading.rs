//! Fading: how received power varies from frame to frame.
//!
//! Each frame has one factor for each receiver, independent of all others (block fading). Rayleigh
//! fading gives exponentially distributed power, Nakagami-m fading gamma distributed power (T. S.
//! Rappaport, "Wireless Communications", chapter 5; M. Nakagami, "The m-Distribution", 1960). The
//! simulator GloMoSim (X. Zeng, R. Bagrodia, M. Gerla, PADS 1998) has a milder one of its own.

use statrs::function::gamma::gamma_ur;

use crate::error::MediumError;

/// Distribution of the factor on a link's mean power. Its mean is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fading {
    /// The factor is always 1.
    #[default]
    None,
    /// Many paths of similar strength: exponentially distributed power.
    Rayleigh,
    /// Rayleigh fading as GloMoSim 2.02 has it: 5 log10(-(4 / pi) ln u) dB for a uniform u. The
    /// power, instead of the amplitude, is Rayleigh distributed, so that swings in dB are half as
    /// large.
    Glomosim,
    /// Gamma distributed power. `m = 1` is Rayleigh fading; a larger `m` is milder.
    Nakagami {
        /// The shape of the distribution, 0.5 to 100.
        m: f64,
    },
}

impl Fading {
    /// Returns the probability that the factor exceeds `x`, which is 0 or more.
    pub(crate) fn exceeds(self, x: f64) -> f64 {
        match self {
            Self::None => f64::from(u8::from(x < 1.0)),
            Self::Rayleigh => libm::exp(-x),
            Self::Glomosim => libm::exp(-std::f64::consts::FRAC_PI_4 * x * x),
            Self::Nakagami { .. } if x <= 0.0 => 1.0,
            Self::Nakagami { m } => gamma_ur(m, m * x),
        }
    }

    /// Returns the factor that is exceeded with probability `p`, by bisection.
    pub(crate) fn exceeded_with(self, p: f64) -> f64 {
        let mut low = 0.0;
        let mut high = 1.0;
        while self.exceeds(high) > p {
            low = high;
            high *= 2.0;
        }

        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.exceeds(middle) > p { low = middle } else { high = middle }
        }

        high
    }

    /// Checks the parameters.
    pub(crate) fn validate(self) -> Result<(), MediumError> {
        match self {
            Self::Nakagami { m } if !(0.5..=100.0).contains(&m) => {
                Err(MediumError::BadPropagation { fault: "Nakagami's m must be 0.5 to 100" })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_invert_the_distribution() {
        for fading in [Fading::Rayleigh, Fading::Glomosim, Fading::Nakagami { m: 2.0 }] {
            assert!((fading.exceeds(fading.exceeded_with(1e-6)) / 1e-6 - 1.0).abs() < 1e-6);
        }
        assert!((Fading::Rayleigh.exceeded_with(1e-6) - 13.8155).abs() < 1e-3);
    }
}
