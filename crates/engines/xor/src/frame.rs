//! The frames of pairwise coding (Fig. 3). Layout: `docs/wire-format.md`.

use ncmesh_engine::Malformed;
use ncmesh_engine::toolkit::hop::WINDOW;
use ncmesh_wire::{NodeId, Reader, Writer};
use std::collections::BTreeSet;

/// The kind of the frames by which a node tells what it could decode. Data is [`DATA`](ncmesh_engine::tunnel::DATA).
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

/// What a node knows of a packet's way: identification and source route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub id: PacketId,
    /// The sender's number for it among those for the same receiver; 0: none.
    pub order: u16,
    /// Who is to receive the frame, as an index of the route.
    pub at: u8,
    /// The nodes behind the source, the destination last.
    pub route: Vec<NodeId>,
    /// Whether its sender has another packet for the same receiver.
    pub more: bool,
}

/// Where the first byte of a data frame says of its first packet, and of its second, that more will follow.
const MORE: [u8; 2] = [0x80, 0x40];

/// What tells a packet that was decoded with the wrong one.
pub(super) fn check_of(packet: &[u8]) -> u32 {
    let hash = blake3::hash(packet);
    hash.as_bytes().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

impl Tag {
    /// What stands in a frame before the nodes: way, number, order, bytes.
    const FIXED: usize = 7;

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
        (usize::from(at) < self.route.len()).then_some(Self { at, order: 0, more: false, ..self })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        // Routes have 1 to 16 nodes.
        w.u8(self.at << 4 | (self.route.len() as u8).wrapping_sub(1));
        w.u32(self.id.number).u16(self.order);
    }

    /// The nodes of its way that are not known from elsewhere, by their place.
    fn write_nodes(&self, out: &mut Vec<u8>, known: impl Fn(usize) -> bool) {
        let mut w = Writer::new(out);
        let nodes = [self.id.source].into_iter().chain(self.route.iter().copied());
        for (_, node) in nodes.enumerate().filter(|(place, _)| !known(*place)) {
            w.node(node);
        }
    }

    /// Reads a tag. `known` tells nodes of its way that the frame does not list, by the place of its sender and
    /// their own.
    fn parse(
        r: &mut Reader<'_>,
        known: impl Fn(usize, usize) -> Option<NodeId>,
    ) -> Result<Self, Malformed> {
        let way = r.u8()?;
        let (at, hops) = (way >> 4, usize::from(way & 0xF) + 1);
        let (number, order) = (r.u32()?, r.u16()?);
        if usize::from(at) >= hops {
            return Err(Malformed);
        }
        let mut node = |place| match known(at.into(), place) {
            Some(node) => Ok(node),
            None => r.node(),
        };
        let source = node(0)?;
        let route = (1..=hops).map(node).collect::<Result<Vec<_>, _>>()?;
        let visited: BTreeSet<_> = route.iter().chain([&source]).collect();
        if visited.len() != route.len() + 1 {
            return Err(Malformed);
        }
        Ok(Self { id: PacketId { source, number }, order, at, route, more: false })
    }
}

/// One of two packets in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub tag: Tag,
    /// Bytes.
    pub length: u16,
    /// See [`check_of`].
    pub check: u32,
}

