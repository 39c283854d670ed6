//! The engine at one node: its streams, what it hears of them, and what it transmits.

use crate::config::LiveConfig;
use crate::frame::{DATA, Data, Header, REPORT, Report};
use crate::relays::Selectors;
use crate::session::{Child, Session};
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::rng::unit;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::toolkit::live::{
    ANNOUNCEMENT, Arrival, Live as _, Member, Place, Receiver, Streams, Timed,
};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::{Class, Context, Engine, Filled, Frame, Offer, TxReport, TxResult};
use ncmesh_wire::{FlowId, NodeId, ServiceId};
use std::collections::BTreeMap;

/// Service number of the scheme over a tree.
pub const STREAM_TREE_ID: ServiceId = ServiceId(29);
/// Service number of the scheme that floods.
pub const SMF_ID: ServiceId = ServiceId(30);

/// Stands for all neighbours where a packet is flooded. No node has this id.
const ALL: NodeId = NodeId(u16::MAX);
/// Time between two looks at what is silent or late.
const TICK: Duration = Duration::from_millis(25);
/// Time between two reports, if nothing happens.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time for which a change in a tree waits to be reported.
const NEWS_DELAY: Duration = Duration::from_millis(10);
/// Reports that tell a change, because broadcasts are lost, and the pause between them.
const NEWS: u8 = 3;
const NEWS_PAUSE: Duration = Duration::from_millis(50);
/// Time without a report or an acknowledgment after which a child is gone.
const CHILD_TIMEOUT: Duration = Duration::from_secs(5);
/// Packets by broadcast after which a child reports what it has.
const REPORT_AFTER: u32 = 4;
/// Longest time for which it waits for them, and part of the deadline.
const REPORT_WAIT: Duration = Duration::from_millis(25);
const REPORT_PART: u32 = 24;
/// Waits of a report after which a packet by broadcast counts as lost.
const CONFIRM: u32 = 14;
/// Tries that a packet may take by unicast. The MAC waits longer after each, so beyond that
/// broadcasts that are repeated carry more.
const MOST_TRIES: f64 = 8.0;
/// Longest time for which a relay waits before it floods a packet: neighbours that heard it at the
/// same moment must not all send at once.
const JITTER: Duration = Duration::from_millis(4);

/// How packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Down a tree; each hop repeats them.
    Tree,
    /// Flooded over multipoint relays.
    Flood,
}

/// The engine at one node.
pub struct Live {
    rule: Rule,
    pub(crate) config: LiveConfig,
    /// Its streams, and the groups that it joined, each with its minimum rate, bit/s.
    pub(crate) streams: Streams<Session, f64>,
    selectors: Selectors,
    /// The packet that is at the MAC, if one is.
    on_air: Option<Choice>,
    /// Mean airtimes of a packet by broadcast, and of one try by unicast.
    broadcast_time: DurationAverage,
    unicast_time: DurationAverage,
    /// When it next looks at what is silent or late; `None` while it takes part in no stream.
    tick_at: Option<Instant>,
    /// Version of the topology by which parents were chosen.
    topology_version: u64,
}

/// A packet that goes out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    flow: FlowId,
    layer: usize,
    number: u32,
    /// The child that it goes to by unicast; `None` for all that lack it.
    to: Option<NodeId>,
}

impl Live {
    /// Returns an engine with these settings and no streams.
    #[must_use]
    pub fn new(rule: Rule, config: LiveConfig) -> Self {
        Self {
            rule,
            config,
            streams: Streams::default(),
            selectors: Selectors::default(),
            on_air: None,
            broadcast_time: DurationAverage::default(),
            unicast_time: DurationAverage::default(),
            tick_at: None,
            topology_version: 0,
        }
    }

    // ---- upkeep

