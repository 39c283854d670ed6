//! The frames of MC2. Layouts: `docs/wire-format.md`.

use super::NAME;
use super::paths::{MAX_HOPS, PathSet};
use ncmesh_engine::Malformed;
use ncmesh_engine::Summary;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::tunnel::{DATA, flow_of};
use ncmesh_wire::{NodeId, Reader, Writer};

/// Kind of a report of what a node has heard of those before it, where it has no data to say so with.
pub(super) const REPORT: u8 = 2;
/// Kind of a request for what a generation lacks.
pub(super) const REQUEST: u8 = 3;

/// Packets of a generation at most.
pub(super) const MAX_ROOM: u8 = 128;
/// A frame announces credits of at most so many generations.
pub(super) const MAX_ANNOUNCED: usize = 3;
/// And reports on at most so many nodes.
pub(super) const MAX_REPORTS: usize = 4;

/// The shortest payload: of a packet of one byte, with its length before it.
pub(super) const LEAST: usize = 3;

const ASKS: u8 = 1;
const WAITS: u8 = 2;

/// What a node has heard of another: its latest frame of the flow, and which of the 32 before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub of: NodeId,
    pub latest: u16,
    /// Bit i: the frame i + 1 before the latest.
    pub before: u32,
}

/// What a node says of itself in a frame of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// |C(n, c)|.
    pub credits: u16,
    /// The destination is done with generations before this one; 0 of others.
    pub done: u32,
    pub heard: Vec<Heard>,
}

impl Standing {
    fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).u16(self.credits).u32(self.done).u8(self.heard.len() as u8);
        for heard in &self.heard {
            Writer::new(out).node(heard.of).u16(heard.latest).u32(heard.before);
        }
    }

    fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (credits, done, len) = (r.u16()?, r.u32()?, usize::from(r.u8()?));
        if len > MAX_REPORTS {
            return Err(Malformed);
        }
        let mut heard = Vec::with_capacity(len);
        for _ in 0..len {
            heard.push(Heard { of: r.node()?, latest: r.u16()?, before: r.u32()? });
        }
        Ok(Self { credits, done, heard })
    }
}

/// Everything in a data frame before its coding vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub incarnation: u32,
    pub paths: PathSet,
    /// Counts the source's choices of paths.
    pub revision: u8,
    /// Numbers the sender's data frames of this flow.
    pub serial: u16,
    /// The sender wants to hear who heard it.
    pub asks: bool,
    /// It sends no more before it does.
    pub waits: bool,
    pub standing: Standing,
    /// By generation, credits that the sender ever transferred to each of its next hops.
    pub announced: Vec<(u32, Vec<u16>)>,
    pub generation: u32,
    /// Packets a generation has room for: the length of the coding vector.
    pub room: u8,
    /// Packets the generation has, once that is settled; 0 before.
    pub size: u8,
    /// The same of the generation before it.
    pub size_before: u8,
    /// Length of a combination, bytes. Zeros at its end may be left out.
    pub symbol: u16,
}

/// A parsed data frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Data<'a> {
    pub header: Header,
    pub coefficients: &'a [u8],
    pub payload: &'a [u8],
}

impl Header {
    pub(super) fn start(&self) -> FlowInstance {
        let (source, destination) = (self.paths.source(), self.paths.destination());
        FlowInstance { source, destination, incarnation: self.incarnation }
    }

