//! Path loss: how received power falls with distance.
//!
//! Three textbook models (T. S. Rappaport, "Wireless Communications", chapter 4): free space, two
//! rays over flat ground, and log-distance with a fitted exponent.

use crate::error::MediumError;

const LIGHT_M_PER_S: f64 = 299_792_458.0;

/// Shortest distance, m. The models hold only in the far field, so shorter distances count as this.
const NEAREST_M: f64 = 1.0;

/// A deterministic propagation model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLoss {
    /// Free space (Friis): power falls with the square of the distance.
    FreeSpace {
        /// Carrier frequency, Hz.
        frequency_hz: f64,
    },
    /// A direct ray and a ray reflected by the ground (Rappaport, section 4.6): free space up to
    /// the crossover at 4 pi h^2 / wavelength, then power falls with the fourth power of the
    /// distance.
    TwoRay {
        /// Carrier frequency, Hz.
        frequency_hz: f64,
        /// Height of all antennas above ground, m.
        antenna_height_m: f64,
    },
    /// Free space up to 1 m, then power falls with the distance to the power of `exponent`.
    LogDistance {
        /// Carrier frequency, Hz.
        frequency_hz: f64,
        /// Path loss exponent: 2 in the open, 3 to 5 among buildings.
        exponent: f64,
    },
}

impl PathLoss {
    /// Returns the loss over `distance_m` with antenna gains of 0 dBi, dB. It never falls with
    /// distance.
    pub(crate) fn db(&self, distance_m: f64) -> f64 {
        let d = distance_m.max(NEAREST_M);
        match *self {
            Self::FreeSpace { frequency_hz } => free_space_db(frequency_hz, d),
            Self::TwoRay { frequency_hz, antenna_height_m: h } => {
                let crossover = 4.0 * std::f64::consts::PI * h * h * frequency_hz / LIGHT_M_PER_S;
                if d <= crossover {
                    free_space_db(frequency_hz, d)
                } else {
                    40.0 * libm::log10(d) - 40.0 * libm::log10(h)
                }
            }
            Self::LogDistance { frequency_hz, exponent } => {
                free_space_db(frequency_hz, NEAREST_M) + 10.0 * exponent * libm::log10(d)
            }
        }
    }

    /// Returns the distance beyond which the loss exceeds `db`, m, or infinity if that is more than
    /// 10^7 m.
    pub(crate) fn reach_m(&self, db: f64) -> f64 {
        // Bisection, which works for every model because the loss never falls with distance.
        let mut near = 0.0;
        let mut far = 1e7;
        if self.db(far) <= db {
            return f64::INFINITY;
        }

        for _ in 0..100 {
            let middle = 0.5 * (near + far);
            if self.db(middle) <= db { near = middle } else { far = middle }
        }

        far
    }

    /// Checks the parameters.
    pub(crate) fn validate(&self) -> Result<(), MediumError> {
        let (Self::FreeSpace { frequency_hz }
        | Self::TwoRay { frequency_hz, .. }
        | Self::LogDistance { frequency_hz, .. }) = *self;
        if !(1e6..=1e12).contains(&frequency_hz) {
            return Err(MediumError::BadPropagation { fault: "frequency must be 1 MHz to 1 THz" });
        }

        let fault = match *self {
            Self::TwoRay { antenna_height_m: h, .. } if !(0.01..=1e4).contains(&h) => {
                "antenna height must be 0.01 to 10000 m"
            }
            Self::LogDistance { exponent, .. } if !(1.0..=10.0).contains(&exponent) => {
                "path loss exponent must be 1 to 10"
            }
            _ => return Ok(()),
        };

        Err(MediumError::BadPropagation { fault })
    }
}

/// Returns the free space loss over `distance_m`, dB.
fn free_space_db(frequency_hz: f64, distance_m: f64) -> f64 {
    20.0 * libm::log10(4.0 * std::f64::consts::PI * distance_m * frequency_hz / LIGHT_M_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_RAY: PathLoss = PathLoss::TwoRay { frequency_hz: 2.4e9, antenna_height_m: 1.5 };

    #[test]
    fn losses_are_those_of_the_text_books() {
        // 32.44 + 20 log10(km) + 20 log10(MHz).
        let friis = PathLoss::FreeSpace { frequency_hz: 2.4e9 };
        assert!((friis.db(1000.0) - (32.45 + 20.0 * libm::log10(2400.0))).abs() < 0.01);
        assert_eq!(friis.db(0.0), friis.db(1.0));
        // 24.4995 dBm at 250 m and 460 m: the thresholds of ns-2's default radio.
        assert!((24.4995 - TWO_RAY.db(250.0) + 64.37).abs() < 0.01);
        assert!((24.4995 - TWO_RAY.db(460.0) + 74.97).abs() < 0.01);
        assert_eq!(TWO_RAY.db(100.0), friis.db(100.0));
        let walls = PathLoss::LogDistance { frequency_hz: 2.4e9, exponent: 3.5 };
        assert!((walls.db(100.0) - friis.db(1.0) - 70.0).abs() < 1e-9);
    }

    #[test]
    fn reach_is_where_the_loss_is_exceeded() {
        assert!((TWO_RAY.reach_m(TWO_RAY.db(460.0)) - 460.0).abs() < 1e-3);
        assert_eq!(TWO_RAY.reach_m(1e4), f64::INFINITY);
    }
}
