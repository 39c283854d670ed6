//! Data packets. Layout: `docs/wire-format.md`.

use super::frame::Piggyback;
use super::routing::Routing;
use ncmesh_engine::Malformed;
use ncmesh_wire::{FlowId, Reader, Writer};

const SYSTEMATIC: u8 = 1;
const PIGGYBACK: u8 = 2;
const BELTS: u8 = 4;
const TREE: u8 = 8;
const POLL: u8 = 16;

/// Everything in a data packet before its coding vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataHeader {
    pub flow: FlowId,
    /// Tells the source's starts apart.
    pub incarnation: u16,
    /// Counts the source's visits to batches; a higher one is newer.
    pub visit: u32,
    pub batch: u32,
    /// Packets of this batch (k).
    pub packets: u8,
    pub routing: Routing,
    /// Counts the source's plans within a visit; 0 where the routing is [`Routing::Ordered`].
    pub revision: u8,
    /// In a tree: the sender's children are to report what they have, and to name this number.
    pub poll: Option<u32>,
    pub piggyback: Option<Piggyback>,
}

/// How a data packet's payload was combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding<'a> {
    /// The packet of this number, as it is.
    Systematic(u8),
    /// The combination with these coefficients.
    Combined(&'a [u8]),
}

/// A parsed data packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Data<'a> {
    pub header: DataHeader,
    pub coding: Coding<'a>,
    pub payload: &'a [u8],
}

impl DataHeader {
    pub(crate) fn write(&self, systematic: bool, out: &mut Vec<u8>) {
        let mut flags = if systematic { SYSTEMATIC } else { 0 };
        flags |= if self.piggyback.is_some() { PIGGYBACK } else { 0 };
        flags |= if self.poll.is_some() { POLL } else { 0 };
        flags |= match self.routing {
            Routing::Ordered(_) => 0,
            Routing::Belts(..) => BELTS,
            Routing::Tree(_) => TREE,
        };
        let mut w = Writer::new(out);
        w.flow(self.flow).u16(self.incarnation).u32(self.visit).u32(self.batch);
        w.u8(self.packets).u8(flags);
        self.routing.write(self.revision, out);
        let mut w = Writer::new(out);
        if let Some(poll) = self.poll {
            w.u32(poll);
        }
        if let Some(p) = self.piggyback {
            w.node(p.receiver).u32(p.serial);
        }
    }
}

impl<'a> Data<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (flow, incarnation, visit, batch) = (r.flow()?, r.u16()?, r.u32()?, r.u32()?);
        let (packets, flags) = (r.u8()?, r.u8()?);
        if packets == 0 || flags & !(SYSTEMATIC | PIGGYBACK | BELTS | TREE | POLL) != 0 {
            return Err(Malformed);
        }
        let (routing, revision) = match flags & (BELTS | TREE) {
            0 => Routing::parse_ordered(&mut r)?,
            BELTS => Routing::parse_belts(&mut r)?,
            TREE if flags & SYSTEMATIC != 0 => Routing::parse_tree(&mut r)?,
            _ => return Err(Malformed),
        };
        let poll = match flags & (TREE | POLL) {
            0 | TREE => None,
            POLL => return Err(Malformed),
            _ => Some(r.u32()?),
        };
        let piggyback = if flags & PIGGYBACK == 0 {
            None
        } else {
            Some(Piggyback { receiver: r.node()?, serial: r.u32()? })
        };
        let coding = if flags & SYSTEMATIC == 0 {
            Coding::Combined(r.bytes(usize::from(packets))?)
        } else {
            Coding::Systematic(Some(r.u8()?).filter(|i| *i < packets).ok_or(Malformed)?)
        };
        let payload = r.rest();
        if payload.is_empty() || payload.len() > usize::from(u16::MAX) {
            return Err(Malformed);
        }
        let header = DataHeader {
            flow,
            incarnation,
            visit,
            batch,
            packets,
            routing,
            revision,
            poll,
            piggyback,
        };
        Ok(Self { header, coding, payload })
    }
}
