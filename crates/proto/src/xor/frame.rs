//! The frames of pairwise coding (Fig. 3). Layout: `docs/wire-format.md`.

use super::order::WINDOW;
use crate::service::Malformed;
use ncmesh_wire::{NodeId, Reader, Writer};
use std::collections::BTreeSet;

/// The kind of the frames by which a node tells what it could decode. Data is [`DATA`](crate::tunnel::DATA).
pub(super) const REPORT: u8 = 2;
/// The kind of the frames by which a node asks for packets again.
pub(super) const REQUEST: u8 = 3;
/// Hops of a route at most.
pub(super) const MAX_HOPS: usize = 16;
/// Neighbours that one report speaks of at most.
pub(super) const MAX_ENTRIES: usize = 64;

/// A packet's name: its source, and a number that the source gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PacketId {
    pub source: NodeId,
    pub number: u32,
}

/// What a data frame says of one packet in it: identification and source route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub id: PacketId,
    /// Of the packet, bytes.
    pub length: u16,
    /// See [`check_of`].
    pub check: u32,
    /// The sender's number for it among those for the same receiver; 0: none.
    pub order: u16,
    /// Who is to receive the frame, as an index of the route.
    pub at: u8,
    /// The nodes behind the source, the destination last.
    pub route: Vec<NodeId>,
}

/// What tells a packet that was decoded with the wrong one.
pub(super) fn check_of(packet: &[u8]) -> u32 {
    let hash = blake3::hash(packet);
    hash.as_bytes().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

impl Tag {
    /// Its length without the route, bytes.
    const FIXED: usize = 16;
    /// Its length with the longest route, bytes.
    pub(super) const LONGEST: usize = Self::FIXED + 2 * MAX_HOPS;

    pub(super) fn len(&self) -> usize {
        Self::FIXED + 2 * self.route.len()
    }

    /// The node `back` hops before the one that is to receive it.
    fn before(&self, back: usize) -> Option<NodeId> {
        match usize::from(self.at).checked_sub(back) {
            Some(at) => self.route.get(at).copied(),
            None if usize::from(self.at) + 1 == back => Some(self.id.source),
            None => None,
        }
    }

    /// Who is to receive it.
    pub(super) fn next(&self) -> NodeId {
        self.before(0).unwrap_or(self.id.source)
    }

    /// Who sends it there.
    pub(super) fn sender(&self) -> NodeId {
        self.before(1).unwrap_or(self.id.source)
    }

    /// From whom the sender has it; none where it is the source.
    pub(super) fn previous(&self) -> Option<NodeId> {
        self.before(2)
    }

    pub(super) fn destination(&self) -> NodeId {
        self.route.last().copied().unwrap_or(self.id.source)
    }

    /// Of the next hop; none where it is at its destination.
    pub(super) fn onward(self) -> Option<Self> {
        let at = self.at + 1;
        (usize::from(at) < self.route.len()).then_some(Self { at, order: 0, ..self })
    }

    /// Whether it and `other`, of the same sender, go to where the other comes from.
    pub(super) fn crosses(&self, other: &Self) -> bool {
        self.previous() == Some(other.next()) && other.previous() == Some(self.next())
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.node(self.id.source).u32(self.id.number).u16(self.length).u32(self.check).u16(self.order);
        w.u8(self.at).u8(self.route.len() as u8);
        self.route.iter().for_each(|node| {
            w.node(*node);
        });
    }

    fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let id = PacketId { source: r.node()?, number: r.u32()? };
        let (length, check, order) = (r.u16()?, r.u32()?, r.u16()?);
        let (at, hops) = (r.u8()?, r.u8()?);
        if length == 0 || at >= hops || usize::from(hops) > MAX_HOPS {
            return Err(Malformed);
        }
        let route = (0..hops).map(|_| r.node()).collect::<Result<Vec<_>, _>>()?;
        let visited: BTreeSet<_> = route.iter().chain([&id.source]).collect();
        if visited.len() != route.len() + 1 {
            return Err(Malformed);
        }
        Ok(Self { id, length, check, order, at, route })
    }
}

