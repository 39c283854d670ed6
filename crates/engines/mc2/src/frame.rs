//! The frames of MC2: data, reports and requests. Layouts: `docs/reference/wire-format.md`.
//!
//! A data frame is self-contained: it carries the flow's paths, the sender's state and a random
//! combination with its coding vector. A node that never heard of the flow can take part in it from
//! any one frame. Parsing checks all that one frame alone can show to be wrong.

use crate::NAME;
use crate::hops::MAX_HOPS;
use crate::paths::{MAX_NODES, PathSet};
use ncmesh_engine::Malformed;
use ncmesh_engine::Summary;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::tunnel::{DATA, flow_of};
use ncmesh_wire::{NodeId, Reader, Writer};

/// Kind of a report: a node's state in a flow, where it has no data to say it with.
pub(crate) const REPORT: u8 = 2;
/// Kind of a destination's request for more packets of a generation.
pub(crate) const REQUEST: u8 = 3;

/// Most packets of a generation.
pub(crate) const MAX_GENERATION_SIZE: u8 = 128;
/// Most generations of which a frame announces credits.
pub(crate) const MAX_ANNOUNCED: usize = 3;
/// Most nodes whose frames a frame acknowledges.
pub(crate) const MAX_ACKS: usize = 4;
/// Length of the shortest payload, bytes: a packet of one byte with its length before it.
pub(crate) const MIN_PAYLOAD: usize = 3;

/// Flag of a data frame whose sender wants acknowledgments.
const WANTS_ACK: u8 = 1;
/// Flag of a data frame whose sender waits for one before it goes on.
const WAITS_FOR_ACK: u8 = 2;

/// Which frames of another node's flow a node received: the latest, and which of the 32 before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledgment {
    /// Node that sent the frames.
    pub of: NodeId,
    /// Serial number of the latest.
    pub latest: u16,
    /// Bit i stands for the frame i + 1 before the latest.
    pub before: u32,
}

/// State of a flow at the sender of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowState {
    /// |C(n, c)|: credits that it holds.
    pub credits: u16,
    /// At the destination, the generation before which all are complete or given up; 0 elsewhere.
    pub done: u32,
    pub acks: Vec<Acknowledgment>,
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

impl Acknowledgment {
    /// Length in a frame, bytes.
    const LEN: usize = 8;
}

impl GenerationCredits {
    /// Returns the length in a frame of a node with this number of next hops, bytes.
    const fn len(hops: usize) -> usize {
        4 + 2 * hops
    }
}

impl FlowState {
    fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).u16(self.credits).u32(self.done).u8(self.acks.len() as u8);
        for ack in &self.acks {
            Writer::new(out).node(ack.of).u16(ack.latest).u32(ack.before);
        }
    }

    fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (credits, done, len) = (r.u16()?, r.u32()?, usize::from(r.u8()?));
        if len > MAX_ACKS {
            return Err(Malformed);
        }
        let mut acks = Vec::with_capacity(len);
        for _ in 0..len {
            acks.push(Acknowledgment { of: r.node()?, latest: r.u16()?, before: r.u32()? });
        }
        Ok(Self { credits, done, acks })
    }
}

/// Everything in a data frame before its coding vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GenerationHeader {
    pub incarnation: u32,
    pub paths: PathSet,
    /// Number of the source's choice of paths.
    pub revision: u8,
    /// Number of the frame among the sender's data frames of this flow.
    pub serial: u16,
    /// Whether the sender wants to know who received the frame.
    pub wants_ack: bool,
    /// Whether it sends nothing more before it knows.
    pub waits_for_ack: bool,
    pub state: FlowState,
    /// Credits that the sender gave to its next hops; the frame's own generation comes first.
    pub announced: Vec<GenerationCredits>,
    pub generation: u32,
    /// Most packets of a generation: the length of the coding vector.
    pub generation_size: u8,
    /// Packets that the generation has, once it is closed; 0 before.
    pub packets: u8,
    /// The same of the generation before it.
    pub packets_before: u8,
    /// Length of a combination, bytes. Zeros at its end may be left out.
    pub symbol_size: u16,
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
        let (source, destination) = (self.paths.source(), self.paths.destination());
        FlowInstance { source, destination, incarnation: self.incarnation }
    }

    /// Returns the length of a header over this number of nodes, without acknowledgments,
    /// announcements and the coding vector, bytes.
    const fn fixed_len(nodes: usize) -> usize {
        // Incarnation, paths, revision, serial, flags; state; the number of announcements and that
        // of hops; generation, three sizes and that of symbols.
        let paths = 1 + 4 * nodes;
        4 + paths + 1 + 2 + 1 + 7 + 2 + 4 + 3 + 2
    }

    /// Returns how many bytes of a frame are kept from the payload: a header over the longest
    /// paths, with one acknowledgment and one announcement, and a coding vector of
    /// `generation_size`.
    pub(crate) fn reserved(generation_size: u8) -> usize {
        let feedback = Acknowledgment::LEN + GenerationCredits::len(MAX_HOPS);
        Self::fixed_len(MAX_NODES) + feedback + usize::from(generation_size)
    }

    /// Returns how much feedback fits a frame body of `mtu` bytes beside a coding vector and
    /// payload of `combination` bytes, of a node with `hops` next hops on paths over `nodes`.
    pub(crate) fn feedback(mtu: usize, combination: usize, nodes: usize, hops: usize) -> Feedback {
        let room = mtu.saturating_sub(Self::fixed_len(nodes) + combination);
        let announcement = GenerationCredits::len(hops);
        // Acknowledgments come first: other frames announce what this one leaves out, but a
        // previous hop may wait.
        let acks = (room.saturating_sub(announcement) / Acknowledgment::LEN).min(MAX_ACKS);
        let left = room.saturating_sub(acks * Acknowledgment::LEN);
        Feedback { acks, announced: (left / announcement).clamp(1, MAX_ANNOUNCED) }
    }

    /// Appends the header to a frame body.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).u32(self.incarnation);
        self.paths.write(out);
        let flags =
            u8::from(self.wants_ack) * WANTS_ACK + u8::from(self.waits_for_ack) * WAITS_FOR_ACK;
        Writer::new(out).u8(self.revision).u16(self.serial).u8(flags);
        self.state.write(out);

        // All generations have a count for each hop, so one number of hops is enough.
        let hops = self.announced.first().map_or(0, |credits| credits.by_hop.len());
        Writer::new(out).u8(self.announced.len() as u8).u8(hops as u8);
        for credits in &self.announced {
            Writer::new(out).u32(credits.generation);
            for total in &credits.by_hop {
                Writer::new(out).u16(*total);
            }
        }

        Writer::new(out)
            .u32(self.generation)
            .u8(self.generation_size)
            .u8(self.packets)
            .u8(self.packets_before)
            .u16(self.symbol_size);
    }
}

