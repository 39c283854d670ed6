//! Braid: packets over lossy hops, coded over a sliding window.
//!
//! Each node on the shortest path broadcasts what the next one lacks. Every frame says what its
//! sender has of the stream and how much waits there, so that a node which hears the next hop send
//! on knows what arrived, and when there is room:
//!
//! ```text
//!   source          relay           destination
//!     | packet 5      |                |
//!     |-------------->| packet 5       |
//!     |<- has to 5 ---|--------------->|
//!     | packet 6      |<- report ------|  has to 5
//!     |------- x      |                |
//!     | packet 7      |                |
//!     |-------------->| packet 7       |
//!     |<- lacks 6 ----|--------------->|
//!     | packet 6      |                |
//! ```
//!
//! - A packet goes as it is the first time, and again once it is known to be lost. While that is
//!   not known, a combination of all that may be lost makes up for any of them.
//! - There are no generations, so that nothing waits for one to fill: combinations span what the
//!   next hop lacks at the moment ([`ncmesh_code::Window`]).
//! - A node that overhears more than it was sent has that much less to get.
//! - One relay is enough: a node sends on while the way of the packets leads to it, and listens
//!   once it does not.
//! - Where the next hop has a few packets waiting, the node before it waits. Queues stay short, and
//!   back-pressure reaches the source.
//! - A report goes out where no packet says the same in time. If its way back is poor, it is sent
//!   several times, or over other nodes.
//! - A node that hears another one asked is silent for the answer if it would not hear that.
//! - A packet that goes alone goes by unicast: the MAC's acknowledgment is the answer.
//!
//! | module | what |
//! | --- | --- |
//! | `flow` | a flow at one node: what it has, and what it sends next |
//! | `next` | the kinds of frames that it chooses from |
//! | `child` | the next hop: what it has, and what should have arrived |
//! | `flight` | what is on its way there, and what its state says of that |
//! | `upstream` | when the node before this one is told |
//! | `route` | which node is the next hop |
//! | `hops` | which way packets go, as heard: whether this node is on it |
//! | `symbol` | what is in a symbol: packets, and whether they are of real-time traffic |
//! | `pairs` | which packets of two flows go in one frame |
//! | `traffic` | whether the flows leave the channel unused most of the time |
//! | `turns` | who sends, of nodes that do not hear each other |
//! | `frame` | frames |

mod child;
mod config;
mod flight;
mod flow;
mod frame;
mod hops;
mod next;
mod pairs;
mod route;
mod status;
mod symbol;
mod traffic;
mod turns;
mod upstream;

#[cfg(test)]
mod tests;

use child::{Child, Pace, Said};
pub use config::BraidConfig;
use flow::Flow;
use frame::{Header, PAIR, Pair, REPORT, Report};
use ncmesh_code::Coded;
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::bounded::{IDLE, MAX_FLOWS, make_room};
use ncmesh_engine::toolkit::coder::PREFIX;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::toolkit::flow_counters::FlowCounters;
use ncmesh_engine::toolkit::hop::passing::{Addresses, Passing, is_passed_on, outcome, way};
use ncmesh_engine::toolkit::hop::silence::Silence;
use ncmesh_engine::toolkit::hop::{AnswerSlot, PacketTime};
use ncmesh_engine::toolkit::precedence::Precedence;
use ncmesh_engine::topology::Metric;
use ncmesh_engine::tunnel::{CodingStatus, DATA, FlowStatus, PacketError, check_packet, flow_of};
use ncmesh_engine::{
    At, Class, Context, Engine, Filled, Frame, Malformed, Offer, PerPort, Port, Summary,
    TunnelEngine, TxReport, TxResult,
};
use ncmesh_wire::{NodeId, ServiceId};
use next::{Carriage, Next, Unicast};
use pairs::hears;
use std::collections::BTreeMap;
use traffic::Traffic;
use turns::{Turns, Used};
use upstream::Arrived;

/// Name of the scheme.
pub const NAME: &str = "braid";
/// Service byte of its frames.
pub const ID: ServiceId = ServiceId(27);

