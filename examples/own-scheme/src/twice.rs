//! A tunnel scheme: *twice* sends each packet two times at each hop, by broadcast, and asks nobody
//! whether it arrived. It is from no paper.

use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::rng::unit;
use ncmesh_engine::settings::Section;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::flow_counters::FlowCounters;
use ncmesh_engine::topology::Metric;
use ncmesh_engine::tunnel::{DATA, FlowStatus, PacketError, check_packet, flow_of};
use ncmesh_engine::{
    Class, Context, Engine, Event, Filled, Frame, Offer, Summary, TunnelEngine, TxReport,
};
use ncmesh_wire::layout::Layout;
use ncmesh_wire::record::field;
use ncmesh_wire::{NodeId, Record, ServiceId, Writer, record};
use std::collections::VecDeque;

ncmesh_engine::settings! {
    /// `[twice]` in `node.toml`, `[protocol.twice]` in a scenario.
    #[derive(Clone, Debug, PartialEq)]
    struct TwiceConfig {
        /// Times that a node sends each packet.
        copies: u8 = 2, within 1..=8, unit "frames";
        /// Packets that may wait at a node.
        queue: usize = 32, within 1..=1000, unit "packets";
    }
}

record! {
    /// Everything in a data frame before its packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Header {
        /// the node that is to send it on, or is its destination
        next: NodeId = field("next_hop", "Next hop"),
        /// where it comes from
        source: NodeId = field("packet.source", "Source"),
        /// where it goes
        destination: NodeId = field("packet.destination", "Destination"),
        check differ(source, destination),
        /// tells it apart from the packets of its source before it
        number: u16 = field("packet.sequence", "Sequence"),
        /// hops that it may still go: nodes that disagree about paths send it in circles
        hops_left: u8 = field("packet.hops", "Hops left").at_least(1),
    }
}

record! {
    /// A data frame.
    struct Data<'a> {
        header: Header,
        packet: &'a [u8] = field("packet.bytes", "Packet").rest(1, usize::MAX),
    }
}

/// Most hops of a packet.
const MAX_HOPS: u8 = 64;
/// Longest pause before a copy. Two nodes that do not hear each other may send at the same pace,
/// and would lose all of their packets to each other.
const PAUSE: Duration = Duration::from_millis(8);
/// Packets that a node remembers, to know copies.
const REMEMBERED: usize = 256;

/// A packet that waits to be sent.
struct Waiting {
    header: Header,
    bytes: Vec<u8>,
    /// Copies that are still to be sent, and when the next one is due.
    copies: u8,
    due: Instant,
}

/// The engine at one node.
struct Twice {
    config: TwiceConfig,
    queue: VecDeque<Waiting>,
    /// The last packets heard: source, destination, number.
    heard: VecDeque<(NodeId, NodeId, u16)>,
    /// Number of this node's next packet.
    number: u16,
    counters: FlowCounters,
}

impl Twice {
    fn new(config: TwiceConfig) -> Self {
        Self {
            config,
            queue: VecDeque::new(),
            heard: VecDeque::new(),
            number: 0,
            counters: FlowCounters::default(),
        }
    }

    /// Returns whether a packet is heard for the first time.
    fn note_heard(&mut self, header: &Header) -> bool {
        let packet = (header.source, header.destination, header.number);
        if self.heard.contains(&packet) {
            return false;
        }
        if self.heard.len() >= REMEMBERED {
            self.heard.pop_front();
        }
        self.heard.push_back(packet);
        true
    }

    fn push(&mut self, cx: &mut Context<'_>, header: Header, bytes: &[u8]) {
        let due = cx.now + PAUSE.mul_f64(unit(cx.rng));
        let copies = self.config.copies;
        self.queue.push_back(Waiting { header, bytes: bytes.to_vec(), copies, due });
    }

