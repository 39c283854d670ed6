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
use ncmesh_wire::{NodeId, Reader, Writer};

/// Kind of a count frame.
pub(crate) const COUNT: u8 = 2;
/// Kind of a feedback frame.
pub(crate) const FEEDBACK: u8 = 3;
/// Kind of feedback that goes over other nodes.
pub(crate) const RELAYED: u8 = 4;

/// Most packets of a generation.
pub(crate) const MAX_GENERATION_SIZE: u8 = 120;
/// Most generations of a flow that are under way at once.
pub(crate) const MAX_WINDOW: u8 = 8;
/// Most transmitters that a feedback frame reports on.
pub(crate) const MAX_LINK_REPORTS: usize = 4;
/// Value of [`FeedbackFrame::missing_combined`] where the number is not known.
pub(crate) const UNKNOWN: u8 = u8::MAX;

/// Flag of a generation that takes in no more packets.
const CLOSED: u8 = 1;

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
    /// Length on the air together with the next hop, bytes.
    const LEN: usize = 20;

    /// Returns the number of the oldest generation that the source still has.
    pub(crate) fn oldest_open(&self) -> u32 {
        self.id.number.wrapping_sub(u32::from(self.older_open))
    }

    fn write(&self, next_hop: NodeId, out: &mut Vec<u8>) {
        self.id.flow.write(out);
        let mut w = Writer::new(out);
        w.node(next_hop).u32(self.id.number).u8(self.older_open);
        w.u8(self.generation_size).u8(self.count);
        w.u8(u8::from(self.closed) * CLOSED).u16(self.symbol_size);
    }

    /// Reads the header and the next hop, which is between its fields on the air.
    fn parse(r: &mut Reader<'_>) -> Result<(Self, NodeId), Malformed> {
        let flow = FlowInstance::parse(r)?;
        let (next_hop, number, older_open) = (r.node()?, r.u32()?, r.u8()?);
        let (generation_size, count, flags, symbol_size) = (r.u8()?, r.u8()?, r.u8()?, r.u16()?);

        let sizes_agree = (1..=MAX_GENERATION_SIZE).contains(&generation_size)
            && (1..=generation_size).contains(&count)
            && symbol_size > 2;
        let numbers_agree = older_open < MAX_WINDOW && u32::from(older_open) <= number;
        if !sizes_agree || !numbers_agree || flags & !CLOSED != 0 {
            return Err(Malformed);
        }

        let (id, closed) = (GenerationId { flow, number }, flags & CLOSED != 0);
        Ok((Self { id, older_open, generation_size, count, closed, symbol_size }, next_hop))
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

impl Part {
    /// Length on the air without the vector, bytes.
    const FIXED: usize = GenerationHeader::LEN + 1;

    fn write(&self, out: &mut Vec<u8>) {
        self.header.write(self.next_hop, out);
        let vector = without_trailing_zeros(&self.vector);
        Writer::new(out).u8(vector.len() as u8).bytes(vector);
    }

    fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (header, next_hop) = GenerationHeader::parse(r)?;
        let (width, full) = (usize::from(r.u8()?), usize::from(header.generation_size));
        if !(1..=full).contains(&width) {
            return Err(Malformed);
        }
        let mut vector = r.bytes(width)?.to_vec();
        vector.resize(full, 0);
        Ok(Self { header, next_hop, vector })
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

impl<'a> DataFrame<'a> {
    /// Length of what is neither a part nor payload, bytes.
    const FIXED: usize = 3;

    /// Returns how much of a frame with two flows of this generation size is not payload, bytes.
    pub(crate) fn overhead(generation_size: u8) -> usize {
        Self::FIXED + 2 * (Part::FIXED + usize::from(generation_size))
    }

    /// Appends the frame body to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let parts = 1 + u8::from(self.second.is_some());
        Writer::new(out).u16(self.serial).u8(parts);
        self.first.write(out);
        self.second.iter().for_each(|part| part.write(out));
        out.extend_from_slice(self.payload);
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`Malformed`] if a field is out of range, the payload is longer than its symbols, or a flow
    /// is combined with itself.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (serial, parts) = (r.u16()?, r.u8()?);
        let first = Part::parse(&mut r)?;
        let second = match parts {
            1 => None,
            2 => Some(Part::parse(&mut r)?),
            _ => return Err(Malformed),
        };
        let payload = r.rest();

        let symbol_size = |part: &Part| part.header.symbol_size;
        let longest = second.as_ref().map_or(0, symbol_size).max(symbol_size(&first));
        let same_flow = |part: &Part| part.header.id.flow.key() == first.header.id.flow.key();
        if payload.len() > usize::from(longest) || second.as_ref().is_some_and(same_flow) {
            return Err(Malformed);
        }
        Ok(Self { serial, first, second, payload })
    }
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

impl CountFrame {
    /// Appends the frame body to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).u16(self.serial).u16(self.number).u8(u8::from(self.again));
        self.header.write(self.next_hop, out);
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`Malformed`] if a field is out of range or bytes follow.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (serial, number, again) = (r.u16()?, r.u16()?, r.u8()?);
        let (header, next_hop) = GenerationHeader::parse(&mut r)?;
        if r.remaining() > 0 || again > 1 {
            return Err(Malformed);
        }
        Ok(Self { serial, number, again: again == 1, header, next_hop })
    }
}