/// Row of this scheme in a program's registry.
pub const BRAID: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "packets over lossy hops, coded over a sliding window",
    paper: "none; see docs/internals/braid.md",
    settings: BraidConfig::settings,
    layouts: frame::LAYOUTS,
    read: |_, kind, body| summary(kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: BraidConfig = settings.parse()?;
        Ok(Box::new(Braid::new(config)))
    }),
};

/// Paths are shortest by the ETX of both directions: packets go one way, and what is heard of them
/// comes back. Where nothing does, reports go over other nodes.
const METRIC: Metric = Metric::Answered;
/// Packets of this node's own host that wait to be sent for the first time, at most. With one, the
/// channel idles whenever it is granted twice (half 0.53); more wait here instead of in the queues
/// of their connections, where they take turns (twice 1.00).
const READY: usize = 3;
/// Packets of its own host that a source keeps, at most. Bounds memory, and the time that a packet
/// waits for its next hop.
const MOST_OWN: usize = 48;
/// Time that is left to an answer, a short frame and the pause before it. With 0.6 at the least
/// those of a line of hidden ends collide again (0.96x). Without learning, TCP from a gateway
/// carries half as much in one of six runs. With 2 at the most, TCP carries 0.97x over meshes.
const ANSWER_SLOT: AnswerSlot =
    AnswerSlot { unlearned: 0.8, of_mean: 1.0, least: 0.8, longest: 1.2 };
/// Least chance that a unicast frame and its acknowledgment arrive in a quiet channel, for a packet
/// that goes alone while others want the channel. Over a poorer link the MAC's repetitions hold it
/// longer than a question by broadcast does: with 0.3, TCP carries 0.85x over two hops that lose
/// 0.4.
const LEAST_UNICAST: f64 = 0.5;
/// Time between two looks at packets that wait for too long. Shorter costs CPU, longer keeps them.
const TICK: Duration = Duration::from_millis(100);

/// Source and destination of a flow.
type Ends = (NodeId, NodeId);
/// Name of a report that is passed on: its flow, who wrote it, and who is to have it.
type PassingKey = (Ends, NodeId, NodeId);

/// The frame that is at the MAC of a port.
#[derive(Clone, Copy, Debug, Default)]
enum OnAir {
    #[default]
    Nothing,
    /// A packet of a flow, or one of a second flow with it.
    Data(Ends, Option<Ends>),
    /// A packet of a flow that goes alone, by unicast.
    Alone(Ends, u32),
    Passing(PassingKey),
}

/// The engine at one node.
pub struct Braid {
    config: BraidConfig,
    flows: BTreeMap<Ends, Flow>,
    passing: Passing<PassingKey, Report>,
    on_air: PerPort<OnAir>,
    /// Mean airtime of a data frame, by port.
    packet_time: PerPort<PacketTime>,
    counters: FlowCounters,
    coding: CodingStatus,
    /// Frames that forwarding would have sent for what the next hops got.
    forwarding: f64,
    /// When it sent a combination last, and a pair.
    combined_at: Option<Instant>,
    paired_at: Option<Instant>,
    /// Until when each port waits for packets to pair.
    hold_until: PerPort<Option<Instant>>,
    turns: Turns,
    /// Whether it leaves the channel of each port to frames of others.
    silence: PerPort<Silence>,
    /// The next hop that its last frame on each port asked, while that did not answer.
    asked: PerPort<Option<NodeId>>,
    /// Whether the MAC was seen to acknowledge unicast frames.
    mac_acknowledges: bool,
    traffic: Traffic,
    precedence: Precedence,
    /// Flows that this node began as their source.
    begun: u32,
    /// When it next looks at what waits for too long; `None` while there are no flows.
    tick_at: Option<Instant>,
}

