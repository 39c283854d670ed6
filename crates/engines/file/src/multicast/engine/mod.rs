//! The engine: frames in, frames out, for one scheme.
//!
//! It owns the parts of all three roles that a node may have in a transfer (source, forwarder,
//! receiver) and what the roles share: acknowledgments and announcements on their way. Frames are
//! handed to the parts in `receive`, taken from them in `fill`; `commands` is what the driver may
//! ask for.
//!
//! When the channel is granted, control goes before data, for data waits for control:
//! acknowledgments, then reports, then announcements, then data packets.

mod by_rank;
mod commands;
mod fill;
mod receive;

use super::ack_cache::{AckCache, AckKey};
use super::announcements::Announcements;
use super::by_rank::ByRank;
use super::frame;
use super::relay::Relays;
use super::scheme::Scheme;
use super::sink::{FileSink, SinkPhase};
use super::source::FileSource;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::{Class, Context, Engine, Event, Filled, Frame, Offer, TxReport, TxResult};
use ncmesh_wire::{FlowId, ServiceId};
use std::collections::BTreeMap;

/// Interval of housekeeping.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// Silence of a source after which its receivers acknowledge once more. If the transfer has ended
/// meanwhile, the source then announces the end again.
const ASK_AFTER: Duration = Duration::from_secs(30);
/// Time for which an end that is claimed in the name of a source stands before a receiver believes
/// it. A source that hears of a claim it has not made announces its transfer again at once, or
/// within 8 s if it has just answered another.
const END_STANDS: Duration = Duration::from_secs(10);

/// Packets as a scheme wants them.
#[derive(Clone, Copy, Debug)]
pub struct PacketConfig {
    /// Packets of a full batch (k).
    pub batch_size: u8,
    /// Payload of a packet, bytes; `None` to fit the radio.
    pub symbol_size: Option<u16>,
}

/// How data gets from sources to receivers.
enum Way {
    /// By a plan of the source, which its packets carry.
    Planned(Planned),
    /// Hop by hop, by the ranks that are heard.
    ByRank(ByRank),
}

/// The parts of a planned scheme.
struct Planned {
    scheme: Box<dyn Scheme + Send>,
    relays: Relays,
    /// Mean airtime of a data packet (T_p).
    packet_time: DurationAverage,
}

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
    /// A frame of a scheme that sends by rank.
    ByRank,
}

/// The file engine of one scheme at one node.
pub struct FileMulticast {
    service: ServiceId,
    packets: PacketConfig,
    limits: FileLimits,
    way: Way,
    sources: BTreeMap<FlowId, FileSource>,
    sinks: BTreeMap<FlowId, FileSink>,
    acks: AckCache,
    /// Counts this node's own acknowledgments, so that each is newer than those before.
    acks_written: u32,
    announcements: Announcements,
    on_air: OnAir,
    housekeeping_at: Instant,
}

impl FileMulticast {
    /// Returns an engine that follows the plans of `scheme` and whose frames carry `service`.
    #[must_use]
    pub fn planned(
        service: ServiceId,
        scheme: impl Scheme + Send + 'static,
        limits: FileLimits,
    ) -> Self {
        let packets =
            PacketConfig { batch_size: scheme.batch_size(), symbol_size: scheme.symbol_size() };
        let relays = Relays::new(scheme.forwarding());
        let (scheme, packet_time) = (Box::new(scheme), DurationAverage::default());
        Self::new(service, packets, Way::Planned(Planned { scheme, relays, packet_time }), limits)
    }

    /// Returns an engine that sends hop by hop, by rank, and whose frames carry `service`.
    #[must_use]
    pub fn by_rank(service: ServiceId, packets: PacketConfig, limits: FileLimits) -> Self {
        Self::new(service, packets, Way::ByRank(ByRank::new(limits.memory)), limits)
    }

