//! The engine at one node: its streams, what it hears of them, and what it transmits.

use crate::child::{Child, Link};
use crate::config::DeltaConfig;
use crate::frame::{DATA, Data, REPORT, State};
use crate::lane::Decoded;
use crate::stream::{HOLD_OTHERS, Made, Next, Stream, TELL_INTERVAL, What};
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::rng::unit;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::toolkit::hop::silence::Silence;
use ncmesh_engine::toolkit::live::{
    ANNOUNCEMENT, Arrival, Live, Member, Place, Receiver, Streams, Timed,
};
use ncmesh_engine::{Class, Context, Engine, Filled, Frame, Offer, TxReport};
use ncmesh_wire::{FlowId, NodeId, ServiceId};

/// Service number of its frames.
pub const ID: ServiceId = ServiceId(28);

/// Mean airtime of a packet before one was sent.
const FIRST_PACKET_TIME: Duration = Duration::from_millis(1);
/// Airtime of a report in packet times, before one was sent.
const FIRST_REPORT: f64 = 0.3;
/// Airtimes of a report that an answer takes, with the wait for the channel before it.
const SLOT: f64 = 2.0;
/// Packet times for which a node that sends on puts off its answer: its next packet says the same.
const ANSWER_BY_PACKET: f64 = 3.0;
/// Time between two looks at what is silent or late.
const TICK: Duration = Duration::from_millis(25);
/// Longest time for which a change in a tree waits to be reported. Neighbours that see the same
/// change must not all send at once.
const NEWS_DELAY: Duration = Duration::from_millis(10);
/// Share of a neighbour's frames that counts as being heard.
const HEARS: f64 = 0.1;

/// The frame that is at the MAC.
#[derive(Clone, Copy, Debug)]
enum OnAir {
    /// One that nothing is learned from.
    Other,
    /// A report of a stream.
    Report(FlowId),
    /// A frame of a stream: whether it carries a packet, and the number of next hops that answer.
    Data { flow: FlowId, carries: bool, answers: u32 },
}

/// The engine at one node.
pub struct Delta {
    pub(crate) config: DeltaConfig,
    /// Its streams, and the groups that it joined, each with its minimum rate, bit/s.
    pub(crate) streams: Streams<Stream, f64>,
    on_air: OnAir,
    /// Mean airtimes of packets and of reports.
    packet_time: DurationAverage,
    report_time: DurationAverage,
    /// Whether it leaves the channel to frames of others.
    silence: Silence,
    /// When it next looks at what is silent or late; `None` while it takes part in no stream.
    tick_at: Option<Instant>,
    /// Version of the topology by which parents were chosen.
    topology_version: u64,
}

impl Delta {
    /// Returns an engine with these settings and no streams.
    #[must_use]
    pub fn new(config: DeltaConfig) -> Self {
        Self {
            config,
            streams: Streams::default(),
            on_air: OnAir::Other,
            packet_time: DurationAverage::default(),
            report_time: DurationAverage::default(),
            silence: Silence::default(),
            tick_at: None,
            topology_version: 0,
        }
    }

    fn packet_time(&self) -> Duration {
        let mean = self.packet_time.value();
        if mean.is_zero() { FIRST_PACKET_TIME } else { mean }
    }

    /// Returns the time that one answer takes.
    fn slot(&self) -> Duration {
        let mean = self.report_time.value();
        let report = if mean.is_zero() { self.packet_time().mul_f64(FIRST_REPORT) } else { mean };
        report.mul_f64(SLOT)
    }

    // ---- upkeep

    /// Adapts to a changed topology, and starts or stops the ticks. Every handler and every command
    /// ends with it.
    pub(crate) fn update(&mut self, cx: &mut Context<'_>) {
        // Paths change with the topology alone.
        if self.topology_version != cx.topology.version() {
            self.topology_version = cx.topology.version();
            self.choose_parents(cx);
        }

        // Without a stream in which this node has a part, it does not wake up.
        let is_active = self.streams.known.values().any(Stream::tells);
        match (is_active, self.tick_at) {
            (true, None) => self.tick_at = Some(cx.now + TICK),
            (false, Some(_)) => self.tick_at = None,
            _ => {}
        }
    }

