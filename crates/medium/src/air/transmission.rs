//! Transmissions and the table of those in flight.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::channel::Arrival;
use crate::types::Access;

/// Identifier of a transmission in flight: its place in the table, plus one so that `Option<TxId>`
/// takes no more space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TxId(NonZeroU32);

impl TxId {
    /// Returns the id of the transmission at `place`.
    pub(super) fn new(place: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(place as u32))
    }

    /// Returns the place of the transmission.
    pub(super) fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A control response frame: what a station sends SIFS after a frame to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Response {
    /// Clear to send.
    Cts,
    /// Acknowledgment.
    Ack,
}

/// Content of a transmission. `attempt` numbers the attempts of all stations to send a data frame.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// A frame of the radio's host.
    Data { access: Access, frame: Arc<[u8]>, attempt: u64 },
    /// Request to send.
    Rts { to: usize, attempt: u64 },
    /// The response to either.
    Response { kind: Response, to: usize, attempt: u64 },
}

impl Payload {
    /// Returns the radio that the frame is addressed to, or `None` for a broadcast.
    pub(crate) fn receiver(&self) -> Option<usize> {
        match *self {
            Self::Data { access: Access::Broadcast, .. } => None,
            Self::Data { access: Access::Unicast(to), .. } => Some(to.0),
            Self::Rts { to, .. } | Self::Response { to, .. } => Some(to),
        }
    }

    /// Returns whether this is a control frame of the MAC.
    pub(super) fn is_control(&self) -> bool {
        !matches!(self, Self::Data { .. })
    }
}

/// One transmission.
#[derive(Clone, Debug)]
pub(crate) struct Transmission {
    /// The transmitting radio.
    pub(crate) sender: usize,
    pub(crate) payload: Payload,
    /// Time on the air, ns.
    pub(crate) airtime_ns: u64,
    /// Time after its end for which it reserves the medium (its Duration field), ns.
    pub(crate) nav_ns: u64,
}

/// A place in the table of transmissions in flight. Its list of arrivals is reused.
#[derive(Default)]
pub(super) struct InFlight {
    /// `None` if the place is free.
    pub(super) transmission: Option<Transmission>,
    /// Whether it is a control frame of the MAC.
    pub(super) control: bool,
    /// Whether the sender was switched off before the end. The frame is then energy only.
    pub(super) aborted: bool,
    /// The radios that the frame reaches.
    pub(super) arrivals: Vec<Arrival>,
}

/// A transmission that has just ended.
pub(crate) struct Ended {
    pub(crate) transmission: Transmission,
    /// Whether the sender was switched off before the end.
    pub(crate) aborted: bool,
}