impl Braid {
    /// Returns an engine with these settings.
    #[must_use]
    pub fn new(config: BraidConfig) -> Self {
        Self {
            config,
            flows: BTreeMap::new(),
            passing: Passing::default(),
            on_air: PerPort::default(),
            packet_time: PerPort::default(),
            counters: FlowCounters::default(),
            coding: CodingStatus::default(),
            forwarding: 0.0,
            combined_at: None,
            paired_at: None,
            hold_until: PerPort::default(),
            turns: Turns::default(),
            silence: PerPort::default(),
            asked: PerPort::default(),
            mac_acknowledges: false,
            traffic: Traffic::default(),
            precedence: Precedence::default(),
            begun: 0,
            tick_at: None,
        }
    }

    fn packet_time(&self, port: Port) -> Duration {
        self.packet_time[port].value()
    }

    fn begin(&mut self, cx: &Context<'_>, flow: Flow) {
        let id = flow.id;
        make_room(&mut self.flows, &id.key(), MAX_FLOWS, |flow| flow.heard_at);
        self.flows.insert(id.key(), flow);
        self.counters.begin(id.source, id.destination);
        self.tick_at.get_or_insert(cx.now + TICK);
    }

    /// Takes packets of two flows in one frame, as far as this node can separate them.
    fn handle_pair(&mut self, cx: &mut Context<'_>, sender: NodeId, pair: Pair) {
        let separated = [0, 1].map(|i: usize| {
            // One part is found if this node can make the packet of the other.
            let (header, coded) = &pair.parts[1 - i];
            let flow = self.flows.get(&header.flow.key()).filter(|flow| flow.id == header.flow)?;
            Some(pair.without(&flow.express(coded)?, i))
        });
        for ((header, _), coded) in pair.parts.into_iter().zip(separated) {
            if header.next_hop == cx.me && coded.is_some() {
                self.coding.decoded += 1;
            } else if header.next_hop == cx.me {
                self.coding.undecodable += 1;
                cx.counters.drop(DropReason::Undecodable);
            }
            self.handle_data(cx, sender, header, coded);
        }
    }

    /// Takes a data frame of one flow; `coded` is `None` if it only asks, or if its packet was not
    /// found out.
    fn handle_data(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        header: Header,
        coded: Option<Coded>,
    ) {
        let id = header.flow;
        let is_for_me = header.next_hop == cx.me;

        // Leave the channel to the turn, or to the answer, of a node that this one may not hear.
        self.heed_turn(cx, sender, id, header.state, None);
        if header.poll && !is_for_me && !hears(cx, cx.me, header.next_hop) {
            let until = self.answered_by(cx);
            self.silence[cx.at.port].leave_to_answer(until);
        }
        if !self.admit(cx, &header) {
            return;
        }
        let packet_time = self.packet_time(cx.at.port);
        let room = self.config.backlog;
        let Some(flow) = self.flows.get_mut(&id.key()) else { return };

        // Every frame says what its sender has. If that is the next hop, it answers this node.
        let said = Said { state: header.state, number: header.number, is_direct: true };
        match flow.hear(cx, sender, said, true, Pace { room, packet_time }) {
            Ok(frames) => self.forwarding += frames,
            Err(Malformed) => cx.counters.drop(DropReason::Malformed),
        }
        if flow.is_source() {
            return;
        }

        // A frame for this node makes it a relay. It tells of the previous hop: which of its frames
        // arrived, whether they collide, and which packets come no more.
        let mut used = None;
        if is_for_me {
            flow.take_part();
        }
        flow.note_way(cx.me, sender, header.next_hop, cx.now);
        if is_for_me {
            let frames = flow.upstream.frames_until(sender, header.number);
            used = Some(Used { node: sender, frames });
            flow.upstream.hear_parent(sender, said, cx.now);
            if header.state.collides {
                self.turns.note_collisions(cx.at.port, cx.now);
            }
            flow.note_oldest(header.oldest);
        }

        // The packet itself.
        let is_innovative = match coded.map(|coded| flow.absorb(coded, cx.now)) {
            Some(Some(is_innovative)) => is_innovative,
            Some(None) => return cx.counters.drop(DropReason::Full),
            None => false,
        };

        // The previous hop learns what is here by the next frame of this node, or by a report.
        if is_for_me {
            let is_heard = flow.is_heard_by(cx, sender);
            let sends = is_heard && flow.next(room, packet_time, cx.now).is_some();
            let packet = Arrived { is_innovative, polls: header.poll, is_heard };
            flow.upstream.note_packet(packet, sends, packet_time, cx.now);
        }

        // Consequences: another role, room again, packets for the host, the next turn.
        flow.leave_when_done();
        flow.note_room(room, cx.now);
        self.counters.heard(id.source, id.destination, is_innovative);
        cx.counters.note_payload(is_innovative);
        Self::hand_up(&mut self.counters, cx, flow);
        self.take_turns(cx, used);
    }