    /// Chooses the parent in every stream again. A new parent gets a report soon.
    pub(crate) fn choose_parents(&mut self, cx: &mut Context<'_>) {
        for (flow, stream) in &mut self.streams.known {
            // A source has no parent, and a node without part in the stream needs none.
            if stream.part.source.is_some() || !stream.tells() {
                continue;
            }
            let children = &stream.part.children;
            let is_child = |node: NodeId| children.contains_key(&node);
            if stream.choice.choose(cx, flow.source, is_child) {
                stream.report.request(cx.now + NEWS_DELAY.mul_f64(unit(cx.rng)));
            }
        }
    }

    /// Tells the parent of a stream soon that something has changed.
    pub(crate) fn report_soon(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if let Some(stream) = self.streams.known.get_mut(&flow) {
            if stream.choice.parent.is_none() && stream.part.source.is_none() {
                let children = &stream.part.children;
                stream.choice.choose(cx, flow.source, |node| children.contains_key(&node));
            }
            stream.report.request(cx.now + NEWS_DELAY.mul_f64(unit(cx.rng)));
        }
    }

    /// Looks at what is silent or late.
    fn tick(&mut self, cx: &mut Context<'_>) {
        if self.tick_at.is_none_or(|at| at > cx.now) {
            return;
        }
        self.tick_at = Some(cx.now + TICK);
        self.choose_parents(cx);

        // Nodes tell what they have now and then, though nothing is sent.
        for stream in self.streams.known.values_mut() {
            stream.expire(cx.now);
            stream.remove_silent(cx.now);
            if stream.tells() && cx.now.since(stream.told_at) >= TELL_INTERVAL {
                stream.report.request(cx.now + NEWS_DELAY.mul_f64(unit(cx.rng)));
            }
        }
    }

    // ---- what is heard

    fn handle_announcement(&mut self, cx: &mut Context<'_>, sender: NodeId, heard: Timed) {
        let flow = heard.flow;
        if self.streams.handle_announcement(cx, sender, heard) {
            self.start_receiving(cx, flow);
        }
    }

    /// Makes this node a receiver of a stream if it has joined its group.
    pub(crate) fn start_receiving(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if !self.streams.start_receiving(flow, |minimum_bps| Receiver::new(*minimum_bps)) {
            return;
        }
        if let Some(stream) = self.streams.known.get_mut(&flow) {
            stream.part.leave_notices = 0;
        }

        // The report grafts this node onto the tree.
        self.report_soon(cx, flow);
    }

    /// Takes what a node says of itself. Returns whether the stream is known.
    fn handle_state(&mut self, cx: &mut Context<'_>, sender: NodeId, state: &State) -> bool {
        let nodes = u32::try_from(cx.topology.len().max(1)).unwrap_or(u32::MAX);
        let Some(stream) = self.streams.known.get_mut(&state.flow) else {
            cx.counters.drop(DropReason::UnknownFlow);
            return false;
        };

        if stream.part.has_ended() {
            return false;
        }
        stream.choice.hear(sender, state.number, cx.now);

        // This node cannot get from its parent what that one has given up.
        let is_parent = stream.choice.node() == Some(sender);
        if is_parent && stream.part.takes_part() && state.layers.len() == stream.part.layers.len() {
            for (lane, have) in stream.lanes.iter_mut().zip(&state.layers) {
                lane.follow(have.oldest);
            }
        }

        // A report makes its sender a child, keeps it one, or says that it has another parent.
        let member = Member { node: sender, parent: state.parent, receivers: state.receivers };
        let is_new = match stream.part.place(member, cx.me, stream.choice.node()) {
            Place::Elsewhere { left } => {
                if left {
                    stream.note_departure();
                    self.report_soon(cx, state.flow);
                }

                return true;
            }
            Place::Refused(why) => {
                cx.counters.drop(why);
                return true;
            }
            Place::Child { .. } if state.layers.len() != stream.part.layers.len() => {
                cx.counters.drop(DropReason::Stale);
                return true;
            }
            Place::Child { is_new } => is_new,
        };

        let ends = stream.ends();
        let link = Link {
            there: cx.topology.delivery(cx.me, sender),
            back: cx.topology.delivery(sender, cx.me),
        };

        // The child's word corrects what is believed of it.
        let covered = stream.sent.covered_by(state.handled);
        let new = || Child::new(ends, link, cx.now);
        let child = stream.part.children.entry(sender).or_insert_with(new);
        child.hear(state, covered, cx.now);
        child.receivers = u32::from(state.receivers).min(nodes);

        stream.part.leave_notices = 0;
        if stream.part.source.is_none() {
            // A relay begins where its next hop does.
            for (layer, lane) in stream.lanes.iter_mut().enumerate() {
                if let Some(needs) = child.needs(layer) {
                    lane.begin(needs);
                }
            }
        }

        if is_new {
            self.report_soon(cx, state.flow);
        }
        true
    }

