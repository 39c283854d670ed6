//! The frames of CORE and its baseline. Layouts: `docs/wire-format.md`.

use ncmesh_engine::Malformed;
use ncmesh_engine::Summary;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::tunnel::{DATA, flow_of};
use ncmesh_wire::{NodeId, Reader, Writer};

/// Kind of a report of how many packets there are, which asks for an answer (table 3: packet count report).
pub(super) const COUNT: u8 = 2;
/// Kind of the answer (table 3: stop, packet request, negative acknowledgment, next generation).
pub(super) const FEEDBACK: u8 = 3;

/// Packets of a generation at most.
pub(super) const MAX_ROOM: u8 = 120;
/// Generations of a flow under way at most.
pub(super) const MAX_WINDOW: u8 = 8;
/// A feedback reports on at most so many transmitters.
pub(super) const MAX_HEARD: usize = 4;
/// The combined rank is not known.
pub(super) const UNKNOWN: u8 = u8::MAX;

const CLOSED: u8 = 1;

/// A generation of a flow.
pub(super) type Name = (FlowInstance, u32);

/// What every frame of a flow says of the generation it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub start: FlowInstance,
    pub generation: u32,
    /// How many generations before it the source has not given up yet.
    pub behind: u8,
    /// Packets it has room for: the length of coding vectors.
    pub room: u8,
    /// Packets it has by now.
    pub count: u8,
    /// There will be no more.
    pub closed: bool,
    /// Length of its symbols, bytes.
    pub symbol: u16,
}

impl Head {
    pub(super) fn name(&self) -> Name {
        (self.start, self.generation)
    }

    /// The oldest generation that the source still has.
    pub(super) fn base(&self) -> u32 {
        self.generation.wrapping_sub(u32::from(self.behind))
    }

    fn write(&self, next: NodeId, out: &mut Vec<u8>) {
        self.start.write(out);
        let mut w = Writer::new(out);
        w.node(next).u32(self.generation).u8(self.behind).u8(self.room).u8(self.count);
        w.u8(u8::from(self.closed) * CLOSED).u16(self.symbol);
    }

    fn parse(r: &mut Reader<'_>) -> Result<(Self, NodeId), Malformed> {
        let start = FlowInstance::parse(r)?;
        let (next, generation, behind) = (r.node()?, r.u32()?, r.u8()?);
        let (room, count, flags, symbol) = (r.u8()?, r.u8()?, r.u8()?, r.u16()?);
        let sizes = (1..=MAX_ROOM).contains(&room) && (1..=room).contains(&count) && symbol > 2;
        if !sizes || behind >= MAX_WINDOW || u32::from(behind) > generation || flags & !CLOSED != 0
        {
            return Err(Malformed);
        }
        let closed = flags & CLOSED != 0;
        Ok((Self { start, generation, behind, room, count, closed, symbol }, next))
    }
}

/// What a data frame says of one flow in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub head: Head,
    /// Who is to send it on, or is its destination.
    pub next: NodeId,
    /// The coding vector, of as many coefficients as the generation has room for.
    pub vector: Vec<u8>,
}

/// A data frame: a packet of one flow, or the exclusive or of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Data<'a> {
    /// Counts the transmitter's data frames.
    pub serial: u16,
    pub first: Part,
    pub second: Option<Part>,
    /// Without the zeros at its end.
    pub payload: &'a [u8],
}

impl Part {
    /// How long one is without its vector, bytes.
    const FIXED: usize = 21;

    fn write(&self, out: &mut Vec<u8>) {
        self.head.write(self.next, out);
        let vector = trimmed(&self.vector);
        Writer::new(out).u8(vector.len() as u8).bytes(vector);
    }

    fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (head, next) = Head::parse(r)?;
        let (width, room) = (usize::from(r.u8()?), usize::from(head.room));
        if !(1..=room).contains(&width) {
            return Err(Malformed);
        }
        let mut vector = r.bytes(width)?.to_vec();
        vector.resize(room, 0);
        Ok(Self { head, next, vector })
    }
}

/// Without the zeros at the end.
pub(super) fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

impl<'a> Data<'a> {
    /// What a frame has besides parts and payload, bytes.
    pub(super) const FIXED: usize = 3;