    /// Adapts to a changed topology, and starts or stops the ticks. Every handler and every command
    /// ends with it.
    pub(crate) fn update(&mut self, cx: &mut Context<'_>) {
        if self.topology_version != cx.topology.version() {
            self.topology_version = cx.topology.version();

            // New paths may mean other parents, and other shares of what arrives.
            let flows: Vec<FlowId> = self.streams.known.keys().copied().collect();
            flows.into_iter().for_each(|flow| self.choose_parent(cx, flow));
            let sessions = self.streams.known.values_mut();
            for (node, child) in sessions.flat_map(|session| &mut session.part.children) {
                set_link(child, cx, *node);
            }
        }

        // Ticks go on while there is a part in a stream, a leave to tell, or a flood to remember.
        let mut sessions = self.streams.known.values();
        let is_active = sessions.any(|s| s.part.takes_part() || s.part.leave_notices > 0)
            || self.rule == Rule::Flood && !self.streams.known.is_empty();
        match (is_active, self.tick_at) {
            (true, None) => self.tick_at = Some(cx.now + TICK),
            (false, Some(_)) => self.tick_at = None,
            _ => {}
        }
    }

    /// Sets the neighbour that a stream comes from. A new parent gets a report soon; the old one
    /// overhears it.
    fn choose_parent(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if self.rule == Rule::Flood {
            return;
        }

        let Some(session) = self.streams.known.get_mut(&flow) else { return };

        // Packets come down the shortest path from the source, by unicast where that is cheaper.
        let parent = cx.topology.paths_from(flow.source, Metric::Unicast).parent(cx.me);
        if session.parent != parent {
            session.parent = parent;
            self.report_soon(cx, flow);
        }
    }

    /// Tells the parent of a stream soon that something has changed.
    pub(crate) fn report_soon(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if let Some(session) = self.streams.known.get_mut(&flow)
            && self.rule == Rule::Tree
        {
            session.news = NEWS;
            session.report_by(cx.now + NEWS_DELAY.mul_f64(unit(cx.rng)));
        }
    }

    /// Makes this node a receiver of a stream if it has joined its group.
    pub(crate) fn start_receiving(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if !self.streams.start_receiving(flow, |minimum_bps| Receiver::new(*minimum_bps)) {
            return;
        }
        if let Some(session) = self.streams.known.get_mut(&flow) {
            session.part.leave_notices = 0;
        }
        self.choose_parent(cx, flow);
        self.report_soon(cx, flow);
    }

    /// Looks at what is silent or late.
    fn tick(&mut self, cx: &mut Context<'_>) {
        if self.tick_at.is_none_or(|at| at > cx.now) {
            return;
        }
        self.tick_at = Some(cx.now + TICK);

        let mut changed = Vec::new();
        for (flow, session) in &mut self.streams.known {
            session.expire(cx.now);
            let children = session.part.children.iter();
            let gone = children.filter(|(_, child)| cx.now.since(child.heard_at) > CHILD_TIMEOUT);

            // A child that is silent for long has gone, and no packet is held for it any more.
            let gone: Vec<NodeId> = gone.map(|(node, _)| *node).collect();
            for node in &gone {
                session.part.children.remove(node);
                session.release(*node);
            }

            if !gone.is_empty() {
                session.note_departure();
                changed.push(*flow);
            }
        }

        changed.into_iter().for_each(|flow| self.report_soon(cx, flow));
    }

    // ---- what is heard

    fn handle_announcement(&mut self, cx: &mut Context<'_>, sender: NodeId, heard: Timed) {
        let flow = heard.flow;
        if self.streams.handle_announcement(cx, sender, heard) {
            self.choose_parent(cx, flow);
            self.start_receiving(cx, flow);
        }
    }

