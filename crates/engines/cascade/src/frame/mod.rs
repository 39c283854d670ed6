//! Frames of the cascade: data packets that name their sender's rank and wants, and reports of
//! wants to parents. Announcements and acknowledgments are those of all file schemes.
//!
//! Layouts with offsets and examples: `docs/reference/wire-format.md`.

mod wants;

#[cfg(test)]
mod tests;

pub(crate) use wants::{UNWANTED, Wants};

use ncmesh_engine::toolkit::hop::Handled;
use ncmesh_engine::{Malformed, Summary};
use ncmesh_transfer::frame::{
    ACKNOWLEDGMENT, ANNOUNCEMENT, CHECKS, CHECKS_REQUESTED, Coding, DATA, REPORT, SYSTEMATIC,
};
use ncmesh_wire::layout::{Layout, Part};
use ncmesh_wire::record::{Named, bits, field, fixed_len};
use ncmesh_wire::{FlowId, NodeId, Reader, Writer, frame, record};
use wants::MOST_RANKS;

/// Frames of the cascade.
pub const LAYOUTS: &[Layout] = &[
    ANNOUNCEMENT,
    Layout::new(
        DATA,
        "data",
        "{flow} generation {generation}, {systematic}, rank {rank}",
        Data::PARTS,
    ),
    ACKNOWLEDGMENT,
    Layout::of::<Report>(
        REPORT,
        "report",
        "{flow} of {child} to parent {parent}: wants generation {first_wanted}",
    ),
    CHECKS_REQUESTED,
    CHECKS,
];

/// Summarises a frame of the scheme `name` for traces. Returns `None` for a malformed frame.
#[must_use]
pub fn summary(name: &'static str, kind: u8, body: &[u8]) -> Option<Summary> {
    let (what, flow, generation) = match kind {
        DATA => {
            let header = Data::parse(body).ok()?.header;
            ("data", header.flow, Some(header.generation))
        }
        REPORT => ("report", Report::parse(body).ok()?.flow, None),
        _ => return ncmesh_transfer::frame::summary(name, kind, body),
    };
    Some(Summary { flow: Some(flow), generation, ..Summary::new(name, what) })
}

/// Whether a child of a node has children.
const FEEDS: Named = bits(0x10, "feeds", "Feeds");
/// Whether a node has children.
const FORWARDS: Named = bits(8, "forwards", "Forwards");
/// Whether a node receives the file itself.
const RECEIVES: Named = bits(4, "receives", "Receives");

/// Most ranks that a data packet lists.
const LISTED_IN_DATA: usize = 16;

/// Everything in a data packet before its coding vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataHeader {
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
    /// The last frame of that node that its sender had handled.
    pub handled: Handled,
    /// Generations that its sender wants.
    pub wants: Wants,
}

/// A parsed data packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Data<'a> {
    pub header: DataHeader,
    pub coding: Coding<'a>,
    pub payload: &'a [u8],
}

record! {
    impl DataHeader with systematic: bool as DataHeader {
        flow,
        generation,
        packets,
        rank,
        poll,
        number,
        parent,
        handled,
        wants: Wants { first, ranks, is_cut: _, backlog, receives, forwards, feeds },
    } => DataHeader {
        flow,
        generation,
        packets,
        rank,
        poll,
        number,
        parent,
        handled,
        wants: Wants {
            first,
            is_cut: ranks.len() == LISTED_IN_DATA,
            ranks,
            backlog,
            receives,
            forwards,
            feeds,
        },
    } {
        /// the transfer
        flow: FlowId = field("flow", "Flow"),
        /// its number, from 0
        generation: u32 = field("generation", "Generation"),
        packets: u8 = field("packets", "Packets of the generation").at_least(1),
        byte {
            /// a child of the transmitter has children
            feeds: bool = FEEDS,
            /// the transmitter has children
            forwards: bool = FORWARDS,
            /// the transmitter receives the file itself
            receives: bool = RECEIVES,
            /// children of the transmitter are to report
            poll: bool = bits(2, "polls", "Poll"),
            systematic: bool = SYSTEMATIC,
        }
        /// independent combinations of the generation that the transmitter has
        rank: u8 = field("rank", "Rank"),
        /// counts the frames of the transfer that the node sent, modulo 2^16
        number: u16 = field("frame_number", "Frame number"),
        /// the node that the transmitter has the file from; itself if there is none
        parent: NodeId = field("parent", "Parent"),
        handled: Handled,
        /// the lowest generation that the node wants from its parent; 2^32 - 1 if it wants none
        first: u32 = field("first_wanted", "First wanted generation"),
        /// generations below the first wanted one that the node holds whole and a child of it
        /// wants; of the child with fewest
        backlog: u8 = field("backlog", "Backlog"),
        /// how many follow
        count: u8 = field("ranks.count", "Ranks").within(0, LISTED_IN_DATA as u64)
            => ranks.len().min(LISTED_IN_DATA) as u8,
        /// a byte for the first wanted generation and each behind it: how many independent
        /// combinations the node holds; 255 if it does not want the generation. Generations behind
        /// the list are wanted, and nothing of them is held; behind a list of the greatest length
        /// they are as the node said before
        ranks: Vec<u8> as long as count = field("ranks", "Ranks held"),
    }
}

