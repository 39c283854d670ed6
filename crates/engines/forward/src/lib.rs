//! Plain forwarding, the baseline of all tunnel schemes: packets as they are, hop by hop.
//!
//! Each node sends a packet to the neighbour on the shortest path to the destination, by unicast.
//! The MAC repeats the frame until the neighbour acknowledges it, or gives the packet up: then it
//! is lost. Paths are shortest by ETX, 1/(d_f d_r) for each hop (De Couto, Aguayo, Bicket, Morris,
//! MobiCom 2003). Each node chooses the next hop by the link state it has at the moment of sending,
//! so a hop limit ends loops between nodes that disagree for a while.
//!
//! Link state measures with short frames. A link over which the MAC gives up packet after packet,
//! although link state promises that they arrive, is avoided for a while (`detour`).
//!
//! A relay whose queue fills up asks the nodes before it to wait (hop-by-hop back-pressure), so
//! that a source does not take the channel from those who carry its packets. Unicast frames are
//! not overheard on Linux, so a frame of its own says so.

mod config;
mod detour;
mod frame;

#[cfg(test)]
mod tests;

pub use config::ForwardConfig;
use detour::Detour;
use frame::{Header, QUEUE, Queue};
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::toolkit::flow_counters::FlowCounters;
use ncmesh_engine::toolkit::has_enough;
use ncmesh_engine::toolkit::hop::passing::outcome;
use ncmesh_engine::tunnel::{DATA, FlowStatus, PacketError, check_packet, flow_of};
use ncmesh_engine::{
    At, Class, Context, Engine, Event, Filled, Frame, Offer, PerPort, Summary, TunnelEngine,
    TxReport, TxResult,
};
use ncmesh_wire::{NodeId, ServiceId};
use std::collections::{BTreeMap, VecDeque};

/// Name of the scheme.
pub const NAME: &str = "forward";
/// Service byte of its frames.
pub const ID: ServiceId = ServiceId(20);

/// Row of this scheme in a program's registry.
pub const FORWARD: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "packets as they are, hop by hop along the shortest path by unicast",
    paper: "none; paths as De Couto, Aguayo, Bicket, Morris (MobiCom 2003)",
    settings: ForwardConfig::settings,
    layouts: frame::LAYOUTS,
    read: |_, kind, body| summary(kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: ForwardConfig = settings.parse()?;
        Ok(Box::new(Forward::new(config)))
    }),
};

/// Most hops of a packet. Nodes that disagree about paths for a while send packets in circles.
const MAX_HOPS: u8 = 64;
/// Longest time for which a node asks others to wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A packet in the queue of a node.
#[derive(Debug)]
struct Packet {
    source: NodeId,
    destination: NodeId,
    /// Hops that it may still go.
    hops_left: u8,
    bytes: Vec<u8>,
    /// Next hop, as link state was at the last look.
    next: NodeId,
}

impl Packet {
    /// Returns whether the packet comes from the application at this node. Packets that other nodes
    /// sent have fewer hops left.
    fn is_own(&self) -> bool {
        self.hops_left == MAX_HOPS
    }
}

/// The engine at one node.
pub struct Forward {
    config: ForwardConfig,
    queue: VecDeque<Packet>,
    /// Packet at the MAC of each port, whose report is still to come.
    on_air: PerPort<Option<Packet>>,
    /// Next hops that asked to wait, and until when.
    paused: BTreeMap<NodeId, Instant>,
    detour: Detour,
    /// Whether the nodes before this one are to be told that its queue is full, or that there is
    /// room again.
    tell: Option<bool>,
    /// Whether it told last that its queue is full, and the packets that came since.
    told_full: bool,
    came: usize,
    /// Time that a packet takes, from the one before it to its report; since when the next takes.
    takes: DurationAverage,
    busy_since: PerPort<Option<Instant>>,
    counters: FlowCounters,
}

