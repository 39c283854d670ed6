//! Frames of the engine. Layout in bytes: `docs/reference/wire-format.md`.

use super::flight::Handled;
use ncmesh_code::Coded;
use ncmesh_engine::Malformed;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_wire::{NodeId, Reader, Writer};

/// Kinds of frames besides data, which are of [`DATA`](ncmesh_engine::tunnel::DATA).
pub(crate) const REPORT: u8 = 2;
pub(crate) const PAIR: u8 = 3;

/// Most packets that a coded packet spans.
pub(crate) const WIDTH: u8 = 64;

/// Highest number of a packet that frames name. A source begins its flow anew before that, so that
/// sums of numbers do not overflow.
pub(crate) const LAST: u32 = 1 << 31;

/// What a node says of itself in each of its frames: what it has of the stream, and who is behind
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Packets before this one it has, or needs no more.
    pub needs: u32,
    /// Which of the packets behind that one lead what it has, the next one in the lowest bit.
    pub leads: u32,
    /// Dimensions that it has and its next hop lacks.
    pub backlog: u8,
    /// Packets that may wait there, if it gives turns to those who send to it.
    pub turn: Option<u8>,
    /// Whether far less arrives at its next hop than link state promised: what it sends collides.
    pub collides: bool,
    /// Whether its next hop sends on what it gets.
    pub feeds: bool,
    /// Whether it is the destination.
    pub ends: bool,
    /// Whether more packets of the flow wait, there or on the way there.
    pub more: bool,
    /// The last frame of the node before it that it had handled.
    pub handled: Handled,
}

impl State {
    const LEN: usize = 15;
    const FEEDS: u8 = 1;
    const ENDS: u8 = 2;
    const COLLIDES: u8 = 8;
    const MORE: u8 = 16;
    /// In place of `turn`: there are no turns.
    pub(crate) const NO_TURNS: u8 = u8::MAX;

    /// Returns what it has of the stream: the packets before `needs` and the dimensions behind.
    pub(crate) fn total(self) -> u32 {
        self.needs.saturating_add(self.leads.count_ones())
    }

    /// Returns whether a packet leads one of its dimensions, or is needed no more.
    pub(crate) fn has(self, packet: u32) -> bool {
        match packet.checked_sub(self.needs) {
            None => true,
            Some(0) => false,
            Some(far) => far <= 32 && self.leads >> (far - 1) & 1 == 1,
        }
    }

    fn write(self, bits: u8, w: &mut Writer<'_>) {
        let Self { needs, leads, backlog, turn, collides, feeds, ends, more, handled } = self;
        let feeds = if feeds { Self::FEEDS } else { 0 };
        let ends = if ends { Self::ENDS } else { 0 };
        let collides = if collides { Self::COLLIDES } else { 0 };
        let more = if more { Self::MORE } else { 0 };
        w.u32(needs).u32(leads).u8(backlog).u8(turn.unwrap_or(Self::NO_TURNS));
        w.u8(feeds | ends | collides | more | bits);
        let ago = handled.ago.as_nanos().div_ceil(Handled::UNIT.as_nanos());
        w.u16(handled.number).u16(ago.min(u16::MAX.into()) as u16);
    }

    /// Returns the state and the bits that are not its own.
    fn read(r: &mut Reader<'_>) -> Result<(Self, u8), Malformed> {
        let (needs, leads, backlog) = (r.u32()?, r.u32()?, r.u8()?);
        let (turn, bits) = (Some(r.u8()?).filter(|turn| *turn != Self::NO_TURNS), r.u8()?);
        if needs > LAST {
            return Err(Malformed);
        }
        let (feeds, ends) = (bits & Self::FEEDS != 0, bits & Self::ENDS != 0);
        let (collides, more) = (bits & Self::COLLIDES != 0, bits & Self::MORE != 0);
        let handled = Handled { number: r.u16()?, ago: Handled::UNIT * u32::from(r.u16()?) };
        let state = Self { needs, leads, backlog, turn, collides, feeds, ends, more, handled };
        Ok((state, bits & !(Self::FEEDS | Self::ENDS | Self::COLLIDES | Self::MORE)))
    }
}

/// Header of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub flow: FlowInstance,
    /// Node that is to have the packet: a relay, or the destination.
    pub next_hop: NodeId,
    /// Number of the frame among those that its sender sent of this flow.
    pub number: u16,
    pub state: State,
    /// Whether the next hop is to report.
    pub poll: bool,
    /// Packets before this one come no more from this sender.
    pub oldest: u32,
}

impl Header {
    const POLL: u8 = 4;
    /// Length of a frame with a packet as it is, without the packet, bytes.
    pub(crate) const LEN: usize = 8 + 2 + 2 + State::LEN + 4 + 2;

    /// Appends the frame.
    pub(crate) fn write(&self, coded: &Coded, out: &mut Vec<u8>) {
        self.write_head(coded, out);
        out.extend(&coded.symbol);
    }