    /// How much of a frame is no payload, with two flows whose generations have `room`, bytes.
    pub(super) fn overhead(room: u8) -> usize {
        Self::FIXED + 2 * (Part::FIXED + usize::from(room))
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let parts = 1 + u8::from(self.second.is_some());
        Writer::new(out).u16(self.serial).u8(parts);
        self.first.write(out);
        self.second.iter().for_each(|part| part.write(out));
        out.extend_from_slice(self.payload);
    }

    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (serial, parts) = (r.u16()?, r.u8()?);
        let first = Part::parse(&mut r)?;
        let second = match parts {
            1 => None,
            2 => Some(Part::parse(&mut r)?),
            _ => return Err(Malformed),
        };
        let payload = r.rest();
        let longest = second.as_ref().map_or(0, |part| part.head.symbol).max(first.head.symbol);
        let same = |part: &Part| part.head.start.key() == first.head.start.key();
        if payload.len() > usize::from(longest) || second.as_ref().is_some_and(same) {
            return Err(Malformed);
        }
        Ok(Self { serial, first, second, payload })
    }
}

/// How many packets a generation has, and which was the last data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub serial: u16,
    /// By which copies of a question are known, and told from the next question.
    pub number: u16,
    /// It was asked before, and no answer came.
    pub again: bool,
    pub head: Head,
    pub next: NodeId,
}

impl Count {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).u16(self.serial).u16(self.number).u8(u8::from(self.again));
        self.head.write(self.next, out);
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (serial, number, again) = (r.u16()?, r.u16()?, r.u8()?);
        let (head, next) = Head::parse(&mut r)?;
        if r.remaining() > 0 || again > 1 {
            return Err(Malformed);
        }
        Ok(Self { serial, number, again: again == 1, head, next })
    }
}

/// What a node needs yet of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Stop: it has all there is, but not the destination.
    Stop,
    /// More packets.
    More,
    /// Next generation: the destination has it.
    Next,
}

/// How a node measures one transmitter: its data frames heard, of how many (6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub of: NodeId,
    pub received: u16,
    pub sent: u16,
}

/// An answer, to the node that the flow comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Feedback {
    pub start: FlowInstance,
    pub to: NodeId,
    pub generation: u32,
    /// By which copies of an answer are known, and told from the next answer.
    pub number: u16,
    pub wish: Wish,
    /// Packets it lacks, if they come alone.
    pub alone: u8,
    /// The same if they come combined with the flow that they last were combined with.
    pub combined: u8,
    /// Ranks of this node and of those behind it, summed: grows while the generation gets on.
    pub progress: u16,
    /// Numbers of packets it lacks, where nothing is coded within flows.
    pub wanted: Vec<u8>,
    pub heard: Vec<Heard>,
}

impl Feedback {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.start.write(out);
        let mut w = Writer::new(out);
        w.node(self.to).u32(self.generation).u16(self.number).u8(self.wish as u8);
        w.u8(self.alone).u8(self.combined).u16(self.progress);
        w.u8(self.wanted.len() as u8).bytes(&self.wanted);
        w.u8(self.heard.len() as u8);
        for heard in &self.heard {
            w.node(heard.of).u16(heard.received).u16(heard.sent);
        }
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let start = FlowInstance::parse(&mut r)?;
        let (to, generation, number) = (r.node()?, r.u32()?, r.u16()?);
        let wish = match r.u8()? {
            0 => Wish::Stop,
            1 => Wish::More,
            2 => Wish::Next,
            _ => return Err(Malformed),
        };
        let (alone, combined, progress) = (r.u8()?, r.u8()?, r.u16()?);
        let wanted = usize::from(r.u8()?);
        if wanted > usize::from(MAX_ROOM) {
            return Err(Malformed);
        }
        let wanted = r.bytes(wanted)?.to_vec();
        let transmitters = r.u8()?;
        if usize::from(transmitters) > MAX_HEARD {
            return Err(Malformed);
        }
        let mut heard = Vec::new();
        for _ in 0..transmitters {
            heard.push(Heard { of: r.node()?, received: r.u16()?, sent: r.u16()? });
        }
        let honest = heard.iter().all(|heard| heard.received <= heard.sent);
        if r.remaining() > 0 || !honest {
            return Err(Malformed);
        }
        Ok(Self { start, to, generation, number, wish, alone, combined, progress, wanted, heard })
    }
}

/// What a frame of (kind, fields) of the engine `name` says of itself.
pub(crate) fn summary(name: &'static str, kind: u8, body: &[u8]) -> Option<Summary> {
    let (start, generation, what) = match kind {
        DATA => {
            let data = Data::parse(body).ok()?;
            let what = if data.second.is_some() { "coded" } else { "data" };
            (data.first.head.start, data.first.head.generation, what)
        }
        COUNT => {
            let head = Count::parse(body).ok()?.head;
            (head.start, head.generation, "count")
        }
        FEEDBACK => {
            let feedback = Feedback::parse(body).ok()?;
            (feedback.start, feedback.generation, "feedback")
        }
        _ => return None,
    };
    let flow = Some(flow_of(start.source, start.destination));
    Some(Summary { flow, batch: Some(generation), ..Summary::new(name, what) })
}
