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
use ncmesh_engine::Malformed;
use ncmesh_engine::toolkit::hop::WINDOW;
use ncmesh_wire::{NodeId, Reader, Writer};
use std::collections::BTreeSet;

/// Kind of frames by which a node reports which coded packets it could decode. Data frames have the
/// kind [`DATA`](ncmesh_engine::tunnel::DATA).
pub(crate) const REPORT: u8 = 2;
/// Kind of frames by which a node asks a neighbour for packets that it missed.
pub(crate) const REQUEST: u8 = 3;
/// Most neighbours in one report.
pub(crate) const MAX_ENTRIES: usize = 64;

/// Bits of a data frame's first byte: the sender has more for the next hop of the first packet, and
/// of the second packet. The other bits are the number of packets.
const MORE: [u8; 2] = [0x80, 0x40];
/// Bytes of a header before its nodes: hop and length of the route, number, sequence number.
const FIXED_HEADER_LEN: usize = 7;
/// Bytes of a [`checksum`].
const CHECKSUM_LEN: usize = 4;
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
        let count_and_next_hops = 1 + 2 * NODE_LEN;
        let shorter_length = 2;
        // Each route has one node more than hops. Three nodes of each are at the crossing.
        let nodes = NODE_LEN * (hops + 2 - 2 * 3);
        count_and_next_hops + shorter_length + 2 * (FIXED_HEADER_LEN + CHECKSUM_LEN) + nodes
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
        let first = r.u8()?;
        let more = MORE.map(|bit| first & bit != 0);
        let packets = first & !(MORE[0] | MORE[1]);
        match (packets, more) {
            (1, [more, false]) => {
                // Place 0 is the source, which the frame always lists.
                let known = |hop, place| (place == hop && hop > 0).then_some(sender);
                let header = Header { more, ..parse_header(&mut r, known)? };
                let packet = r.rest();
                if packet.is_empty() { Err(Malformed) } else { Ok(Self::Native(header, packet)) }
            }
            (2, more) => Self::parse_coded(r, sender, more),
            _ => Err(Malformed),
        }
    }

    fn parse_coded(mut r: Reader<'a>, sender: NodeId, more: [bool; 2]) -> Result<Self, Malformed> {
        // The next hop of one packet is the previous hop of the other.
        let (next, other_next, shorter) = (r.node()?, r.node()?, r.u16()?);
        let (first, first_check) = parse_crossing(&mut r, [other_next, sender, next])?;
        let (second, second_check) = parse_crossing(&mut r, [next, sender, other_next])?;

        // The first packet is as long as the payload. The second one must fit in it.
        let payload = r.rest();
        let longer = u16::try_from(payload.len()).map_err(|_| Malformed)?;
        if first.id == second.id || shorter == 0 || shorter > longer {
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
        out.push(1 | more_bits([header.more, false]));
        let hop = usize::from(header.hop);
        write_header(header, |place| place == hop && hop > 0, out);
        out.extend_from_slice(packet);
    }

    /// Appends a frame body with two packets that cross at this node, xored. The shorter one is
    /// padded with zeros.
    pub(crate) fn write_coded(one: Native<'_>, other: Native<'_>, out: &mut Vec<u8>) {
        let one_is_longer = one.bytes.len() >= other.bytes.len();
        let (long, short) = if one_is_longer { (one, other) } else { (other, one) };
        out.push(2 | more_bits([long.header.more, short.header.more]));
        let mut w = Writer::new(out);
        // A packet fits a frame, so its length fits 16 bits.
        w.node(long.header.next()).node(short.header.next()).u16(short.bytes.len() as u16);
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

fn more_bits(more: [bool; 2]) -> u8 {
    MORE.into_iter().zip(more).filter(|(_, more)| *more).map(|(bit, _)| bit).sum()
}

/// Appends a header. Leaves out the nodes of its route that receivers know, by their place; the
/// source has place 0.
fn write_header(header: &Header, is_known: impl Fn(usize) -> bool, out: &mut Vec<u8>) {
    let mut w = Writer::new(out);
    // Routes have 1 to 16 nodes after the source: 4 bits for the hop, 4 for the length less one.
    w.u8(header.hop << 4 | (header.route.len() as u8).wrapping_sub(1));
    w.u32(header.id.number).u16(header.sequence);
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
    let hop_and_length = r.u8()?;
    let (hop, hops) = (hop_and_length >> 4, usize::from(hop_and_length & 0xF) + 1);
    let (number, sequence) = (r.u32()?, r.u16()?);
    if usize::from(hop) >= hops {
        return Err(Malformed);
    }
    let mut node = |place| match known(hop.into(), place) {
        Some(node) => Ok(node),
        None => r.node(),
    };
    let source = node(0)?;
    let route = (1..=hops).map(node).collect::<Result<Vec<_>, _>>()?;
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
    if header.hop == 0 { Err(Malformed) } else { Ok((header, r.u32()?)) }
}

/// Coded packets that a node heard of one neighbour since its start. Both numbers wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecodeCount {
    /// Frames that had a packet for this node.
    pub coded: u32,
    /// Those of them that it could decode.
    pub decoded: u32,
}

/// Appends the body of a report: how many coded packets of each neighbour were decoded.
pub(crate) fn write_report(entries: &[(NodeId, DecodeCount)], out: &mut Vec<u8>) {
    let mut w = Writer::new(out);
    for (neighbour, count) in entries {
        w.node(*neighbour).u32(count.coded).u32(count.decoded);
    }
}

/// Reads the body of a report.
///
/// # Errors
/// [`Malformed`] if it has no entry, too many, or a part of one.
pub(crate) fn parse_report(body: &[u8]) -> Result<Vec<(NodeId, DecodeCount)>, Malformed> {
    let (entries, rest) = body.as_chunks::<REPORT_ENTRY_LEN>();
    if entries.is_empty() || entries.len() > MAX_ENTRIES || !rest.is_empty() {
        return Err(Malformed);
    }
    let entry = |bytes: &[u8; REPORT_ENTRY_LEN]| {
        let mut r = Reader::new(bytes);
        Ok((r.node()?, DecodeCount { coded: r.u32()?, decoded: r.u32()? }))
    };
    entries.iter().map(entry).collect()
}

/// Bytes of an entry of a report.
pub(crate) const REPORT_ENTRY_LEN: usize = 10;

/// Request to `neighbour` for packets that were missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Node that is asked.
    pub neighbour: NodeId,
    /// Sequence numbers of its packets that are missing, in the order in which it sent them.
    pub missing: Vec<u16>,
}

impl Request {
    /// Appends the body of the request.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.node(self.neighbour);
        for sequence in &self.missing {
            w.u16(*sequence);
        }
    }

    /// Reads the body of a request.
    ///
    /// # Errors
    /// [`Malformed`] if it asks for no packet, for more than a sender keeps, or ends in half a
    /// number.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let neighbour = r.node()?;
        let (numbers, rest) = r.rest().as_chunks::<2>();
        if numbers.is_empty() || numbers.len() > usize::from(WINDOW) || !rest.is_empty() {
            return Err(Malformed);
        }
        let missing = numbers.iter().map(|bytes| u16::from_be_bytes(*bytes)).collect();
        Ok(Self { neighbour, missing })
    }
}