    /// Appends the frame without the symbol.
    fn write_head(&self, coded: &Coded, out: &mut Vec<u8>) {
        let Self { flow, next_hop, number, state, poll, oldest } = *self;
        flow.write(out);
        let mut w = Writer::new(out);
        w.node(next_hop).u16(number);
        state.write(if poll { Self::POLL } else { 0 }, &mut w);
        let offset = coded.first.saturating_sub(oldest).min(u8::MAX.into()) as u8;
        // The first coefficient is 1 and needs no byte.
        let further = coded.coefficients.get(1..).unwrap_or_default();
        w.u32(oldest).u8(offset).u8(further.len() as u8).bytes(further);
    }

    /// Reads a data frame: its header, and the combination in it. One without a symbol only asks.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are missing, bits are unknown, a number is out of range, or the
    /// combination spans too many packets.
    pub(crate) fn parse(body: &[u8]) -> Result<(Self, Coded), Malformed> {
        let mut r = Reader::new(body);
        let (header, coded) = Self::parse_head(&mut r)?;
        let symbol = r.rest().to_vec();
        Ok((header, Coded { symbol, ..coded }))
    }

    /// Reads a data frame up to the symbol.
    fn parse_head(r: &mut Reader<'_>) -> Result<(Self, Coded), Malformed> {
        let flow = FlowInstance::parse(r)?;
        let (next_hop, number) = (r.node()?, r.u16()?);
        let (state, bits) = State::read(r)?;
        let (oldest, offset, further) = (r.u32()?, r.u8()?, r.u8()?);
        let coefficients = [&[1], r.bytes(further.into())?].concat();
        if bits & !Self::POLL != 0 || oldest > LAST || further >= WIDTH {
            return Err(Malformed);
        }
        let poll = bits & Self::POLL != 0;
        let header = Self { flow, next_hop, number, state, poll, oldest };
        let first = oldest + u32::from(offset);
        Ok((header, Coded { first, coefficients, symbol: Vec::new() }))
    }
}

/// Packets of two flows in one frame, for two next hops. Each has the packet that the other lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The two data frames without their symbols.
    pub parts: [(Header, Coded); 2],
    /// Sum of the symbols over GF(2^8). The shorter one counts as filled up with zeros.
    pub symbol: Vec<u8>,
}

impl Pair {
    /// Number of parts, in a byte before them.
    const PARTS: u8 = 2;

    /// Joins two data frames.
    pub(crate) fn of(mut parts: [(Header, Coded); 2]) -> Self {
        let [mut symbol, other] = [0, 1].map(|i: usize| core::mem::take(&mut parts[i].1.symbol));
        add(&mut symbol, &other);
        Self { parts, symbol }
    }

    /// Returns the combination in part `i`, for a node that knows the symbol of the other.
    pub(crate) fn without(&self, other: &[u8], i: usize) -> Coded {
        let mut symbol = self.symbol.clone();
        add(&mut symbol, other);
        Coded { symbol, ..self.parts[i].1.clone() }
    }

    /// Appends the frame.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(Self::PARTS);
        for (header, coded) in &self.parts {
            header.write_head(coded, out);
        }
        out.extend(&self.symbol);
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// [`Malformed`] as for [`Header::parse`], or if both parts are of one flow.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let count = r.u8()?;
        let parts = [Header::parse_head(&mut r)?, Header::parse_head(&mut r)?];
        let [one, other] = [0, 1].map(|i: usize| parts[i].0.flow.key());
        if count != Self::PARTS || one == other {
            return Err(Malformed);
        }
        let symbol = r.rest().to_vec();
        if symbol.is_empty() { Err(Malformed) } else { Ok(Self { parts, symbol }) }
    }
}

/// Adds a symbol to a sum over GF(2^8).
fn add(sum: &mut Vec<u8>, symbol: &[u8]) {
    sum.resize(sum.len().max(symbol.len()), 0);
    sum.iter_mut().zip(symbol).for_each(|(a, b)| *a ^= b);
}

/// A node's report to the node that it gets the stream from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub flow: FlowInstance,
    /// Node that is to take it, or to pass it on.
    pub next_hop: NodeId,
    /// Node that it is for.
    pub parent: NodeId,
    /// Node that wrote it.
    pub child: NodeId,
    /// Number among the child's frames.
    pub number: u16,
    pub state: State,
}

impl Report {
    /// Appends the report.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Self { flow, next_hop, parent, child, number, state } = *self;
        flow.write(out);
        let mut w = Writer::new(out);
        w.node(next_hop).node(parent).node(child).u16(number);
        state.write(0, &mut w);
    }

    /// Reads a report.
    ///
    /// # Errors
    /// [`Malformed`] if it has another length, or a node reports to itself.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let flow = FlowInstance::parse(&mut r)?;
        let (next_hop, parent, child, number) = (r.node()?, r.node()?, r.node()?, r.u16()?);
        let (state, bits) = State::read(&mut r)?;
        if bits != 0 || r.remaining() > 0 || parent == child {
            return Err(Malformed);
        }
        Ok(Self { flow, next_hop, parent, child, number, state })
    }
}
