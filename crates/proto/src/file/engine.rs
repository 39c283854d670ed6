//! The service itself: frames in, frames out, for one scheme.

use super::acks::{Acks, Taken};
use super::announce::{Announces, Heard, SILENT};
use super::data::Data;
use super::frame::{self, Ack, Announce, Phase};
use super::manifest::{Refusal, is_safe_name};
use super::relay::{Relayed, Relays};
use super::scheme::Scheme;
use super::sink::{Sink, SinkPhase, Sunk, make_memory};
use super::source::Source;
use super::{BatchSet, FileService, Geometry, Outgoing, ReceiverState, SendError, TransferStatus};
use crate::counters::DropReason;
use crate::route::{Metric, Paths, Topology};
use crate::service::{Class, Cx, Event, Filled, Frame, Offer, Service, TxReport};
use crate::time::{Duration, Instant};
use ncmesh_wire::{FlowId, NodeId, ServiceId};
use std::collections::{BTreeMap, BTreeSet};

/// Housekeeping happens this often.
const TIDY: Duration = Duration::from_secs(1);
/// An acknowledgment that finds no way to the source waits so long.
const NO_ROUTE_PAUSE: Duration = Duration::from_secs(1);
/// An announcement is answered at most this often.
const ANSWER_PAUSE: Duration = Duration::from_millis(150);
/// A receiver that hears nothing of a transfer for so long tells its source how it stands, so that it learns
/// of an end it has missed.
const ASK_AFTER: Duration = Duration::from_secs(30);
/// Weight of the newest packet in the mean packet time.
const PACKET_TIME_WEIGHT: f64 = 0.1;
/// Header room kept for so many forwarders at least and at most, where packets are made to fit the radio.
const LISTED: (usize, usize) = (4, 24);

/// Bounds on what one node keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// Transfers received at once, and files sent that ended: the oldest are dropped for new ones.
    pub kept: usize,
    /// Bytes of batches under way, of all transfers received.
    pub memory: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { kept: 64, memory: 256 << 20 }
    }
}

/// What was filled last, to know what a report is about.
#[derive(Clone, Copy, Debug)]
enum Last {
    Nothing,
    Ack(FlowId, NodeId),
    Source(FlowId),
    Other,
}

/// The file service of one scheme at one node.
pub struct FileEngine<S> {
    service: ServiceId,
    scheme: S,
    limits: FileLimits,
    sources: BTreeMap<FlowId, Source>,
    sinks: BTreeMap<FlowId, Sink>,
    answered: BTreeMap<FlowId, Instant>,
    relays: Relays,
    acks: Acks,
    /// Numbers this node's own acknowledgments, so that each is newer than those before.
    acks_made: u32,
    announces: Announces,
    last: Last,
    /// Mean airtime of a data packet (T_p).
    packet_time: Duration,
    /// Ways to the sources of other nodes' files, for acknowledgments.
    routes: Option<(u64, Paths)>,
    next_tidy: Instant,
}

impl<S: Scheme> FileEngine<S> {
    /// A service that speaks as `service` and follows `scheme`.
    #[must_use]
    pub fn new(service: ServiceId, scheme: S, limits: FileLimits) -> Self {
        Self {
            service,
            scheme,
            limits,
            sources: BTreeMap::new(),
            sinks: BTreeMap::new(),
            answered: BTreeMap::new(),
            relays: Relays::default(),
            acks: Acks::default(),
            acks_made: 0,
            announces: Announces::new(),
            last: Last::Nothing,
            packet_time: Duration::ZERO,
            routes: None,
            next_tidy: Instant::default(),
        }
    }

