//! State of a transfer at its source.

use crate::multicast::frame::TransferPhase;
use ncmesh_engine::file::SendFailure;
use ncmesh_engine::time::Instant;

/// State of a transfer at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::multicast) enum SourceState {
    /// Some receiver has not finished.
    Open,
    /// Nothing is sent any more.
    Closed {
        reason: CloseReason,
        at: Instant,
        /// When the end was last announced. `None` if it is to be announced now: it never was, or a
        /// receiver shows that it missed it.
        announced_at: Option<Instant>,
    },
}

/// Why a transfer was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::multicast) enum CloseReason {
    /// Every receiver has the file or refused it.
    Ended,
    /// This node's operator cancelled it.
    Withdrawn,
    /// The file cannot be sent on.
    Failed(SendFailure),
}

impl SourceState {
    /// Returns the phase that announcements show.
    pub(super) fn phase(self) -> TransferPhase {
        match self {
            Self::Open => TransferPhase::Open,
            Self::Closed { reason: CloseReason::Ended, .. } => TransferPhase::Ended,
            Self::Closed { .. } => TransferPhase::Withdrawn,
        }
    }

    /// Returns when it was closed.
    pub(in crate::multicast) fn closed_at(self) -> Option<Instant> {
        match self {
            Self::Open => None,
            Self::Closed { at, .. } => Some(at),
        }
    }
}
