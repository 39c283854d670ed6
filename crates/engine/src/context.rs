//! Everything an engine may see and touch while it is called.

use crate::counters::{Counters, DropReason};
use crate::event::Event;
use crate::port::At;
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
    /// Number of this start of the node, which grows from start to start. It orders what the node
    /// tells in different starts.
    pub epoch: u64,
    /// Longest frame body that every port takes, bytes.
    pub mtu: usize,
    /// The port that the call is about, and the ways to the neighbours.
    pub at: At<'a>,
    /// The mesh as link state shows it.
    pub topology: &'a Topology,
    /// The engine's own random stream.
    pub rng: &'a mut ChaCha8Rng,
    /// The node's counters.
    pub counters: &'a mut Counters,
    /// Queue of events for the driver.
    pub events: &'a mut VecDeque<Event>,
    /// Storage backend for the generations of files.
    pub storage: &'a mut dyn Storage,
}

impl Context<'_> {
    /// Hands a packet from the tunnel's other end to this node's host. An empty one was decoded to
    /// something else than was sent.
    pub fn hand_up(&mut self, from: NodeId, packet: Vec<u8>) {
        if packet.is_empty() {
            self.counters.drop(DropReason::Undecodable);
        } else {
            self.events.push_back(Event::Packet { from, packet });
        }
    }
}
