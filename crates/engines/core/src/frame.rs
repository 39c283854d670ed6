//! The frames of CORE and its baseline.
//!
//! | kind | type | sent to | table 3 of the paper |
//! | --- | --- | --- | --- |
//! | 1 | [`DataFrame`] | all, by broadcast | |
//! | 2 | [`CountFrame`] | the next hop | packet count report |
//! | 3 | [`FeedbackFrame`] | the previous hop | stop, packet request, NACK, next generation |
//! | 4 | [`RelayedFeedback`] | the previous hop, over other nodes | the same |
//!
//! A parser accepts only frames whose fields agree with each other, so that the rest of the engine
//! need not check them again. Layouts: `docs/reference/wire-format.md`.

use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::tunnel::{DATA, flow_of};
use ncmesh_engine::{Malformed, Summary};
use ncmesh_wire::layout::{self, Check, Count, Is, Layout};
use ncmesh_wire::record::{Group, bits, field, group};
use ncmesh_wire::{NodeId, Reader, Record, Writer, choice, frame, record};

/// Kind of a count frame.
pub(crate) const COUNT: u8 = 2;
/// Kind of a feedback frame.
pub(crate) const FEEDBACK: u8 = 3;
/// Kind of feedback that goes over other nodes.
pub(crate) const RELAYED: u8 = 4;

/// Frames of this engine and of its baseline.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout::of::<DataFrame<'_>>(DATA, "data", "{core.part+}").or_if(Is("core.parts", 2), "coded"),
    Layout::of::<CountFrame>(
        COUNT,
        "count",
        "{packet.source} to {packet.destination} generation {core.generation}",
    ),
    Layout::of::<FeedbackFrame>(
        FEEDBACK,
        "feedback",
        "{packet.source} to {packet.destination} generation {core.generation}: {core.request}",
    ),
    Layout::of::<RelayedFeedback>(
        RELAYED,
        "relayed feedback",
        "{packet.source} to {packet.destination} generation {core.generation}: {core.request}, \
         by {core.author}",
    ),
];

/// Most packets of a generation.
pub(crate) const MAX_GENERATION_SIZE: u8 = 120;
/// Most generations of a flow that are under way at once.
pub(crate) const MAX_WINDOW: u8 = 8;
/// Most transmitters that a feedback frame reports on.
pub(crate) const MAX_LINK_REPORTS: usize = 4;
/// Value of [`FeedbackFrame::missing_combined`] where the number is not known.
pub(crate) const UNKNOWN: u8 = u8::MAX;

/// Names one generation of one instance of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GenerationId {
    pub flow: FlowInstance,
    pub number: u32,
}

// ---- data

/// Describes the generation that a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GenerationHeader {
    pub id: GenerationId,
    /// Number of earlier generations that the source has not given up yet.
    pub older_open: u8,
    /// Most packets it can have, which is the length of its coding vectors.
    pub generation_size: u8,
    /// Packets it has so far.
    pub count: u8,
    /// Whether `count` is final.
    pub closed: bool,
    /// Length of its symbols, bytes.
    pub symbol_size: u16,
}

impl GenerationHeader {
    /// Returns the number of the oldest generation that the source still has.
    pub(crate) fn oldest_open(&self) -> u32 {
        self.id.number.wrapping_sub(u32::from(self.older_open))
    }
}

/// Generation that a frame belongs to, and the node that is to handle the frame.
#[derive(Clone, Copy)]
struct Addressed {
    header: GenerationHeader,
    next_hop: NodeId,
}

record! {
    impl Addressed as Addressed {
        header: GenerationHeader {
            id: GenerationId { flow, number },
            older_open,
            generation_size,
            count,
            closed,
            symbol_size,
        },
        next_hop,
    } {
        flow: FlowInstance,
        /// the node that is to send it on, or is its destination; others overhear it
        next_hop: NodeId = field("next_hop", "Next hop"),
        /// its number, from 0
        number: u32 = field("core.generation", "Generation"),
        /// generations before this one that the source has not given up; older ones will never be
        /// complete
        older_open: u8 = field("core.older_open", "Older generations open")
            .within(0, MAX_WINDOW as u64 - 1),
        check at_most(older_open, number),
        /// packets a generation has at most
        generation_size: u8 = field("core.generation_size", "Generation size")
            .within(1, MAX_GENERATION_SIZE as u64),
        /// packets the generation has
        count: u8 = field("core.count", "Packets by now").at_least(1),
        check at_most(count, generation_size),
        byte {
            /// the generation gets no more packets
            closed: bool = bits(1, "core.closed", "Closed"),
        }
        /// length of a packet with its own length (2) and check (4) before it and zeros behind
        symbol_size: u16 = field("core.symbol_size", "Symbol size, bytes").at_least(3),
    }
}