    /// Finds the flow of a data frame, or begins one: at its end, as its next hop, or to overhear
    /// it for pairs. Returns whether there is one.
    fn admit(&mut self, cx: &mut Context<'_>, header: &Header) -> bool {
        let id = header.flow;
        let is_for_me = header.next_hop == cx.me;
        let known = self.flows.get_mut(&id.key()).map(|flow| {
            // If every frame for seconds contradicts this node's state, that is wrong: it begins
            // again.
            let is_wrong =
                !flow.is_source() && is_for_me && flow.note_conflict(id, header.oldest, cx.now);
            (flow.id, is_wrong)
        });

        match known {
            Some((known, false)) if id == known => return true,
            Some((known, false)) if !id.is_later(known) => {
                cx.counters.drop(DropReason::Stale);
                return false;
            }
            _ if id.source == cx.me => {
                cx.counters.drop(DropReason::UnknownFlow);
                return false;
            }
            _ => {}
        }

        // A relay that sends packets to this node may pair them with those of this flow.
        let takes_part = is_for_me || id.destination == cx.me;
        let may_pair = self.flows.len() < MAX_FLOWS / 2 && self.is_fed_by(header.next_hop);
        if takes_part || may_pair {
            let mut flow = Flow::new(cx, id, header.oldest);
            // So that it has a next hop when it hears what that has.
            if takes_part {
                flow.take_part();
            }
            self.begin(cx, flow);
        }
        takes_part || may_pair
    }

    /// Hands up what is in order at the destination of a flow.
    fn hand_up(counters: &mut FlowCounters, cx: &mut Context<'_>, flow: &mut Flow) {
        let FlowInstance { source, destination, .. } = flow.id;
        if cx.me == destination {
            while let Some(packets) = flow.pop_packets(cx.now) {
                for packet in packets {
                    if !packet.is_empty() {
                        counters.delivered(source, destination, packet.len());
                    }
                    cx.hand_up(source, packet);
                }
            }
        }
        flow.forget();
    }

    fn handle_report(&mut self, cx: &mut Context<'_>, sender: NodeId, report: Report) {
        if report.child == cx.me {
            return cx.counters.drop(DropReason::Malformed);
        }
        self.heed_turn(cx, report.child, report.flow, report.state, Some(report.parent));
        let is_direct = sender == report.child;
        let said = Said { state: report.state, number: report.number, is_direct };
        let pace = Pace { room: self.config.backlog, packet_time: self.packet_time(cx.at.port) };
        let known = self.flows.get_mut(&report.flow.key());
        if let Some(flow) = known.filter(|flow| flow.id == report.flow) {
            match flow.hear(cx, report.child, said, false, pace) {
                Ok(frames) => self.forwarding += frames,
                Err(Malformed) => cx.counters.drop(DropReason::Malformed),
            }
        }
        let Report { child: author, next_hop, parent: to, .. } = report;
        if is_passed_on(cx.topology, cx.me, Addresses { author, next_hop, to }, METRIC) {
            let key = (report.flow.key(), report.child, report.parent);
            if !self.passing.admit(key, report, cx.now) {
                cx.counters.drop(DropReason::Full);
            }
        }
    }

