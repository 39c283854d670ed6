//! The frames of MC2: data, reports and requests. Layouts: `docs/reference/wire-format.md`.
//!
//! A data frame is self-contained: it carries the flow's paths, the sender's state and a random
//! combination with its coding vector. A node that never heard of the flow can take part in it from
//! any one frame. Parsing checks all that one frame alone can show to be wrong.

use crate::NAME;
use crate::hops::MAX_HOPS;
use crate::paths::{MAX_NODES, NODE_LEN, PathSet};
use ncmesh_engine::Malformed;
use ncmesh_engine::Summary;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::tunnel::{DATA, flow_of};
use ncmesh_wire::layout::{Check, Count, Layout, Length, Part};
use ncmesh_wire::record::{Named, bits, field, group, many};
use ncmesh_wire::{NodeId, Reader, Record, Writer, frame, record};

/// Kind of a report: a node's state in a flow, where it has no data to say it with.
pub(crate) const REPORT: u8 = 2;
/// Kind of a destination's request for more packets of a generation.
pub(crate) const REQUEST: u8 = 3;

/// Frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout::of::<Data<'_>>(DATA, "data", "{mc2.node} to {mc2.node#2} generation {mc2.generation}"),
    Layout::of::<Report>(REPORT, "report", "{packet.source} to {packet.destination}"),
    Layout::of::<Request>(
        REQUEST,
        "request",
        "{packet.source} to {packet.destination} by {next_hop}: \
         {mc2.request.missing} packets of generation {mc2.generation}",
    ),
];

/// Most packets of a generation.
pub(crate) const MAX_GENERATION_SIZE: u8 = 128;
/// Most generations of which a frame announces credits.
pub(crate) const MAX_ANNOUNCED: usize = 3;
/// Most nodes whose frames a frame acknowledges.
pub(crate) const MAX_ACKS: usize = 4;
/// Length of the shortest payload, bytes: a packet of one byte with its length before it.
pub(crate) const MIN_PAYLOAD: usize = 3;

record! {
    /// Which frames of another node's flow a node received: the latest, and which of the 32 before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Acknowledgment {
        /// whose frames it heard
        pub of: NodeId = field("mc2.ack.node", "Node"),
        /// its serial
        pub latest: u16 = field("mc2.ack.latest", "Latest frame"),
        /// heard of the 32 before it; bit i is the frame i + 1 before
        pub before: u32 = field("mc2.ack.before", "Frames before it").hex(),
    }
}

record! {
    /// State of a flow at the sender of a frame.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub(crate) struct FlowState {
        /// that the sender holds, |C(n, c)|
        pub credits: u16 = field("mc2.credits", "Credits"),
        /// generations before this one the destination is done with: complete or given up; of
        /// others 0
        pub done: u32 = field("mc2.done", "Done with generations before"),
        /// how many nodes before it the sender acknowledges
        count: u8 = field("mc2.acks", "Acknowledgments").within(0, MAX_ACKS as u64)
            => acks.len() as u8,
        pub acks: Vec<Acknowledgment> as many as count = group(
            "mc2.ack",
            "Acknowledgment",
            "Of {mc2.ack.node}, frame {mc2.ack.latest} the latest",
        ),
    }
}

/// Credits of one generation that a node gave to each of its next hops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GenerationCredits {
    pub generation: u32,
    /// Total so far, by next hop.
    pub by_hop: Vec<u16>,
}

/// How much feedback a data frame has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feedback {
    /// Nodes whose frames it acknowledges.
    pub acks: usize,
    /// Generations of which it announces credits; its own is one of them.
    pub announced: usize,
}

impl GenerationCredits {
    /// Returns the length in a frame of a node with this number of next hops, bytes.
    const fn len(hops: usize) -> usize {
        4 + 2 * hops
    }
}

/// Length of an acknowledgment in a frame, bytes.
const ACK_LEN: usize = Acknowledgment::LEN;

/// Credits announced: a list of generations, each with a count for each hop.
struct Announced;

