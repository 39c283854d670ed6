//! Frames of XOR coding (Fig. 3). Layout in bytes: `docs/reference/wire-format.md`.
//!
//! A data frame carries one packet as it is, or two xored. The paper puts a full LQSR header of
//! each packet in front; here the route leaves out the nodes that the receiver knows anyway:
//!
//! - of a single packet, its sender, which the outer frame names;
//! - of a coded pair, the three nodes where the packets cross: both next hops are listed once, and
//!   the sender is in the outer frame. The previous hop of one packet is the next hop of the other.
//!
//! Parsing checks that routes visit no node twice and that fields agree, so that the engine handles
//! only frames that can be true.

use super::packet::{Header, Packet, PacketId};
use crate::numbered::WINDOW;
use ncmesh_engine::Malformed;
use ncmesh_engine::tunnel::DATA;
use ncmesh_wire::layout::{Check, Is, Layout, Part, Route};
use ncmesh_wire::record::{Named, bits, field, fixed_len, group};
use ncmesh_wire::{NodeId, Reader, Record, Writer, frame, record};
use std::collections::BTreeSet;

/// Kind of frames by which a node reports which coded packets it could decode. Data frames have the
/// kind [`DATA`].
pub(crate) const REPORT: u8 = 2;
/// Kind of frames by which a node asks a neighbour for packets that it missed.
pub(crate) const REQUEST: u8 = 3;
/// Most neighbours in one report.
pub(crate) const MAX_ENTRIES: usize = 64;

/// Frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout::new(DATA, "data", "{xor.packet+}", PARTS).or_if(Is("xor.packets", 2), "coded"),
    Layout::of::<Report>(REPORT, "report", "of {neighbour?} neighbours"),
    Layout::of::<Request>(
        REQUEST,
        "request",
        "to {request.neighbour}, for {request.missing?} packets",
    ),
];

// ---- a data frame: its routes leave out nodes that the receiver knows, so it is read by hand

record! {
    /// First byte of a data frame.
    struct First {
        byte {
            /// the transmitter has another packet for the next hop of this one, or of the longer of
            /// two
            more: bool = bits(0x80, "xor.more", "More for the next hop"),
            /// the same of the shorter of two packets
            other_more: bool = bits(0x40, "xor.other_more", "More for the other next hop"),
            /// 1: a packet alone; 2: two packets that cross, xored
            packets: u8 = bits(0x3F, "xor.packets", "Packets").within(1, 2),
        }
    }
}

record! {
    /// Nodes and length at the front of two packets that cross.
    struct Crossing {
        /// of the longer packet; the transmitter has the shorter one from it
        next: NodeId = field("xor.next", "Next hop"),
        /// of the shorter packet, the other way round
        other_next: NodeId = field("xor.next", "Next hop"),
        /// bytes
        shorter: u16 = field("xor.length", "Length of the shorter packet").at_least(1),
    }
}

record! {
    /// Numbers of a packet, behind the byte with place and length of its route.
    struct Numbers {
        /// that the source gave the packet
        number: u32 = field("xor.number", "Number").hex(),
        /// the transmitter's number of this packet among those for the same next hop, 1 to 65,535
        /// and then from 1 again; 0: none
        sequence: u16 = field("xor.sequence", "Sequence number"),
    }
}

const HOP: Named = bits(0xF0, "xor.hop", "Place of the transmitter");
const HOPS: Named = bits(0x0F, "xor.hops", "Hops of the route").plus(1);
const CHECK: Named = field("xor.check", "Check").hex();
const PAYLOAD: Named = field("payload", "Payload").rest(1, u16::MAX as usize);

const PARTS: &[Part] = &[
    Part::Include(First::PARTS),
    Part::When(Is("xor.packets", 1), ALONE),
    Part::When(Is("xor.packets", 2), CROSSING),
    PAYLOAD.part::<&[u8]>("the packet, or two xored, the shorter one padded with zeros"),
    Part::When(Is("xor.packets", 2), &[Part::Check(Check::AtMost("xor.length", PAYLOAD.name))]),
];