impl<'a> Data<'a> {
    /// Parses the body of a data frame.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are missing, counts exceed their bounds, flags are unknown or the
    /// payload is longer than a symbol.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let incarnation = r.u32()?;
        let paths = PathSet::parse(&mut r)?;
        let (revision, serial, flags) = (r.u8()?, r.u16()?, r.u8()?);
        let state = FlowState::parse(&mut r)?;

        let (generations, hops) = (usize::from(r.u8()?), usize::from(r.u8()?));
        // Counts are checked before anything is read by them.
        let known_flags = WANTS_ACK | WAITS_FOR_ACK;
        if flags & !known_flags != 0 || generations > MAX_ANNOUNCED || hops > MAX_HOPS {
            return Err(Malformed);
        }
        let mut announced = Vec::with_capacity(generations);
        for _ in 0..generations {
            let generation = r.u32()?;
            let by_hop: Result<Vec<u16>, _> = (0..hops).map(|_| r.u16()).collect();
            announced.push(GenerationCredits { generation, by_hop: by_hop? });
        }

        let (generation, generation_size) = (r.u32()?, r.u8()?);
        let (packets, packets_before) = (r.u8()?, r.u8()?);
        if !(1..=MAX_GENERATION_SIZE).contains(&generation_size)
            || packets > generation_size
            || packets_before > generation_size
        {
            return Err(Malformed);
        }
        let symbol_size = r.u16()?;
        let coding_vector = r.bytes(usize::from(generation_size))?;
        let payload = r.rest();
        if payload.len() < MIN_PAYLOAD || payload.len() > usize::from(symbol_size) {
            return Err(Malformed);
        }

        let header = GenerationHeader {
            incarnation,
            paths,
            revision,
            serial,
            wants_ack: flags & WANTS_ACK != 0,
            waits_for_ack: flags & WAITS_FOR_ACK != 0,
            state,
            announced,
            generation,
            generation_size,
            packets,
            packets_before,
            symbol_size,
        };
        Ok(Self { header, coding_vector, payload })
    }
}

/// A node's state in a flow, sent without data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub flow: FlowInstance,
    pub state: FlowState,
}

impl Report {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.flow.write(out);
        self.state.write(out);
    }

    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let report = Self { flow: FlowInstance::parse(&mut r)?, state: FlowState::parse(&mut r)? };
        if r.remaining() > 0 { Err(Malformed) } else { Ok(report) }
    }
}

/// A destination's request for more of a generation, on its way to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub flow: FlowInstance,
    /// Node that answers it or sends it on.
    pub next: NodeId,
    pub generation: u32,
    /// Number among the destination's requests for this generation.
    pub serial: u8,
    /// Packets that the destination lacks.
    pub missing: u8,
}

impl Request {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.flow.write(out);
        Writer::new(out).node(self.next).u32(self.generation).u8(self.serial).u8(self.missing);
    }

    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let request = Self {
            flow: FlowInstance::parse(&mut r)?,
            next: r.node()?,
            generation: r.u32()?,
            serial: r.u8()?,
            missing: r.u8()?,
        };
        if r.remaining() > 0 || request.missing == 0 { Err(Malformed) } else { Ok(request) }
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
            let batch = Some(header.generation);
            Some(Summary { batch, ..summary(header.instance(), "data") })
        }
        REPORT => Some(summary(Report::parse(body).ok()?.flow, "report")),
        REQUEST => {
            let request = Request::parse(body).ok()?;
            let batch = Some(request.generation);
            Some(Summary { batch, ..summary(request.flow, "request") })
        }
        _ => None,
    }
}
