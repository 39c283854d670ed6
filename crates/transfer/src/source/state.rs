//! State of a transfer at its source.

use crate::frame::TransferPhase;
use ncmesh_engine::file::SendFailure;
use ncmesh_engine::time::{Duration, Instant};

/// Time in which receivers may object to an end. The announcement of the end takes some tenths of a
/// second to a far one, and it objects once a second.
const OBJECTIONS: Duration = Duration::from_secs(3);

/// State of a transfer at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceState {
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
pub(crate) enum CloseReason {
    /// Every receiver is said to have the file or to refuse it. Each may object for
    /// [`OBJECTIONS`], and then the transfer is open again.
    SaidDone,
    /// Every receiver has the file or refused it.
    Ended,
    /// This node's operator cancelled it.
    Withdrawn,
    /// The file cannot be sent on.
    Failed(SendFailure),
}

impl SourceState {
    /// Returns the phase that announcements show.
    pub(crate) fn phase(self) -> TransferPhase {
        match self {
            Self::Open => TransferPhase::Open,
            Self::Closed { reason: CloseReason::SaidDone | CloseReason::Ended, .. } => {
                TransferPhase::Ended
            }
            Self::Closed { .. } => TransferPhase::Withdrawn,
        }
    }

    /// Returns when its end is confirmed if no receiver objects; `None` if it is not closed, or
    /// confirmed already.
    pub(crate) fn confirmed_at(self) -> Option<Instant> {
        match self {
            Self::Closed { reason: CloseReason::SaidDone, at, .. } => Some(at + OBJECTIONS),
            _ => None,
        }
    }

    /// Returns when it was closed.
    pub(crate) fn closed_at(self) -> Option<Instant> {
        match self {
            Self::Open => None,
            Self::Closed { at, .. } => Some(at),
        }
    }
}
