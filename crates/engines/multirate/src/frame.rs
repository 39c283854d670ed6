//! The frames of the engine: data, reports and announcements. Layouts:
//! `docs/reference/wire-format.md`.

use crate::NAME;
use ncmesh_engine::stream::{LAYERS, check_names};
use ncmesh_engine::{Malformed, Summary};
use ncmesh_wire::{FlowId, NodeId, Reader, Writer};

/// Kind of a packet of a stream, sent to one child.
pub(crate) use ncmesh_engine::transmission::DATA;
/// Kind of a report of backlogs and membership.
pub(crate) const REPORT: u8 = 2;
/// Kind of a source's announcement, which is flooded.
pub(crate) const ANNOUNCEMENT: u8 = 3;

/// Everything in a data frame before its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataHeader {
    /// The child that it is sent to.
    pub next: NodeId,
    pub flow: FlowId,
    pub layer: u8,
    /// Number of the packet in its layer.
    pub seq: u32,
    /// Hops that it may still go, this one included.
    pub hops: u8,
}

impl DataHeader {
    /// Length of the header, bytes.
    pub(crate) const LEN: usize = 14;

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.flow(self.flow).node(self.next).u8(self.layer).u32(self.seq).u8(self.hops);
    }

    /// Parses the body of a data frame into its header and its packet.
    ///
    /// # Errors
    /// [`Malformed`] if there is no packet, no hop left or no such layer.
    pub(crate) fn parse(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
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

/// Entry of a report, for one stream: how many receivers the node reaches, and the sum that its
/// parent subtracts in (25), in two parts for packets and for virtual pressure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReportEntry {
    pub flow: FlowId,
    /// The neighbour that it wants the stream from.
    pub parent: NodeId,
    /// Receivers reached through it, itself included (m); 0 if it leaves the tree.
    pub receivers: u16,
    /// The sum over its children of m times the packets held, plus its own Y if that is below 0,
    /// packets.
    pub backlog: f32,
    /// The sum of Y over those receivers where it is above 0, packets.
    pub pressure: f32,
}

impl ReportEntry {
    /// Length of an entry, bytes.
    pub(crate) const LEN: usize = 18;

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
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

    /// Parses the body of a report.
    ///
    /// # Errors
    /// [`Malformed`] if it has no entry, a part of one, or a number that is not finite.
    pub(crate) fn parse_all(body: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut r = Reader::new(body);
        if body.is_empty() || !body.len().is_multiple_of(Self::LEN) {
            return Err(Malformed);
        }
        (0..body.len() / Self::LEN).map(|_| Self::parse(&mut r)).collect()
    }
}

/// A stream as its source announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub flow: FlowId,
    /// Number of this announcement of the stream.
    pub version: u32,
    pub group: String,
    /// Names of the layers, the base first; none if the stream has ended.
    pub layers: Vec<String>,
    /// Packets of each layer that have entered the stream so far, modulo 2^32.
    pub sent: Vec<u32>,
}

impl Announcement {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).flow(self.flow).u32(self.version).u8(self.layers.len() as u8);
        for name in core::iter::once(&self.group).chain(&self.layers) {
            Writer::new(out).short_bytes(name.as_bytes());
        }
        for sent in &self.sent {
            Writer::new(out).u32(*sent);
        }
    }

    /// Returns the length of its frame body, bytes.
    pub(crate) fn len(&self) -> usize {
        let names: usize = self.layers.iter().map(|name| 1 + name.len()).sum();
        11 + 1 + self.group.len() + names + 4 * self.sent.len()
    }

    /// Parses the body of an announcement.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are missing or left over, or a name is not allowed.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
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
        // The end of a stream has no layers, but `check_names` wants one: check only the group.
        let placeholder = ["base".to_owned()];
        let names = if layers.is_empty() { &placeholder[..] } else { &layers };
        if r.remaining() > 0 || check_names(&group, names).is_err() {
            return Err(Malformed);
        }
        Ok(Self { flow, version, group, layers, sent })
    }
}

/// Returns what traces show of a frame; `None` if it is malformed.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let summary = |flow, what| Summary { flow, ..Summary::new(NAME, what) };
    match kind {
        DATA => Some(summary(Some(DataHeader::parse(body).ok()?.0.flow), "data")),
        REPORT => ReportEntry::parse_all(body).ok().map(|_| summary(None, "report")),
        ANNOUNCEMENT => Some(summary(Some(Announcement::parse(body).ok()?.flow), "announcement")),
        _ => None,
    }
}
