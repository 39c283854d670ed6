//! Choice between transfers that have a packet to send.

use ncmesh_engine::time::Instant;
use ncmesh_wire::FlowId;

/// A transfer that has a data packet to send. The least of several is the one to send for:
/// transfers take turns, the one served longest ago first; those in the background come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadyTransfer {
    pub is_background: bool,
    /// When a packet was last sent for it.
    pub sent_at: Instant,
    pub flow: FlowId,
}