    /// Returns whether a node sends this one packets of a flow.
    fn is_fed_by(&self, node: NodeId) -> bool {
        self.flows.values().any(|flow| flow.upstream.parent == Some(node))
    }

    /// Returns the flow of this node's own host to a node.
    fn own(&self, to: NodeId) -> Option<&Flow> {
        self.flows.values().find(|flow| flow.is_source() && flow.id.destination == to)
    }

    /// Returns the flow to serve next by a port, and what it sends.
    fn next(&self, now: Instant, at: At<'_>) -> Option<(Ends, Next)> {
        let is_held = self.hold_until[at.port].is_some_and(|until| now < until);
        if is_held && !self.has_two(now, at) {
            return None;
        }
        if self.turns.is_anothers(at.port, now) || now < self.silence[at.port].until() {
            return None;
        }

        // The flow that waited longest sends. Real-time traffic goes first where it has precedence,
        // else last, so that it keeps no flow out.
        let ready = self.ready(now, at).min_by_key(|(ends, flow, next)| {
            let is_urgent = flow.is_urgent(*next);
            let goes_first = is_urgent && self.precedence.is_given();
            (!goes_first, is_urgent, flow.sent_at, *ends)
        });
        ready.map(|(ends, _, next)| (ends, next))
    }

    /// Returns the flows that have something to send by a port, and what.
    fn ready(&self, now: Instant, at: At<'_>) -> impl Iterator<Item = (Ends, &Flow, Next)> {
        let packet_time = self.packet_time(at.port);
        let here = self.flows.iter().filter(move |(_, flow)| flow.goes_by(at));
        here.filter_map(move |(ends, flow)| {
            Some((*ends, flow, flow.next(self.config.backlog, packet_time, now)?))
        })
    }

    /// Notes what is sent, for the order of flows to come.
    fn note_precedence(&mut self, cx: &Context<'_>, ends: Ends, next: Next) {
        let is_urgent = self.flows.get(&ends).is_some_and(|flow| flow.is_urgent(next));
        let has_others = || self.ready(cx.now, cx.at).any(|(_, flow, next)| !flow.is_urgent(next));
        let overtakes = is_urgent && has_others();
        self.precedence.note(overtakes);
    }

    /// Makes a data frame of a flow, and notes that it tells what this node has of it. In a pair,
    /// the next hop separates it with this `chance`.
    fn part(
        &mut self,
        cx: &mut Context<'_>,
        ends: Ends,
        next: Next,
        chance: Option<f64>,
    ) -> Option<(Header, Coded)> {
        let packet_time = self.packet_time(cx.at.port);
        let flow = self.flows.get_mut(&ends)?;
        self.coding.repeated += u64::from(flow.repeats(next));
        let carriage = Carriage {
            // A pair is for two nodes, so it is broadcast.
            alone: chance.is_none().then_some(Unicast {
                least_chance: if self.traffic.is_quiet(packet_time) { 0.0 } else { LEAST_UNICAST },
                is_acknowledged: self.mac_acknowledges,
            }),
            prefers_unicast: flow.child.as_ref().is_some_and(|c| cx.at.prefers_unicast(c.node)),
        };
        let part = flow.fill(next, packet_time, carriage, cx.now, cx.rng)?;
        if let (Some(child), Some(chance)) = (&mut flow.child, chance) {
            child.note_paired(part.1.first, chance, cx.now);
        }
        // Where the way to the node before leads over another one, only reports take it, and a
        // unicast frame reaches the next hop alone.
        let parent = flow.upstream.parent;
        let parent =
            parent.filter(|parent| cx.at.reaches(*parent) && way_to(cx, *parent) == *parent);
        let is_heard = flow.alone.is_none() && !carriage.prefers_unicast;
        if let Some(parent) = parent.filter(|_| is_heard) {
            let delivery = cx.topology.delivery(cx.me, parent);
            flow.upstream.note_told(delivery, packet_time, cx.now);
        }
        flow.note_room(self.config.backlog, cx.now);
        Some(part)
    }