impl Announced {
    const GENERATIONS: Named =
        field("mc2.announced.generations", "Generations announced").within(0, MAX_ANNOUNCED as u64);
    const HOPS: Named = field("mc2.announced.hops", "Next hops").within(0, MAX_HOPS as u64);
    const GENERATION: Named = field("mc2.announced.generation", "Generation");
    const CREDITS: Named = field("mc2.announced.credits", "Credits");

    const PARTS: &'static [Part] = &[
        Self::GENERATIONS.part::<u8>(""),
        Self::HOPS.part::<u8>("of the sender"),
        Part::Repeat(
            Count::Field(Self::GENERATIONS.name),
            &[Part::Group {
                name: "mc2.announced",
                label: "Credits announced",
                text: "Credits of generation {mc2.announced.generation}",
                parts: &[
                    Self::GENERATION.part::<u32>(""),
                    Part::Repeat(
                        Count::Field(Self::HOPS.name),
                        &[Self::CREDITS.part::<u16>("given to a next hop so far")],
                    ),
                ],
            }],
        ),
    ];

    fn read(self, r: &mut Reader<'_>) -> Result<Vec<GenerationCredits>, Malformed> {
        let generations: u8 = Self::GENERATIONS.read(r)?;
        let hops: u8 = Self::HOPS.read(r)?;
        many(r, generations.into(), |r| {
            let generation = Self::GENERATION.read(r)?;
            let by_hop = many(r, hops.into(), |r| Self::CREDITS.read(r))?;
            Ok(GenerationCredits { generation, by_hop })
        })
    }

    fn put(self, announced: &[GenerationCredits], w: &mut Writer<'_>) {
        // All generations have a count for each hop, so one number of hops is enough.
        let hops = announced.first().map_or(0, |credits| credits.by_hop.len());
        w.u8(announced.len() as u8).u8(hops as u8);
        for credits in announced {
            w.u32(credits.generation);
            for total in &credits.by_hop {
                w.u16(*total);
            }
        }
    }
}

record! {
    /// Everything in a data frame before its coding vector.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct GenerationHeader {
        /// a later start of the source, or of the flow, has a higher one
        pub incarnation: u32 = field("instance", "Incarnation of the flow").hex(),
        pub paths: PathSet,
        /// counts the source's choices of paths
        pub revision: u8 = field("mc2.revision", "Revision of the paths"),
        /// counts the sender's data frames of this flow
        pub serial: u16 = field("mc2.serial", "Serial"),
        byte {
            /// the sender sends no more before
            pub waits_for_ack: bool = bits(2, "mc2.waits_for_ack", "Waits for that"),
            pub wants_ack: bool = bits(1, "mc2.wants_ack", "Asks for acknowledgments"),
        }
        pub state: FlowState,
        /// Credits that the sender gave to its next hops; the frame's own generation comes first.
        pub announced: Vec<GenerationCredits> as Announced {},
        /// of this frame
        pub generation: u32 = field("mc2.generation", "Generation"),
        /// packets a generation has at most: the length of the coding vector
        pub generation_size: u8 = field("mc2.generation_size", "Generation size")
            .within(1, MAX_GENERATION_SIZE as u64),
        /// packets it has, 0 while it may grow
        pub packets: u8 = field("mc2.packets", "Packets"),
        check at_most(packets, generation_size),
        pub packets_before: u8
            = field("mc2.packets_before", "Packets of the generation before"),
        check at_most(packets_before, generation_size),
        /// length of a combination; zeros at its end may be left out
        pub symbol_size: u16 = field("mc2.symbol_size", "Symbol size, bytes"),
    }
}

/// A data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Data<'a> {
    pub header: GenerationHeader,
    pub coding_vector: &'a [u8],
    pub payload: &'a [u8],
}

impl GenerationHeader {
    /// Returns the flow that the frame belongs to.
    pub(crate) fn instance(&self) -> FlowInstance {
        let source = self.paths.source();
        let destination = self.paths.destination();
        FlowInstance { source, destination, incarnation: self.incarnation }
    }

    /// Returns the length of a header over this number of nodes, without acknowledgments,
    /// announcements and the coding vector, bytes.
    const fn fixed_len(nodes: usize) -> usize {
        <Self as Record>::LEN + NODE_LEN * nodes
    }