    /// How long one can be with `nodes` on its paths, its coding vector of `room` included, bytes.
    pub(super) fn longest(nodes: usize, room: u8) -> usize {
        let fixed = 4 + 1 + 4 * nodes + 1 + 2 + 1 + 4 + 3 + 2;
        let standing = 7 + 8 * MAX_REPORTS;
        let announced = 2 + MAX_ANNOUNCED * (4 + 2 * MAX_HOPS);
        fixed + standing + announced + usize::from(room)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).u32(self.incarnation);
        self.paths.write(out);
        let flags = u8::from(self.asks) * ASKS + u8::from(self.waits) * WAITS;
        Writer::new(out).u8(self.revision).u16(self.serial).u8(flags);
        self.standing.write(out);
        let hops = self.announced.first().map_or(0, |(_, given)| given.len());
        Writer::new(out).u8(self.announced.len() as u8).u8(hops as u8);
        for (generation, given) in &self.announced {
            Writer::new(out).u32(*generation);
            for given in given {
                Writer::new(out).u16(*given);
            }
        }
        Writer::new(out).u32(self.generation).u8(self.room).u8(self.size).u8(self.size_before);
        Writer::new(out).u16(self.symbol);
    }
}

impl<'a> Data<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let incarnation = r.u32()?;
        let paths = PathSet::parse(&mut r)?;
        let (revision, serial, flags) = (r.u8()?, r.u16()?, r.u8()?);
        let standing = Standing::parse(&mut r)?;
        let (generations, hops) = (usize::from(r.u8()?), usize::from(r.u8()?));
        if flags & !(ASKS | WAITS) != 0 || generations > MAX_ANNOUNCED || hops > MAX_HOPS {
            return Err(Malformed);
        }
        let mut announced = Vec::with_capacity(generations);
        for _ in 0..generations {
            let generation = r.u32()?;
            let given: Result<Vec<u16>, _> = (0..hops).map(|_| r.u16()).collect();
            announced.push((generation, given?));
        }
        let (generation, room, size, size_before) = (r.u32()?, r.u8()?, r.u8()?, r.u8()?);
        if !(1..=MAX_ROOM).contains(&room) || size > room || size_before > room {
            return Err(Malformed);
        }
        let symbol = r.u16()?;
        let coefficients = r.bytes(usize::from(room))?;
        let payload = r.rest();
        if payload.len() < LEAST || payload.len() > usize::from(symbol) {
            return Err(Malformed);
        }
        let (asks, waits) = (flags & ASKS != 0, flags & WAITS != 0);
        let header = Header {
            incarnation,
            paths,
            revision,
            serial,
            asks,
            waits,
            standing,
            announced,
            generation,
            room,
            size,
            size_before,
            symbol,
        };
        Ok(Self { header, coefficients, payload })
    }
}

/// A report without data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub start: FlowInstance,
    pub standing: Standing,
}

impl Report {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.start.write(out);
        self.standing.write(out);
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let report =
            Self { start: FlowInstance::parse(&mut r)?, standing: Standing::parse(&mut r)? };
        if r.remaining() > 0 { Err(Malformed) } else { Ok(report) }
    }
}

/// A destination's request for more of a generation, on its way to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub start: FlowInstance,
    /// Who is to answer it or to send it on.
    pub next: NodeId,
    pub generation: u32,
    /// Counts the destination's requests for this generation.
    pub serial: u8,
    /// Packets it lacks.
    pub missing: u8,
}

impl Request {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.start.write(out);
        Writer::new(out).node(self.next).u32(self.generation).u8(self.serial).u8(self.missing);
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let request = Self {
            start: FlowInstance::parse(&mut r)?,
            next: r.node()?,
            generation: r.u32()?,
            serial: r.u8()?,
            missing: r.u8()?,
        };
        if r.remaining() > 0 || request.missing == 0 { Err(Malformed) } else { Ok(request) }
    }
}

/// What a frame of (kind, fields) says of itself.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let of = |start: FlowInstance, what| {
        let flow = Some(flow_of(start.source, start.destination));
        Summary { flow, ..Summary::new(NAME, what) }
    };
    match kind {
        DATA => {
            let header = Data::parse(body).ok()?.header;
            Some(Summary { batch: Some(header.generation), ..of(header.start(), "data") })
        }
        REPORT => Some(of(Report::parse(body).ok()?.start, "report")),
        REQUEST => {
            let request = Request::parse(body).ok()?;
            Some(Summary { batch: Some(request.generation), ..of(request.start, "request") })
        }
        _ => None,
    }
}
