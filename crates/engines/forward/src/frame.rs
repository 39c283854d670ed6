//! The one frame of plain forwarding. Layout: `docs/wire-format.md`.

use ncmesh_engine::Malformed;
use ncmesh_wire::{NodeId, Reader, Writer};

/// Everything in a data frame before its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Who is to send it on, or is its destination.
    pub next: NodeId,
    pub source: NodeId,
    pub destination: NodeId,
    /// Hops it may still go, this one included.
    pub hops: u8,
}

impl Header {
    /// Its length, bytes.
    pub(super) const LEN: usize = 7;

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).node(self.next).node(self.source).node(self.destination).u8(self.hops);
    }

    /// The header and the packet behind it.
    pub(super) fn parse(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut r = Reader::new(body);
        let header =
            Self { next: r.node()?, source: r.node()?, destination: r.node()?, hops: r.u8()? };
        let packet = r.rest();
        if packet.is_empty() || header.hops == 0 || header.source == header.destination {
            return Err(Malformed);
        }
        Ok((header, packet))
    }
}