    /// Delivers a packet, or queues it for the next hop.
    fn handle_data(&mut self, cx: &mut Context<'_>, Data { header, packet }: Data<'_>) {
        if header.next != cx.me {
            return;
        }

        let Header { source, destination, .. } = header;
        let is_new = self.note_heard(&header);
        self.counters.heard(source, destination, is_new);
        cx.counters.note_payload(is_new);
        if !is_new {
            return;
        }

        if destination == cx.me {
            self.counters.delivered(source, destination, packet.len());
            cx.events.push_back(Event::Packet { from: source, packet: packet.to_vec() });
            return;
        }

        // It goes on if it may, and there is room.
        match header.hops_left - 1 {
            0 => cx.counters.drop(DropReason::Stale),
            _ if self.queue.len() >= self.config.queue => cx.counters.drop(DropReason::Full),
            hops_left => return self.push(cx, Header { hops_left, ..header }, packet),
        }
        self.counters.lost(source, destination);
    }
}

impl Engine for Twice {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match Data::from_body(frame.body) {
            Ok(data) if frame.kind == DATA => self.handle_data(cx, data),
            _ => cx.counters.drop(DropReason::Malformed),
        }
    }

    fn handle_timeout(&mut self, _: &mut Context<'_>) {}

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.queue.front().map(|waiting| waiting.due).filter(|due| *due > after)
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let is_due = self.queue.front().is_some_and(|waiting| waiting.due <= now);
        is_due.then(|| Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let next_hop = |to| cx.topology.next_hop(cx.me, to, Metric::Broadcast);

        // Packets without a path are dropped: they would wait for ever.
        self.queue.retain(|Waiting { header, .. }| {
            let has_path = next_hop(header.destination).is_some();
            if !has_path {
                self.counters.lost(header.source, header.destination);
            }
            has_path
        });

        let waiting = self.queue.front_mut().filter(|waiting| waiting.due <= cx.now)?;
        let next = next_hop(waiting.header.destination)?;
        let header = Header { next, ..waiting.header };
        Data { header, packet: &waiting.bytes }.put(&mut Writer::new(out));
        cx.counters.note_filled(Payload::Native);

        waiting.due = cx.now + PAUSE.mul_f64(unit(cx.rng));
        waiting.copies -= 1;
        if waiting.copies == 0 {
            self.queue.pop_front();
        }
        Some(Filled { kind: DATA, to: None })
    }

    fn handle_tx_report(&mut self, _: &mut Context<'_>, _: TxReport) {}
}

impl TunnelEngine for Twice {
    fn longest(&self, mtu: usize) -> usize {
        mtu - Header::LEN
    }

    fn can_send(&self, _: NodeId) -> bool {
        self.queue.len() < self.config.queue
    }

    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        to: NodeId,
        packet: &[u8],
    ) -> Result<(), PacketError> {
        check_packet(cx.me, to, packet, self.longest(cx.mtu))?;
        if !self.can_send(to) {
            return Err(PacketError::Full);
        }
        let path = cx.topology.next_hop(cx.me, to, Metric::Broadcast);
        let next = path.ok_or(PacketError::NoPath(to))?;

        self.number = self.number.wrapping_add(1);
        self.counters.begin(cx.me, to);
        let header = Header {
            next,
            source: cx.me,
            destination: to,
            number: self.number,
            hops_left: MAX_HOPS,
        };
        self.push(cx, header, packet);
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        self.counters.statuses(|source, destination| {
            let ends = |waiting: &&Waiting| {
                (waiting.header.source, waiting.header.destination) == (source, destination)
            };
            self.queue.iter().filter(ends).count() as u64
        })
    }
}

const NAME: &str = "twice";
const ID: ServiceId = ServiceId(201);

/// Row of this scheme in a program's registry.
pub(crate) const TWICE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "an example: each packet two times at each hop, by broadcast",
    paper: "none",
    settings: TwiceConfig::settings,
    layouts: &[Layout::of::<Data<'_>>(
        DATA,
        "data",
        "{packet.source} to {packet.destination} by {next_hop}",
    )],
    read: |_, kind, body| {
        let Header { source, destination, .. } = Data::from_body(body).ok()?.header;
        let summary = Summary::new(NAME, "data");
        (kind == DATA).then(|| Summary { flow: Some(flow_of(source, destination)), ..summary })
    },
    build: Constructor::Tunnel(|settings| Ok(Box::new(Twice::new(settings.parse()?)))),
};
