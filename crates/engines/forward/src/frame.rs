//! The one frame of plain forwarding. Layout in bytes: `docs/reference/wire-format.md`.

use ncmesh_engine::Malformed;
use ncmesh_wire::{NodeId, Reader, Writer};

/// Header of a data frame, before its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Node that is to receive the packet now: a relay, or the destination.
    pub next: NodeId,
    pub source: NodeId,
    pub destination: NodeId,
    /// Hops that the packet may still go, this one included.
    pub hops_left: u8,
}

impl Header {
    /// Length of the header, bytes.
    pub(crate) const LEN: usize = 7;

    /// Appends the header.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Self { next, source, destination, hops_left } = *self;
        Writer::new(out).node(next).node(source).node(destination).u8(hops_left);
    }

    /// Reads a frame body: the header, and the packet behind it.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are missing, there is no packet, it has no hops left, or both ends
    /// are the same node.
    pub(crate) fn parse(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut r = Reader::new(body);
        let header =
            Self { next: r.node()?, source: r.node()?, destination: r.node()?, hops_left: r.u8()? };
        let packet = r.rest();
        if packet.is_empty() || header.hops_left == 0 || header.source == header.destination {
            return Err(Malformed);
        }
        Ok((header, packet))
    }
}
