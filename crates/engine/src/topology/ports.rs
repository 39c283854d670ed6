//! Ports of a node as it tells them to the mesh: how long frames take on each, which of them share
//! a channel, and by which one a neighbour is reached.

use crate::port::MAX_PORTS;
use crate::time::Duration;
use ncmesh_wire::NodeId;

/// Length of the frame by which ports are compared, bytes.
pub const LONG_FRAME: usize = 1000;

/// Steps of a [`Pace`] in which the airtime doubles.
const STEPS: i32 = 4;
/// Fractions of a doubling: 2 to the powers of 0, 1/4, 2/4 and 3/4.
const FRACTIONS: [f64; STEPS as usize] =
    [1.0, 1.189_207_115_002_721, core::f64::consts::SQRT_2, 1.681_792_830_507_429];

/// Airtime of a frame of [`LONG_FRAME`] bytes, in steps of a quarter of a doubling. It is coarse,
/// so that it seldom has to be told again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pace(pub u8);

impl Pace {
    /// Not measured yet.
    pub const UNKNOWN: Self = Self(0);

    /// Returns the nearest pace: that of 1 us is 1, that of 2 us is 5.
    #[must_use]
    pub fn of(airtime: Duration) -> Self {
        let us = airtime.as_secs_f64() * 1e6;
        let steps = 1.0 + f64::from(STEPS) * libm::log2(us.max(1.0));
        Self((steps + 0.5).min(255.0) as u8)
    }

    /// Returns how many times as long as at another pace a frame takes; 1 if either is unknown.
    #[must_use]
    pub fn over(self, other: Self) -> f64 {
        if self == Self::UNKNOWN || other == Self::UNKNOWN {
            return 1.0;
        }
        let steps = i32::from(self.0) - i32::from(other.0);
        let fraction = FRACTIONS[steps.rem_euclid(STEPS) as usize];
        libm::ldexp(fraction, steps.div_euclid(STEPS))
    }
}

/// One port of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldPort {
    /// Number of its channel among those of the node, 1 to [`MAX_PORTS`]. Ports with the same
    /// number share a channel.
    pub channel: u8,
    /// How long frames take on it.
    pub pace: Pace,
    /// Neighbours that are reached by it; of the first port those that no other one names.
    pub reaches: Vec<NodeId>,
}

/// Ports of a node; none if it does not tell them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldPorts {
    /// At most [`MAX_PORTS`].
    pub ports: Vec<ToldPort>,
}

impl ToldPorts {
    /// Returns whether the node tells of none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Returns the port by which a neighbour is reached.
    #[must_use]
    pub fn to(&self, neighbour: NodeId) -> Option<&ToldPort> {
        let named = self.ports.iter().find(|port| port.reaches.contains(&neighbour));
        named.or(self.ports.first())
    }
}

/// Channel of a port that is not told.
pub(super) const NO_CHANNEL: u8 = 0;
/// Numbers of channels, with [`NO_CHANNEL`].
pub(super) const CHANNELS: usize = MAX_PORTS + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_paces_are_within_a_step() {
        let radio = Duration::from_micros(8_500);
        for us in [1, 2, 8, 150, 1_000, 8_500, 80_000, 1_000_000] {
            let airtime = Duration::from_micros(us);
            let exact = airtime.as_secs_f64() / radio.as_secs_f64();
            let coarse = Pace::of(airtime).over(Pace::of(radio));
            assert!((coarse / exact).max(exact / coarse) < 1.2, "{us}: {coarse} for {exact}");
        }
        assert_eq!(
            (Pace::of(Duration::ZERO), Pace::of(Duration::from_micros(2))),
            (Pace(1), Pace(5))
        );
        assert_eq!(Pace::of(Duration::MAX), Pace(255));
        assert_eq!(Pace(9).over(Pace(5)), 2.0);
        assert_eq!(Pace(7).over(Pace::UNKNOWN), 1.0);
    }

    #[test]
    fn a_neighbour_that_no_port_names_is_reached_by_the_first() {
        let port = |channel, reaches: &[u16]| ToldPort {
            channel,
            pace: Pace(1),
            reaches: reaches.iter().copied().map(NodeId).collect(),
        };
        let ports = ToldPorts { ports: vec![port(1, &[]), port(2, &[7])] };
        assert_eq!(ports.to(NodeId(7)).map(|port| port.channel), Some(2));
        assert_eq!(ports.to(NodeId(8)).map(|port| port.channel), Some(1));
        assert_eq!(ToldPorts::default().to(NodeId(7)), None);
    }
}
