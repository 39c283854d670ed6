//! Identity of a tunnel's flow: its ends, and which start of its source it belongs to.

use super::sequence::Serial;
use crate::context::Context;
use crate::transmission::Malformed;
use ncmesh_wire::{NodeId, Reader, Writer};

/// One start of a flow between two nodes. A source that restarts begins a new instance, so that
/// receivers do not mix up its generations with those from before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowInstance {
    /// Node where the flow begins.
    pub source: NodeId,
    /// Node where it ends.
    pub destination: NodeId,
    /// Serial number (RFC 1982) of the start; a later one of the same source is greater.
    pub incarnation: u32,
}

impl FlowInstance {
    /// Returns the `begun`-th instance that this node begins in its present epoch. An epoch grows
    /// from start to start by 2^16 or more; its lower 16 bits are random.
    #[must_use]
    pub fn new(cx: &Context<'_>, destination: NodeId, begun: u32) -> Self {
        let incarnation = ((cx.epoch >> 16) as u32).wrapping_add(begun);
        Self { source: cx.me, destination, incarnation }
    }

    /// Returns the ends of the flow, which all its instances share.
    #[must_use]
    pub fn key(self) -> (NodeId, NodeId) {
        (self.source, self.destination)
    }

    /// Returns whether this instance is later than `known`, of the same flow.
    #[must_use]
    pub fn is_later(self, known: Self) -> bool {
        self.incarnation.is_newer_than(known.incarnation)
    }

    /// Appends it to a frame body, 8 bytes.
    pub fn write(self, out: &mut Vec<u8>) {
        Writer::new(out).node(self.source).node(self.destination).u32(self.incarnation);
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are missing or both ends are the same node.
    pub fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let flow = Self { source: r.node()?, destination: r.node()?, incarnation: r.u32()? };
        if flow.source == flow.destination { Err(Malformed) } else { Ok(flow) }
    }
}
