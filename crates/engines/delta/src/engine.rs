//! The engine at one node: its streams, what it hears of them, and what it transmits.

use crate::child::{Child, Link};
use crate::config::DeltaConfig;
use crate::frame::{ANNOUNCEMENT, Announcement, DATA, Data, REPORT, State};
use crate::monitor::Receiver;
use crate::stream::{Made, Next, Stream, TELL_INTERVAL, What};
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::rng::unit;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::toolkit::flood::Flood;
use ncmesh_engine::toolkit::silence::Silence;
use ncmesh_engine::{Class, Context, Engine, Event, Filled, Frame, Offer, TxReport};
use ncmesh_wire::{FlowId, NodeId, ServiceId};
use std::collections::BTreeMap;

/// Service number of its frames.
pub const ID: ServiceId = ServiceId(28);

/// Most streams that a node knows.
pub(crate) const MAX_STREAMS: usize = 32;
/// Most next hops of a node in one stream.
pub(crate) const MAX_CHILDREN: usize = 64;
/// Time between a source's announcements.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(5);
/// Announcements of a stream that follow each other sooner, and the time between them: a node that
/// misses the first one, over a poor link, does not wait long.
const EARLY: u32 = 3;
const EARLY_INTERVAL: Duration = Duration::from_secs(1);
/// Time without an announcement after which a stream is forgotten.
const STREAM_TIMEOUT: Duration = Duration::from_secs(22);
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
    pub(crate) streams: BTreeMap<FlowId, Stream>,
    /// Groups that this node has joined, each with its minimum rate, bit/s.
    pub(crate) joined: BTreeMap<String, f64>,
    /// Announcements that are being flooded.
    pub(crate) flood: Flood<FlowId, u32>,
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
            streams: BTreeMap::new(),
            joined: BTreeMap::new(),
            flood: Flood::new(),
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
        if self.topology_version != cx.topology.version() {
            self.topology_version = cx.topology.version();
            self.choose_parents(cx);
        }
        let is_active = self.streams.values().any(Stream::tells);
        match (is_active, self.tick_at) {
            (true, None) => self.tick_at = Some(cx.now + TICK),
            (false, Some(_)) => self.tick_at = None,
            _ => {}
        }
    }

    /// Chooses the parent in every stream again. A new parent gets a report soon.
    pub(crate) fn choose_parents(&mut self, cx: &mut Context<'_>) {
        for (flow, stream) in &mut self.streams {
            if stream.source.is_some() || !stream.tells() {
                continue;
            }
            let children = &stream.children;
            let is_child = |node: NodeId| children.contains_key(&node);
            if stream.choice.choose(cx, flow.source, is_child) {
                stream.report.request(cx.now + NEWS_DELAY.mul_f64(unit(cx.rng)));
            }
        }
    }

    /// Tells the parent of a stream soon that something has changed.
    pub(crate) fn report_soon(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if let Some(stream) = self.streams.get_mut(&flow) {
            if stream.choice.parent.is_none() && stream.source.is_none() {
                let children = &stream.children;
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
        for stream in self.streams.values_mut() {
            stream.expire(cx.now);
            stream.remove_silent(cx.now);
            if stream.tells() && cx.now.since(stream.told_at) >= TELL_INTERVAL {
                stream.report.request(cx.now + NEWS_DELAY.mul_f64(unit(cx.rng)));
            }
        }
    }

    /// Removes streams whose source is silent. This node's own streams end only by `close`.
    fn remove_silent_streams(&mut self, cx: &mut Context<'_>) {
        let flood = &mut self.flood;
        self.streams.retain(|flow, stream| {
            let is_own = stream.source.is_some();
            let keep = is_own || cx.now.since(stream.announced_at) < STREAM_TIMEOUT;
            if !keep {
                flood.withdraw(flow);
            }
            keep
        });
        self.flood.drop_acknowledged(|| cx.topology.links_from(cx.me).map(|(to, _)| to));
    }

    /// Repeats the announcements of this node's own streams.
    fn announce_again(&mut self, cx: &mut Context<'_>) {
        for (flow, stream) in self.streams.iter_mut().filter(|(_, s)| s.source.is_some()) {
            if cx.now.since(stream.announced_at) >= announce_interval(stream) {
                stream.announce_after(stream.announcement.version, cx.now);
                self.flood.publish(*flow, stream.announcement.version, cx.now, cx.rng);
            }
        }
    }

    // ---- what is heard

    fn handle_announcement(&mut self, cx: &mut Context<'_>, sender: NodeId, heard: Announcement) {
        let flow = heard.flow;
        let version = heard.version;

        // A neighbour repeats an announcement of this node, or lies about it.
        if flow.source == cx.me {
            self.flood.overheard(&flow, &version, sender);
            return self.supersede(cx, &heard);
        }
        let is_full = self.streams.len() >= MAX_STREAMS;
        match self.streams.get_mut(&flow) {
            // The end of a stream that is not known here: there is nothing to end or to pass on.
            None if heard.layers.is_empty() => return,
            None if is_full => return cx.counters.drop(DropReason::Full),
            None => {
                self.streams.insert(flow, Stream::new(heard, cx.now));
                self.flood.publish(flow, version, cx.now, cx.rng);
                self.start_receiving(cx, flow);
            }
            Some(known) if version > known.announcement.version => {
                // Group and layers of a stream never change, so a later announcement only updates
                // its counts or ends it. An end that was a lie is revoked by the source's next
                // announcement, with which the stream begins again.
                let ends = heard.layers.is_empty();
                let was_ended = known.has_ended();
                if ends {
                    known.end();
                } else if was_ended {
                    *known = Stream::new(heard.clone(), cx.now);
                }
                known.handle_announcement(version, heard.sent, cx.now);
                self.flood.publish(flow, version, cx.now, cx.rng);
                if was_ended && !ends {
                    self.start_receiving(cx, flow);
                }
            }
            // An old announcement. Its sender has it, which the flood takes note of below.
            Some(_) => {}
        }
        self.flood.overheard(&flow, &version, sender);
    }

    /// Announces one of this node's own streams again if another node announced it with a later
    /// version. The new announcement replaces the false one everywhere.
    fn supersede(&mut self, cx: &mut Context<'_>, heard: &Announcement) {
        let stream = self.streams.get_mut(&heard.flow);
        let stream = stream.filter(|stream| stream.source.is_some());
        let Some(stream) = stream.filter(|s| heard.version > s.announcement.version) else {
            return;
        };
        stream.announce_after(heard.version, cx.now);
        self.flood.publish(heard.flow, stream.announcement.version, cx.now, cx.rng);
    }

    /// Makes this node a receiver of a stream if it has joined its group.
    pub(crate) fn start_receiving(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        // A source does not receive its own stream.
        let Some(stream) = self.streams.get_mut(&flow) else { return };
        let Some(minimum_bps) = self.joined.get(&*stream.group) else { return };
        if stream.source.is_some() || stream.has_ended() {
            return;
        }
        stream.receiver = Some(Receiver::new(*minimum_bps));
        stream.leave_notices = 0;

        // The report grafts this node onto the tree.
        self.report_soon(cx, flow);
    }

    /// Takes what a node says of itself. Returns whether the stream is known.
    fn handle_state(&mut self, cx: &mut Context<'_>, sender: NodeId, state: &State) -> bool {
        let nodes = u32::try_from(cx.topology.len().max(1)).unwrap_or(u32::MAX);
        let Some(stream) = self.streams.get_mut(&state.flow) else {
            cx.counters.drop(DropReason::UnknownFlow);
            return false;
        };
        if stream.has_ended() {
            return false;
        }
        stream.choice.hear(sender, state.number, cx.now);

        // This node cannot get from its parent what that one has given up.
        let is_parent = stream.choice.node() == Some(sender);
        if is_parent && stream.takes_part() && state.layers.len() == stream.layers.len() {
            for (lane, have) in stream.lanes.iter_mut().zip(&state.layers) {
                lane.follow(have.oldest);
            }
        }

        // A node that names another parent, or none, gets the stream elsewhere.
        if state.parent != cx.me || state.receivers == 0 {
            if stream.children.remove(&sender).is_some() {
                stream.note_departure();
                self.report_soon(cx, state.flow);
            }
            return true;
        }
        // A node's parent cannot be its next hop. Both routes change at the same time, or one of
        // the two lies.
        if is_parent || state.flow.source == sender || state.layers.len() != stream.layers.len() {
            cx.counters.drop(DropReason::Stale);
            return true;
        }
        let is_new = !stream.children.contains_key(&sender);
        if is_new && stream.children.len() >= MAX_CHILDREN {
            cx.counters.drop(DropReason::Full);
            return true;
        }

        let ends = stream.ends();
        let link = Link {
            there: cx.topology.delivery(cx.me, sender),
            back: cx.topology.delivery(sender, cx.me),
        };
        let covered = stream.log.covered_by(state);
        let new = || Child::new(state, ends, link, cx.now);
        let child = stream.children.entry(sender).or_insert_with(new);
        child.hear(state, covered, cx.now);
        child.receivers = u32::from(state.receivers).min(nodes);
        stream.leave_notices = 0;
        if stream.source.is_none() {
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
        self.leave_to_answers(cx, &head.asked);
        if !self.handle_state(cx, sender, &head.state) {
            return;
        }
        let packet_time = self.packet_time();
        let slot = self.slot();
        let Some(stream) = self.streams.get_mut(&flow).filter(|stream| stream.takes_part()) else {
            return;
        };
        if usize::from(head.layer) >= stream.layers.len() {
            return cx.counters.drop(DropReason::Malformed);
        }
        // A next hop that sends on is followed by those behind it, which are not heard here.
        let child = stream.children.get(&sender);
        if child.is_some_and(|child| child.feeds) {
            stream.pacing.make_way(packet_time, cx.now);
        }

        if !data.symbol.is_empty() && stream.source.is_none() {
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
            let sends = stream.next(packet_time, cx.now).is_some();
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
        let all = self.streams.iter().filter_map(|(flow, stream)| {
            let next = stream.next(packet_time, now)?;
            Some(Choice { flow: *flow, served_at: stream.served_at, next })
        });
        all.min_by_key(|choice| (choice.next.layer, choice.served_at, choice.flow))
    }

    /// Returns the stream whose report is due.
    fn due_report(&self, now: Instant) -> Option<FlowId> {
        let due = |stream: &Stream| stream.report.is_due(now) && stream.tells();
        self.streams.iter().find(|(_, stream)| due(stream)).map(|(flow, _)| *flow)
    }

    /// Writes the announcement that is due first, if there is one.
    fn fill_announcement(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let flow = *self.flood.due(cx.now).next()?;
        let stream = self.streams.get(&flow);

        // The stream may have been forgotten, or its source may allow longer frames than this
        // node. Such an announcement is withdrawn, because it would stay due forever.
        let Some(stream) = stream.filter(|stream| stream.announcement.len() <= cx.mtu) else {
            self.flood.withdraw(&flow);
            return None;
        };
        stream.announcement.write(out);
        self.flood.sent(&flow, cx.now, cx.rng);
        self.on_air = OnAir::Other;
        Some(Filled { kind: ANNOUNCEMENT, to: None })
    }

    fn fill_report(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let flow = self.due_report(cx.now)?;
        let packet_time = self.packet_time();
        let stream = self.streams.get_mut(&flow)?;
        let number = stream.log.number_frame(cx.now);
        let room = cx.mtu.saturating_sub(stream.state(cx.me, number, 0, cx.now).len());
        stream.state(cx.me, number, room, cx.now).write(out);
        stream.note_told(cx, packet_time);
        if stream.choice.node().is_none() {
            // No parent counts copies: a source, or a node that knows no way.
            stream.report = Default::default();
        }
        stream.leave_notices = stream.leave_notices.saturating_sub(1);
        self.on_air = OnAir::Report(flow);
        Some(Filled { kind: REPORT, to: None })
    }

    fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let Choice { flow, next, .. } = self.next(cx.now)?;
        let packet_time = self.packet_time();
        let stream = self.streams.get_mut(&flow)?;
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

/// Returns the time from one announcement of this node's own stream to the next.
fn announce_interval(stream: &Stream) -> Duration {
    let is_young = stream.announcement.version <= EARLY;
    if is_young { EARLY_INTERVAL } else { ANNOUNCE_INTERVAL }
}

/// Frame that one stream would send.
struct Choice {
    flow: FlowId,
    served_at: Instant,
    next: Next,
}

/// Hands the packets of a layer that became known to the host.
fn hand_up(cx: &mut Context<'_>, stream: &mut Stream, layer: usize) {
    for packet in stream.lanes[layer].take_decoded() {
        let Some(receiver) = &mut stream.receiver else { continue };
        if packet.is_empty() {
            cx.counters.drop(DropReason::Undecodable);
            continue;
        }
        receiver.receive(layer, packet.len());
        cx.events.push_back(Event::StreamPacket {
            flow: stream.announcement.flow,
            group: stream.group.clone(),
            layer: stream.layers[layer].clone(),
            packet,
        });
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
            ANNOUNCEMENT => match Announcement::parse(frame.body) {
                Ok(announcement) => self.handle_announcement(cx, frame.sender, announcement),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            _ => cx.counters.drop(DropReason::Malformed),
        }
        self.update(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.tick(cx);
        self.remove_silent_streams(cx);
        self.announce_again(cx);
        self.update(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let packet_time = self.packet_time();
        let announcements = self.streams.values().map(|stream| {
            let is_own = stream.source.is_some();
            stream.announced_at + if is_own { announce_interval(stream) } else { STREAM_TIMEOUT }
        });
        let own = [self.tick_at, Some(self.silence.until()), self.flood.poll_timeout(after)];
        let streams = self.streams.values().flat_map(|stream| stream.timeouts(packet_time));
        let all = streams.chain(announcements).chain(own.into_iter().flatten());
        all.filter(|at| *at > after).min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        if self.due_report(now).is_some() || self.flood.due(now).next().is_some() {
            return Some(Offer::of(Class::Control));
        }
        self.next(now).map(|_| Offer::of(Class::Data))
    }

    fn silent_until(&self) -> Instant {
        self.silence.until()
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.fill_announcement(cx, out)
            .or_else(|| self.fill_report(cx, out))
            .or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let on_air = std::mem::replace(&mut self.on_air, OnAir::Other);
        match on_air {
            OnAir::Other => {}
            OnAir::Report(flow) => {
                self.report_time.add(report.airtime);
                if let Some(stream) = self.streams.get_mut(&flow) {
                    stream.log.note_sent(cx.now);
                }
            }
            OnAir::Data { flow, carries, answers } => {
                if carries {
                    self.packet_time.add(report.airtime);
                }
                let packet_time = self.packet_time();
                self.silence.leave_to_answer(cx.now + self.slot() * answers);
                if let Some(stream) = self.streams.get_mut(&flow) {
                    stream.log.note_sent(cx.now);
                    stream.ease(packet_time, cx.now, cx.rng);
                }
            }
        }
        self.update(cx);
    }
}