    fn new(service: ServiceId, packets: PacketConfig, way: Way, limits: FileLimits) -> Self {
        Self {
            service,
            packets,
            limits,
            way,
            sources: BTreeMap::new(),
            sinks: BTreeMap::new(),
            acks: AckCache::default(),
            acks_written: 0,
            announcements: Announcements::new(),
            on_air: OnAir::Nothing,
            housekeeping_at: Instant::default(),
        }
    }

    /// Lets every source look at the mesh again if it has changed.
    fn refresh_paths(&mut self, cx: &Context<'_>) {
        let scheme = self.way.scheme();
        for source in self.sources.values_mut() {
            source.refresh_paths(cx, scheme);
        }
    }

    /// Floods the announcements of open transfers that are due.
    fn announce_open(&mut self, cx: &mut Context<'_>) {
        let scheme = self.way.scheme();
        for source in self.sources.values_mut() {
            source.answer_lie(cx.epoch, cx.now);
            source.confirm_end(cx);
        }
        for source in self.sources.values_mut().filter(|source| source.is_open()) {
            if let Some(announcement) = source.announcement(cx, scheme) {
                self.announcements.admit(&announcement, None, cx.now, cx.rng);
            }
        }
    }

    /// Floods the announcements that a transfer is closed, once for each and again if a receiver
    /// has missed it.
    fn announce_closed(&mut self, cx: &mut Context<'_>) {
        for (flow, source) in &mut self.sources {
            let Some(announcement) = source.closing_announcement(cx, self.way.scheme()) else {
                continue;
            };
            if let Way::ByRank(by_rank) = &mut self.way {
                by_rank.close(*flow);
            }
            self.announcements.admit(&announcement, None, cx.now, cx.rng);
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
        match &mut self.way {
            Way::Planned(planned) => planned.relays.expire(cx.now),
            Way::ByRank(by_rank) => by_rank.tick(cx),
        }
        self.drop_known_announcements(cx);
        self.review_claimed_ends(cx);

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

    /// Objects to ends that are claimed of this node, and believes those of sources that stood.
    fn review_claimed_ends(&mut self, cx: &mut Context<'_>) {
        let claimed = self.sinks.iter().filter_map(|(flow, sink)| Some((*flow, sink.claimed_end?)));
        for (flow, claim) in claimed.collect::<Vec<_>>() {
            if cx.now.since(claim.at) < END_STANDS {
                if claim.is_of_receiver {
                    self.acknowledge(cx, flow);
                }
            } else if let Some(sink) = self.sinks.get_mut(&flow) {
                sink.end(SinkPhase::Withdrawn, cx.now);
                cx.events.push_back(Event::Withdrawn(flow));
            }
        }
    }

    /// Stops repeating announcements that all neighbours have.
    fn drop_known_announcements(&mut self, cx: &Context<'_>) {
        self.announcements.drop_acknowledged(|| cx.topology.links_from(cx.me).map(|(to, _)| to));
    }

    /// Returns whether nothing needs housekeeping.
    fn is_idle(&self) -> bool {
        self.way.is_empty()
            && !self.sources.values().any(FileSource::is_open)
            && !self
                .sinks
                .values()
                .any(|sink| sink.phase == SinkPhase::Receiving || sink.claimed_end.is_some())
            && self.announcements.poll_timeout(Instant::default()).is_none()
    }
}

impl Way {
    /// Returns the scheme that plans, if one does.
    fn scheme(&self) -> Option<&dyn Scheme> {
        match self {
            Self::Planned(planned) => Some(&*planned.scheme),
            Self::ByRank(_) => None,
        }
    }

    /// Returns whether this node forwards nothing.
    fn is_empty(&self) -> bool {
        match self {
            Self::Planned(planned) => planned.relays.is_empty(),
            Self::ByRank(by_rank) => by_rank.is_empty(),
        }
    }
}

impl Engine for FileMulticast {
    fn hears(&self, service: ServiceId) -> bool {
        service == self.service
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        self.refresh_paths(cx);
        let is_planned = matches!(self.way, Way::Planned(_));
        match frame.kind {
            frame::ANNOUNCE => self.handle_announcement(cx, frame),
            frame::ACK => self.handle_ack(cx, frame),
            frame::DATA if is_planned => self.handle_data(cx, frame),
            frame::REPORT if is_planned => self.handle_report(cx, frame),
            frame::DATA => self.handle_coded(cx, frame),
            frame::REPORT => self.handle_rank_report(cx, frame),
            _ => cx.counters.drop(DropReason::Malformed),
        }
        self.announce_closed(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.refresh_paths(cx);
        self.sources.values_mut().for_each(|source| source.poll_if_stalled(cx.now));
        self.announce_open(cx);
        self.announce_closed(cx);
        if let Way::ByRank(by_rank) = &mut self.way {
            by_rank.handle_timeout(cx.now);
        }
        self.run_housekeeping(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let housekeeping = self.housekeeping_at;
        let way = match &self.way {
            Way::Planned(planned) => planned.relays.poll_timeout(after),
            Way::ByRank(by_rank) => by_rank.poll_timeout(after),
        };
        let timeouts = [
            self.sources.values().filter_map(|source| source.poll_timeout(after)).min(),
            Some(housekeeping).filter(|at| *at > after && !self.is_idle()),
            self.acks.poll_timeout(after),
            self.announcements.poll_timeout(after),
            way,
        ];
        timeouts.into_iter().flatten().min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let has_report = match &self.way {
            Way::Planned(planned) => planned.relays.due_report(now).is_some(),
            Way::ByRank(by_rank) => by_rank.has_report(now),
        };
        let has_control =
            self.acks.due(now).is_some() || self.announcements.due(now).is_some() || has_report;
        if has_control {
            return Some(Offer::of(Class::Control));
        }
        let has_data = match &self.way {
            Way::Planned(planned) => {
                planned.relays.ready(now).is_some() || self.ready_source(now).is_some()
            }
            Way::ByRank(by_rank) => self.next_coded(by_rank, now).is_some(),
        };
        has_data.then_some(Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.on_air = OnAir::Nothing;
        if let Some(filled) = self.fill_ack(cx, out) {
            return Some(filled);
        }
        match self.way {
            Way::Planned(_) => self
                .fill_report(cx, out)
                .or_else(|| self.fill_announcement(cx, out))
                .or_else(|| self.fill_data(cx, out)),
            Way::ByRank(_) => self
                .fill_rank_report(cx, out)
                .or_else(|| self.fill_announcement(cx, out))
                .or_else(|| self.fill_coded(cx, out)),
        }
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        match (core::mem::replace(&mut self.on_air, OnAir::Nothing), &mut self.way) {
            // Nothing waits for progress, and the next acknowledgment says more.
            (OnAir::Ack(key), Way::ByRank(_)) if report.result == TxResult::Failed => {
                self.acks.give_up_progress(key, cx.now);
            }
            (OnAir::Ack(key), _) => self.acks.handle_tx_result(key, report.result, cx.now),
            (OnAir::ByRank, Way::ByRank(by_rank)) => by_rank.handle_tx_report(cx, &report),
            (OnAir::Report(flow), Way::Planned(planned)) => {
                planned.relays.handle_report_result(flow, report.result, cx.now);
            }
            // Source rate limiting counts in packet times, so this node's own packets are measured.
            (OnAir::SourceData(flow), Way::Planned(planned)) => {
                planned.packet_time.add(report.airtime);
                if let Some(source) = self.sources.get_mut(&flow) {
                    let packet_time = planned.packet_time.value();
                    source.handle_tx_result(&*planned.scheme, report.result, packet_time, cx.now);
                }
            }
            (OnAir::RelayData(flow), Way::Planned(planned)) => {
                planned.relays.handle_tx_result(flow, report.result, report.airtime, cx.now);
            }
            _ => {}
        }
    }
}