    fn hear_announce(&mut self, cx: &mut Cx<'_>, heard: &Frame<'_>) {
        let Ok(announce) = Announce::parse(heard.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let flow = announce.manifest.flow;
        match self.announces.take(&announce, Some(heard.sender), cx.now, cx.rng) {
            Heard::Full => return cx.counters.drop(DropReason::Full),
            Heard::Known => return self.settle_announcements(cx),
            Heard::New => {}
        }
        if announce.phase != Phase::Open {
            self.relays.forget(flow);
            self.acks.forget(flow);
        }
        if flow.source != cx.me {
            self.consider(cx, &announce);
        }
    }

    /// A new announcement: is it for this node, and does the source know how this node stands?
    fn consider(&mut self, cx: &mut Cx<'_>, announce: &Announce) {
        let flow = announce.manifest.flow;
        let listed = announce.receivers.iter().find(|(node, _)| *node == cx.me).map(|(_, s)| *s);
        match (self.sinks.get_mut(&flow), announce.phase) {
            (Some(sink), Phase::Withdrawn | Phase::Ended) if sink.lacks_something() => {
                sink.end(SinkPhase::Withdrawn, cx.now);
                cx.events.push_back(Event::Withdrawn(flow));
            }
            (Some(sink), Phase::Open) => {
                sink.heard_at = cx.now;
                let known = listed.unwrap_or(ReceiverState::Invited);
                if sink.phase != SinkPhase::Asking && known != sink.state() {
                    self.answer(cx, flow);
                }
            }
            (None, Phase::Open) if listed.is_some() || announce.open => {
                self.invite(cx, announce, listed);
            }
            _ => {}
        }
    }

    fn invite(&mut self, cx: &mut Cx<'_>, announce: &Announce, known: Option<ReceiverState>) {
        let flow = announce.manifest.flow;
        if self.sinks.len() >= self.limits.kept && !self.drop_a_sink(cx) {
            cx.counters.drop(DropReason::Full);
            if known != Some(ReceiverState::Refused(Refusal::Busy)) {
                let version = self.next_ack(cx);
                self.pass_on(cx, Ack::refusal(flow, cx.me, version, Refusal::Busy));
            }
            return;
        }
        self.sinks.insert(flow, Sink::new(announce.manifest.clone(), cx.now));
        if is_safe_name(&announce.manifest.name) {
            cx.events.push_back(Event::Announced(Box::new(announce.manifest.clone())));
        } else {
            self.refuse(cx, flow, Refusal::BadName);
        }
    }

    /// Makes room for another file to receive: one that ended goes, or else one whose source is silent. That
    /// is taken up again when it is announced again.
    fn drop_a_sink(&mut self, cx: &mut Cx<'_>) -> bool {
        let silent = |s: &Sink| cx.now.since(s.heard_at) >= SILENT;
        let may_go = self.sinks.iter().filter(|(_, s)| !s.is_open() || silent(s));
        let oldest = may_go.min_by_key(|(_, s)| (s.is_open(), s.finished, s.heard_at));
        let Some((flow, is_open)) = oldest.map(|(flow, s)| (*flow, s.is_open())) else {
            return false;
        };
        self.answered.remove(&flow);
        self.sinks.remove(&flow);
        if is_open {
            cx.events.push_back(Event::Parked(flow));
        }
        true
    }

    /// The version of this node's next acknowledgment.
    fn next_ack(&mut self, cx: &Cx<'_>) -> (u64, u32) {
        self.acks_made += 1;
        (cx.epoch, self.acks_made)
    }

    /// Makes room for another file to send. Those under way stay, however many.
    fn drop_ended_sources(&mut self) {
        while self.sources.len() >= self.limits.kept {
            let ended = self.sources.iter().filter(|(_, s)| s.end_told.is_some());
            let oldest = ended.min_by_key(|(_, s)| s.finished).map(|(flow, _)| *flow);
            let Some(flow) = oldest else { return };
            self.sources.remove(&flow);
        }
    }

    /// Tells the source how this receiver stands, unless it has just been told.
    fn answer(&mut self, cx: &mut Cx<'_>, flow: FlowId) {
        let recently = self.answered.get(&flow).is_some_and(|at| cx.now.since(*at) < ANSWER_PAUSE);
        if !recently {
            self.acknowledge(cx, flow);
        }
    }

    fn acknowledge(&mut self, cx: &mut Cx<'_>, flow: FlowId) {
        let room = cx.mtu.saturating_sub(Ack::HEADER);
        let version = self.next_ack(cx);
        let Some(sink) = self.sinks.get(&flow) else { return };
        let ack = sink.acknowledge(cx.me, version, room);
        self.answered.insert(flow, cx.now);
        self.pass_on(cx, ack);
    }

    /// An acknowledgment of this node or another is to go on its way to the source. Says whether it is kept.
    fn pass_on(&mut self, cx: &mut Cx<'_>, ack: Ack) -> bool {
        let taken = self.acks.push(ack, cx.now);
        if taken == Taken::Full {
            cx.counters.drop(DropReason::Full);
        }
        taken != Taken::Full
    }

    fn hear_data(&mut self, cx: &mut Cx<'_>, heard: &Frame<'_>) {
        let Ok(data) = Data::parse(heard.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if data.header.routing.forwarding() != self.scheme.forwarding() {
            return cx.counters.drop(DropReason::Malformed);
        }
        let flow = data.header.flow;
        self.acks.overhear(heard.sender, &data.header, cx.now);
        if let Some(source) = self.sources.get_mut(&flow) {
            return source.overhear(heard.sender, cx.now);
        }
        match self.relays.handle_data(cx.me, heard.sender, &data, cx.mtu, cx.now) {
            Relayed::Malformed => cx.counters.drop(DropReason::Malformed),
            Relayed::Stale => cx.counters.drop(DropReason::Stale),
            Relayed::NotOurs | Relayed::Taken => {}
        }
        let needs = self.sinks.get(&flow).map_or(0, |sink| sink.needs(data.header.batch));
        if !make_memory(&mut self.sinks, needs, self.limits.memory) {
            return cx.counters.drop(DropReason::Full);
        }
        let Some(sink) = self.sinks.get_mut(&flow) else { return };
        match sink.handle_data(&data, cx.now, cx.storage) {
            Sunk::Quiet => {}
            Sunk::Malformed | Sunk::BatchBad => cx.counters.drop(DropReason::Malformed),
            Sunk::Failed(why) => {
                self.refuse(cx, flow, why);
                cx.events.push_back(Event::Unwritable(flow));
            }
            Sunk::BatchDone => self.batch_done(cx, flow),
        }
    }

    fn batch_done(&mut self, cx: &mut Cx<'_>, flow: FlowId) {
        self.acknowledge(cx, flow);
        if self.sinks.get(&flow).is_some_and(|s| s.phase == SinkPhase::Verifying) {
            cx.events.push_back(Event::Assembled(flow));
        }
    }

    fn hear_ack(&mut self, cx: &mut Cx<'_>, heard: &Frame<'_>) {
        let Ok((next_hop, ack)) = Ack::parse(heard.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if next_hop != cx.me {
            return;
        }
        if ack.flow.source != cx.me {
            if self.pass_on(cx, ack.clone()) {
                self.acks.received(&ack);
            }
            return;
        }
        match self.sources.get_mut(&ack.flow) {
            None => cx.counters.drop(DropReason::UnknownFlow),
            Some(source) => {
                self.acks.received(&ack);
                if !source.handle_ack(&ack, cx, &self.scheme) {
                    cx.counters.drop(DropReason::Stale);
                }
            }
        }
    }

    fn fill_ack(&mut self, cx: &mut Cx<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        while let Some(ack) = self.acks.due(cx.now).cloned() {
            let Some(next) = self.next_hop(cx.topology, cx.me, ack.flow.source) else {
                let own = ack.receiver == cx.me;
                self.acks.postpone(ack.flow, ack.receiver, cx.now + NO_ROUTE_PAUSE, own);
                continue;
            };
            if ack.bits.len() + Ack::HEADER > cx.mtu {
                self.acks.drop(ack.flow, ack.receiver);
                continue;
            }
            ack.write(next, out);
            self.acks.sent(ack.flow, ack.receiver, next, cx.now);
            self.last = Last::Ack(ack.flow, ack.receiver);
            return Some(Filled { kind: frame::ACK, to: Some(next) });
        }
        None
    }

    fn next_hop(&mut self, topology: &Topology, me: NodeId, to: NodeId) -> Option<NodeId> {
        if self.routes.as_ref().is_none_or(|(version, _)| *version != topology.version()) {
            self.routes = Some((topology.version(), topology.paths_from(me, Metric::Unicast)));
        }
        self.routes.as_ref()?.1.path_to(to).first().copied()
    }

    fn fill_announce(&mut self, cx: &mut Cx<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let announce = self.announces.due(cx.now)?;
        let flow = announce.manifest.flow;
        let start = out.len();
        announce.write(out);
        self.announces.sent(flow, cx.now, cx.rng);
        if out.len() - start > cx.mtu {
            out.truncate(start);
            return None;
        }
        self.last = Last::Other;
        Some(Filled { kind: frame::ANNOUNCE, to: None })
    }

    fn fill_data(&mut self, cx: &mut Cx<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let relayed = self.relays.ready();
        let own = self.ready_source(cx.now);
        match (relayed, own) {
            (Some((flow, at)), other) if other.is_none_or(|(_, own_at)| at <= own_at) => {
                self.fill_relayed(cx, flow, out)
            }
            (_, Some((flow, _))) => self.fill_own(cx, flow, out),
            _ => None,
        }
    }

    fn fill_relayed(&mut self, cx: &mut Cx<'_>, flow: FlowId, out: &mut Vec<u8>) -> Option<Filled> {
        let header = self.relays.header(flow, self.acks.piggyback(flow))?;
        header.write(false, out);
        self.last = Last::Other;
        self.relays
            .fill(flow, cx.now, cx.rng, out)
            .then_some(Filled { kind: frame::DATA, to: None })
    }

    fn fill_own(&mut self, cx: &mut Cx<'_>, flow: FlowId, out: &mut Vec<u8>) -> Option<Filled> {
        let piggyback = self.acks.piggyback(flow);
        let source = self.sources.get_mut(&flow)?;
        source.prepare(cx, &self.scheme)?;
        source.fill(cx, piggyback, &self.scheme, out)?;
        self.last = Last::Source(flow);
        Some(Filled { kind: frame::DATA, to: None })
    }

    /// Of the files that can be sent from, the one longest not sent from.
    fn ready_source(&self, now: Instant) -> Option<(FlowId, Instant)> {
        let ready = self.sources.iter().filter(|(_, s)| s.is_ready(now));
        ready.map(|(flow, s)| (*flow, s.sent_at)).min_by_key(|(flow, at)| (*at, *flow))
    }

    fn refresh_sources(&mut self, cx: &mut Cx<'_>) {
        for source in self.sources.values_mut() {
            source.refresh(cx.topology, &self.scheme, cx.mtu, cx.now);
        }
    }

    fn make_announcements(&mut self, cx: &mut Cx<'_>) {
        for source in self.sources.values_mut().filter(|s| s.phase == Phase::Open) {
            if let Some(announce) = source.announcement(cx, &self.scheme) {
                self.announces.take(&announce, None, cx.now, cx.rng);
            }
        }
    }

    /// Announces, once and where a receiver has missed it, how files of ours ended.
    fn announce_ended(&mut self, cx: &mut Cx<'_>) {
        let untold = |s: &&mut Source| s.phase != Phase::Open && s.end_told.is_none();
        for source in self.sources.values_mut().filter(untold) {
            source.end_told = Some(cx.now);
            if let Some(announce) = source.announcement(cx, &self.scheme) {
                self.announces.take(&announce, None, cx.now, cx.rng);
            }
        }
    }

    fn tidy(&mut self, cx: &mut Cx<'_>) {
        if cx.now < self.next_tidy {
            return;
        }
        self.next_tidy = cx.now + TIDY;
        self.relays.expire(cx.now);
        self.settle_announcements(cx);
        self.ask_silent_sources(cx);
    }

    fn ask_silent_sources(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        let asks = |flow: &FlowId, sink: &Sink| {
            let answered = self.answered.get(flow).is_none_or(|at| now.since(*at) >= ASK_AFTER);
            sink.phase == SinkPhase::Receiving && now.since(sink.heard_at) >= ASK_AFTER && answered
        };
        let silent: Vec<FlowId> =
            self.sinks.iter().filter(|(flow, s)| asks(flow, s)).map(|(flow, _)| *flow).collect();
        for flow in silent {
            self.acknowledge(cx, flow);
        }
    }

    /// Stops passing on announcements that all neighbours have.
    fn settle_announcements(&mut self, cx: &Cx<'_>) {
        let neighbors: BTreeSet<NodeId> = cx.topology.links_from(cx.me).map(|(n, _)| n).collect();
        self.announces.settle(&neighbors);
    }

    fn is_idle(&self) -> bool {
        self.relays.len() == 0
            && self.sources.values().all(|s| s.phase != Phase::Open)
            && self.sinks.values().all(|s| s.phase != SinkPhase::Receiving)
            && self.announces.poll_timeout(Instant::default()).is_none()
    }
}

impl<S: Scheme> Service for FileEngine<S> {
    fn hears(&self, service: ServiceId) -> bool {
        service == self.service
    }

    fn handle_frame(&mut self, cx: &mut Cx<'_>, heard: &Frame<'_>) {
        self.refresh_sources(cx);
        match heard.kind {
            frame::ANNOUNCE => self.hear_announce(cx, heard),
            frame::DATA => self.hear_data(cx, heard),
            frame::ACK => self.hear_ack(cx, heard),
            _ => cx.counters.drop(DropReason::Malformed),
        }
        self.announce_ended(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.refresh_sources(cx);
        self.make_announcements(cx);
        self.announce_ended(cx);
        self.tidy(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let sources = self.sources.values().filter_map(|s| s.poll_timeout(after)).min();
        let tidy = Some(self.next_tidy).filter(|t| *t > after && !self.is_idle());
        let parts =
            [sources, tidy, self.acks.poll_timeout(after), self.announces.poll_timeout(after)];
        parts.into_iter().flatten().min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        if self.acks.due(now).is_some() || self.announces.due(now).is_some() {
            return Some(Offer { class: Class::Control });
        }
        let data = self.relays.ready().is_some() || self.ready_source(now).is_some();
        data.then_some(Offer { class: Class::Data })
    }

    fn fill(&mut self, cx: &mut Cx<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.last = Last::Nothing;
        if let Some(filled) = self.fill_ack(cx, out) {
            return Some(filled);
        }
        self.fill_announce(cx, out).or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Cx<'_>, report: TxReport) {
        match core::mem::replace(&mut self.last, Last::Nothing) {
            Last::Ack(flow, receiver) => self.acks.report(flow, receiver, report.result, cx.now),
            Last::Source(flow) => {
                self.packet_time = mean(self.packet_time, report.airtime);
                if let Some(source) = self.sources.get_mut(&flow) {
                    source.sent(&self.scheme, self.packet_time, cx.now);
                }
            }
            Last::Nothing | Last::Other => {}
        }
    }

    fn as_file(&mut self) -> Option<&mut dyn FileService> {
        Some(self)
    }

    fn as_file_ref(&self) -> Option<&dyn FileService> {
        Some(self)
    }
}

impl<S: Scheme> FileService for FileEngine<S> {
    fn geometry_for(&self, cx: &Cx<'_>, size: u64) -> Result<Geometry, SendError> {
        let generation = self.scheme.generation();
        let room = |listed| {
            let used = self.scheme.forwarding().overhead(listed, usize::from(generation));
            cx.mtu.checked_sub(used).filter(|room| *room >= 64).ok_or(SendError::MtuTooSmall)
        };
        let forwarders = cx.topology.nodes().count().saturating_sub(2);
        let fits = room(forwarders.clamp(LISTED.0, LISTED.1))?;
        let fits = u16::try_from(fits).unwrap_or(u16::MAX);
        let symbol = match self.scheme.symbol_size() {
            Some(wanted) if wanted > fits => {
                return Err(SendError::SymbolTooLarge { wanted, fits });
            }
            wanted => wanted.unwrap_or(fits),
        };
        let symbol = u64::from(symbol).min(size.max(64)) as u16;
        Ok(Geometry::new(size, generation, symbol)?)
    }

    fn send(&mut self, cx: &mut Cx<'_>, outgoing: Outgoing) -> Result<(), SendError> {
        let flow = outgoing.manifest.flow;
        let room = Announce::room_for_receivers(&outgoing.manifest, cx.mtu);
        if outgoing.receivers.is_empty() && !outgoing.open {
            return Err(SendError::NoReceivers);
        }
        if outgoing.receivers.len() > room {
            return Err(SendError::TooManyReceivers(room));
        }
        if !is_safe_name(&outgoing.manifest.name) {
            return Err(SendError::BadName);
        }
        if self.sources.contains_key(&flow) {
            return Err(SendError::Exists);
        }
        let g = outgoing.manifest.geometry;
        let wanted = g.symbol_size();
        let used = self.scheme.forwarding().overhead(0, usize::from(g.generation()));
        if used + usize::from(wanted) > cx.mtu {
            let fits = cx.mtu.saturating_sub(used) as u16;
            return Err(SendError::SymbolTooLarge { wanted, fits });
        }
        self.drop_ended_sources();
        self.sources.insert(flow, Source::new(outgoing, cx.epoch, cx.mtu, cx.now));
        self.handle_timeout(cx);
        Ok(())
    }

    fn accept(&mut self, cx: &mut Cx<'_>, flow: FlowId, have: BatchSet) {
        let Some(sink) = self.sinks.get_mut(&flow).filter(|s| s.phase == SinkPhase::Asking) else {
            return;
        };
        if have.len() != sink.manifest.geometry.batches() {
            return;
        }
        sink.accept(have);
        self.batch_done(cx, flow);
    }

    fn refuse(&mut self, cx: &mut Cx<'_>, flow: FlowId, why: Refusal) {
        if let Some(sink) = self.sinks.get_mut(&flow) {
            sink.end(SinkPhase::Refused(why), cx.now);
            self.acknowledge(cx, flow);
        }
    }

    fn delivered(&mut self, cx: &mut Cx<'_>, flow: FlowId) {
        if let Some(sink) = self.sinks.get_mut(&flow).filter(|s| s.is_open()) {
            sink.end(SinkPhase::Done, cx.now);
            self.acknowledge(cx, flow);
        }
    }

    fn cancel(&mut self, cx: &mut Cx<'_>, flow: FlowId) -> bool {
        if let Some(source) = self.sources.get_mut(&flow) {
            let open = source.phase == Phase::Open;
            if open {
                source.withdraw(cx.now);
                self.announce_ended(cx);
            }
            return open;
        }
        let open = self.sinks.get(&flow).is_some_and(Sink::is_open);
        if open {
            self.refuse(cx, flow, Refusal::Cancelled);
        }
        open
    }

    fn transfers(&self) -> Vec<TransferStatus> {
        let sending = self.sources.values().map(Source::status);
        sending.chain(self.sinks.values().map(Sink::status)).collect()
    }
}

fn mean(old: Duration, new: Duration) -> Duration {
    if old.is_zero() {
        return new;
    }
    old.mul_f64(1.0 - PACKET_TIME_WEIGHT) + new.mul_f64(PACKET_TIME_WEIGHT)
}
