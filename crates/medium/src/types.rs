//! The types of the interface between the medium and its driver.

use std::sync::Arc;

use crate::power::Power;

/// The greatest number of radios of a medium.
pub const MAX_RADIOS: usize = 65_536;

/// The greatest length of a frame, bytes: the MSDU limit of IEEE 802.11-2016, 9.2.4.7.1.
pub const MAX_FRAME_BYTES: usize = 2_304;

/// Index of a radio in the medium: 0 to `radios - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RadioId(pub usize);

impl std::fmt::Display for RadioId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "radio {}", self.0)
    }
}

/// Destination of a frame at the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// All radios in reach. Sent once, without acknowledgment.
    Broadcast,
    /// One radio. Acknowledged, and retransmitted up to the retry limit.
    Unicast(RadioId),
}

/// Result of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxResult {
    /// The broadcast was transmitted. Nothing is known about its receivers.
    Sent,
    /// The unicast frame was acknowledged.
    Acked,
    /// No attempt of the unicast frame was acknowledged. The destination may have received it.
    Failed,
}

/// Output of the medium to its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// `radio` may send now. The driver must answer with `supply` or `decline` at this instant.
    Grant {
        /// The radio that may send.
        radio: RadioId,
        /// The instant at which its transmission begins, ns.
        at_ns: u64,
    },
    /// A frame arrives at a radio.
    Deliver {
        /// The receiving radio.
        to: RadioId,
        /// The transmitting radio.
        from: RadioId,
        /// Bytes of the frame, shared by all receivers.
        frame: Arc<[u8]>,
        /// Received power, if radios have positions.
        power: Option<Power>,
        /// The instant at which the frame ended, ns.
        at_ns: u64,
    },
    /// The MAC has finished with a frame.
    Report {
        /// The sender of the frame.
        radio: RadioId,
        /// The result.
        result: TxResult,
        /// Number of transmissions of the frame.
        attempts: u32,
        /// Airtime of all attempts, without ACKs and CTSs, ns.
        airtime_ns: u64,
        /// Radios that decoded the frame, if the MAC learns that (slotted access).
        heard_by: Option<Vec<RadioId>>,
        /// The instant of the report, ns.
        at_ns: u64,
    },
}
