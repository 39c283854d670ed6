//! Time of a packet, in which most times of a hop are counted.

use crate::time::Duration;
use crate::toolkit::average::DurationAverage;

/// Packet time of a node that has sent none. It bounds nothing: a packet takes 12 us on a cable.
const FIRST: Duration = Duration::from_millis(1);

/// Mean airtime of this node's data packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketTime {
    mean: DurationAverage,
}

impl PacketTime {
    /// Takes the airtime of a packet.
    pub fn add(&mut self, airtime: Duration) {
        self.mean.add(airtime);
    }

    /// Returns the mean; a guess before the first packet, never zero.
    #[must_use]
    pub fn value(&self) -> Duration {
        match self.mean.value() {
            Duration::ZERO => FIRST,
            known => known,
        }
    }
}
