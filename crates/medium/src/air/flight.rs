//! Transmissions from their first to their last bit.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::Access;
use crate::channel::Arrival;

/// A frame in flight, by its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TxId(NonZeroU32);

impl TxId {
    /// The one at `place`.
    pub(super) fn new(place: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(place as u32))
    }

    /// Its place.
    pub(super) fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// What a station owes the sender of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// Clear to send.
    Cts,
    /// Acknowledgment.
    Ack,
}

/// What a transmission carries. `attempt` names an attempt to send a frame of ours among all.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// One of our frames.
    Data { access: Access, frame: Arc<[u8]>, attempt: u64 },
    /// Request to send.
    Rts { to: usize, attempt: u64 },
    /// The answer to either.
    Answer { kind: Answer, to: usize, attempt: u64 },
}

impl Payload {
    /// The one radio it is for.
    pub(crate) fn addressee(&self) -> Option<usize> {
        match *self {
            Self::Data { access: Access::Broadcast, .. } => None,
            Self::Data { access: Access::Unicast(to), .. } => Some(to.0),
            Self::Rts { to, .. } | Self::Answer { to, .. } => Some(to),
        }
    }

    /// Whether it is the MAC's own.
    pub(super) fn is_control(&self) -> bool {
        !matches!(self, Self::Data { .. })
    }
}

/// A transmission from its first to its last bit.
#[derive(Clone, Debug)]
pub(crate) struct Transmission {
    /// Who sends.
    pub(crate) sender: usize,
    /// What.
    pub(crate) payload: Payload,
    /// How long it lasts, ns.
    pub(crate) airtime_ns: u64,
    /// For how long after its end it claims the medium (its Duration field), ns.
    pub(crate) claim_ns: u64,
}

/// A place for a transmission; its list of arrivals is used again.
#[derive(Default)]
pub(super) struct Flight {
    /// None if the place is free.
    pub(super) transmission: Option<Transmission>,
    /// It is a frame of the MAC's own.
    pub(super) control: bool,
    /// The sender died in the middle: energy still, but no frame.
    pub(super) aborted: bool,
    /// Whom it reached.
    pub(super) arrivals: Vec<Arrival>,
}

/// A transmission that has just ended.
pub(crate) struct Landed {
    pub(crate) transmission: Transmission,
    /// Whether the sender died in the middle.
    pub(crate) aborted: bool,
}
