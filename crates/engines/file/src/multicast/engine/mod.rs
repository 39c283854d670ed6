//! The engine: frames in, frames out, for one scheme.
//!
//! It owns the parts of all three roles that a node may have in a transfer (source, forwarder,
//! receiver) and what the roles share: acknowledgments and announcements on their way. Frames are
//! handed to the parts in `receive`, taken from them in `fill`; `commands` is what the driver may
//! ask for.
//!
//! When the channel is granted, control goes before data, for data waits for control:
//! acknowledgments, then reports, then announcements, then data packets.

mod commands;
mod fill;
mod receive;

use super::ack_cache::{AckCache, AckKey};
use super::announcements::Announcements;
use super::frame;
use super::relay::Relays;
use super::scheme::Scheme;
use super::sink::{FileSink, SinkPhase};
use super::source::FileSource;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::{Class, Context, Engine, Filled, Frame, Offer, TxReport};
use ncmesh_wire::{FlowId, NodeId, ServiceId};
use std::collections::{BTreeMap, BTreeSet};

/// Interval of housekeeping.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// Silence of a source after which its receivers acknowledge once more. If the transfer has ended
/// meanwhile, the source then announces the end again.
const ASK_AFTER: Duration = Duration::from_secs(30);

/// The frame that is at the MAC.
#[derive(Clone, Copy, Debug)]
enum OnAir {
    Nothing,
    Announcement,
    Ack(AckKey),
    /// A report to a parent, of this transfer.
    Report(FlowId),
    /// A data packet of a file that this node sends.
    SourceData(FlowId),
    /// A data packet of a file that this node forwards.
    RelayData(FlowId),
}

/// The file engine of one scheme at one node.
pub struct FileMulticast<S> {
    service: ServiceId,
    scheme: S,
    limits: FileLimits,
    sources: BTreeMap<FlowId, FileSource>,
    relays: Relays,
    sinks: BTreeMap<FlowId, FileSink>,
    acks: AckCache,
    /// Counts this node's own acknowledgments, so that each is newer than those before.
    acks_written: u32,
    announcements: Announcements,
    on_air: OnAir,
    /// Mean airtime of a data packet (T_p).
    packet_time: DurationAverage,
    housekeeping_at: Instant,
}

impl<S: Scheme> FileMulticast<S> {
    /// Returns an engine that follows `scheme` and whose frames carry `service`.
    #[must_use]
    pub fn new(service: ServiceId, scheme: S, limits: FileLimits) -> Self {
        Self {
            relays: Relays::new(scheme.forwarding()),
            service,
            scheme,
            limits,
            sources: BTreeMap::new(),
            sinks: BTreeMap::new(),
            acks: AckCache::default(),
            acks_written: 0,
            announcements: Announcements::new(),
            on_air: OnAir::Nothing,
            packet_time: DurationAverage::default(),
            housekeeping_at: Instant::default(),
        }
    }

    /// Lets every source look at the mesh again if it has changed.
    fn refresh_paths(&mut self, cx: &Context<'_>) {
        for source in self.sources.values_mut() {
            source.refresh_paths(cx, &self.scheme);
        }
    }

    /// Floods the announcements of open transfers that are due.
    fn announce_open(&mut self, cx: &mut Context<'_>) {
        for source in self.sources.values_mut().filter(|source| source.is_open()) {
            if let Some(announcement) = source.announcement(cx, &self.scheme) {
                self.announcements.admit(&announcement, None, cx.now, cx.rng);
            }
        }
    }

    /// Floods the announcements that a transfer is closed, once for each and again if a receiver
    /// has missed it.
    fn announce_closed(&mut self, cx: &mut Context<'_>) {
        for source in self.sources.values_mut() {
            if let Some(announcement) = source.closing_announcement(cx, &self.scheme) {
                self.announcements.admit(&announcement, None, cx.now, cx.rng);
            }
        }
    }