impl Forward {
    /// Returns an engine with these settings.
    #[must_use]
    pub fn new(config: ForwardConfig) -> Self {
        Self {
            config,
            queue: VecDeque::new(),
            on_air: PerPort::default(),
            paused: BTreeMap::new(),
            detour: Detour::default(),
            tell: None,
            told_full: false,
            came: 0,
            takes: DurationAverage::default(),
            busy_since: PerPort::default(),
            counters: FlowCounters::default(),
        }
    }

    // ---- back-pressure

    /// Returns how many packets of other nodes wait here.
    fn relayed(&self) -> usize {
        self.queue.iter().filter(|packet| !packet.is_own()).count()
    }

    /// Returns how many packets of other nodes may wait here before those are asked to wait. There
    /// is room again with half as many.
    fn full(&self) -> usize {
        (self.config.queue * 3 / 8).max(1)
    }

    /// Notes that a packet of another node came, and asks to wait if too many are here. What was
    /// asked may have been lost, so it is asked again while packets come.
    fn note_came(&mut self) {
        self.came += 1;

        // It is told again after a while, for the frame that told it may be lost.
        let is_news = !self.told_full || self.came > self.full() / 3;
        if self.relayed() >= self.full() && is_news {
            self.tell = Some(true);
        }
    }

    /// Notes that a packet left the queue.
    fn note_left(&mut self) {
        if self.told_full && self.relayed() <= self.full() / 2 {
            self.tell = Some(false);
        }
    }

    /// Returns what to tell the nodes before this one: how long to wait until there is room.
    fn pause(&mut self, is_full: bool) -> Queue {
        self.told_full = is_full;
        self.came = 0;

        // It waits until the packets above the lower mark have left, at the pace of the last ones.
        let over = self.relayed().saturating_sub(self.full() / 2);
        let time = self.takes.value().mul_f64(over as f64).min(LONGEST_PAUSE);
        Queue { pause: if is_full { time } else { Duration::ZERO } }
    }

    /// Waits as a next hop asks.
    fn handle_queue(&mut self, cx: &Context<'_>, sender: NodeId, asked: Queue) {
        self.paused.retain(|_, until| cx.now < *until);

        // Only a node that sends through it need remember that it is full.
        let mut packets = self.queue.iter().chain(self.on_air.values().flatten());
        if packets.any(|packet| packet.next == sender) {
            self.paused.insert(sender, cx.now + asked.pause.min(LONGEST_PAUSE));
        }
    }

    /// Returns the position of the packet to send next by a port: the first one whose next hop has
    /// room. The destination always has.
    fn next(&self, now: Instant, at: At<'_>) -> Option<usize> {
        let has_room = |node| self.paused.get(&node).is_none_or(|until| *until <= now);
        let is_ready = |packet: &Packet| packet.next == packet.destination || has_room(packet.next);
        self.queue.iter().position(|packet| at.reaches(packet.next) && is_ready(packet))
    }

    // ---- packets

    /// Finds the next hops anew. Paths may have vanished while packets were queued.
    fn route(&mut self, cx: &Context<'_>) {
        self.queue.retain_mut(|packet| {
            // A packet without any path is dropped: it would wait for ever.
            let next = self.detour.next_hop(cx, packet.destination);
            packet.next = next.unwrap_or(packet.next);
            if next.is_none() {
                self.counters.lost(packet.source, packet.destination);
            }
            next.is_some()
        });
    }

    /// Delivers a packet that has arrived, or queues it for its next hop.
    fn handle_data(&mut self, cx: &mut Context<'_>, header: Header, bytes: &[u8]) {
        if header.next != cx.me {
            return;
        }

        let Header { source, destination, .. } = header;
        // Every packet for this node is new to it: the MAC drops copies.
        self.counters.heard(source, destination, true);
        cx.counters.note_payload(true);

        if destination == cx.me {
            self.counters.delivered(source, destination, bytes.len());
            cx.events.push_back(Event::Packet { from: source, packet: bytes.to_vec() });
            return;
        }

        // A queue that is full drops the newest packet (drop-tail).
        let hops_left = header.hops_left - 1;
        let reason = match hops_left {
            0 => Some(DropReason::Stale),
            _ => (self.queue.len() >= self.config.queue).then_some(DropReason::Full),
        };
        self.note_came();
        match (self.detour.next_hop(cx, destination), reason) {
            (Some(next), None) => {
                let bytes = bytes.to_vec();
                self.queue.push_back(Packet { source, destination, hops_left, bytes, next });
            }
            (_, reason) => {
                reason.into_iter().for_each(|reason| cx.counters.drop(reason));
                self.counters.lost(source, destination);
            }
        }
    }
}

