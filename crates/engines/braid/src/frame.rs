//! Frames of the engine. Layout in bytes: `docs/reference/wire-format.md`.

use ncmesh_code::Coded;
use ncmesh_engine::Malformed;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::toolkit::hop::Handled;
use ncmesh_engine::tunnel::DATA;
use ncmesh_wire::layout::{Check, Count, Layout, Part};
use ncmesh_wire::record::{Group, Named, bits, field, group};
use ncmesh_wire::{NodeId, Reader, Record, Writer, frame, record};

/// Kinds of frames besides data, which are of [`DATA`](ncmesh_engine::tunnel::DATA).
pub(crate) const REPORT: u8 = 2;
pub(crate) const PAIR: u8 = 3;

/// Frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout::of::<Data<'_>>(
        DATA,
        "data",
        "{packet.source} to {packet.destination} by {next_hop}, oldest {oldest}",
    ),
    Layout::of::<Report>(REPORT, "report", "{child} to {parent} by {next_hop}, needs {needs}"),
    Layout::of::<Pair>(PAIR, "pair", "{part+}"),
];

/// Most packets that a coded packet spans.
pub(crate) const WIDTH: u8 = 64;
/// Packets behind the first missing one of which a state tells whether they are there.
pub(crate) const NAMED: u32 = u32::BITS;

/// Highest number of a packet that frames name. A source begins its flow anew before that, so that
/// sums of numbers do not overflow.
pub(crate) const LAST: u32 = 1 << 31;

/// State of a node, told in each of its frames: what it has of the stream, and what is behind it.
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
            Some(far) => far <= NAMED && self.leads >> (far - 1) & 1 == 1,
        }
    }
}

record! {
    /// The numbers of a [`State`].
    #[derive(Clone, Copy)]
    struct Numbers {
        /// packets before it the sender has, or needs no more
        needs: u32 = field("needs", "Needs from").within(0, LAST as u64),
        /// bits of the packets behind, the next one lowest: 1 if it leads a row of the sender
        leads: u32 = field("leads", "Leads").hex(),
        /// dimensions that the sender has and its next hop lacks
        backlog: u8 = field("backlog", "Backlog"),
        /// packets that may wait at the sender; 255: as many as may usually
        turn: Option<u8> = field("room", "Room").none(State::NO_TURNS as u64),
    }
}

/// Whether a node's next hop sends on what it gets.
const FEEDS: Named = bits(1, "feeds", "Feeds");
/// Whether a node is the destination.
const ENDS: Named = bits(2, "ends", "Ends");
/// Whether frames of a node collide at its next hop.
const COLLIDES: Named = bits(8, "collides", "Collides");
/// Whether further packets wait at a node, or on the way to it.
const MORE: Named = bits(16, "more", "More");

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

/// A data frame up to its symbol.
struct Head<'a> {
    header: Header,
    offset: u8,
    coefficients: &'a [u8],
}

record! {
    impl Head<'a> as Head {
        header: Header {
            flow,
            next_hop,
            number,
            state: State { needs, leads, backlog, turn, collides, feeds, ends, more, handled },
            poll,
            oldest,
        },
        offset,
        coefficients,
    } {
        flow: FlowInstance,
        /// the node that is to have it
        next_hop: NodeId = field("next_hop", "Next hop"),
        /// of those that the sender sent of this flow
        number: u16 = field("frame", "Frame number"),
        Numbers { needs, leads, backlog, turn },
        byte {
            /// the sender's next hop sends on what it gets
            feeds: bool = FEEDS,
            /// the sender is the destination
            ends: bool = ENDS,
            /// the next hop is to report
            poll: bool = bits(4, "asks", "Asks"),
            /// what the sender sends collides at its next hop
            collides: bool = COLLIDES,
            /// further packets wait at the sender, or on the way to it
            more: bool = MORE,
        }
        handled: Handled,
        /// packets before it come no more from the sender
        oldest: u32 = field("oldest", "Oldest packet").within(0, LAST as u64),
        /// of the first packet in the combination from the oldest
        offset: u8 = field("offset", "Offset"),
        /// behind the first one in the combination
        further: u8 = field("further", "Further packets").within(0, WIDTH as u64 - 1)
            => coefficients.len() as u8,
        /// of the further packets; that of the first one is 1
        coefficients: &'a [u8] as long as further = field("vector", "Coefficients"),
    }
}

