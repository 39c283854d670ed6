//! Everything an engine may see and touch while it is called.

use crate::counters::Counters;
use crate::event::Event;
use crate::storage::Storage;
use crate::time::Instant;
use crate::topology::Topology;
use ncmesh_wire::NodeId;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// The node as one engine sees it during one call.
pub struct Context<'a> {
    /// The present moment.
    pub now: Instant,
    /// This node.
    pub me: NodeId,
    /// Number of this start of the node; it grows from start to start.
    pub epoch: u64,
    /// Longest frame body that the radio takes, bytes.
    pub mtu: usize,
    /// The mesh as link state shows it.
    pub topology: &'a Topology,
    /// The engine's own random stream.
    pub rng: &'a mut ChaCha8Rng,
    /// The node's counters.
    pub counters: &'a mut Counters,
    /// Queue of events for the driver.
    pub events: &'a mut VecDeque<Event>,
    /// Storage backend for the batches of files.
    pub storage: &'a mut dyn Storage,
}