impl Engine for Forward {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match frame.kind {
            DATA => match Header::parse(frame.body) {
                Ok((header, bytes)) => self.handle_data(cx, header, bytes),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            QUEUE => match Queue::parse(frame.body) {
                Ok(asked) => self.handle_queue(cx, frame.sender, asked),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            _ => cx.counters.drop(DropReason::Malformed),
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.route(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let waits = !self.queue.is_empty();
        self.paused.values().copied().filter(|at| waits && *at > after).min()
    }

    fn serves_ports(&self) -> bool {
        true
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        self.offer_at(now, At::ONLY)
    }

    fn offer_at(&self, now: Instant, at: At<'_>) -> Option<Offer> {
        if self.tell.is_some() {
            return Some(Offer::of(Class::Control));
        }
        self.next(now, at).map(|_| Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let port = cx.at.port;
        self.on_air[port] = None;

        // Back-pressure first: until they hear it, the previous hops fill the queue further.
        if let Some(is_full) = self.tell.take() {
            self.pause(is_full).write(out);
            return Some(Filled { kind: QUEUE, to: None });
        }

        self.route(cx);
        let packet = self.queue.remove(self.next(cx.now, cx.at)?)?;
        let Packet { source, destination, hops_left, next, .. } = packet;
        Header { next, source, destination, hops_left }.write(out);
        out.extend_from_slice(&packet.bytes);

        // The report of the MAC tells when it has left, or that it was given up.
        self.on_air[port] = Some(packet);
        self.busy_since[port].get_or_insert(cx.now);
        self.note_left();
        cx.counters.note_filled(Payload::Native);
        Some(Filled { kind: DATA, to: Some(next) })
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let port = cx.at.port;
        let Some(packet) = self.on_air[port].take() else { return };
        if let Some(since) = self.busy_since[port] {
            self.takes.add(cx.now.since(since));
        }
        self.busy_since[port] = (!self.queue.is_empty()).then_some(cx.now);

        // A next hop to which packet after packet is given up is avoided.
        let result = outcome(cx.topology, cx.me, packet.next, report.result);
        if result == TxResult::Failed {
            self.counters.lost(packet.source, packet.destination);
        }
        self.detour.note_sent(cx, packet.next, result);
    }
}

impl TunnelEngine for Forward {
    fn longest(&self, mtu: usize) -> usize {
        mtu - Header::LEN
    }

    fn can_send(&self, _: NodeId) -> bool {
        self.queue.len() < self.config.queue
    }

    fn below_low_watermark(&self, to: NodeId) -> bool {
        let own = self.queue.iter().filter(|packet| packet.is_own());
        self.can_send(to) && !has_enough(own)
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

        // A path is needed now: a packet without one would only be dropped from the queue later.
        let next = self.detour.next_hop(cx, to).ok_or(PacketError::NoPath(to))?;
        let source = cx.me;
        let destination = to;
        let bytes = packet.to_vec();

        self.counters.begin(source, destination);
        self.queue.push_back(Packet { source, destination, hops_left: MAX_HOPS, bytes, next });
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        self.counters.statuses(|source, destination| {
            let ends = |packet: &Packet| (packet.source, packet.destination);
            let queued = self.queue.iter().filter(|p| ends(p) == (source, destination));
            queued.count() as u64
        })
    }
}

/// Summarises a frame for traces; `None` if it is malformed.
fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    match kind {
        DATA => {
            let (header, _) = Header::parse(body).ok()?;
            let flow = Some(flow_of(header.source, header.destination));
            Some(Summary { flow, ..Summary::new(NAME, "data") })
        }
        QUEUE => Queue::parse(body).ok().map(|_| Summary::new(NAME, "queue")),
        _ => None,
    }
}