/// Describes one flow in a data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub header: GenerationHeader,
    /// Node that is to forward the packet, or is its destination.
    pub next_hop: NodeId,
    /// Coding vector, with one coefficient for each packet that the generation can have.
    pub vector: Vec<u8>,
}

record! {
    impl Part as Part { header, next_hop, vector } => Part {
        header,
        next_hop,
        vector: padded(coefficients, header.generation_size),
    } {
        Addressed { header, next_hop },
        /// coefficients of the first packets; those of the others are zero
        coefficients: &[u8] = field("coefficients", "Coding vector, GF(2^8)").prefixed(1, 255)
            => without_trailing_zeros(vector),
        check coefficients.len() <= header.generation_size.into()
            => Check::AtMost("coefficients", "core.generation_size"),
    }
}

/// One part of a data frame, or two.
struct Parts {
    count: u8,
}

impl Parts {
    const PART: Group = group(
        "core.part",
        "Part",
        "{packet.source} to {packet.destination} generation {core.generation}",
    );

    const PARTS: &'static [layout::Part] =
        &[layout::Part::Repeat(Count::Field("core.parts"), &[Self::PART.part::<Part>("")])];

    fn read(self, r: &mut Reader<'_>) -> Result<(Part, Option<Part>), Malformed> {
        let first = Part::read(r)?;
        let second = if self.count > 1 { Some(Part::read(r)?) } else { None };
        Ok((first, second))
    }

    fn put(self, first: &Part, second: &Option<Part>, w: &mut Writer<'_>) {
        first.put(w);
        second.iter().for_each(|part| part.put(w));
    }
}

/// A data frame: a packet of one flow, or the exclusive or of packets of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataFrame<'a> {
    /// Number of the frame among all data frames of its transmitter.
    pub serial: u16,
    pub first: Part,
    pub second: Option<Part>,
    /// Payload without the zeros at its end.
    pub payload: &'a [u8],
}

frame! {
    pub(crate) impl DataFrame<'a> as DataFrame { serial, first, second, payload } {
        /// counts the transmitter's data frames; who hears some knows how many were sent
        serial: u16 = field("core.serial", "Serial"),
        /// a packet of one flow, or those of two, xored
        count: u8 = field("core.parts", "Parts").within(1, 2) => 1 + u8::from(second.is_some()),
        first, second as Parts { count },
        check !second.as_ref().is_some_and(|second| second.is_of_flow(&first))
            => Check::Distinct(&["packet.source", "packet.destination"]),
        /// the combination, or that of one flow xored with that of the other; without the zeros at
        /// its end
        payload: &'a [u8] = field("payload", "Payload"),
        check payload.len() <= longest_symbol(&first, second.as_ref()).into()
            => Check::AtMostGreatest("payload", "core.symbol_size"),
    }
}

impl Part {
    fn is_of_flow(&self, other: &Self) -> bool {
        self.header.id.flow.key() == other.header.id.flow.key()
    }
}

fn longest_symbol(first: &Part, second: Option<&Part>) -> u16 {
    second.map_or(0, |part| part.header.symbol_size).max(first.header.symbol_size)
}

impl DataFrame<'_> {
    /// Returns how much of a frame with two flows of this generation size is not payload, bytes.
    pub(crate) fn overhead(generation_size: u8) -> usize {
        Self::LEN + 2 * (Part::LEN + usize::from(generation_size))
    }
}

/// Returns a coding vector with a coefficient for each of `packets`.
fn padded(coefficients: &[u8], packets: u8) -> Vec<u8> {
    let mut vector = coefficients.to_vec();
    vector.resize(packets.into(), 0);
    vector
}

/// Returns `bytes` without the zeros at their end.
pub(crate) fn without_trailing_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

// ---- count

/// A count frame: tells the next hop how many packets a generation has, and asks for feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountFrame {
    /// Serial of the transmitter's last data frame.
    pub serial: u16,
    /// Number of the poll. Copies of one poll share it, so that they are answered once.
    pub number: u16,
    /// Whether an earlier poll was not answered.
    pub again: bool,
    pub header: GenerationHeader,
    /// Node that is to answer.
    pub next_hop: NodeId,
}

frame! {
    pub(crate) impl CountFrame as CountFrame { serial, number, again, header, next_hop } {
        /// of the transmitter's last data frame
        serial: u16 = field("core.serial", "Serial"),
        /// counts the transmitter's questions and answers modulo 2^16
        number: u16 = field("core.number", "Number"),
        /// 1 if it asked before and no answer came, else 0
        again: bool = field("core.again", "Again").within(0, 1),
        Addressed { header, next_hop },
    }
}

// ---- feedback