    /// Handles a report: its sender joins, stays in or leaves this node's subtree of the stream.
    fn handle_report(&mut self, cx: &mut Context<'_>, sender: NodeId, report: &Report) {
        let Some(session) = self.streams.known.get_mut(&report.flow) else {
            return cx.counters.drop(DropReason::UnknownFlow);
        };

        // A child cannot lead to more receivers than there are nodes.
        let nodes = u32::try_from(cx.topology.len().max(1)).unwrap_or(u32::MAX);
        let before = session.part.receivers();
        let member = Member { node: sender, parent: report.parent, receivers: report.receivers };
        match session.part.place(member, cx.me, session.parent) {
            Place::Elsewhere { left: true } => {
                session.release(sender);
                session.note_departure();
            }
            Place::Elsewhere { left: false } => {}
            Place::Refused(why) => cx.counters.drop(why),
            Place::Child { .. } => {
                let children = &mut session.part.children;
                let child = children.entry(sender).or_insert_with(|| Child::new(cx.now));
                set_link(child, cx, sender);
                child.heard_at = cx.now;
                child.receivers = u32::from(report.receivers).min(nodes);
                session.part.leave_notices = 0;
                session.confirm(sender, &report.layers, cx.now);
            }
        }

        if session.part.receivers() != before {
            self.report_soon(cx, report.flow);
        }
    }

    fn handle_data(&mut self, cx: &mut Context<'_>, sender: NodeId, data: &Data<'_>) {
        let Data { header, packet } = data;
        let layer = usize::from(header.layer);
        let Some(session) = self.streams.known.get_mut(&header.flow) else {
            return cx.counters.drop(DropReason::UnknownFlow);
        };

        if layer >= session.part.layers.len() {
            return cx.counters.drop(DropReason::Malformed);
        }

        // In a tree, packets come from the parent only, so that they never travel in a circle.
        let is_parent = session.parent == Some(sender);
        if session.part.source.is_some() || self.rule == Rule::Tree && !is_parent {
            return cx.counters.drop(DropReason::Stale);
        }

        // Each packet counts once, however often it is heard.
        let is_new = session.layers[layer].seen.add(header.number);
        cx.counters.note_payload(is_new);
        if is_new && let Some(receiver) = &mut session.part.receiver {
            let number = header.number;
            let arrival = Arrival { layer, bytes: packet.len(), number, age: header.age() };
            receiver.receive(&arrival, cx.now);
            cx.events.push_back(session.part.event(layer, packet.to_vec()));
        }

        match self.rule {
            Rule::Tree => {
                // The report confirms it, soon if it was a broadcast. This node cannot tell.
                session.unreported += 1;
                let wait = report_wait(session);
                let is_many = session.unreported >= REPORT_AFTER;
                session.report_by(if is_many { cx.now } else { cx.now + wait });
                if session.part.receivers() == 0 {
                    // The parent has missed that this node left the tree. It is told again.
                    session.note_departure();
                } else if is_new {
                    self.pass_on(cx, header, packet, Duration::ZERO);
                }
            }
            Rule::Flood => {
                // A copy may come first from a node that did not choose this one, and then from one
                // that did.
                session.parent = Some(sender);
                let is_relay = self.selectors.contains(cx.topology, sender, cx.me);
                if is_relay && session.layers[layer].relayed.add(header.number) {
                    let wait = JITTER.mul_f64(unit(cx.rng));
                    self.pass_on(cx, header, packet, wait);
                }
            }
        }
    }

    /// Holds a packet for all that are to get it from here, for `wait` at least.
    pub(crate) fn pass_on(
        &mut self,
        cx: &mut Context<'_>,
        header: &Header,
        packet: &[u8],
        wait: Duration,
    ) {
        let Some(session) = self.streams.known.get_mut(&header.flow) else { return };
        let due = cx.now + wait;

        // In a tree each child gets it; in a flood no node in particular.
        let to = match self.rule {
            Rule::Tree => session.part.children.keys().map(|child| (*child, due)).collect(),
            Rule::Flood => BTreeMap::from([(ALL, due)]),
        };

        if !session.hold(header, packet, to, cx.now) {
            cx.counters.drop(DropReason::Full);
        }
    }