record! {
    /// A data frame.
    struct Data<'a> {
        head: Head<'a>,
        /// combination of symbols: packets, each behind its length (2) and check (4); zeros. If
        /// empty, the frame only asks
        symbol: &'a [u8] = field("payload", "Payload"),
    }
}

impl<'a> Head<'a> {
    fn of(header: &Header, coded: &'a Coded) -> Self {
        let offset = coded.first.saturating_sub(header.oldest).min(u8::MAX.into()) as u8;
        // The first coefficient is 1 and needs no byte.
        let coefficients = coded.coefficients.get(1..).unwrap_or_default();
        Self { header: *header, offset, coefficients }
    }

    /// Returns the header, and the combination with this symbol.
    fn with(self, symbol: Vec<u8>) -> (Header, Coded) {
        let first = self.header.oldest + u32::from(self.offset);
        let coefficients = [&[1], self.coefficients].concat();
        (self.header, Coded { first, coefficients, symbol })
    }
}

impl Header {
    /// Length of a frame with a packet as it is, without the packet, bytes.
    pub(crate) const LEN: usize = Head::LEN;

    /// Appends the frame.
    pub(crate) fn write(&self, coded: &Coded, out: &mut Vec<u8>) {
        let data = Data { head: Head::of(self, coded), symbol: &coded.symbol };
        data.put(&mut Writer::new(out));
    }

    /// Reads a data frame: its header, and the combination in it. One without a symbol only asks.
    ///
    /// # Errors
    /// [`Malformed`] if it is not as [`Data`] says.
    pub(crate) fn parse(body: &[u8]) -> Result<(Self, Coded), Malformed> {
        let Data { head, symbol } = Data::from_body(body)?;
        Ok(head.with(symbol.to_vec()))
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
    const COUNT: Named = field("parts", "Parts").within(2, 2);
    const PART: Group = group(
        "part",
        "Part",
        "{packet.source} to {packet.destination} by {next_hop}, oldest {oldest}",
    );
    const PAYLOAD: Named = field("payload", "Payload").rest(1, usize::MAX);

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
        self.put(&mut Writer::new(out));
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// [`Malformed`] as for [`Header::parse`], or if both parts are of one flow.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        Self::from_body(body)
    }
}

impl<'a> Record<'a> for Pair {
    const PARTS: &'static [Part] = &[
        Self::COUNT.part::<u8>("packets of two flows, xored"),
        Part::Repeat(Count::Field(Self::COUNT.name), &[Self::PART.part::<Head<'_>>("")]),
        Part::Check(Check::Distinct(&["packet.source", "packet.destination"])),
        Self::PAYLOAD.part::<&[u8]>("the symbol of one flow xored with that of the other"),
    ];

    fn read(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        Self::COUNT.read::<u8>(r)?;
        let heads = [Head::read(r)?, Head::read(r)?];
        let [one, other] = heads.each_ref().map(|head| head.header.flow.key());
        if one == other {
            return Err(Malformed);
        }
        let symbol = Self::PAYLOAD.read(r)?;
        Ok(Self { parts: heads.map(|head| head.with(Vec::new())), symbol })
    }

    fn put(&self, w: &mut Writer<'_>) {
        Self::COUNT.put::<u8>(&2, w);
        self.parts.iter().for_each(|(header, coded)| Head::of(header, coded).put(w));
        w.bytes(&self.symbol);
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

frame! {
    pub(crate) impl Report as Report {
        flow,
        next_hop,
        parent,
        child,
        number,
        state: State { needs, leads, backlog, turn, collides, feeds, ends, more, handled },
    } {
        flow: FlowInstance,
        /// the node that takes it or passes it on
        next_hop: NodeId = field("next_hop", "Next hop"),
        /// the node that it is for
        parent: NodeId = field("parent", "Parent"),
        /// the node that wrote it
        child: NodeId = field("child", "Child"),
        check differ(parent, child),
        /// of those that the child sent of this flow
        number: u16 = field("frame", "Frame number"),
        Numbers { needs, leads, backlog, turn },
        byte {
            /// the child's next hop sends on what it gets
            feeds: bool = FEEDS,
            /// the child is the destination
            ends: bool = ENDS,
            /// what the child sends collides at its next hop
            collides: bool = COLLIDES,
            /// further packets wait at the child, or on the way to it
            more: bool = MORE,
        }
        handled: Handled,
    }
}