const ALONE: &[Part] = &[
    Part::Check(Check::Is("xor.other_more", 0)),
    Part::Group {
        name: "xor.packet",
        label: "Packet",
        text: "{xor.source}-{xor.number}",
        parts: &[
            Part::Byte(&[
                HOP.bit::<u8>("in the route; 0 is the source"),
                HOPS.bit::<u8>("1 to 16, written one lower"),
            ]),
            BELOW,
            Part::Include(Numbers::PARTS),
            Part::Route(Route {
                crossing: None,
                doc: "source and route: the nodes behind the source, the destination last. The \
                      transmitter is left out unless it is the source",
                ..ROUTE
            }),
        ],
    },
];

const CROSSING: &[Part] = &[
    Part::Include(Crossing::PARTS),
    CROSSING_PACKET,
    CROSSING_PACKET,
    Part::Check(Check::Distinct(&["xor.source", "xor.number"])),
];

/// Either of two packets that cross, the longer one first.
const CROSSING_PACKET: Part = Part::Group {
    name: "xor.packet",
    label: "Packet",
    text: "{xor.source}-{xor.number}",
    parts: &[
        Part::Byte(&[
            HOP.at_least(1).bit::<u8>("in the route; 0 is the source"),
            HOPS.bit::<u8>("1 to 16, written one lower"),
        ]),
        BELOW,
        Part::Include(Numbers::PARTS),
        Part::Route(Route {
            crossing: Some("xor.next"),
            doc: "source and route without the three nodes that are known: the one before the \
                  transmitter, the transmitter, and the next hop",
            ..ROUTE
        }),
        CHECK.part::<u32>("the first bytes of the packet's BLAKE3"),
    ],
};

const BELOW: Part = Part::Check(Check::Below(HOP.name, HOPS.name));

const ROUTE: Route = Route {
    hop: HOP.name,
    hops: HOPS.name,
    nodes: ["xor.source", "xor.node", "xor.destination"],
    crossing: None,
    doc: "",
};

/// Bytes of a node id.
const NODE_LEN: usize = 2;

/// Returns the checksum that tells a packet from one that was decoded with wrong bytes.
pub(crate) fn checksum(packet: &[u8]) -> u32 {
    let hash = blake3::hash(packet);
    hash.as_bytes().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Xors `packet` onto the front of `onto`, which is at least as long.
pub(crate) fn xor(onto: &mut [u8], packet: &[u8]) {
    onto.iter_mut().zip(packet).for_each(|(a, b)| *a ^= b);
}

/// One of the two packets in a coded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodedPart {
    pub header: Header,
    /// Length of the packet, bytes.
    pub length: u16,
    /// [`checksum`] of the packet.
    pub check: u32,
}

/// Packet to be coded, as [`Data::write_coded`] takes it.
#[derive(Clone, Copy)]
pub(crate) struct Native<'a> {
    pub header: &'a Header,
    pub bytes: &'a [u8],
}

impl<'a> From<&'a Packet> for Native<'a> {
    fn from(packet: &'a Packet) -> Self {
        Self { header: &packet.header, bytes: &packet.bytes }
    }
}