/// A data frame: a packet, or two xored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Data<'a> {
    pub first: Tag,
    /// Of a packet that goes the opposite way.
    pub second: Option<Tag>,
    /// Of the packet's length, or of the longer one's.
    pub payload: &'a [u8],
}

impl<'a> Data<'a> {
    /// What a frame has besides tags and payload, bytes.
    pub(super) const FIXED: usize = 1;

    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let count = r.u8()?;
        let first = Tag::parse(&mut r)?;
        let second = match count {
            1 => None,
            2 => Some(Tag::parse(&mut r)?),
            _ => return Err(Malformed),
        };
        let payload = r.rest();
        let crossing = second.as_ref().is_none_or(|second| {
            first.crosses(second) && first.sender() == second.sender() && first.id != second.id
        });
        let longest = second.as_ref().map_or(0, |second| second.length).max(first.length);
        if !crossing || payload.len() != usize::from(longest) {
            return Err(Malformed);
        }
        Ok(Self { first, second, payload })
    }

    /// A packet as it is.
    pub(super) fn write_one(tag: &Tag, packet: &[u8], out: &mut Vec<u8>) {
        out.push(1);
        tag.write(out);
        out.extend_from_slice(packet);
    }

    /// Two packets xored, the shorter one padded with zeros.
    pub(super) fn write_two(tags: [&Tag; 2], packets: [&[u8]; 2], out: &mut Vec<u8>) {
        out.push(2);
        tags.iter().for_each(|tag| tag.write(out));
        let [short, long] =
            if packets[0].len() < packets[1].len() { packets } else { [packets[1], packets[0]] };
        let start = out.len();
        out.extend_from_slice(long);
        xor(&mut out[start..], short);
    }
}

/// Xors the shorter `packet` on the front of `onto`.
pub(super) fn xor(onto: &mut [u8], packet: &[u8]) {
    onto.iter_mut().zip(packet).for_each(|(a, b)| *a ^= b);
}

/// What a node heard of one neighbour's coded packets, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// Those that had a packet for it; modulo 2^32.
    pub coded: u32,
    /// Of those, the ones it could decode.
    pub decoded: u32,
}

/// The body of a report.
pub(super) fn write_report(entries: &[(NodeId, Heard)], out: &mut Vec<u8>) {
    let mut w = Writer::new(out);
    for (neighbour, heard) in entries {
        w.node(*neighbour).u32(heard.coded).u32(heard.decoded);
    }
}

/// Its entries.
pub(super) fn parse_report(body: &[u8]) -> Result<Vec<(NodeId, Heard)>, Malformed> {
    let (entries, rest) = body.as_chunks::<10>();
    if entries.is_empty() || entries.len() > MAX_ENTRIES || !rest.is_empty() {
        return Err(Malformed);
    }
    let entry = |bytes: &[u8; 10]| {
        let mut r = Reader::new(bytes);
        Ok((r.node()?, Heard { coded: r.u32()?, decoded: r.u32()? }))
    };
    entries.iter().map(entry).collect()
}

/// The body of a request to `of` for packets of these numbers.
pub(super) fn write_request(of: NodeId, numbers: &[u16], out: &mut Vec<u8>) {
    let mut w = Writer::new(out);
    w.node(of);
    numbers.iter().for_each(|number| {
        w.u16(*number);
    });
}

/// Who is asked, and for which numbers.
pub(super) fn parse_request(body: &[u8]) -> Result<(NodeId, Vec<u16>), Malformed> {
    let mut r = Reader::new(body);
    let of = r.node()?;
    let (numbers, rest) = r.rest().as_chunks::<2>();
    if numbers.is_empty() || numbers.len() > usize::from(WINDOW) || !rest.is_empty() {
        return Err(Malformed);
    }
    Ok((of, numbers.iter().map(|bytes| u16::from_be_bytes(*bytes)).collect()))
}
