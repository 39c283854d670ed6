//! Packets on their way: their names, source routes and directions through a node.
//!
//! These types are shared by the frames, the NC buffer and the hold times.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::sync::Arc;

/// Most hops of a route.
pub(crate) const MAX_HOPS: usize = 16;

/// Name of a packet: its source, and a number that the source gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PacketId {
    pub source: NodeId,
    pub number: u32,
}

/// Name and source route of a packet, as it travels over one hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub id: PacketId,
    /// Sequence number that the sender gave the packet for this hop, or 0 if it has none.
    pub sequence: u16,
    /// Index in `route` of the node that is to receive the packet now.
    pub hop: u8,
    /// Nodes after the source, the destination last.
    pub route: Vec<NodeId>,
    /// Whether the sender has another packet for the same receiver.
    pub more: bool,
}

impl Header {
    /// Returns the node that is to receive the packet.
    pub(crate) fn next(&self) -> NodeId {
        self.before(0).unwrap_or(self.id.source)
    }

    /// Returns the node that transmits the packet to [`next`](Self::next).
    pub(crate) fn sender(&self) -> NodeId {
        self.before(1).unwrap_or(self.id.source)
    }

    /// Returns the node from which the sender has the packet; `None` if the sender is the source.
    pub(crate) fn previous(&self) -> Option<NodeId> {
        self.before(2)
    }

    /// Returns the last node of the route.
    pub(crate) fn destination(&self) -> NodeId {
        self.route.last().copied().unwrap_or(self.id.source)
    }

    /// Returns the header for the next hop, not yet numbered; `None` at the destination.
    pub(crate) fn for_next_hop(self) -> Option<Self> {
        let hop = self.hop + 1;
        let has_next = usize::from(hop) < self.route.len();
        has_next.then_some(Self { hop, sequence: 0, more: false, ..self })
    }

    /// Returns the node `back` hops before the receiver; `None` if the route begins after it.
    fn before(&self, back: usize) -> Option<NodeId> {
        match usize::from(self.hop).checked_sub(back) {
            Some(at) => self.route.get(at).copied(),
            None if usize::from(self.hop) + 1 == back => Some(self.id.source),
            None => None,
        }
    }
}

/// Direction of a packet through a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Direction {
    /// Previous hop.
    pub previous: NodeId,
    /// Next hop.
    pub next: NodeId,
}

impl Direction {
    /// Returns the direction whose packets can be coded with those of this one.
    pub(crate) fn opposite(self) -> Self {
        Self { previous: self.next, next: self.previous }
    }
}

/// Packet in the NC buffer of a node that is going to transmit it.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub header: Header,
    pub bytes: Arc<[u8]>,
    /// When it came to this node.
    pub since: Instant,
    /// Time for which it waits for a packet of the opposite direction.
    pub hold: Duration,
}

impl Packet {
    /// Returns a packet that came at `now` and is not held.
    pub(crate) fn new(header: Header, bytes: Arc<[u8]>, now: Instant) -> Self {
        Self { header, bytes, since: now, hold: Duration::ZERO }
    }

    /// Returns whether this node is the packet's source.
    pub(crate) fn is_own(&self) -> bool {
        self.header.hop == 0
    }

    /// Returns the packet's direction through this node; `None` if this node is its source.
    pub(crate) fn direction(&self) -> Option<Direction> {
        Some(Direction { previous: self.header.previous()?, next: self.header.next() })
    }

    /// Returns when its hold time is over.
    pub(crate) fn hold_ends(&self) -> Instant {
        self.since + self.hold
    }
}

/// Contents of one transmission.
#[derive(Debug)]
pub(crate) enum Load {
    /// A packet as it is.
    Native(Packet),
    /// Two packets of opposite directions, to be xored.
    Coded(Packet, Packet),
}