    // ---- what is sent

    /// Returns the packet to send next: of the lowest layer, and the oldest of it.
    fn next(&self, now: Instant) -> Option<Choice> {
        for layer in 0..LAYERS {
            // The first packet of each stream that a node still waits for, unless it would come too
            // late.
            let firsts = self.streams.known.iter().filter_map(|(flow, session)| {
                let mut held = session.layers[layer].held.iter();
                let (number, held, to) = held.find_map(|(number, held)| {
                    let is_due = |node: &NodeId| {
                        let child = session.part.children.get(node);
                        held.due[node] <= now && child.is_none_or(|child| child.ready_at <= now)
                    };

                    let is_late = held.until <= now + self.broadcast_time.value();
                    let to: Vec<NodeId> =
                        held.due.keys().copied().filter(|node| !is_late && is_due(node)).collect();
                    (!to.is_empty()).then_some((*number, held, to))
                })?;

                Some((
                    held.until,
                    Choice { flow: *flow, layer, number, to: self.way(session, &to) },
                ))
            });

            if let Some((_, choice)) = firsts.min_by_key(|(until, choice)| (*until, choice.flow)) {
                return Some(choice);
            }
        }

        None
    }

    /// Returns the child that a packet goes to by unicast; `None` if a broadcast to all of `to`
    /// takes less airtime, with repetitions to those that it does not reach.
    fn way(&self, session: &Session, to: &[NodeId]) -> Option<NodeId> {
        let first = to.first().copied().filter(|first| *first != ALL)?;

        // A child that needs many tries holds the channel for long, so all get a broadcast.
        let is_poor = |node: &NodeId| {
            session.part.children.get(node).is_some_and(|child| child.tries > MOST_TRIES)
        };
        if to.iter().any(is_poor) {
            return None;
        }

        // A broadcast saves the unicast frames to all children that it reaches.
        let children = to.iter().filter_map(|node| session.part.children.get(node));
        let saved: f64 = children.map(|child| child.there * child.tries).sum();
        let unicasts = self.unicast_time.value().mul_f64(saved);
        let is_known = !self.broadcast_time.value().is_zero() && !unicasts.is_zero();
        let is_many = to.len() > 1 && (!is_known || self.broadcast_time.value() < unicasts);
        (!is_many).then_some(first)
    }

    /// Returns the session whose report is due.
    fn due_report(&self, now: Instant) -> Option<FlowId> {
        let is_due =
            |session: &Session| session.reports() && session.report_at.is_some_and(|at| at <= now);
        self.streams.known.iter().find(|(_, session)| is_due(session)).map(|(flow, _)| *flow)
    }

    fn fill_report(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let flow = self.due_report(cx.now)?;
        let session = self.streams.known.get_mut(&flow)?;
        let receivers = session.part.receivers();
        let report = Report {
            flow,
            parent: session.parent?,
            receivers: u16::try_from(receivers).unwrap_or(u16::MAX),
            layers: session.got(),
        };

        report.write(out);
        session.unreported = 0;
        if receivers == 0 {
            session.part.leave_notices = session.part.leave_notices.saturating_sub(1);
        }

        session.news = session.news.saturating_sub(1);

        // News go out several times, for no node acknowledges a report.
        let is_repeated = session.news > 0 || session.part.leave_notices > 0;
        session.report_at = Some(cx.now + if is_repeated { NEWS_PAUSE } else { REPORT_INTERVAL });
        Some(Filled { kind: REPORT, to: None })
    }

    fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let choice = self.next(cx.now)?;
        let Choice { flow, layer, number, to } = choice;
        let session = self.streams.known.get_mut(&flow)?;
        let deadline = session.part.announcement.deadline();
        let confirm = report_wait(session) * CONFIRM;
        let held = session.layers[layer].held.get_mut(&number)?;