    /// Returns when an answer to a frame that was sent just now should be over.
    fn answered_by(&self, cx: &Context<'_>) -> Instant {
        // The slowest next hop may be the one that answers.
        let here = self.flows.values().filter(|flow| flow.goes_by(cx.at));
        let children = here.filter_map(|flow| flow.child.as_ref());
        let learned = children.map(Child::answer_time).max().unwrap_or_default();
        cx.now + ANSWER_SLOT.length(learned, self.packet_time(cx.at.port))
    }

    /// Takes what became of a packet that went alone.
    fn settle_alone(&mut self, cx: &Context<'_>, ends: Ends, packet: u32, result: TxResult) {
        let now = cx.now;
        let packet_time = self.packet_time(cx.at.port);
        self.mac_acknowledges = result != TxResult::Sent;
        // It went to another next hop if there is a new one.
        let flow = self.flows.get_mut(&ends).filter(|flow| flow.alone == Some(packet));
        let Some(flow) = flow else { return };
        match (result, &mut flow.child) {
            (TxResult::Acked, _) => self.forwarding += flow.acknowledge(packet, packet_time, now),
            (TxResult::Sent, Some(child)) => child.flight.note_sent(now),
            (TxResult::Failed, Some(child)) => child.fail(packet_time, now),
            (_, None) => {}
        }
    }

    /// Returns the flow of which this node is to report by a port, and to whom.
    fn reporting(&self, now: Instant, at: At<'_>) -> Option<(Ends, NodeId)> {
        self.flows.iter().find_map(|(ends, flow)| {
            let parent = flow.upstream.reports_to(now).filter(|parent| at.reaches(*parent))?;
            (!self.turns.is_before(parent, at.port, now)).then_some((*ends, parent))
        })
    }
}

/// Returns the next node on the way to a parent, which may not hear this one well.
fn way_to(cx: &Context<'_>, parent: NodeId) -> NodeId {
    way(cx.topology, cx.me, parent, METRIC)
}

impl Engine for Braid {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let packet_time = self.packet_time(cx.at.port);
        let port = cx.at.port;

        // Any frame ends the silence that was kept for an answer: the node asked has spoken.
        if self.asked[port].take_if(|asked| *asked == frame.sender).is_some() {
            self.silence[port].end_answer();
        }

        // If an answer of it is missing, now is the time to ask again.
        let children = self.flows.values_mut().filter_map(|flow| flow.child.as_mut());
        for child in children.filter(|child| child.node == frame.sender) {
            child.hear_elsewhere(packet_time, cx.now);
        }

        if matches!(frame.kind, DATA | PAIR) {
            self.traffic.note_frame(packet_time, cx.now);
        }

