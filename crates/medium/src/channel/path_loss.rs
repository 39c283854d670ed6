//! How power falls with distance.

use crate::MediumError;

const LIGHT_M_PER_S: f64 = 299_792_458.0;

/// Below this distance nothing changes any more, m: the models hold in the far field only.
const NEAREST_M: f64 = 1.0;

/// A deterministic propagation model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PathLoss {
    /// Friis: power falls with the square of the distance.
    FreeSpace {
        /// Carrier frequency, Hz.
        frequency_hz: f64,
    },
    /// A direct ray and one reflected by the ground (Rappaport, Wireless Communications, 4.6): with the
    /// fourth power of the distance beyond the crossover at 4 pi h^2 / wavelength, free space up to it.
    TwoRay {
        /// Carrier frequency, Hz.
        frequency_hz: f64,
        /// Height of all antennas above ground, m.
        antenna_height_m: f64,
    },
    /// Free space up to 1 m, then with the power `exponent` of the distance.
    LogDistance {
        /// Carrier frequency, Hz.
        frequency_hz: f64,
        /// 2 in the open, 3 to 5 among buildings.
        exponent: f64,
    },
}

impl PathLoss {
    /// The loss over `distance_m`, dB, antenna gains of 0 dBi. Never falls with distance.
    pub fn db(&self, distance_m: f64) -> f64 {
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

    /// The distance beyond which more than `db` is lost, m; infinite if none is found within 10^7 m.
    pub(crate) fn reach_m(&self, db: f64) -> f64 {
        let (mut near, mut far) = (0.0, 1e7);
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
        let fault = if !(1e6..=1e12).contains(&frequency_hz) {
            "frequency must be 1 MHz to 1 THz"
        } else if matches!(*self, Self::TwoRay { antenna_height_m: h, .. } if !(0.01..=1e4).contains(&h))
        {
            "antenna height must be 0.01 to 10000 m"
        } else if matches!(*self, Self::LogDistance { exponent, .. } if !(1.0..=10.0).contains(&exponent))
        {
            "path loss exponent must be 1 to 10"
        } else {
            return Ok(());
        };
        Err(MediumError::BadPropagation { fault })
    }
}

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
        assert!((friis.db(1000.0) - (32.45 + 20.0 * 2400.0_f64.log10())).abs() < 0.01);
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
