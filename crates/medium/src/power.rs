//! Received power as an integer, so that sums over arriving frames are exact: what comes and goes again
//! leaves nothing behind, on every machine.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// One unit of power is -140 dBm, 10^-17 W.
const UNIT_DBM: f64 = -140.0;

/// A receiver saturates at this many units, -2 dBm: so strong is a single signal counted at most, and sums of
/// as many as there can be radios do not overflow.
const SATURATION: i64 = 1 << 46;

/// Power in units of 10^-17 W.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Power(i64);

impl Power {
    /// None at all.
    pub(crate) const ZERO: Self = Self(0);
    /// The least there is; what every arrival has where only loss probabilities are known.
    pub(crate) const UNIT: Self = Self(1);
    /// More than ever arrives.
    pub(crate) const MAX: Self = Self(i64::MAX);

    /// That many units, rounded down, or saturation.
    pub(crate) fn from_units(units: f64) -> Self {
        Self((units as i64).min(SATURATION))
    }

    /// The power of `dbm`, rounded down to a unit, at most -2 dBm.
    pub fn from_dbm(dbm: f64) -> Self {
        Self::from_units(units_of_dbm(dbm))
    }

    /// In dBm; negative infinity for none.
    pub fn dbm(self) -> f64 {
        UNIT_DBM + 10.0 * libm::log10(self.units())
    }

    /// In units.
    pub(crate) fn units(self) -> f64 {
        self.0 as f64
    }
}

/// The units in `dbm`.
pub(crate) fn units_of_dbm(dbm: f64) -> f64 {
    ratio_of_db(dbm - UNIT_DBM)
}

/// The ratio that `db` decibels are.
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
