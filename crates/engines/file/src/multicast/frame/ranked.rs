//! Frames of a scheme that sends by rank: data packets that name their sender's rank and wants, and
//! reports of wants to parents.

use super::Coding;
use super::coding::SYSTEMATIC;
use super::wants::{MOST_RANKS, Wants};
use ncmesh_engine::Malformed;
use ncmesh_wire::{FlowId, NodeId, Reader, Writer};

/// Flag: children of the sender are to report.
const POLL: u8 = 2;
/// Flags: the sender receives the file; has children; has children that have children.
const RECEIVES: u8 = 4;
const FORWARDS: u8 = 8;
const FEEDS: u8 = 16;
const WANTS: u8 = RECEIVES | FORWARDS | FEEDS;
/// Most ranks that a data packet lists.
const LISTED_IN_DATA: usize = 16;

/// Everything in a data packet before its coding vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankedHeader {
    pub flow: FlowId,
    pub generation: u32,
    /// Packets of this generation (k).
    pub packets: u8,
    /// How many independent combinations of them its sender holds. Shown in traces; receivers go
    /// by what arrives.
    pub rank: u8,
    /// Whether its sender's children are to report.
    pub poll: bool,
    /// Counts the frames of this transfer that its sender sent, modulo 2^16.
    pub number: u16,
    /// The node that its sender gets the file from; the source itself at the source.
    pub parent: NodeId,
    /// What its sender wants.
    pub wants: Wants,
}

/// A parsed data packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranked<'a> {
    pub header: RankedHeader,
    pub coding: Coding<'a>,
    pub payload: &'a [u8],
}

impl RankedHeader {
    /// Most bytes of it.
    pub(crate) const MOST: usize = 6 + 4 + 1 + 1 + 1 + 2 + 2 + 4 + 1 + 1 + LISTED_IN_DATA;
    /// Most ranks in it.
    pub(crate) const LISTED: usize = LISTED_IN_DATA;

    /// Appends the header. Coding vector and payload follow, as in other data packets.
    pub(crate) fn write(&self, systematic: bool, out: &mut Vec<u8>) {
        let mut flags = flags_of(&self.wants);
        flags |= if systematic { SYSTEMATIC } else { 0 };
        flags |= if self.poll { POLL } else { 0 };
        let ranks = &self.wants.ranks[..self.wants.ranks.len().min(LISTED_IN_DATA)];
        let mut w = Writer::new(out);
        w.flow(self.flow).u32(self.generation).u8(self.packets).u8(flags).u8(self.rank);
        w.u16(self.number).node(self.parent).u32(self.wants.first).u8(self.wants.backlog);
        w.u8(ranks.len() as u8).bytes(ranks);
    }
}

impl<'a> Ranked<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (flow, generation, packets, flags) = (r.flow()?, r.u32()?, r.u8()?, r.u8()?);
        if packets == 0 || flags & !(SYSTEMATIC | POLL | WANTS) != 0 {
            return Err(Malformed);
        }
        let (rank, number, parent) = (r.u8()?, r.u16()?, r.node()?);
        let (first, backlog, listed) = (r.u32()?, r.u8()?, usize::from(r.u8()?));
        if listed > LISTED_IN_DATA {
            return Err(Malformed);
        }
        let mut wants = wants_of(flags, first, backlog, r.bytes(listed)?);
        wants.is_cut = listed == LISTED_IN_DATA;
        let poll = flags & POLL != 0;
        let header = RankedHeader { flow, generation, packets, rank, poll, number, parent, wants };
        let (coding, payload) = Coding::parse(flags & SYSTEMATIC != 0, packets, r)?;
        Ok(Self { header, coding, payload })
    }
}

/// Report of a node to its parent: what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankReport {
    /// The node that takes it or passes it on.
    pub next_hop: NodeId,
    /// Node that it is meant for.
    pub parent: NodeId,
    /// Node that it is about.
    pub child: NodeId,
    pub flow: FlowId,
    /// Counts the frames of this transfer that the child sent, modulo 2^16.
    pub number: u16,
    pub wants: Wants,
}

impl RankReport {
    /// Most ranks in it.
    pub(crate) const LISTED: usize = MOST_RANKS;

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let ranks = &self.wants.ranks[..self.wants.ranks.len().min(MOST_RANKS)];
        let mut w = Writer::new(out);
        w.node(self.next_hop).node(self.parent).node(self.child).flow(self.flow);
        w.u16(self.number).u8(flags_of(&self.wants)).u32(self.wants.first);
        w.u8(self.wants.backlog).bytes(ranks);
    }

    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (next_hop, parent, child) = (r.node()?, r.node()?, r.node()?);
        let (flow, number, flags) = (r.flow()?, r.u16()?, r.u8()?);
        let (first, backlog, ranks) = (r.u32()?, r.u8()?, r.rest());
        if flags & !WANTS != 0 || ranks.len() > MOST_RANKS {
            return Err(Malformed);
        }
        let mut wants = wants_of(flags, first, backlog, ranks);
        wants.is_cut = ranks.len() == MOST_RANKS;
        Ok(Self { next_hop, parent, child, flow, number, wants })
    }
}

fn flags_of(wants: &Wants) -> u8 {
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    flag(wants.receives, RECEIVES) | flag(wants.forwards, FORWARDS) | flag(wants.feeds, FEEDS)
}

fn wants_of(flags: u8, first: u32, backlog: u8, ranks: &[u8]) -> Wants {
    Wants {
        first,
        ranks: ranks.to_vec(),
        is_cut: false,
        backlog,
        receives: flags & RECEIVES != 0,
        forwards: flags & FORWARDS != 0,
        feeds: flags & FEEDS != 0,
    }
}