// ---- feedback

/// Asks the previous hop for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Send nothing more: this node has full rank, but the destination lacks packets.
    Stop,
    /// Send more packets.
    More,
    /// Go on with the next generation: the destination has this one.
    NextGeneration,
}

/// How well a node hears one transmitter: data frames received, out of those sent (6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkReport {
    pub transmitter: NodeId,
    pub received: u16,
    pub sent: u16,
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

    /// Appends the frame body to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.id.flow.write(out);
        let mut w = Writer::new(out);
        w.node(self.to).u32(self.id.number).u16(self.number).u8(self.request as u8);
        w.u8(self.missing_alone).u8(self.missing_combined).u16(self.progress);
        w.u8(self.missing_numbers.len() as u8).bytes(&self.missing_numbers);
        w.u8(self.links.len() as u8);
        for link in &self.links {
            w.node(link.transmitter).u16(link.received).u16(link.sent);
        }
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`Malformed`] if a field is out of range, bytes follow, or more frames were received over a
    /// link than sent.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let flow = FlowInstance::parse(&mut r)?;
        let (to, generation, number) = (r.node()?, r.u32()?, r.u16()?);
        let request = match r.u8()? {
            0 => Request::Stop,
            1 => Request::More,
            2 => Request::NextGeneration,
            _ => return Err(Malformed),
        };
        let (missing_alone, missing_combined, progress) = (r.u8()?, r.u8()?, r.u16()?);

        let numbers = r.u8()?;
        if numbers > MAX_GENERATION_SIZE {
            return Err(Malformed);
        }
        let missing_numbers = r.bytes(usize::from(numbers))?.to_vec();

        let transmitters = r.u8()?;
        if usize::from(transmitters) > MAX_LINK_REPORTS {
            return Err(Malformed);
        }
        let mut links = Vec::new();
        for _ in 0..transmitters {
            let (transmitter, received, sent) = (r.node()?, r.u16()?, r.u16()?);
            links.push(LinkReport { transmitter, received, sent });
        }

        let plausible = links.iter().all(|link| link.received <= link.sent);
        if r.remaining() > 0 || !plausible {
            return Err(Malformed);
        }
        let id = GenerationId { flow, number: generation };
        Ok(Self {
            id,
            to,
            number,
            request,
            missing_alone,
            missing_combined,
            progress,
            missing_numbers,
            links,
        })
    }
}

/// Feedback on its way over other nodes, because the previous hop does not hear its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelayedFeedback {
    /// Node that passes it on, or is answered.
    pub next_hop: NodeId,
    /// Node that says so.
    pub author: NodeId,
    pub feedback: FeedbackFrame,
}

impl RelayedFeedback {
    /// Appends the frame body to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).node(self.next_hop).node(self.author);
        self.feedback.write(out);
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`Malformed`] as [`FeedbackFrame::parse`], and if a node answers itself.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let (next_hop, author) = (r.node()?, r.node()?);
        let feedback = FeedbackFrame::parse(r.rest())?;
        if author == feedback.to {
            return Err(Malformed);
        }
        Ok(Self { next_hop, author, feedback })
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
    Some(Summary { flow, batch: Some(id.number), ..Summary::new(name, what) })
}