    /// Does once a second what need not be done at once.
    fn run_housekeeping(&mut self, cx: &mut Context<'_>) {
        if cx.now < self.housekeeping_at {
            return;
        }
        self.housekeeping_at = cx.now + HOUSEKEEPING;
        if self.is_idle() {
            return;
        }
        self.relays.expire(cx.now);
        self.drop_known_announcements(cx);

        // A receiver that hears nothing of its transfer may have missed the end. Its acknowledgment
        // makes the source tell it.
        let now = cx.now;
        let is_silent = |sink: &FileSink| {
            let asked_lately = sink.acknowledged_at.is_some_and(|at| now.since(at) < ASK_AFTER);
            sink.phase == SinkPhase::Receiving
                && now.since(sink.heard_at) >= ASK_AFTER
                && !asked_lately
        };
        let silent: Vec<FlowId> =
            self.sinks.iter().filter(|(_, sink)| is_silent(sink)).map(|(flow, _)| *flow).collect();
        for flow in silent {
            self.acknowledge(cx, flow);
        }
    }

    /// Stops repeating announcements that all neighbours have.
    fn drop_known_announcements(&mut self, cx: &Context<'_>) {
        let neighbors: BTreeSet<NodeId> = cx.topology.links_from(cx.me).map(|(n, _)| n).collect();
        self.announcements.drop_acknowledged(&neighbors);
    }

    /// Returns whether nothing needs housekeeping.
    fn is_idle(&self) -> bool {
        self.relays.is_empty()
            && !self.sources.values().any(FileSource::is_open)
            && self.sinks.values().all(|sink| sink.phase != SinkPhase::Receiving)
            && self.announcements.poll_timeout(Instant::default()).is_none()
    }
}

impl<S: Scheme> Engine for FileMulticast<S> {
    fn hears(&self, service: ServiceId) -> bool {
        service == self.service
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        self.refresh_paths(cx);
        match frame.kind {
            frame::ANNOUNCE => self.handle_announcement(cx, frame),
            frame::DATA => self.handle_data(cx, frame),
            frame::ACK => self.handle_ack(cx, frame),
            frame::REPORT => self.handle_report(cx, frame),
            _ => cx.counters.drop(DropReason::Malformed),
        }
        self.announce_closed(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.refresh_paths(cx);
        self.sources.values_mut().for_each(|source| source.poll_if_stalled(cx.now));
        self.announce_open(cx);
        self.announce_closed(cx);
        self.run_housekeeping(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let housekeeping = self.housekeeping_at;
        let timeouts = [
            self.sources.values().filter_map(|source| source.poll_timeout(after)).min(),
            Some(housekeeping).filter(|at| *at > after && !self.is_idle()),
            self.acks.poll_timeout(after),
            self.announcements.poll_timeout(after),
            self.relays.poll_timeout(after),
        ];
        timeouts.into_iter().flatten().min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let has_control = self.acks.due(now).is_some()
            || self.announcements.due(now).is_some()
            || self.relays.due_report(now).is_some();
        if has_control {
            return Some(Offer::of(Class::Control));
        }
        let has_data = self.relays.ready(now).is_some() || self.ready_source(now).is_some();
        has_data.then_some(Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.on_air = OnAir::Nothing;
        self.fill_ack(cx, out)
            .or_else(|| self.fill_report(cx, out))
            .or_else(|| self.fill_announcement(cx, out))
            .or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        match core::mem::replace(&mut self.on_air, OnAir::Nothing) {
            OnAir::Nothing | OnAir::Announcement => {}
            OnAir::Ack(key) => self.acks.handle_tx_result(key, report.result, cx.now),
            OnAir::Report(flow) => {
                self.relays.handle_report_result(flow, report.result, cx.now);
            }
            // Source rate limiting counts in packet times, so this node's own packets are measured.
            OnAir::SourceData(flow) => {
                self.packet_time.add(report.airtime);
                if let Some(source) = self.sources.get_mut(&flow) {
                    let packet_time = self.packet_time.value();
                    source.handle_tx_result(&self.scheme, report.result, packet_time, cx.now);
                }
            }
            OnAir::RelayData(flow) => {
                self.relays.handle_tx_result(flow, report.result, report.airtime, cx.now);
            }
        }
    }
}
