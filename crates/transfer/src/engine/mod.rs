//! The engine of one file scheme at one node: frames in, frames out.
//!
//! It owns the node's [`Transfers`] and the [`Carrier`] that brings their packets on. `receive`
//! handles announcements, acknowledgments and checks, `fill` sends them; `commands` is what the
//! driver may ask for.
//!
//! When the channel is granted, control goes before data, for data waits for control:
//! acknowledgments, then checks, reports and announcements, then data packets.

mod commands;
mod fill;
mod receive;

use crate::acks::AckKey;
use crate::carrier::Carrier;
use crate::checks::CheckKey;
use crate::frame;
use crate::pace::Packet;
use crate::sink::{FileSink, SinkPhase};
use crate::source::FileSource;
use crate::transfers::Transfers;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::hop::passing::outcome;
use ncmesh_engine::{
    At, Class, Context, Engine, Event, Filled, Frame, Offer, PerPort, Statement, TxReport, TxResult,
};
use ncmesh_wire::{FlowId, NodeId, ServiceId};

/// Interval of housekeeping.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// Silence of a source after which its receivers acknowledge once more. If the transfer has ended
/// meanwhile, the source then announces the end again.
const ASK_AFTER: Duration = Duration::from_secs(30);
/// Time for which an end that is claimed in the name of a source stands before a receiver believes
/// it. A source that hears of a claim it has not made announces its transfer again at once, or
/// within 8 s if it has just answered another.
const END_STANDS: Duration = Duration::from_secs(10);

/// The frame that is at the MAC of a port.
#[derive(Clone, Copy, Debug, Default)]
enum OnAir {
    /// One that the MAC's report says nothing about, or none.
    #[default]
    Nothing,
    Ack(AckKey),
    /// A check or a question for one.
    Check {
        key: CheckKey,
        next_hop: NodeId,
    },
    /// A report of the carrier.
    Report,
    /// A data packet of the carrier.
    Data(Packet),
}

/// The file engine of one scheme at one node.
pub struct FileMulticast<C> {
    service: ServiceId,
    limits: FileLimits,
    carrier: C,
    transfers: Transfers,
    on_air: PerPort<OnAir>,
    housekeeping_at: Instant,
}

impl<C: Carrier> FileMulticast<C> {
    /// Returns an engine whose packets go by `carrier` and whose frames carry `service`.
    #[must_use]
    pub fn new(service: ServiceId, carrier: C, limits: FileLimits) -> Self {
        Self {
            service,
            limits,
            carrier,
            transfers: Transfers::default(),
            on_air: PerPort::default(),
            housekeeping_at: Instant::default(),
        }
    }

    /// Lets every source look at the mesh again if it has changed.
    fn refresh_paths(&mut self, cx: &Context<'_>) {
        for source in self.transfers.sources.values_mut() {
            if source.refresh_paths(cx) {
                self.carrier.review(cx, source, true);
            }
        }
    }

    /// Floods the announcements of open transfers that are due.
    fn announce_open(&mut self, cx: &mut Context<'_>) {
        let Transfers { sources, announcements, .. } = &mut self.transfers;
        for source in sources.values_mut() {
            // Sources answer lies about them, and confirm ends that no receiver denied.
            source.answer_lie(cx.epoch, cx.now);
            source.confirm_end(cx);
        }

        for source in sources.values_mut().filter(|source| source.is_open()) {
            if let Some(announcement) = source.announcement(cx) {
                self.carrier.review(cx, source, false);
                announcements.admit(&announcement, None, cx.now, cx.rng);
            }
        }
    }

