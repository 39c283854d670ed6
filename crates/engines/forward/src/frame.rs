//! The frames of plain forwarding. Layout in bytes: `docs/reference/wire-format.md`.

use ncmesh_engine::Malformed;
use ncmesh_engine::time::Duration;
use ncmesh_wire::{NodeId, Reader, Writer};

/// Kind of a frame that tells the nodes before its sender whether to wait.
pub(crate) const QUEUE: u8 = 2;

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

/// What a node asks of those that send packets to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// How long to send none that it has to pass on, whole ms; zero: there is room.
    pub pause: Duration,
}

impl Queue {
    /// Appends the frame body.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let ms = self.pause.as_secs_f64() * 1e3;
        Writer::new(out).u16(ms.ceil() as u16);
    }

    /// Reads a frame body.
    ///
    /// # Errors
    /// [`Malformed`] if it has another length.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let pause = Duration::from_millis(r.u16()?.into());
        if r.rest().is_empty() { Ok(Self { pause }) } else { Err(Malformed) }
    }
}
