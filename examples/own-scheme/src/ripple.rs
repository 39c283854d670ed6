//! A stream scheme: in *ripple* every node sends each packet of a stream on, once. It is from no
//! paper. Announcements, groups and counts are the toolkit's.

use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::stream::{
    LAYERS, NewStream, Sending, StreamError, StreamPacketError, StreamStatus, UtilityConfig,
};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::live::{
    ANNOUNCEMENT, Arrival, Branch, Live, Part, Receiver, Streams, Untimed, minimum_bps,
};
use ncmesh_engine::transmission::DATA;
use ncmesh_engine::{
    Class, Context, Engine, Filled, Frame, Offer, StreamEngine, Summary, TxReport,
};
use ncmesh_wire::layout::Layout;
use ncmesh_wire::record::field;
use ncmesh_wire::{FlowId, NodeId, Record, ServiceId, Writer, record};
use std::collections::VecDeque;

ncmesh_engine::settings! {
    /// `[ripple]` in `node.toml`, `[protocol.ripple]` in a scenario.
    #[derive(Clone, Debug, PartialEq)]
    struct RippleConfig {
        /// Packets that may wait at a node.
        queue: usize = 64, within 1..=1000, unit "packets";
    }
}

record! {
    /// Everything in a data frame before its packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Header {
        /// the stream
        flow: FlowId = field("flow", "Flow"),
        /// 0 is the base
        layer: u8 = field("stream.layer", "Layer").within(0, LAYERS as u64 - 1),
        /// numbers the layer's packets
        number: u32 = field("stream.sequence", "Sequence"),
    }
}

record! {
    /// A data frame.
    struct Data<'a> {
        header: Header,
        packet: &'a [u8] = field("packet.bytes", "Packet").rest(1, usize::MAX),
    }
}

/// Packets of a stream that a node remembers, to know copies.
const REMEMBERED: usize = 1024;

/// A stream at one node.
struct Session {
    part: Part<Self>,
    /// Number of the next packet of each layer, at the source.
    next: [u32; LAYERS],
    /// The last packets heard: layer, number.
    heard: VecDeque<(u8, u32)>,
    /// The neighbour that the last new packet came from.
    parent: Option<NodeId>,
}

/// A neighbour that gets a stream from here in particular: in a flood there is none.
enum NoChild {}

impl Branch for NoChild {
    fn receivers(&self) -> u32 {
        match *self {}
    }
}

impl Live for Session {
    type Terms = ();
    type Source = Sending;
    type Receiver = Receiver;
    type Child = NoChild;

    fn new(part: Part<Self>, _: Instant) -> Self {
        Self { part, next: [0; LAYERS], heard: VecDeque::new(), parent: None }
    }

    fn part(&self) -> &Part<Self> {
        &self.part
    }

    fn part_mut(&mut self) -> &mut Part<Self> {
        &mut self.part
    }

    fn entered(&self) -> Vec<u32> {
        self.next.to_vec()
    }
}

impl Session {
    /// Returns whether a packet is heard for the first time.
    fn note_heard(&mut self, header: &Header) -> bool {
        let packet = (header.layer, header.number);
        if self.heard.contains(&packet) {
            return false;
        }
        if self.heard.len() >= REMEMBERED {
            self.heard.pop_front();
        }
        self.heard.push_back(packet);
        true
    }

    fn status(&self) -> StreamStatus {
        let receiving = self.part.receiver.as_ref().map(|receiver| receiver.status(self.parent));
        self.part.status(self.parent, self.part.source.clone(), receiving, Vec::new())
    }
}

/// The engine at one node.
struct Ripple {
    config: RippleConfig,
    /// Its streams, and the groups that it joined, each with its minimum rate, bit/s.
    streams: Streams<Session, f64>,
    queue: VecDeque<(Header, Vec<u8>)>,
}

impl Ripple {
    fn new(config: RippleConfig) -> Self {
        Self { config, streams: Streams::default(), queue: VecDeque::new() }
    }

    fn push(&mut self, cx: &mut Context<'_>, header: Header, packet: &[u8]) {
        if self.queue.len() < self.config.queue {
            self.queue.push_back((header, packet.to_vec()));
        } else {
            cx.counters.drop(DropReason::Full);
        }
    }

    fn start_receiving(&mut self, flow: FlowId) {
        self.streams.start_receiving(flow, |minimum_bps| Receiver::new(*minimum_bps));
    }

    fn handle_data(&mut self, cx: &mut Context<'_>, sender: NodeId, data: &Data<'_>) {
        let Data { header, packet } = *data;
        let layer = usize::from(header.layer);
        let Some(session) = self.streams.known.get_mut(&header.flow) else {
            return cx.counters.drop(DropReason::UnknownFlow);
        };
        if layer >= session.part.layers.len() {
            return cx.counters.drop(DropReason::Malformed);
        }

        // The source hears its own packets again, from others.
        let is_new = session.part.source.is_none() && session.note_heard(&header);
        cx.counters.note_payload(is_new);
        if !is_new {
            return;
        }

        session.parent = Some(sender);
        if let Some(receiver) = &mut session.part.receiver {
            // No age is told, so delays are not known.
            let bytes = packet.len();
            let arrival = Arrival { layer, bytes, number: header.number, age: Duration::ZERO };
            receiver.receive(&arrival, cx.now);
            cx.events.push_back(session.part.event(layer, packet.to_vec()));
        }
        self.push(cx, header, packet);
    }
}

