//! Data packet: one packet of a batch, or a combination of several, with what forwarders need to
//! know to pass it on.
//!
//! ```text
//! flow, turn, batch, packets, flags | routing | poll? | piggyback? | coding vector | payload
//! ```

use super::coding::SYSTEMATIC;
use super::{Coding, Piggyback, TurnId};
use crate::multicast::routing::Routing;
use ncmesh_engine::Malformed;
use ncmesh_wire::{FlowId, Reader, Writer};

/// Flag: a piggyback follows.
const PIGGYBACK: u8 = 2;
/// Flag: the routing is [`Routing::Belts`].
const BELTS: u8 = 4;
/// Flag: the routing is [`Routing::Tree`].
const TREE: u8 = 8;
/// Flag: a poll follows.
const POLL: u8 = 16;

/// Everything in a data packet before its coding vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataHeader {
    pub flow: FlowId,
    pub turn: TurnId,
    pub batch: u32,
    /// Packets of this batch (k).
    pub packets: u8,
    pub routing: Routing,
    /// Counts the source's plans within a turn, modulo 2^8; 0 if the routing is
    /// [`Routing::Ordered`].
    pub revision: u8,
    /// Number of the transmitter's poll: its children in the tree are to report what they hold.
    pub poll: Option<u32>,
    pub piggyback: Option<Piggyback>,
}

/// A parsed data packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Data<'a> {
    pub header: DataHeader,
    pub coding: Coding<'a>,
    pub payload: &'a [u8],
}

impl DataHeader {
    /// Appends the header. Coding vector and payload follow: if `systematic` one byte with the
    /// packet's index, else one coefficient for each packet.
    pub(crate) fn write(&self, systematic: bool, out: &mut Vec<u8>) {
        // The flags say which of the optional fields follow.
        let mut flags = if systematic { SYSTEMATIC } else { 0 };
        flags |= if self.piggyback.is_some() { PIGGYBACK } else { 0 };
        flags |= if self.poll.is_some() { POLL } else { 0 };
        flags |= match self.routing {
            Routing::Ordered(_) => 0,
            Routing::Belts(..) => BELTS,
            Routing::Tree(_) => TREE,
        };

        let mut w = Writer::new(out);
        w.flow(self.flow);
        self.turn.write(&mut w);
        w.u32(self.batch).u8(self.packets).u8(flags);

        // Fields whose length depends on the scheme and the packet.
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
        let (flow, turn, batch) = (r.flow()?, TurnId::parse(&mut r)?, r.u32()?);
        let (packets, flags) = (r.u8()?, r.u8()?);
        if packets == 0 || flags & !(SYSTEMATIC | PIGGYBACK | BELTS | TREE | POLL) != 0 {
            return Err(Malformed);
        }

        // Trees carry packets as they are, and only in a tree there are children to poll.
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

        let (coding, payload) = Coding::parse(flags & SYSTEMATIC != 0, packets, r)?;

        let header = DataHeader { flow, turn, batch, packets, routing, revision, poll, piggyback };
        Ok(Self { header, coding, payload })
    }
}
