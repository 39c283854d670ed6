//! Things that happened at an instant.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Something that happened at an instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Time of the run, s: not after that of the tick or key that has its effects. This is the
    /// next one; after a new meta, the key before.
    pub time_s: f64,
    /// Id of the node at which it happened; null if it concerns the whole mesh.
    pub node: Option<u16>,
    /// Kind of the event.
    pub what: EventKind,
}

/// Kind of the event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventKind {
    /// The node was started.
    NodeUp,
    /// The node was stopped, or is no longer heard of.
    NodeDown,
    /// The node hears another one.
    NeighborUp {
        /// Id of the node that it hears.
        neighbor: u16,
    },
    /// The node no longer hears another one.
    NeighborDown {
        /// Id of the node that it heard.
        neighbor: u16,
    },
    /// A transfer has reached a stage at the node: the source or a receiver.
    Transfer {
        /// Place of the transfer in the list of transfers.
        transfer: u32,
        /// The stage.
        stage: Stage,
    },
    /// The source of a transfer, at which this happened, has learnt that a receiver is done.
    ReceiverDone {
        /// Place of the transfer in the list of transfers.
        transfer: u32,
        /// Id of the receiver.
        receiver: u16,
    },
    /// A problem, and what to do about it.
    Hint {
        /// One sentence. Any text.
        text: String,
    },
    /// The node has dropped many frames for one reason.
    Drops {
        /// Name of the reason, as in the documents.
        reason: String,
        /// Frames dropped.
        frames: u32,
        /// Time in which they were dropped, s.
        seconds: f64,
    },
    /// The run has ended: no message follows.
    End,
}

/// Stage of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It has not begun there.
    #[default]
    Waiting,
    /// It is under way.
    Open,
    /// The receiver verifies the whole file.
    Verifying,
    /// It ended well.
    Complete,
    /// The source withdrew it.
    Withdrawn,
    /// The receiver did not take it.
    Refused,
    /// The source could not go on sending.
    Failed,
}

impl Stage {
    /// All stages.
    pub(super) const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Open,
        Self::Verifying,
        Self::Complete,
        Self::Withdrawn,
        Self::Refused,
        Self::Failed,
    ];

    /// Returns its name in commands and in the console.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Open => "under way",
            Self::Verifying => "verifying",
            Self::Complete => "complete",
            Self::Withdrawn => "withdrawn",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}