        match frame.kind {
            DATA => match Header::parse(frame.body) {
                Ok((header, coded)) => {
                    let coded = Some(coded).filter(|coded| !coded.symbol.is_empty());
                    self.handle_data(cx, frame.sender, header, coded);
                }
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            PAIR => match Pair::parse(frame.body) {
                Ok(pair) => self.handle_pair(cx, frame.sender, pair),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            REPORT => match Report::parse(frame.body) {
                Ok(report) => self.handle_report(cx, frame.sender, report),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            _ => cx.counters.drop(DropReason::Malformed),
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        for flow in self.flows.values_mut() {
            Self::hand_up(&mut self.counters, cx, flow);
        }
        self.take_turns(cx, None);
        if self.tick_at.is_some_and(|at| at <= cx.now) {
            self.flows.retain(|_, flow| cx.now.since(flow.heard_at.max(flow.sent_at)) < IDLE);
            for (ends, flow) in &mut self.flows {
                flow.route(cx);
                for _ in 0..flow.expire(self.config.deadline(), cx.now) {
                    self.counters.lost(ends.0, ends.1);
                }
            }
            self.tick_at = (!self.flows.is_empty()).then_some(cx.now + TICK);
        }
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let flows = self.flows.values();
        let packet_time = |flow: &Flow| {
            self.packet_time(flow.child.as_ref().map_or(Port::FIRST, |child| child.port))
        };
        let flows = flows.flat_map(|f| f.timeouts(self.config.backlog, packet_time(f)));
        let passing = self.passing.poll_timeout(after);
        let holds = self.hold_until.values().flatten().copied();
        let silences = self.silence.values().map(Silence::until);
        let own = holds.chain(silences).chain(self.tick_at).chain(self.turns.until());
        flows.chain(passing).chain(own).filter(|at| *at > after).min()
    }

    fn serves_ports(&self) -> bool {
        true
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        self.offer_at(now, At::ONLY)
    }

    fn offer_at(&self, now: Instant, at: At<'_>) -> Option<Offer> {
        if self.reporting(now, at).is_some() || self.passing.due(now).is_some() {
            return Some(Offer::of(Class::Control).local());
        }
        self.next(now, at).map(|_| Offer::of(Class::Data).local())
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let packet_time = self.packet_time(cx.at.port);
        let port = cx.at.port;
        self.on_air[port] = OnAir::Nothing;
        if let Some((ends, parent)) = self.reporting(cx.now, cx.at) {
            let next_hop = way_to(cx, parent);
            let flow = self.flows.get_mut(&ends)?;
            let number = flow.next_number();
            let state = flow.state(cx.now);
            let delivery = cx.topology.delivery(cx.me, next_hop);
            flow.upstream.note_told(delivery, packet_time, cx.now);
            Report { flow: flow.id, next_hop, parent, child: cx.me, number, state }.write(out);
            // A broadcast would not leave this port, so a next hop elsewhere gets it by unicast.
            let by_unicast = !cx.at.reaches(next_hop) || cx.at.prefers_unicast(next_hop);
            let to = by_unicast.then_some(next_hop);
            return Some(Filled { kind: REPORT, to });
        }
        if let Some((key, report)) = self.passing.due(cx.now) {
            let next_hop = way_to(cx, report.parent);
            Report { next_hop, ..*report }.write(out);
            self.passing.note_sent(key, cx.now);
            self.on_air[port] = OnAir::Passing(key);
            return Some(Filled { kind: REPORT, to: Some(next_hop) });
        }
        let (ends, next) = self.next(cx.now, cx.at)?;
        self.note_precedence(cx, ends, next);
        self.traffic.note_frame(packet_time, cx.now);
        let partner = self.partner(cx, ends, next);
        let mut one = self.part(cx, ends, next, partner.map(|(.., [chance, _])| chance))?;
        let mut other = partner.and_then(|(ends, next, [_, chance])| {
            Some((ends, self.part(cx, ends, next, Some(chance))?))
        });
        self.note_own_frame(cx, &[ends, other.as_ref().map_or(ends, |(ends, _)| *ends)]);
        one.0.state.turn = self.flows.get(&ends)?.upstream.turn;
        if let Some((ends, other)) = &mut other {
            other.0.state.turn = self.flows.get(ends)?.upstream.turn;
        }
        let awaits = !self.turns.are_on() && self.awaits_another(cx, ends);
        self.hold_until[port] = awaits.then(|| cx.now + packet_time.mul_f64(pairs::HOLD));
        if next == Next::Repair {
            self.combined_at = Some(cx.now);
        }
        let alone = self.flows.get(&ends).and_then(|flow| flow.alone);
        if next != Next::Ask {
            self.coding.sent += 1;
            self.on_air[port] = match alone {
                Some(packet) => OnAir::Alone(ends, packet),
                None => OnAir::Data(ends, other.as_ref().map(|(ends, _)| *ends)),
            };
        }
        self.asked[port] = Some(one.0.next_hop).filter(|_| one.0.poll);
        let is_coded = other.is_some() || next == Next::Repair;
        if next != Next::Ask {
            cx.counters.note_filled(if is_coded { Payload::Coded } else { Payload::Native });
        }
        let Some((_, other)) = other else {
            one.0.write(&one.1, out);
            let next_hop = one.0.next_hop;
            let by_unicast = alone.is_some() || cx.at.prefers_unicast(next_hop);
            return Some(Filled { kind: DATA, to: by_unicast.then_some(next_hop) });
        };
        self.coding.coded += 1;
        self.paired_at = Some(cx.now);
        Pair::of([one, other]).write(out);
        Some(Filled { kind: PAIR, to: None })
    }

    fn silent_until(&self) -> Instant {
        let silences = self.silence.values().map(Silence::until);
        silences.fold(self.turns.others_until(), Instant::max)
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let port = cx.at.port;
        match core::mem::take(&mut self.on_air[port]) {
            OnAir::Nothing => {}
            OnAir::Passing(key) => {
                let result = outcome(cx.topology, cx.me, way_to(cx, key.2), report.result);
                self.passing.handle_tx_result(key, result, cx.now);
            }
            OnAir::Alone(ends, packet) => self.settle_alone(cx, ends, packet, report.result),
            OnAir::Data(ends, other) => {
                self.packet_time[port].add(report.airtime);
                let packet_time = self.packet_time(cx.at.port);

                // The answer must not meet packets of a previous hop that does not hear it.
                if self.asked[port].is_some_and(|next_hop| self.is_fed_by_hidden(cx, next_hop)) {
                    let until = self.answered_by(cx);
                    self.silence[port].leave_to_answer(until);
                }

                for ends in [Some(ends), other].into_iter().flatten() {
                    if let Some(flow) = self.flows.get_mut(&ends) {
                        if let Some(child) = &mut flow.child {
                            child.flight.note_sent(cx.now);
                        }
                        flow.ease(packet_time, cx.now, cx.rng);
                    }
                }
            }
        }
    }
}

impl TunnelEngine for Braid {
    fn longest(&self, mtu: usize) -> usize {
        mtu - Header::LEN - PREFIX - usize::from(frame::WIDTH - 1)
    }

    fn can_send(&self, to: NodeId) -> bool {
        self.own(to).is_none_or(|flow| flow.kept() < MOST_OWN)
    }

    fn below_low_watermark(&self, to: NodeId) -> bool {
        self.can_send(to)
            && self.own(to).is_none_or(|flow| flow.unsent().take(READY).count() < READY)
    }

    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        to: NodeId,
        packet: &[u8],
    ) -> Result<(), PacketError> {
        let longest = self.longest(cx.mtu);
        check_packet(cx.me, to, packet, longest)?;

        if cx.topology.next_hop(cx.me, to, METRIC).is_none() {
            return Err(PacketError::NoPath(to));
        }

        if !self.can_send(to) {
            return Err(PacketError::Full);
        }

        // A flow whose numbers are used up goes on as another one.
        if self.own(to).is_none_or(Flow::is_used_up) {
            self.begun += 1;
            let id = FlowInstance::new(cx, to, self.begun);
            let flow = Flow::new(cx, id, 0);
            self.begin(cx, flow);
        }

        let Some(flow) = self.flows.get_mut(&(cx.me, to)) else { return Err(PacketError::Full) };
        flow.heard_at = cx.now;
        flow.push(packet, longest + PREFIX, cx.now);
        flow.route(cx);
        Ok(())
    }

    fn coding(&self, now: Instant) -> Option<CodingStatus> {
        Some(self.status(now))
    }

    fn flows(&self) -> Vec<FlowStatus> {
        self.counters.statuses(|source, destination| {
            self.flows.get(&(source, destination)).map_or(0, |flow| flow.waiting() as u64)
        })
    }
}

/// Summarises a frame for traces; `None` if it is malformed.
fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let (flow, name) = match kind {
        DATA => (Header::parse(body).ok()?.0.flow, "data"),
        REPORT => (Report::parse(body).ok()?.flow, "report"),
        PAIR => (Pair::parse(body).ok()?.parts[0].0.flow, "pair"),
        _ => return None,
    };
    let flow = Some(flow_of(flow.source, flow.destination));
    Some(Summary { flow, ..Summary::new(NAME, name) })
}
