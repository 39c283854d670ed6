//! What came of a run.

use super::series::Series;
use ncmesh_engine_multirate::Parameters;

/// How long a queue was, packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// In any slot, the warm-up included.
    pub max: f64,
    /// Over the slots after the warm-up.
    pub mean: f64,
    /// After the last slot.
    pub end: f64,
}

/// The queues of a link and session.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueOutcome {
    /// Index of the link.
    pub link: usize,
    /// Index of the session.
    pub session: usize,
    /// Receivers that are reached over it (m).
    pub receivers: u32,
    /// The transmission queue (Q).
    pub q: Extent,
    /// The drop queue (D); zeros without drop queues.
    pub d: Extent,
    /// Packets dropped from it in the whole run, by layer.
    pub dropped: Vec<u64>,
}

/// A receiver of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverOutcome {
    /// Packets per slot of each layer, after the warm-up.
    pub rates: Vec<f64>,
    /// Packets of each layer in the whole run.
    pub received: Vec<u64>,
    /// The virtual queue (Z); none under `mmt`.
    pub z: Option<Extent>,
}

/// A session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOutcome {
    /// Packets per slot of each layer that entered the source, after the warm-up.
    pub rates: Vec<f64>,
    /// Packets of each layer that entered the source in the whole run.
    pub entered: Vec<u64>,
    /// Packets that waited outside the source, being more than A_max at once.
    pub waiting: Extent,
    /// In the order of the session.
    pub receivers: Vec<ReceiverOutcome>,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// All parameters.
    pub parameters: Parameters,
    /// By index.
    pub sessions: Vec<SessionOutcome>,
    /// Session by session, each behind its parent.
    pub queues: Vec<QueueOutcome>,
    /// If it was asked for.
    pub series: Option<Series>,
}