/// Data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data<'a> {
    /// A packet as it is.
    Native(Header, &'a [u8]),
    /// Two packets that cross at the sender, xored. The longer one is first.
    Coded([CodedPart; 2], &'a [u8]),
}

impl<'a> Data<'a> {
    /// Bytes of a frame body that packets must leave free. It is enough for a single packet with
    /// the longest route, and for two packets whose routes have 12 hops together.
    pub(crate) const RESERVED: usize = Self::coded_len_for(12);

    /// Returns the bytes before the payload of two packets whose routes have `hops` hops together.
    const fn coded_len_for(hops: usize) -> usize {
        // Each route has one node more than hops. Three nodes of each are at the crossing.
        let nodes = NODE_LEN * (hops + 2 - 2 * 3);
        First::LEN + fixed_len(CROSSING) + nodes
    }

    /// Returns the bytes before the payload of these two packets coded together.
    pub(crate) fn coded_len(one: &Header, other: &Header) -> usize {
        Self::coded_len_for(one.route.len() + other.route.len())
    }

    /// Reads the body of a data frame that `sender` transmitted.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are missing, a route visits a node twice, or fields disagree.
    pub(crate) fn parse(body: &'a [u8], sender: NodeId) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let First { more, other_more, packets } = First::read(&mut r)?;
        if packets == 2 {
            return Self::parse_coded(r, sender, [more, other_more]);
        }
        if other_more {
            return Err(Malformed);
        }

        // Place 0 is the source, which the frame always lists.
        let known = |hop, place| (place == hop && hop > 0).then_some(sender);
        let header = Header { more, ..parse_header(&mut r, known)? };
        Ok(Self::Native(header, PAYLOAD.read(&mut r)?))
    }

    fn parse_coded(mut r: Reader<'a>, sender: NodeId, more: [bool; 2]) -> Result<Self, Malformed> {
        // The next hop of one packet is the previous hop of the other.
        let Crossing { next, other_next, shorter } = Crossing::read(&mut r)?;
        let (first, first_check) = parse_crossing(&mut r, [other_next, sender, next])?;
        let (second, second_check) = parse_crossing(&mut r, [next, sender, other_next])?;

        // The first packet is as long as the payload. The second one must fit in it.
        let payload: &[u8] = PAYLOAD.read(&mut r)?;
        let longer = payload.len() as u16;

        // A packet xored with itself is zeros, and would decode to anything.
        if first.id == second.id || shorter > longer {
            return Err(Malformed);
        }

        let [first, second] =
            [Header { more: more[0], ..first }, Header { more: more[1], ..second }];
        let first = CodedPart { header: first, length: longer, check: first_check };
        let second = CodedPart { header: second, length: shorter, check: second_check };
        Ok(Self::Coded([first, second], payload))
    }

    /// Returns the header of the single packet, or of the longer one.
    pub(crate) fn first(&self) -> &Header {
        match self {
            Self::Native(header, _) => header,
            Self::Coded([first, _], _) => &first.header,
        }
    }

    /// Appends a frame body with a packet as it is.
    pub(crate) fn write_native(header: &Header, packet: &[u8], out: &mut Vec<u8>) {
        let first = First { more: header.more, other_more: false, packets: 1 };
        first.put(&mut Writer::new(out));
        let hop = usize::from(header.hop);
        write_header(header, |place| place == hop && hop > 0, out);
        out.extend_from_slice(packet);
    }

    /// Appends a frame body with two packets that cross at this node, xored. The shorter one is
    /// padded with zeros.
    pub(crate) fn write_coded(one: Native<'_>, other: Native<'_>, out: &mut Vec<u8>) {
        let one_is_longer = one.bytes.len() >= other.bytes.len();
        let (long, short) = if one_is_longer { (one, other) } else { (other, one) };
        let [next, other_next] = [long, short].map(|packet| packet.header.next());

        // A packet fits a frame, so its length fits 16 bits.
        let shorter = short.bytes.len() as u16;
        let mut w = Writer::new(out);
        First { more: long.header.more, other_more: short.header.more, packets: 2 }.put(&mut w);
        Crossing { next, other_next, shorter }.put(&mut w);
        for Native { header, bytes } in [long, short] {
            let hop = usize::from(header.hop);
            write_header(header, |place| place.abs_diff(hop) <= 1, out);
            Writer::new(out).u32(checksum(bytes));
        }

        let start = out.len();
        out.extend_from_slice(long.bytes);
        xor(&mut out[start..], short.bytes);
    }
}

/// Appends a header. Leaves out the nodes of its route that receivers know, by their place; the
/// source has place 0.
fn write_header(header: &Header, is_known: impl Fn(usize) -> bool, out: &mut Vec<u8>) {
    let mut w = Writer::new(out);

    // Routes have 1 to 16 nodes after the source.
    w.u8(HOP.place(&header.hop) | HOPS.place(&(header.route.len() as u8)));
    Numbers { number: header.id.number, sequence: header.sequence }.put(&mut w);
    let nodes = [header.id.source].into_iter().chain(header.route.iter().copied());
    for (_, node) in nodes.enumerate().filter(|(place, _)| !is_known(*place)) {
        w.node(node);
    }
}

/// Reads a header. `known(hop, place)` gives the nodes that the frame leaves out.
fn parse_header(
    r: &mut Reader<'_>,
    known: impl Fn(usize, usize) -> Option<NodeId>,
) -> Result<Header, Malformed> {
    let place_and_length = r.u8()?;
    let hop: u8 = HOP.read_bits(place_and_length)?;
    let hops: u8 = HOPS.read_bits(place_and_length)?;
    let Numbers { number, sequence } = Numbers::read(r)?;
    if hop >= hops {
        return Err(Malformed);
    }

    let mut node = |place| match known(hop.into(), place) {
        Some(node) => Ok(node),
        None => r.node(),
    };

    let source = node(0)?;
    let route = (1..=hops.into()).map(node).collect::<Result<Vec<_>, _>>()?;
    // A route that visits a node twice could keep a packet in a circle.
    let visited: BTreeSet<_> = route.iter().chain([&source]).collect();
    if visited.len() != route.len() + 1 {
        return Err(Malformed);
    }
    Ok(Header { id: PacketId { source, number }, sequence, hop, route, more: false })
}

/// Reads the header and checksum of a coded packet that crosses at `sender`.
fn parse_crossing(
    r: &mut Reader<'_>,
    [previous, sender, next]: [NodeId; 3],
) -> Result<(Header, u32), Malformed> {
    let header = parse_header(r, |hop, place| match place {
        _ if place + 1 == hop => Some(previous),
        _ if place == hop => Some(sender),
        _ if place == hop + 1 => Some(next),
        _ => None,
    })?;

    // A packet at its first hop has no previous hop, so nobody could decode what is coded with it.
    if header.hop == 0 { Err(Malformed) } else { Ok((header, CHECK.read(r)?)) }
}

// ---- other frames

record! {
    /// Coded packets that a node heard of one neighbour since its start. Both numbers wrap around.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct DecodeCount {
        /// its frames with two packets, one of them for the reporting node, heard since its start;
        /// modulo 2^32
        pub coded: u32 = field("report.coded", "Coded"),
        /// those that it could decode
        pub decoded: u32 = field("report.decoded", "Decoded"),
    }
}

record! {
    /// Entry of a report.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct ReportEntry {
        /// the neighbour that coded
        pub neighbour: NodeId = field("neighbour.node", "Node"),
        pub count: DecodeCount,
    }
}

impl ReportEntry {
    /// Bytes of an entry.
    pub(crate) const LEN: usize = <Self as Record>::LEN;
}

frame! {
    /// Report: how many coded packets of each neighbour were decoded.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Report {
        pub entries: Vec<ReportEntry> to the end(1, MAX_ENTRIES) = group(
            "neighbour",
            "Neighbour",
            "Neighbour {neighbour.node}: {report.decoded} of {report.coded} decoded",
        ),
    }
}

frame! {
    /// Request to `neighbour` for packets that were missed.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Request {
        /// the node that sent them; others ignore it
        pub neighbour: NodeId = field("request.neighbour", "Neighbour"),
        /// `xor.sequence` of a missing packet, in the order in which they were sent
        pub missing: Vec<u16> to the end(1, WINDOW as usize)
            = field("request.missing", "Missing"),
    }
}
