//! The service itself: frames in, frames out, for one scheme.

mod commands;
mod fill;
mod hear;

use super::acks::Acks;
use super::announce::Announces;
use super::frame::{self, Phase};
use super::relay::Relays;
use super::scheme::Scheme;
use super::sink::{Sink, SinkPhase};
use super::source::Source;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::topology::{Metric, NextHops};
use ncmesh_engine::{Class, Context, Engine, Filled, Frame, Offer, TxReport};
use ncmesh_wire::{FlowId, NodeId, ServiceId};
use std::collections::{BTreeMap, BTreeSet};

/// Housekeeping happens this often.
const TIDY: Duration = Duration::from_secs(1);
/// A receiver that hears nothing of a transfer for so long tells its source how it stands, so that it learns
/// of an end it has missed.
const ASK_AFTER: Duration = Duration::from_secs(30);

/// What was filled last, to know what a report is about.
#[derive(Clone, Copy, Debug)]
enum Last {
    Nothing,
    Ack(FlowId, NodeId),
    Source(FlowId),
    Relayed(FlowId),
    Report(FlowId),
    Other,
}

/// The file service of one scheme at one node.
pub struct FileMulticast<S> {
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
    packet_time: DurationAverage,
    /// On the way to the sources of other nodes' files, for acknowledgments.
    next_hops: NextHops,
    next_tidy: Instant,
}

impl<S: Scheme> FileMulticast<S> {
    /// A service that speaks as `service` and follows `scheme`.
    #[must_use]
    pub fn new(service: ServiceId, scheme: S, limits: FileLimits) -> Self {
        Self {
            relays: Relays::new(scheme.forwarding()),
            service,
            scheme,
            limits,
            sources: BTreeMap::new(),
            sinks: BTreeMap::new(),
            answered: BTreeMap::new(),
            acks: Acks::default(),
            acks_made: 0,
            announces: Announces::new(),
            last: Last::Nothing,
            packet_time: DurationAverage::default(),
            next_hops: NextHops::new(Metric::Unicast),
            next_tidy: Instant::default(),
        }
    }

    fn refresh_sources(&mut self, cx: &mut Context<'_>) {
        for source in self.sources.values_mut() {
            source.refresh(cx.topology, &self.scheme, cx.mtu, cx.now);
        }
    }

    fn make_announcements(&mut self, cx: &mut Context<'_>) {
        for source in self.sources.values_mut().filter(|s| s.phase == Phase::Open) {
            if let Some(announce) = source.announcement(cx, &self.scheme) {
                self.announces.take(&announce, None, cx.now, cx.rng);
            }
        }
    }

    /// Announces, once and where a receiver has missed it, how files of ours ended.
    fn announce_ended(&mut self, cx: &mut Context<'_>) {
        let untold = |s: &&mut Source| s.phase != Phase::Open && s.end_told.is_none();
        for source in self.sources.values_mut().filter(untold) {
            source.end_told = Some(cx.now);
            if let Some(announce) = source.announcement(cx, &self.scheme) {
                self.announces.take(&announce, None, cx.now, cx.rng);
            }
        }
    }

    fn tidy(&mut self, cx: &mut Context<'_>) {
        if cx.now < self.next_tidy {
            return;
        }
        self.next_tidy = cx.now + TIDY;
        self.relays.expire(cx.now);
        self.settle_announcements(cx);
        self.ask_silent_sources(cx);
    }

    fn ask_silent_sources(&mut self, cx: &mut Context<'_>) {
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
    fn settle_announcements(&mut self, cx: &Context<'_>) {
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

impl<S: Scheme> Engine for FileMulticast<S> {
    fn hears(&self, service: ServiceId) -> bool {
        service == self.service
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, heard: &Frame<'_>) {
        self.refresh_sources(cx);
        match heard.kind {
            frame::ANNOUNCE => self.hear_announce(cx, heard),
            frame::DATA => self.hear_data(cx, heard),
            frame::ACK => self.hear_ack(cx, heard),
            frame::REPORT => self.hear_report(cx, heard),
            _ => cx.counters.drop(DropReason::Malformed),
        }
        self.announce_ended(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.refresh_sources(cx);
        self.sources.values_mut().for_each(|source| source.prod(cx.now));
        self.make_announcements(cx);
        self.announce_ended(cx);
        self.tidy(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let sources = self.sources.values().filter_map(|s| s.poll_timeout(after)).min();
        let tidy = Some(self.next_tidy).filter(|t| *t > after && !self.is_idle());
        let (acks, announces) = (self.acks.poll_timeout(after), self.announces.poll_timeout(after));
        let parts = [sources, tidy, acks, announces, self.relays.poll_timeout(after)];
        parts.into_iter().flatten().min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let control = self.acks.due(now).is_some()
            || self.announces.due(now).is_some()
            || self.relays.owed(now).is_some();
        if control {
            return Some(Offer::of(Class::Control));
        }
        let data = self.relays.ready(now).is_some() || self.ready_source(now).is_some();
        data.then_some(Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.last = Last::Nothing;
        if let Some(filled) = self.fill_ack(cx, out) {
            return Some(filled);
        }
        if let Some(filled) = self.fill_report(cx, out) {
            return Some(filled);
        }
        self.fill_announce(cx, out).or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        match core::mem::replace(&mut self.last, Last::Nothing) {
            Last::Ack(flow, receiver) => self.acks.report(flow, receiver, report.result, cx.now),
            Last::Source(flow) => {
                self.packet_time.add(report.airtime);
                if let Some(source) = self.sources.get_mut(&flow) {
                    let packet_time = self.packet_time.value();
                    source.sent(&self.scheme, report.result, packet_time, cx.now);
                }
            }
            Last::Report(flow) => self.relays.answered(flow, report.result, cx.now),
            Last::Relayed(flow) => self.relays.report(flow, report.result, report.airtime, cx.now),
            Last::Nothing | Last::Other => {}
        }
    }
}