    fn handle_data(&mut self, cx: &mut Context<'_>, sender: NodeId, data: &Data<'_>) {
        let head = &data.head;
        let flow = head.state.flow;

        // Answers that this node may not hear come first.
        self.leave_to_answers(cx, &head.asked);
        if !self.handle_state(cx, sender, &head.state) {
            return;
        }

        let packet_time = self.packet_time();
        let slot = self.slot();
        let Some(stream) =
            self.streams.known.get_mut(&flow).filter(|stream| stream.part.takes_part())
        else {
            return;
        };
        if usize::from(head.layer) >= stream.part.layers.len() {
            return cx.counters.drop(DropReason::Malformed);
        }

        // A next hop that sends on is followed by those behind it, which are not heard here.
        let child = stream.part.children.get(&sender);
        if child.is_some_and(|child| child.feeds) {
            stream.pacing.make_way(packet_time, cx.now);
        }

        if !data.symbol.is_empty() && stream.part.source.is_none() {
            let from_parent = stream.choice.node() == Some(sender);
            match stream.absorb(head, data.symbol, from_parent, cx.now) {
                Some(is_innovative) => {
                    cx.counters.note_payload(is_innovative);
                    if is_innovative {
                        stream.choice.note_served(sender, cx.now);
                    }
                }
                None => cx.counters.drop(DropReason::Full),
            }

            hand_up(cx, stream, usize::from(head.layer));
            stream.expire(cx.now);
        }

        // Answers of several next hops follow one another. One that sends on answers with its next
        // packet.
        if let Some(place) = head.asked.iter().position(|node| *node == cx.me) {
            let sends = stream.next(packet_time, stream.is_late(cx.now), cx.now).is_some();
            let by_packet = packet_time.mul_f64(ANSWER_BY_PACKET);
            let wait = if sends { by_packet } else { slot * place as u32 };
            stream.report.request(cx.now + wait);
        }
    }

    /// Is silent for answers of nodes that this one does not hear.
    fn leave_to_answers(&mut self, cx: &Context<'_>, asked: &[NodeId]) {
        let hears = |node: NodeId| cx.topology.delivery(node, cx.me) > HEARS;
        let hidden = asked.iter().rposition(|node| *node != cx.me && !hears(*node));
        if let Some(last) = hidden.filter(|_| !asked.contains(&cx.me)) {
            self.silence.leave_to_answer(cx.now + self.slot() * (last as u32 + 1));
        }
    }

    // ---- what is sent

    /// Returns the stream to serve next and what it sends: the base of all streams first, and the
    /// stream that was not served for longest.
    fn next(&self, now: Instant) -> Option<Choice> {
        if now < self.silence.until() {
            return None;
        }
        let packet_time = self.packet_time();

        // The base of every stream comes before enhancement layers of any.
        let lag = self.streams.known.values().map(|stream| stream.lag(now)).max();

        // While the base is late somewhere behind, enhancement layers wait.
        let is_held = lag >= Some(HOLD_OTHERS);
        let all = self.streams.known.iter().filter_map(|(flow, stream)| {
            let next = stream.next(packet_time, is_held || stream.is_late(now), now)?;
            Some(Choice { flow: *flow, served_at: stream.served_at, next })
        });

        all.min_by_key(|choice| (choice.next.layer, choice.served_at, choice.flow))
    }

    /// Returns the stream whose report is due.
    fn due_report(&self, now: Instant) -> Option<FlowId> {
        let due = |stream: &Stream| stream.report.is_due(now) && stream.tells();
        self.streams.known.iter().find(|(_, stream)| due(stream)).map(|(flow, _)| *flow)
    }