    /// Returns how many bytes of a frame are kept from the payload: a header over the longest
    /// paths, with one acknowledgment and one announcement, and a coding vector of
    /// `generation_size`.
    pub(crate) fn reserved(generation_size: u8) -> usize {
        let feedback = ACK_LEN + GenerationCredits::len(MAX_HOPS);
        Self::fixed_len(MAX_NODES) + feedback + usize::from(generation_size)
    }

    /// Returns how much feedback fits a frame body of `mtu` bytes beside a coding vector and
    /// payload of `combination` bytes, of a node with `hops` next hops on paths over `nodes`.
    pub(crate) fn feedback(mtu: usize, combination: usize, nodes: usize, hops: usize) -> Feedback {
        let room = mtu.saturating_sub(Self::fixed_len(nodes) + combination);
        let announcement = GenerationCredits::len(hops);
        // Acknowledgments come first: other frames announce what this one leaves out, but a
        // previous hop may wait.
        let acks = (room.saturating_sub(announcement) / ACK_LEN).min(MAX_ACKS);
        let left = room.saturating_sub(acks * ACK_LEN);
        Feedback { acks, announced: (left / announcement).clamp(1, MAX_ANNOUNCED) }
    }

    /// Appends the header to a frame body.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.put(&mut Writer::new(out));
    }
}

impl Data<'_> {
    const VECTOR: Named = field("coefficients", "Coding vector, GF(2^8)");
    const PAYLOAD: Named = field("payload", "Payload").rest(MIN_PAYLOAD, u16::MAX as usize);
}

impl<'a> Data<'a> {
    /// Parses the body of a data frame.
    ///
    /// # Errors
    /// [`Malformed`] if it is not as its header says, or the payload is longer than a symbol.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        Self::from_body(body)
    }
}

impl<'a> Record<'a> for Data<'a> {
    const PARTS: &'static [Part] = &[
        Part::Include(GenerationHeader::PARTS),
        Self::VECTOR.bytes(Length::Field("mc2.generation_size"), ""),
        Self::PAYLOAD.part::<&[u8]>(
            "a combination of packets, each with its length (2) and check (4) before it and zeros \
             behind; without the zeros at its end",
        ),
        Part::Check(Check::AtMost(Self::PAYLOAD.name, "mc2.symbol_size")),
    ];

    fn read(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let header = GenerationHeader::read(r)?;
        let coding_vector = r.bytes(header.generation_size.into())?;
        let payload: &[u8] = Self::PAYLOAD.read(r)?;
        if payload.len() > header.symbol_size.into() {
            return Err(Malformed);
        }
        Ok(Self { header, coding_vector, payload })
    }

    fn put(&self, w: &mut Writer<'_>) {
        self.header.put(w);
        w.bytes(self.coding_vector).bytes(self.payload);
    }
}

frame! {
    /// A node's state in a flow, sent without data.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Report {
        pub flow: FlowInstance,
        pub state: FlowState,
    }
}

frame! {
    /// A destination's request for more of a generation, on its way to the source.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Request {
        pub flow: FlowInstance,
        /// the node that answers it or sends it on
        pub next: NodeId = field("next_hop", "Next hop"),
        pub generation: u32 = field("mc2.generation", "Generation"),
        /// counts the destination's requests for this generation
        pub serial: u8 = field("mc2.request.serial", "Serial"),
        /// packets that the destination lacks
        pub missing: u8 = field("mc2.request.missing", "Packets missing").at_least(1),
    }
}

/// Returns what traces show of a frame; `None` if it is malformed.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let summary = |flow: FlowInstance, what| {
        let flow = Some(flow_of(flow.source, flow.destination));
        Summary { flow, ..Summary::new(NAME, what) }
    };

    match kind {
        DATA => {
            let header = Data::parse(body).ok()?.header;
            let generation = Some(header.generation);
            Some(Summary { generation, ..summary(header.instance(), "data") })
        }
        REPORT => Some(summary(Report::parse(body).ok()?.flow, "report")),
        REQUEST => {
            let request = Request::parse(body).ok()?;
            let generation = Some(request.generation);
            Some(Summary { generation, ..summary(request.flow, "request") })
        }
        _ => None,
    }
}
