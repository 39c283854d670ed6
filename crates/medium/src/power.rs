//! Received power as an integer number of units.
//!
//! The power at a receiver is a running sum over the frames that arrive. Integers keep the sum
//! exact: a frame that begins and ends leaves no rounding error behind, on any machine.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// One unit of power is -140 dBm, 10^-17 W.
const UNIT_DBM: f64 = -140.0;

/// The greatest power of a single signal, in units: -2 dBm. The sum over the largest number of
/// radios does not overflow.
const SATURATION: i64 = 1 << 46;

/// Power in units of 10^-17 W.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Power(i64);

impl Power {
    /// No power.
    pub(crate) const ZERO: Self = Self(0);
    /// One unit. Arrivals have this power where only losses are given.
    pub(crate) const UNIT: Self = Self(1);
    /// More power than can arrive.
    pub(crate) const MAX: Self = Self(i64::MAX);

    /// Converts from units, rounded down and saturated.
    pub(crate) fn from_units(units: f64) -> Self {
        Self((units as i64).min(SATURATION))
    }

    /// Converts from dBm, rounded down to a unit and saturated at -2 dBm.
    pub fn from_dbm(dbm: f64) -> Self {
        Self::from_units(units_of_dbm(dbm))
    }

    /// Converts to dBm. No power is negative infinity.
    pub fn dbm(self) -> f64 {
        UNIT_DBM + 10.0 * libm::log10(self.units())
    }

    /// Converts to units.
    pub(crate) fn units(self) -> f64 {
        self.0 as f64
    }
}

/// Converts dBm to units, without rounding.
pub(crate) fn units_of_dbm(dbm: f64) -> f64 {
    ratio_of_db(dbm - UNIT_DBM)
}

/// Converts decibels to a ratio.
pub(crate) fn ratio_of_db(db: f64) -> f64 {
    libm::pow(10.0, db / 10.0)
}

impl Add for Power {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Power {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Power {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sub for Power {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decibels_become_units() {
        assert_eq!(Power::from_dbm(-140.0), Power::UNIT);
        assert_eq!(Power::from_dbm(-150.0), Power::ZERO);
        assert_eq!(Power::from_dbm(300.0).0.checked_mul(1 << 16), Some(i64::MAX / 2 + 1));
        assert!((Power::from_dbm(-64.37).units() / 3.656e7 - 1.0).abs() < 1e-3);
        assert!((Power::from_dbm(-64.37).dbm() + 64.37).abs() < 1e-6);
        assert_eq!(ratio_of_db(20.0), 100.0);
    }
}
