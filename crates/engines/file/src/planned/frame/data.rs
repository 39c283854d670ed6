//! Data packet: one packet of a generation, or a combination of several, with what forwarders need
//! to know to pass it on.
//!
//! ```text
//! flow, turn, generation, packets, flags | routing | poll? | piggyback? | coding vector | payload
//! ```

use super::{Coding, Piggyback, TurnId};
use crate::planned::routing::{Forwarding, Routed, Routing, Upstream};
use ncmesh_engine::Malformed;
use ncmesh_transfer::frame::SYSTEMATIC;
use ncmesh_wire::layout::Part;
use ncmesh_wire::record::{bits, field, fixed_len};
use ncmesh_wire::{FlowId, Reader, Record, Writer, record};

/// Everything in a data packet before its coding vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataHeader {
    pub flow: FlowId,
    pub turn: TurnId,
    pub generation: u32,
    /// Packets of this generation (k).
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

record! {
    impl DataHeader with systematic: bool as DataHeader {
        flow,
        turn,
        generation,
        packets,
        routing,
        revision,
        poll,
        piggyback,
    } {
        /// the transfer
        flow: FlowId = field("flow", "Flow"),
        turn: TurnId,
        /// its number, from 0
        generation: u32 = field("generation", "Generation"),
        packets: u8 = field("packets", "Packets of the generation").at_least(1),
        byte {
            /// a poll follows
            has_poll: bool = bits(0x10, "has_poll", "Poll") => poll.is_some(),
            /// packets go down a tree
            is_tree: bool = bits(8, "is_tree", "Tree") => matches!(routing, Routing::Tree(_)),
            /// the list of forwarders says who is upstream
            has_belts: bool = bits(4, "has_belts", "Belts")
                => matches!(routing, Routing::Belts(..)),
            /// a piggyback follows
            has_piggyback: bool = bits(2, "has_piggyback", "Piggyback") => piggyback.is_some(),
            systematic: bool = SYSTEMATIC,
        }
        // Trees carry packets as they are, and only in a tree there are children to poll.
        check excludes(has_belts, is_tree),
        check implies(is_tree, systematic),
        check implies(has_poll, is_tree),
        routing, revision as Routed { is_tree, has_belts },
        /// children of the transmitter are to report, and name this number; from 1
        poll: Option<u32> where has_poll = field("poll", "Poll"),
        piggyback: Option<Piggyback> where has_piggyback,
    }
}

impl Forwarding {
    /// Returns the most bytes that a data packet has besides its payload, if it lists `listed`
    /// nodes and its generation has `packets`. Assumes that it carries a coding vector, a poll and
    /// a piggyback wherever it may: forwarders add them to packets that came without.
    pub(crate) const fn overhead(self, listed: usize, packets: usize) -> usize {
        let by_kind = match self {
            Self::Ordered => packets,
            Self::Belts => 1 + Upstream::len(listed) + packets,
            // Revision, poll, index of the packet.
            Self::HopByHop(_) => 1 + 4 + 1,
        };
        fixed_len(DataHeader::PARTS) + 4 * listed + Piggyback::LEN + by_kind
    }
}

impl DataHeader {
    /// Appends the header. Coding vector and payload follow: if `systematic` one byte with the
    /// packet's index, else one coefficient for each packet.
    pub(crate) fn write(&self, systematic: bool, out: &mut Vec<u8>) {
        self.put_with(systematic, &mut Writer::new(out));
    }
}

impl Data<'_> {
    /// Parts of the frame.
    pub(super) const PARTS: &'static [Part] =
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