impl Engine for Ripple {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match frame.kind {
            DATA => match Data::from_body(frame.body) {
                Ok(data) => self.handle_data(cx, frame.sender, &data),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            ANNOUNCEMENT => match Untimed::from_body(frame.body) {
                Ok(heard) => {
                    let flow = heard.flow;
                    if self.streams.handle_announcement(cx, frame.sender, heard) {
                        self.start_receiving(flow);
                    }
                }
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            _ => cx.counters.drop(DropReason::Malformed),
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.streams.remove_silent(cx);
        self.streams.announce_again(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.streams.poll_timeout(after)
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        if self.streams.is_due(now) {
            return Some(Offer::of(Class::Control));
        }
        (!self.queue.is_empty()).then(|| Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        if let Some(filled) = self.streams.fill_announcement(cx, out) {
            return Some(filled);
        }
        let (header, packet) = self.queue.pop_front()?;
        Data { header, packet: &packet }.put(&mut Writer::new(out));
        cx.counters.note_filled(Payload::Native);
        Some(Filled { kind: DATA, to: None })
    }

    fn handle_tx_report(&mut self, _: &mut Context<'_>, _: TxReport) {}
}

impl StreamEngine for Ripple {
    fn longest(&self, mtu: usize) -> usize {
        mtu.saturating_sub(Header::LEN)
    }

    fn open(&mut self, cx: &mut Context<'_>, stream: NewStream<'_>) -> Result<FlowId, StreamError> {
        if stream.deadline.is_some() {
            return Err(StreamError::NoDeadlines);
        }
        self.streams.open(cx, stream, (), Sending::default())
    }

    fn close(&mut self, cx: &mut Context<'_>, group: &str) -> bool {
        self.streams.close(cx, group)
    }

    fn send(
        &mut self,
        cx: &mut Context<'_>,
        flow: FlowId,
        layer: usize,
        packet: &[u8],
    ) -> Result<(), StreamPacketError> {
        let longest = self.longest(cx.mtu);
        let session = self.streams.sending(flow, layer, packet.len(), |_| longest)?;
        let sending = session.part.source.as_mut().ok_or(StreamPacketError::Unknown)?;
        sending.packets[layer] += 1;

        // Numbers wrap, since a stream has no end.
        let number = session.next[layer];
        session.next[layer] = number.wrapping_add(1);
        self.push(cx, Header { flow, layer: layer as u8, number }, packet);
        Ok(())
    }

    fn join(
        &mut self,
        _: &mut Context<'_>,
        group: &str,
        utility: UtilityConfig,
    ) -> Result<(), StreamError> {
        self.streams.join(group, minimum_bps(&utility)?)?;

        // Streams that are known already begin at once, later ones when they are announced.
        let flows: Vec<FlowId> = self.streams.to(group).collect();
        flows.into_iter().for_each(|flow| self.start_receiving(flow));
        Ok(())
    }

    fn leave(&mut self, _: &mut Context<'_>, group: &str) -> bool {
        self.streams.leave(group).is_some()
    }

    fn groups(&self) -> Vec<String> {
        self.streams.joined.keys().cloned().collect()
    }

    fn streams(&self) -> Vec<StreamStatus> {
        let open = self.streams.known.values().filter(|session| !session.part.has_ended());
        open.map(Session::status).collect()
    }
}

const NAME: &str = "ripple";
const ID: ServiceId = ServiceId(202);

/// Row of this scheme in a program's registry.
pub(crate) const RIPPLE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "an example: every node sends each packet of a stream on, once",
    paper: "none",
    settings: RippleConfig::settings,
    layouts: &[
        Layout::of::<Data<'_>>(
            DATA,
            "data",
            "{flow} layer {stream.layer}, packet {stream.sequence}",
        ),
        Layout::of::<Untimed>(
            ANNOUNCEMENT,
            "announcement",
            "{flow} to group {stream.group}, {stream.layers} layers",
        ),
    ],
    read: |_, kind, body| {
        let summary = |flow, what| Summary { flow: Some(flow), ..Summary::new(NAME, what) };
        match kind {
            DATA => Some(summary(Data::from_body(body).ok()?.header.flow, "data")),
            ANNOUNCEMENT => Some(summary(Untimed::from_body(body).ok()?.flow, "announcement")),
            _ => None,
        }
    },
    build: Constructor::Stream(|settings| Ok(Box::new(Ripple::new(settings.parse()?)))),
};
