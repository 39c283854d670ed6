//! The frames of the engine. Layouts: `docs/wire-format.md`.

use super::NAME;
use ncmesh_engine::Malformed;
use ncmesh_engine::Summary;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::stream::check_names;
use ncmesh_wire::{FlowId, NodeId, Reader, Writer};

/// Kind of a packet of a stream, to one next hop.
pub(super) const DATA: u8 = 1;
/// Kind of a report of backlog and membership.
pub(super) const REPORT: u8 = 2;
/// Kind of a source's announcement, flooded.
pub(super) const ANNOUNCEMENT: u8 = 3;

/// Everything in a data frame before its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub next: NodeId,
    pub flow: FlowId,
    pub layer: u8,
    /// Numbers the layer's packets.
    pub seq: u32,
    /// Hops it may still go, this one included.
    pub hops: u8,
}

impl Header {
    /// Its length, bytes.
    pub(super) const LEN: usize = 14;

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.flow(self.flow).node(self.next).u8(self.layer).u32(self.seq).u8(self.hops);
    }

    /// The header and the packet behind it.
    pub(super) fn parse(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut r = Reader::new(body);
        let flow = r.flow()?;
        let header = Self { flow, next: r.node()?, layer: r.u8()?, seq: r.u32()?, hops: r.u8()? };
        let packet = r.rest();
        if packet.is_empty() || header.hops == 0 || usize::from(header.layer) >= LAYERS {
            return Err(Malformed);
        }
        Ok((header, packet))
    }
}

/// What a node tells of one stream: how many receivers are behind it, and what (25) takes off at its parent, packets
/// and virtual pressure apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub flow: FlowId,
    /// Whom it wants the stream from.
    pub parent: NodeId,
    /// Receivers reached through it, itself included (m); 0: it leaves the tree.
    pub receivers: u16,
    /// The sum of m times the packets held over its links, and its own Y where that is below 0, packets.
    pub backlog: f32,
    /// The sum of Y over those receivers, where it is above 0, packets.
    pub pressure: f32,
}

impl Entry {
    /// Its length, bytes.
    pub(super) const LEN: usize = 18;

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.flow(self.flow).node(self.parent).u16(self.receivers);
        w.u32(self.backlog.to_bits()).u32(self.pressure.to_bits());
    }

    fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (flow, parent, receivers) = (r.flow()?, r.node()?, r.u16()?);
        let (backlog, pressure) = (f32::from_bits(r.u32()?), f32::from_bits(r.u32()?));
        if backlog.is_finite() && pressure.is_finite() {
            Ok(Self { flow, parent, receivers, backlog, pressure })
        } else {
            Err(Malformed)
        }
    }

    /// All entries of a report.
    pub(super) fn parse_all(body: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut r = Reader::new(body);
        if body.is_empty() || !body.len().is_multiple_of(Self::LEN) {
            return Err(Malformed);
        }
        (0..body.len() / Self::LEN).map(|_| Self::parse(&mut r)).collect()
    }
}

/// A stream as its source announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    pub flow: FlowId,
    /// Counts the announcements of this stream.
    pub version: u32,
    pub group: String,
    /// The base first; none: the stream has ended.
    pub layers: Vec<String>,
    /// Packets of each layer that entered the stream so far, modulo 2^32.
    pub sent: Vec<u32>,
}

impl Announcement {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).flow(self.flow).u32(self.version).u8(self.layers.len() as u8);
        for name in core::iter::once(&self.group).chain(&self.layers) {
            Writer::new(out).short_bytes(name.as_bytes());
        }
        for sent in &self.sent {
            Writer::new(out).u32(*sent);
        }
    }

    /// Its length, bytes.
    pub(super) fn len(&self) -> usize {
        let names: usize = self.layers.iter().map(|name| 1 + name.len()).sum();
        11 + 1 + self.group.len() + names + 4 * self.sent.len()
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (flow, version, layers) = (r.flow()?, r.u32()?, usize::from(r.u8()?));
        if layers > LAYERS {
            return Err(Malformed);
        }
        let mut name = || -> Result<String, Malformed> {
            let name = core::str::from_utf8(r.short_bytes()?).map_err(|_| Malformed)?;
            Ok(name.to_owned())
        };
        let group = name()?;
        let layers = (0..layers).map(|_| name()).collect::<Result<Vec<_>, _>>()?;
        let sent = layers.iter().map(|_| r.u32()).collect::<Result<Vec<_>, _>>()?;
        let one = ["base".to_owned()];
        let named = if layers.is_empty() { &one[..] } else { &layers };
        if r.remaining() > 0 || check_names(&group, named).is_err() {
            return Err(Malformed);
        }
        Ok(Self { flow, version, group, layers, sent })
    }
}

/// What a frame of (kind, fields) says of itself.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let of = |flow, what| Summary { flow, ..Summary::new(NAME, what) };
    match kind {
        DATA => Some(of(Some(Header::parse(body).ok()?.0.flow), "data")),
        REPORT => Entry::parse_all(body).ok().map(|_| of(None, "report")),
        ANNOUNCEMENT => Some(of(Some(Announcement::parse(body).ok()?.flow), "announcement")),
        _ => None,
    }
}
