//! Result of a run.

use crate::series::Series;
use ncmesh_engine_multirate::Parameters;

/// Length of a queue, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Maximum over all slots, the warm-up included.
    pub max: f64,
    /// Mean over the slots after the warm-up.
    pub mean: f64,
    /// Length after the last slot.
    pub end: f64,
}

/// Queues of one session at one link.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueOutcome {
    /// Index of the link.
    pub link: usize,
    /// Index of the session.
    pub session: usize,
    /// Receivers that are reached through it (m).
    pub receivers: u32,
    /// The transmission queue (Q).
    pub q: Extent,
    /// The drop queue (D); zero under a policy without drop queues.
    pub d: Extent,
    /// Packets of each layer dropped in the whole run.
    pub dropped: Vec<u64>,
}

/// Result of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverOutcome {
    /// Packets per slot of each layer, after the warm-up.
    pub rates: Vec<f64>,
    /// Packets of each layer received in the whole run.
    pub received: Vec<u64>,
    /// The virtual queue (Z); `None` under `mmt`.
    pub z: Option<Extent>,
}

/// Result of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionOutcome {
    /// Packets per slot of each layer that entered the source, after the warm-up.
    pub rates: Vec<f64>,
    /// Packets of each layer that entered the source in the whole run.
    pub entered: Vec<u64>,
    /// Packets that waited outside the source because more than `a_max` arrived at once.
    pub waiting: Extent,
    /// Receivers, in the order of the session.
    pub receivers: Vec<ReceiverOutcome>,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Parameters, given and derived.
    pub parameters: Parameters,
    /// Sessions, by index.
    pub sessions: Vec<SessionOutcome>,
    /// Queues session by session, each after its parent.
    pub queues: Vec<QueueOutcome>,
    /// The series, if the setup asks for one.
    pub series: Option<Series>,
}