/// A data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data<'a> {
    /// A packet as it is.
    One(Tag, &'a [u8]),
    /// Two that go opposite ways, xored, the longer one first.
    Two([Part; 2], &'a [u8]),
}

impl<'a> Data<'a> {
    /// What is left free for it in a frame, bytes: enough for a packet alone with the longest route, and for two
    /// whose routes have 12 hops together.
    pub(super) const RESERVED: usize = Self::two_len(12);

    /// What two packets need whose routes have so many hops together, bytes: the count, the next hops, the
    /// shorter one's length, and for each a tag, a check and the nodes that are not at the crossing.
    const fn two_len(hops: usize) -> usize {
        1 + 2 * 2 + 2 + 2 * (Tag::FIXED + 4) + 2 * (hops + 2 - 2 * 3)
    }

    /// How long the body with two packets is before its payload, bytes.
    pub(super) fn len_of_two(one: &Tag, other: &Tag) -> usize {
        Self::two_len(one.route.len() + other.route.len())
    }

    /// Reads the body of a frame of `sender`.
    pub(super) fn parse(body: &'a [u8], sender: NodeId) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let count = r.u8()?;
        let more = MORE.map(|bit| count & bit != 0);
        match (count & !(MORE[0] | MORE[1]), more) {
            (1, [more, false]) => {
                let is_sender = |at, place| (place == at && at > 0).then_some(sender);
                let tag = Tag { more, ..Tag::parse(&mut r, is_sender)? };
                let packet = r.rest();
                if packet.is_empty() { Err(Malformed) } else { Ok(Self::One(tag, packet)) }
            }
            (2, more) => Self::parse_two(r, sender, more),
            _ => Err(Malformed),
        }
    }

    fn parse_two(mut r: Reader<'a>, sender: NodeId, more: [bool; 2]) -> Result<Self, Malformed> {
        let (next, other_next, shorter) = (r.node()?, r.node()?, r.u16()?);
        let (first, first_check) = parse_crossing(&mut r, [other_next, sender, next])?;
        let (second, second_check) = parse_crossing(&mut r, [next, sender, other_next])?;
        let payload = r.rest();
        let longer = u16::try_from(payload.len()).map_err(|_| Malformed)?;
        if first.id == second.id || shorter == 0 || shorter > longer {
            return Err(Malformed);
        }
        let [first, second] = [Tag { more: more[0], ..first }, Tag { more: more[1], ..second }];
        let first = Part { tag: first, length: longer, check: first_check };
        let second = Part { tag: second, length: shorter, check: second_check };
        Ok(Self::Two([first, second], payload))
    }

    /// The tag of the packet, or of the longer one.
    pub(super) fn first(&self) -> &Tag {
        match self {
            Self::One(tag, _) => tag,
            Self::Two([first, _], _) => &first.tag,
        }
    }

    /// A packet as it is.
    pub(super) fn write_one(tag: &Tag, packet: &[u8], out: &mut Vec<u8>) {
        out.push(1 | count_bits([tag.more, false]));
        tag.write(out);
        let at = usize::from(tag.at);
        tag.write_nodes(out, |place| place == at && at > 0);
        out.extend_from_slice(packet);
    }

    /// Two packets xored, which cross at their sender; the shorter one is padded with zeros.
    pub(super) fn write_two(one: (&Tag, &[u8]), other: (&Tag, &[u8]), out: &mut Vec<u8>) {
        let (long, short) = if one.1.len() < other.1.len() { (other, one) } else { (one, other) };
        out.push(2 | count_bits([long.0.more, short.0.more]));
        // A packet has at most what fits a frame.
        Writer::new(out).node(long.0.next()).node(short.0.next()).u16(short.1.len() as u16);
        for (tag, packet) in [long, short] {
            tag.write(out);
            let at = usize::from(tag.at);
            tag.write_nodes(out, |place| place.abs_diff(at) <= 1);
            Writer::new(out).u32(check_of(packet));
        }
        let start = out.len();
        out.extend_from_slice(long.1);
        xor(&mut out[start..], short.1);
    }
}

/// What the first byte of a frame says besides the number of its packets.
fn count_bits(more: [bool; 2]) -> u8 {
    MORE.into_iter().zip(more).filter(|(_, more)| *more).map(|(bit, _)| bit).sum()
}

/// A tag and a check behind it, of a packet that comes from, is at and goes to these nodes.
fn parse_crossing(
    r: &mut Reader<'_>,
    [previous, sender, next]: [NodeId; 3],
) -> Result<(Tag, u32), Malformed> {
    let tag = Tag::parse(r, |at, place| match place {
        _ if place + 1 == at => Some(previous),
        _ if place == at => Some(sender),
        _ if place == at + 1 => Some(next),
        _ => None,
    })?;
    if tag.at == 0 { Err(Malformed) } else { Ok((tag, r.u32()?)) }
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
