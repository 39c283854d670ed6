//! Facts that a node tells of itself besides its links.

use super::ports::ToldPorts;
use ipnet::IpNet;
pub use ncmesh_wire::prefix::MAX_PREFIXES;

/// Facts that a node tells of itself besides its links. Most nodes tell nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Where the node is.
    pub position: Option<Position>,
    /// Addresses that are reached through it, at most [`MAX_PREFIXES`] prefixes.
    pub prefixes: Vec<IpNet>,
    /// Its ports, where several of them join the mesh.
    pub ports: ToldPorts,
    /// Length of its longest frame, where it is not [`USUAL_FRAME`], bytes.
    pub longest_frame: Option<u16>,
}

/// Length of the longest frame of a node that does not tell another, bytes.
pub const USUAL_FRAME: u16 = 1472;

/// Length of frames that a node has to take for others to care, bytes: otherwise a single node
/// could slow down the whole mesh. WireGuard over IPv6 and PPPoE leaves 1,364.
pub const LEAST_FRAME: u16 = 1344;

impl Profile {
    /// Returns whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Position of a node, in the units of frames, so that all nodes know the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// On a plan, mm from an arbitrary origin.
    Plan {
        /// East.
        x_mm: i32,
        /// North.
        y_mm: i32,
        /// Up.
        z_mm: i32,
    },
    /// On the Earth (WGS 84), in units of 10^-7 degrees, about 11 mm.
    Earth {
        /// North of the equator, -9 * 10^8 to 9 * 10^8.
        latitude_e7: i32,
        /// East of Greenwich, -18 * 10^8 to 18 * 10^8.
        longitude_e7: i32,
    },
}

/// Greatest distance from the origin of a plan along an axis, m.
pub const FARTHEST_M: f64 = 2_000_000.0;

impl Position {
    /// Returns a position on a plan, from metres; `None` if one is farther than [`FARTHEST_M`] from
    /// the origin, or no number.
    #[must_use]
    pub fn plan([x, y, z]: [f64; 3]) -> Option<Self> {
        let mm = |m: f64| (m.abs() <= FARTHEST_M).then(|| (m * 1e3).round() as i32);
        Some(Self::Plan { x_mm: mm(x)?, y_mm: mm(y)?, z_mm: mm(z)? })
    }

    /// Returns a position on the Earth, from degrees; `None` if there is no such place.
    #[must_use]
    pub fn earth(latitude: f64, longitude: f64) -> Option<Self> {
        let e7 = |degrees: f64, most: f64| {
            (degrees.abs() <= most).then(|| (degrees * 1e7).round() as i32)
        };
        let latitude_e7 = e7(latitude, 90.0)?;
        let longitude_e7 = e7(longitude, 180.0)?;
        Some(Self::Earth { latitude_e7, longitude_e7 })
    }

    /// Returns metres east, north and up, if it is on a plan.
    #[must_use]
    pub fn metres(self) -> Option<[f64; 3]> {
        match self {
            Self::Plan { x_mm, y_mm, z_mm } => Some([x_mm, y_mm, z_mm].map(|m| f64::from(m) / 1e3)),
            Self::Earth { .. } => None,
        }
    }

    /// Returns latitude and longitude in degrees, if it is on the Earth.
    #[must_use]
    pub fn degrees(self) -> Option<[f64; 2]> {
        match self {
            Self::Plan { .. } => None,
            Self::Earth { latitude_e7, longitude_e7 } => {
                Some([latitude_e7, longitude_e7].map(|degrees| f64::from(degrees) / 1e7))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_rounded_to_the_units_of_frames() {
        let plan = Position::plan([12.3456, -0.0004, FARTHEST_M]).unwrap();
        assert_eq!(plan.metres(), Some([12.346, 0.0, FARTHEST_M]));
        assert_eq!(plan.degrees(), None);
        let earth = Position::earth(-52.520_008_19, 180.0).unwrap();
        assert_eq!(earth.degrees(), Some([-52.520_008_2, 180.0]));
        assert_eq!(earth.metres(), None);
    }

    #[test]
    fn no_position_is_out_of_range_or_no_number() {
        for bad in [f64::NAN, f64::INFINITY, FARTHEST_M + 1.0, -FARTHEST_M - 1.0] {
            assert_eq!(Position::plan([0.0, bad, 0.0]), None);
        }
        for (latitude, longitude) in [(90.1, 0.0), (0.0, -180.1), (f64::NAN, 0.0)] {
            assert_eq!(Position::earth(latitude, longitude), None);
        }
    }
}