    fn fill_report(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let flow = self.due_report(cx.now)?;
        let packet_time = self.packet_time();
        let stream = self.streams.known.get_mut(&flow)?;
        let number = stream.number_frame(cx.now);

        // Maps take the room that is left.
        let room = cx.mtu.saturating_sub(stream.state(cx.me, number, 0, cx.now).len());
        stream.state(cx.me, number, room, cx.now).write(out);
        stream.note_told(cx, packet_time);
        if stream.choice.node().is_none() {
            // No parent counts copies: a source, or a node that knows no way.
            stream.report = Default::default();
        }

        stream.part.leave_notices = stream.part.leave_notices.saturating_sub(1);
        self.on_air = OnAir::Report(flow);
        Some(Filled { kind: REPORT, to: None })
    }

    fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        // The packet is made now, from all that was heard so far.
        let Choice { flow, next, .. } = self.next(cx.now)?;
        let packet_time = self.packet_time();
        let stream = self.streams.known.get_mut(&flow)?;
        stream.served_at = cx.now;
        let Made { head, symbol, answers } = stream.make(&next, packet_time, cx)?;
        Data { head, symbol: &symbol }.write(out);
        let carries = next.what != What::Ask;
        if carries {
            let is_plain = matches!(next.what, What::Plain(_));
            cx.counters.note_filled(if is_plain { Payload::Native } else { Payload::Coded });
        }

        self.on_air = OnAir::Data { flow, carries, answers };
        Some(Filled { kind: DATA, to: None })
    }
}

/// Frame that one stream would send.
struct Choice {
    flow: FlowId,
    served_at: Instant,
    next: Next,
}

/// Hands the packets of a layer that became known to the host.
fn hand_up(cx: &mut Context<'_>, stream: &mut Stream, layer: usize) {
    for Decoded { number, packet } in stream.lanes[layer].take_decoded() {
        let age = stream.age(layer, number, cx.now);
        let Some(receiver) = &mut stream.part.receiver else { continue };

        // Its check is wrong: a member forged it, or a packet that it was made of.
        if packet.is_empty() {
            cx.counters.drop(DropReason::Undecodable);
            continue;
        }

        receiver.receive(&Arrival { layer, bytes: packet.len(), number, age }, cx.now);
        cx.events.push_back(stream.part.event(layer, packet));
    }
}

impl Engine for Delta {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match frame.kind {
            DATA => match Data::parse(frame.body) {
                Ok(data) => self.handle_data(cx, frame.sender, &data),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            REPORT => match State::parse(frame.body) {
                Ok(state) => drop(self.handle_state(cx, frame.sender, &state)),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            ANNOUNCEMENT => match Timed::parse(frame.body) {
                Ok(announcement) => self.handle_announcement(cx, frame.sender, announcement),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            _ => cx.counters.drop(DropReason::Malformed),
        }

        self.update(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.tick(cx);
        self.streams.remove_silent(cx);
        self.streams.announce_again(cx);
        self.update(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let packet_time = self.packet_time();
        let own = [self.tick_at, Some(self.silence.until()), self.streams.poll_timeout(after)];
        let streams = self.streams.known.values().flat_map(|stream| stream.timeouts(packet_time));
        let all = streams.chain(own.into_iter().flatten());
        all.filter(|at| *at > after).min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        if self.due_report(now).is_some() || self.streams.is_due(now) {
            return Some(Offer::of(Class::Control));
        }
        self.next(now).map(|_| Offer::of(Class::Data))
    }

    fn silent_until(&self) -> Instant {
        self.silence.until()
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.on_air = OnAir::Other;
        self.streams
            .fill_announcement(cx, out)
            .or_else(|| self.fill_report(cx, out))
            .or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let on_air = std::mem::replace(&mut self.on_air, OnAir::Other);
        match on_air {
            OnAir::Other => {}
            OnAir::Report(flow) => {
                self.report_time.add(report.airtime);
                if let Some(stream) = self.streams.known.get_mut(&flow) {
                    stream.sent.note_sent(cx.now);
                }
            }
            OnAir::Data { flow, carries, answers } => {
                if carries {
                    self.packet_time.add(report.airtime);
                }
                let packet_time = self.packet_time();
                self.silence.leave_to_answer(cx.now + self.slot() * answers);
                if let Some(stream) = self.streams.known.get_mut(&flow) {
                    stream.sent.note_sent(cx.now);
                    stream.ease(packet_time, cx.now, cx.rng);
                }
            }
        }

        self.update(cx);
    }
}