impl DataHeader {
    /// Most bytes of it.
    pub(crate) const MAX_LEN: usize = fixed_len(Self::PARTS) + LISTED_IN_DATA;
    /// Most ranks in it.
    pub(crate) const LISTED: usize = LISTED_IN_DATA;

    /// Appends the header. Coding vector and payload follow, as in other data packets.
    pub(crate) fn write(&self, systematic: bool, out: &mut Vec<u8>) {
        self.put_with(systematic, &mut Writer::new(out));
    }
}

impl Data<'_> {
    /// Parts of the frame.
    const PARTS: &'static [Part] =
        &[Part::Include(DataHeader::PARTS), Part::Include(Coding::PARTS)];
}

impl<'a> Data<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (header, systematic) = DataHeader::read_with(&mut r)?;
        let (coding, payload) = Coding::parse(systematic, header.packets, r)?;
        Ok(Self { header, coding, payload })
    }
}

/// Report of a node to its parent: what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The node that takes it or passes it on.
    pub next_hop: NodeId,
    /// Node that it is meant for.
    pub parent: NodeId,
    /// Node that it is about.
    pub child: NodeId,
    pub flow: FlowId,
    /// Counts the frames of this transfer that the child sent, modulo 2^16.
    pub number: u16,
    /// The last frame of the parent that the child had handled.
    pub handled: Handled,
    pub wants: Wants,
}

impl Report {
    /// Most ranks in it.
    pub(crate) const LISTED: usize = MOST_RANKS;
}

frame! {
    pub(crate) impl Report as Report {
        next_hop,
        parent,
        child,
        flow,
        number,
        handled,
        wants: Wants { first, ranks, is_cut: _, backlog, receives, forwards, feeds },
    } => Report {
        next_hop,
        parent,
        child,
        flow,
        number,
        handled,
        wants: Wants {
            first,
            is_cut: ranks.len() == MOST_RANKS,
            ranks,
            backlog,
            receives,
            forwards,
            feeds,
        },
    } {
        /// the node that takes it or passes it on
        next_hop: NodeId = field("next_hop", "Next hop"),
        /// the node that is told
        parent: NodeId = field("parent", "Parent"),
        /// the node that tells
        child: NodeId = field("child", "Child"),
        /// the transfer
        flow: FlowId = field("flow", "Flow"),
        /// counts the frames of the transfer that the node sent, modulo 2^16
        number: u16 = field("frame_number", "Frame number"),
        handled: Handled,
        byte {
            /// a child of the child has children
            feeds: bool = FEEDS,
            /// the child has children
            forwards: bool = FORWARDS,
            /// the child receives the file itself
            receives: bool = RECEIVES,
        }
        /// the lowest generation that the node wants from its parent; 2^32 - 1 if it wants none
        first: u32 = field("first_wanted", "First wanted generation"),
        /// generations below the first wanted one that the node holds whole and a child of it
        /// wants; of the child with fewest
        backlog: u8 = field("backlog", "Backlog"),
        /// as in a data packet
        ranks: Vec<u8> = field("ranks", "Ranks held").rest(0, MOST_RANKS),
    }
}