        // The header tells the age, so that clocks need not agree.
        let age = deadline.saturating_sub(held.until.since(cx.now));
        let header = Header::new(flow, layer, number, age);
        Data { header, packet: &held.bytes }.write(out);

        // A broadcast is confirmed by reports, or counts as lost. No node confirms a flood.
        if to.is_none() {
            let children = &session.part.children;
            for (node, due) in held.due.iter_mut().filter(|(_, due)| **due <= cx.now) {
                // It goes again the sooner, the less likely it arrived.
                let there = children.get(node).map_or(1.0, |child| child.there);
                *due = cx.now + confirm.mul_f64(there);
            }

            held.due.remove(&ALL);
            if held.due.is_empty() {
                session.layers[layer].held.remove(&number);
            }
        }

        for (node, child) in &mut session.part.children {
            let is_one = to.is_none_or(|to| to == *node);
            child.sent[layer] += u64::from(is_one);
        }

        self.on_air = Some(choice);
        cx.counters.note_filled(Payload::Native);
        Some(Filled { kind: DATA, to })
    }
}

fn set_link(child: &mut Child, cx: &Context<'_>, node: NodeId) {
    let back = cx.topology.delivery(node, cx.me);
    child.set_link(cx.topology.delivery(cx.me, node), back);
}

/// Returns the time for which a child waits for more packets before it reports.
fn report_wait(session: &Session) -> Duration {
    REPORT_WAIT.min(session.part.announcement.deadline() / REPORT_PART)
}

impl Engine for Live {
    fn hears(&self, service: ServiceId) -> bool {
        service
            == match self.rule {
                Rule::Tree => STREAM_TREE_ID,
                Rule::Flood => SMF_ID,
            }
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match frame.kind {
            DATA => match Data::parse(frame.body) {
                Ok(data) => self.handle_data(cx, frame.sender, &data),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            REPORT if self.rule == Rule::Tree => match Report::parse(frame.body) {
                Ok(report) => self.handle_report(cx, frame.sender, &report),
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
        let sessions = self.streams.known.values();
        let due = sessions.flat_map(|session| {
            let layers = session.layers.iter().flat_map(|layer| layer.held.values());
            let held = layers.flat_map(|held| held.due.values().copied());
            let children = session.part.children.values().map(|child| child.ready_at);
            held.chain(children).chain(session.report_at.filter(|_| session.reports()))
        });

        let own = [self.tick_at, self.streams.poll_timeout(after)];
        due.chain(own.into_iter().flatten()).filter(|at| *at > after).min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        if self.due_report(now).is_some() || self.streams.is_due(now) {
            return Some(Offer::of(Class::Control));
        }
        self.next(now).map(|_| Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        // If the outcome of the last packet was never reported, the report on this frame must not
        // be booked on that packet.
        self.on_air = None;
        self.streams
            .fill_announcement(cx, out)
            .or_else(|| self.fill_report(cx, out))
            .or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let Some(Choice { flow, layer, number, to }) = self.on_air.take() else { return };
        let Some(to) = to else {
            self.broadcast_time.add(report.airtime);
            return self.update(cx);
        };

        let Some(session) = self.streams.known.get_mut(&flow) else { return };
        if report.result == TxResult::Acked {
            // An acknowledged packet is held no longer for that child.
            let held = &mut session.layers[layer].held;
            if let Some(packet) = held.get_mut(&number) {
                packet.due.remove(&to);
                if packet.due.is_empty() {
                    held.remove(&number);
                }
            }
        }

        if let Some(child) = session.part.children.get_mut(&to) {
            // The airtime is of all tries together. The average is that of one.
            self.unicast_time.add(report.airtime.mul_f64(1.0 / child.tries));
            match report.result {
                TxResult::Acked => child.note_acked(cx.now),
                TxResult::Failed | TxResult::Sent => child.note_failed(cx.now),
            }
        }

        self.update(cx);
    }
}