choice! {
    /// Asks the previous hop for something.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Request {
        /// Send nothing more: this node has full rank, but the destination lacks packets.
        Stop = 0, "stop";
        /// Send more packets.
        More = 1, "more";
        /// Go on with the next generation: the destination has this one.
        NextGeneration = 2, "next generation";
    }
}

record! {
    /// How well a node hears one transmitter: data frames received, out of those sent (6.2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct LinkReport {
        pub transmitter: NodeId = field("core.transmitter", "Transmitter"),
        /// data frames heard of it
        pub received: u16 = field("core.received", "Received"),
        /// data frames that it sent meanwhile
        pub sent: u16 = field("core.sent", "Sent"),
        check at_most(received, sent),
    }
}

/// A feedback frame: tells the previous hop what is missing of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FeedbackFrame {
    pub id: GenerationId,
    /// Node that is answered.
    pub to: NodeId,
    /// Number of the feedback. Copies of one feedback share it, so that they are handled once.
    pub number: u16,
    pub request: Request,
    /// Packets that are missing, if they come alone.
    pub missing_alone: u8,
    /// Packets that are missing, if they come combined with the flow that the last ones were
    /// combined with.
    pub missing_combined: u8,
    /// Sum of the ranks of this node and those behind it. It grows as the generation proceeds.
    pub progress: u16,
    /// Numbers of missing packets, where nothing is coded within flows.
    pub missing_numbers: Vec<u8>,
    pub links: Vec<LinkReport>,
}

impl FeedbackFrame {
    /// Returns the feedback that the destination has a generation.
    pub(crate) fn next_generation(id: GenerationId) -> Self {
        Self {
            id,
            to: id.flow.source,
            number: 0,
            request: Request::NextGeneration,
            missing_alone: 0,
            missing_combined: UNKNOWN,
            progress: u16::MAX,
            missing_numbers: Vec::new(),
            links: Vec::new(),
        }
    }
}

frame! {
    pub(crate) impl FeedbackFrame as FeedbackFrame {
        id: GenerationId { flow, number: generation },
        to,
        number,
        request,
        missing_alone,
        missing_combined,
        progress,
        missing_numbers,
        links,
    } {
        flow: FlowInstance,
        /// the node that is answered
        to: NodeId = field("next_hop", "Next hop"),
        generation: u32 = field("core.generation", "Generation"),
        /// counts the transmitter's questions and answers modulo 2^16
        number: u16 = field("core.number", "Number"),
        /// stop: all there is has arrived; next generation: the destination has this one
        request: Request = field("core.request", "Request"),
        /// packets that are missing, if they come alone
        missing_alone: u8 = field("core.missing_alone", "Packets missing, alone"),
        /// the same if they come combined with the flow they last were combined with; 255: not
        /// known
        missing_combined: u8 = field("core.missing_combined", "Packets missing, combined"),
        /// ranks of the node and of those behind it, summed
        progress: u16 = field("core.progress", "Progress"),
        /// of `cope` only
        missing_numbers: Vec<u8> = field("core.missing_numbers", "Numbers of missing packets")
            .prefixed(0, MAX_GENERATION_SIZE as usize),
        /// how many transmitters it reports on
        count: u8 = field("core.links", "Links").within(0, MAX_LINK_REPORTS as u64)
            => links.len() as u8,
        links: Vec<LinkReport> as many as count = group(
            "core.link",
            "Link",
            "Link from {core.transmitter}: {core.received} of {core.sent} received",
        ),
    }
}

frame! {
    /// Feedback on its way over other nodes, because the previous hop does not hear its author.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct RelayedFeedback {
        /// the node that passes it on, or is answered
        pub next_hop: NodeId = field("core.passes_on", "Passed on by"),
        /// the node that says so, not the one that is answered
        pub author: NodeId = field("core.author", "Author"),
        pub feedback: FeedbackFrame,
        check author != feedback.to => Check::Differ("core.author", "next_hop"),
    }
}

// ---- traces

/// Summarises a frame body of the scheme `name` for traces; `None` if it is malformed.
pub(crate) fn summary(name: &'static str, kind: u8, body: &[u8]) -> Option<Summary> {
    let (id, what) = match kind {
        DATA => {
            let data = DataFrame::parse(body).ok()?;
            let what = if data.second.is_some() { "coded" } else { "data" };
            (data.first.header.id, what)
        }
        COUNT => (CountFrame::parse(body).ok()?.header.id, "count"),
        FEEDBACK => (FeedbackFrame::parse(body).ok()?.id, "feedback"),
        RELAYED => (RelayedFeedback::parse(body).ok()?.feedback.id, "relayed feedback"),
        _ => return None,
    };

    let flow = Some(flow_of(id.flow.source, id.flow.destination));
    Some(Summary { flow, generation: Some(id.number), ..Summary::new(name, what) })
}