    /// Floods the announcements that a transfer is closed, once for each and again if a receiver
    /// has missed it.
    fn announce_closed(&mut self, cx: &mut Context<'_>) {
        let Transfers { sources, announcements, .. } = &mut self.transfers;
        for (flow, source) in sources {
            if let Some(announcement) = source.closing_announcement(cx) {
                self.carrier.close(*flow);
                announcements.admit(&announcement, None, cx.now, cx.rng);
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

        // The carrier first: it may give up relayed transfers.
        self.carrier.tick(cx);
        self.transfers.pace.forget_open(cx.now);
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

        let silent = self.transfers.sinks.iter().filter(|(_, sink)| is_silent(sink));
        for flow in silent.map(|(flow, _)| *flow).collect::<Vec<FlowId>>() {
            self.transfers.acknowledge(cx, flow);
        }
    }

    /// Objects to ends that are claimed of this node, and believes those of sources that stood.
    fn review_claimed_ends(&mut self, cx: &mut Context<'_>) {
        let sinks = &self.transfers.sinks;
        let claimed = sinks.iter().filter_map(|(flow, sink)| Some((*flow, sink.claimed_end?)));
        for (flow, claim) in claimed.collect::<Vec<_>>() {
            if cx.now.since(claim.at) < END_STANDS {
                // Until the claim has stood for long it is denied: the source hears that this node
                // goes on.
                if claim.is_of_receiver {
                    self.transfers.acknowledge(cx, flow);
                }
            } else if let Some(sink) = self.transfers.sinks.get_mut(&flow) {
                sink.end(SinkPhase::Withdrawn, cx.now);
                self.carrier.stop_receiving(flow);
                cx.events.push_back(Event::Withdrawn(flow));
            }
        }
    }

    /// Stops repeating announcements that all neighbours have.
    fn drop_known_announcements(&mut self, cx: &Context<'_>) {
        let neighbours = || cx.topology.links_from(cx.me).map(|(to, _)| to);
        self.transfers.announcements.drop_acknowledged(neighbours);
    }

    /// Returns whether nothing needs housekeeping.
    fn is_idle(&self) -> bool {
        let Transfers { sources, sinks, announcements, .. } = &self.transfers;
        let needs_it =
            |sink: &FileSink| sink.phase == SinkPhase::Receiving || sink.claimed_end.is_some();
        self.carrier.is_idle()
            && !sources.values().any(FileSource::is_open)
            && !sinks.values().any(needs_it)
            && announcements.poll_timeout(Instant::default()).is_none()
    }
}

impl<C: Carrier> Engine for FileMulticast<C> {
    fn hears(&self, service: ServiceId) -> bool {
        service == self.service
    }

    fn statement<'a>(&self, kind: u8, body: &'a [u8]) -> Option<Statement<'a>> {
        frame::statement(kind, body)
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        self.refresh_paths(cx);
        match frame.kind {
            frame::ANNOUNCE => self.handle_announcement(cx, frame),
            frame::ACK => self.handle_ack(cx, frame),
            frame::DATA => self.carrier.handle_data(cx, &mut self.transfers, frame),
            frame::REPORT => self.carrier.handle_report(cx, &mut self.transfers, frame),
            frame::CHECK_REQUEST => self.handle_check_request(cx, frame),
            frame::CHECK => self.handle_check(cx, frame),
            _ => cx.counters.drop(DropReason::Malformed),
        }

        self.announce_closed(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.refresh_paths(cx);
        self.carrier.handle_timeout(cx.now);
        self.transfers.checks.handle_timeout(cx.me, cx.now);
        self.announce_open(cx);
        self.announce_closed(cx);
        self.run_housekeeping(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let Transfers { sources, acks, announcements, checks, pace, .. } = &self.transfers;
        let timeouts = [
            sources.values().filter_map(|source| source.poll_timeout(after)).min(),
            Some(self.housekeeping_at).filter(|at| *at > after && !self.is_idle()),
            acks.poll_timeout(after),
            announcements.poll_timeout(after),
            checks.poll_timeout(after),
            pace.poll_timeout(after),
            self.carrier.poll_timeout(&self.transfers, after),
        ];
        timeouts.into_iter().flatten().min()
    }

    fn serves_ports(&self) -> bool {
        C::SERVES_PORTS
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        self.offer_at(now, At::ONLY)
    }

    fn offer_at(&self, now: Instant, at: At<'_>) -> Option<Offer> {
        // The order is that of `fill`. An announcement goes out on every port, and so does what a
        // carrier sends that serves no ports.
        let Transfers { acks, announcements, checks, .. } = &self.transfers;
        let control = Offer::of(Class::Control);
        let of_carrier = |offer: Offer| if C::SERVES_PORTS { offer.local() } else { offer };
        if acks.due(now).is_some() || checks.due(now).is_some() {
            return Some(control);
        }
        if self.carrier.has_report(now, at) {
            return Some(of_carrier(control));
        }
        if announcements.due(now).is_some() {
            return Some(control);
        }

        let flow = self.carrier.next_data(&self.transfers, now, at)?;
        let data = of_carrier(Offer::of(Class::Data));
        Some(Offer { background: self.transfers.background(flow), ..data })
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let port = cx.at.port;
        self.on_air[port] = OnAir::Nothing;
        if let Some(filled) = self.fill_ack(cx, out) {
            return Some(filled);
        }
        if let Some(filled) = self.fill_check(cx, out) {
            return Some(filled);
        }
        if let Some(filled) = self.carrier.fill_report(cx, &self.transfers, out) {
            self.on_air[port] = OnAir::Report;
            return Some(filled);
        }

        if let Some(filled) = self.fill_announcement(cx, out) {
            return Some(filled);
        }
        let flow = self.carrier.next_data(&self.transfers, cx.now, cx.at)?;
        let begin = out.len();
        let filled = self.carrier.fill_data(cx, &mut self.transfers, out)?;
        self.on_air[port] = OnAir::Data(Packet { flow, len: out.len() - begin });
        Some(filled)
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let acks = &mut self.transfers.acks;

        // Each frame told, when it was handed over, to whom its outcome matters.
        match core::mem::take(&mut self.on_air[cx.at.port]) {
            OnAir::Nothing => {}
            // Where no source waits for progress, an acknowledgment of it is not repeated.
            OnAir::Ack(key) if report.result == TxResult::Failed && !C::NEEDS_PROGRESS => {
                acks.give_up_progress(key, cx.now);
            }
            OnAir::Ack(key) => acks.handle_tx_result(key, report.result, cx.now),
            OnAir::Check { key, next_hop } => {
                let result = outcome(cx.topology, cx.me, next_hop, report.result);
                self.transfers.checks.handle_tx_result(key, result, cx.now);
            }
            OnAir::Report => self.carrier.handle_tx_report(cx, &report),
            OnAir::Data(packet) => {
                self.transfers.note_sent(packet, report.airtime, cx.now);
                self.carrier.handle_tx_report(cx, &report);
            }
        }
    }
}
