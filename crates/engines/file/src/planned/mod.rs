//! Schemes that plan: the source of a file says who forwards how much, and its packets carry that.
//!
//! The source sends packets of one generation at a time, as they are or as random combinations;
//! forwarders pass them on; receivers decode a generation once they have enough independent
//! packets. The source returns to a generation until every receiver has it. Pacifier
//! (Koutsonikolas, Hu, Wang; IEEE/ACM ToN 2012) is the model; its sections are named where they are
//! followed.
//!
//! A [`Scheme`] decides who forwards how much ([`Plan`], [`Forwarding`]) and when the source leaves
//! a generation ([`Switching`]). Announcements, acknowledgments and resumption are those of all
//! file schemes (`ncmesh-transfer`). The rest is here:
//!
//! ```text
//!              data packets
//!   source ------> relay ------> relay ----> sink     `sending`, `relay`, `decoders`
//!        ^           ^  \__________|  ^       |
//!        |           |    reports     |       |       hop-by-hop schemes only: `arq`
//!        +-----------+----------------+-------+
//!              acknowledgments, hop by hop
//! ```

mod arq;
mod decoders;
pub mod frame;
mod packet_set;
mod ready;
mod relay;
mod routing;
mod scheme;
mod sending;

pub use frame::LAYOUTS;
pub use routing::{Cast, Forwarder, Forwarding, Hop, Routing, Upstream};
pub use scheme::{ChildWait, Plan, Scheme, Switching};

use decoders::{Found, GivenBy, Received, Receptions};
use frame::{Data, Report};
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::file::check::{GenerationId, Nonce};
use ncmesh_engine::file::{Begun, FileLimits};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::{At, Context, Filled, Frame, TxReport};
use ncmesh_transfer::frame::{Check, REPORT};
use ncmesh_transfer::sink::{SinkOutcome, SinkPhase};
use ncmesh_transfer::{Carrier, FileMulticast, FileSource, PacketConfig, Transfers};
use ncmesh_wire::{FlowId, NodeId, ServiceId};
use ready::ReadyTransfer;
use relay::{HeardData, RelayOutcome, Relays};
use sending::Turns;
use std::collections::BTreeMap;

/// Fewest and most nodes that a header has room for, if packets are made to fit the radio.
const LISTED_MIN: usize = 4;
const LISTED_MAX: usize = 24;

/// Returns an engine that follows the plans of `scheme` and whose frames carry `service`.
#[must_use]
pub fn engine(
    service: ServiceId,
    scheme: impl Scheme + Send + 'static,
    limits: FileLimits,
) -> FileMulticast<Planned> {
    let are_coded = !scheme.forwarding().is_hop_by_hop();
    let planned = Planned {
        relays: Relays::new(scheme.forwarding()),
        scheme: Box::new(scheme),
        sending: BTreeMap::new(),
        receptions: Receptions::new(are_coded, limits.memory),
        packet_time: DurationAverage::default(),
        on_air: OnAir::Nothing,
    };

    FileMulticast::new(service, planned, limits)
}

/// Carries files by the plans of a scheme.
pub struct Planned {
    scheme: Box<dyn Scheme + Send>,
    /// Turns of the files that this node sends.
    sending: BTreeMap<FlowId, Turns>,
    relays: Relays,
    receptions: Receptions,
    /// Mean airtime of a data packet (T_p).
    packet_time: DurationAverage,
    on_air: OnAir,
}

/// The frame that is at the MAC.
#[derive(Clone, Copy, Debug)]
enum OnAir {
    Nothing,
    /// A report to a parent, of this transfer.
    Report(FlowId),
    /// A data packet of a file that this node sends.
    SourceData(FlowId),
    /// A data packet of a file that this node forwards.
    RelayData(FlowId),
}

impl Planned {
    /// Returns the file to forward a packet of next.
    fn ready_relay(&self, transfers: &Transfers, now: Instant) -> Option<ReadyTransfer> {
        self.relays.ready(transfers, now)
    }

    /// Returns the own file to send from next.
    fn ready_source(&self, transfers: &Transfers, now: Instant) -> Option<ReadyTransfer> {
        // Its turn has come, and its rate allows a packet now.
        let is_ready = |(flow, turns): &(&FlowId, &Turns)| {
            let source = transfers.sources.get(flow);
            source.is_some_and(|source| turns.is_ready(source, now))
                && transfers.is_within_bound(**flow, now)
        };

        let ready = self.sending.iter().filter(is_ready);
        let ready = ready.map(|(flow, turns)| ReadyTransfer {
            is_background: transfers.background(*flow).is_some(),
            sent_at: turns.sent_at,
            flow: *flow,
        });

        ready.min()
    }

    /// Handles a data packet as a forwarder of its transfer.
    fn relay_data(&mut self, cx: &mut Context<'_>, heard: HeardData<'_>) {
        match self.relays.handle_data(heard) {
            RelayOutcome::Malformed => cx.counters.drop(DropReason::Malformed),
            RelayOutcome::Unannounced => cx.counters.drop(DropReason::UnknownFlow),
            RelayOutcome::Stale => cx.counters.drop(DropReason::Stale),
            RelayOutcome::Data { is_innovative } => cx.counters.note_payload(is_innovative),
            RelayOutcome::NotListed | RelayOutcome::Taken => {}
        }
    }

    /// Handles a data packet as a receiver of its transfer.
    fn receive_data(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
        received: Received<'_>,
    ) {
        let data = received.data;
        let flow = data.header.flow;
        let Some(sink) = transfers.sinks.get_mut(&flow) else { return };
        if !self.receptions.reserve(sink, data.header.generation) {
            return cx.counters.drop(DropReason::Full);
        }

        let innovative = sink.innovative;
        let mut found = Found::default();
        let outcome = self.receptions.handle_data(sink, received, cx.rng, cx.storage, &mut found);
        cx.counters.note_payload(sink.innovative > innovative);
        self.note_received(cx, transfers, flow, outcome, found);
    }

    /// Notes what became of a packet or of a check at a receiver.
    fn note_received(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
        flow: FlowId,
        outcome: SinkOutcome,
        found: Found,
    ) {
        blame(cx, found.given);
        if found.is_misled {
            transfers.checks.note_misled(flow);
        }

        // Memory of a file that needs no more packets goes to the others.
        let sink = transfers.sinks.get(&flow);
        if sink.is_none_or(|sink| sink.phase != SinkPhase::Receiving) {
            self.receptions.forget(flow);
        }
        if transfers.note_outcome(cx, flow, outcome) {
            transfers.acknowledge_progress(cx, flow);
        }
    }

    /// Checks the generation at hand of a transfer that this node forwards, as far as it can.
    fn check_relayed(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, of: GenerationId) {
        let manifest = transfers.announcements.manifest(of.flow);
        let given = manifest.and_then(|manifest| self.relays.check(manifest, cx.rng));
        blame(cx, given.unwrap_or_default());
        if self.relays.take_misled(of) {
            transfers.checks.note_misled(of.flow);
        }
    }

    /// Asks the source for a check of a generation, if it is disputed and one would help. One check
    /// serves this node as a forwarder and as a receiver.
    fn ask_for_check(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, of: GenerationId) {
        let would_help = self.relays.wants_check(of) || self.receptions.wants_check(of);
        if would_help && transfers.checks.may_ask(of) {
            let nonce = Nonce::draw(cx.rng);
            self.relays.ask(of, nonce);
            self.receptions.ask(of, nonce);
            transfers.checks.ask(cx.me, of, nonce, cx.now);
        }
    }
}

impl Carrier for Planned {
    const NEEDS_PROGRESS: bool = true;

    fn packets(&self) -> PacketConfig {
        let scheme = &self.scheme;
        PacketConfig { generation: scheme.generation(), symbol_size: scheme.symbol_size() }
    }

    /// A packet may list all nodes but the source and one receiver; in a tree, which lists its
    /// leaves too, all but the source.
    fn listed(&self, nodes: usize) -> usize {
        let others = if self.scheme.forwarding().is_hop_by_hop() { 1 } else { 2 };
        nodes.saturating_sub(others).clamp(LISTED_MIN, LISTED_MAX)
    }

    fn overhead(&self, listed: usize, packets: u8) -> usize {
        self.scheme.forwarding().overhead(listed, packets.into())
    }

    fn open(&mut self, cx: &mut Context<'_>, source: &FileSource) {
        let turns = || Turns::new(&source.manifest, cx);
        self.sending.entry(source.manifest.flow).or_insert_with(turns);
    }

    fn review(&mut self, cx: &Context<'_>, source: &FileSource, mesh_changed: bool) {
        if let Some(turns) = self.sending.get_mut(&source.manifest.flow) {
            turns.review(cx, source, mesh_changed, &*self.scheme);
        }
    }

    fn close(&mut self, flow: FlowId) {
        self.relays.forget(flow);
        if let Some(turns) = self.sending.get_mut(&flow) {
            turns.end();
        }
    }

    fn forget(&mut self, flow: FlowId) {
        self.sending.remove(&flow);
    }

    fn stop_receiving(&mut self, flow: FlowId) {
        self.receptions.forget(flow);
    }

    /// Handles a data packet in each role that this node has in the transfer.
    fn handle_data(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, frame: &Frame<'_>) {
        let data = Data::parse(frame.body);
        let forwarding = self.scheme.forwarding();
        let Some(data) = data.ok().filter(|data| data.header.routing.is_for(forwarding)) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let flow = data.header.flow;

        // Every data packet of a transfer tells something, whichever node it is for: the airtime
        // that the transfer takes, and which acknowledgments arrived.
        transfers.note_heard(flow, frame.body.len(), cx.now);
        transfers.acks.handle_overheard(flow, frame.sender, data.header.piggyback, cx.now);
        if transfers.sources.contains_key(&flow) {
            if let Some(turns) = self.sending.get_mut(&flow) {
                turns.handle_data(frame.sender, &data, cx.now);
            }
            return;
        }

        let is_announced = transfers.announcements.manifest(flow).is_some();
        let me = cx.me;
        let sender = frame.sender;
        let mtu = cx.mtu;
        let now = cx.now;
        let heard = HeardData { me, sender, data: &data, is_announced, mtu, now };
        let origin = heard.origin();

        // Forwarders and the source go on after false packets: there may be no other.
        let is_outsider = sender != flow.source && origin.is_vouched;
        if is_outsider && cx.counters.blame.is_avoided(sender, now) {
            return cx.counters.drop(DropReason::Blamed);
        }

        self.relay_data(cx, heard);
        let of = GenerationId { flow, generation: data.header.generation };
        self.check_relayed(cx, transfers, of);

        // A packet that is too old for a forwarder may still serve a receiver.
        self.receive_data(cx, transfers, Received { origin, data: &data, now });
        self.ask_for_check(cx, transfers, of);
    }

    fn handle_check(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, check: &Check) {
        let of = check.of;
        let is_relays = self.relays.judge(check);
        let is_receivers = self.receptions.judge(check);
        if !is_relays && !is_receivers {
            return cx.counters.drop(DropReason::Malformed);
        }

        self.check_relayed(cx, transfers, of);
        if let Some(sink) = transfers.sinks.get_mut(&of.flow) {
            let mut found = Found::default();
            let receptions = &mut self.receptions;
            let outcome = receptions.settle(sink, of.generation, cx.rng, cx.storage, &mut found);
            self.note_received(cx, transfers, of.flow, outcome, found);
        }
        self.ask_for_check(cx, transfers, of);
    }

    /// Handles a report that is addressed to this node, as the source or as a forwarder.
    fn handle_report(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
        frame: &Frame<'_>,
    ) {
        let has_reports = self.scheme.forwarding().is_hop_by_hop();
        let Some(report) = Report::parse(frame.body).ok().filter(|_| has_reports) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if report.parent != cx.me {
            return;
        }

        // A report on a turn that is over says nothing about the packets of this one.
        let sender = frame.sender;
        let is_current = if transfers.sources.contains_key(&report.flow) {
            let turns = self.sending.get_mut(&report.flow);
            turns.is_some_and(|turns| turns.handle_report(sender, &report, cx.now))
        } else {
            self.relays.handle_report(sender, &report, cx.now) == RelayOutcome::Taken
        };
        if !is_current {
            cx.counters.drop(DropReason::Stale);
        }
    }

    fn has_report(&self, now: Instant, _: At<'_>) -> bool {
        self.relays.due_report(now).is_some()
    }

    /// Reports to the parent in a tree what is held here.
    fn fill_report(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &Transfers,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let mut report = self.relays.due_report(cx.now)?;

        // The forwarder and the receiver at this node have buffers of their own. A packet is here
        // only if both have it, as far as the receiver still wants the generation.
        let sink = transfers.sinks.get(&report.flow);
        let held = sink.and_then(|sink| self.receptions.held_packets(sink, report.generation));
        if let Some(held) = held {
            report.has = report.has.and(held);
        }

        report.write(out);
        self.relays.note_report_sent(report.flow);
        self.on_air = OnAir::Report(report.flow);
        Some(Filled { kind: REPORT, to: unicast_to_known(cx, Some(report.parent)) })
    }

    fn next_data(&self, transfers: &Transfers, now: Instant, _: At<'_>) -> Option<FlowId> {
        let relayed = self.ready_relay(transfers, now);
        relayed.into_iter().chain(self.ready_source(transfers, now)).min().map(|next| next.flow)
    }

    /// Sends for the transfer that was served longest ago. A forwarded one goes before one of this
    /// node's own that was served at the same time.
    fn fill_data(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        // A node that is both forwarder and source would starve one role if it always preferred the
        // other.
        let own = self.ready_source(transfers, cx.now);
        let relayed = self.ready_relay(transfers, cx.now);
        let is_relayed_first = own.is_none_or(|own| relayed.is_some_and(|relayed| relayed <= own));

        if is_relayed_first {
            let flow = relayed?.flow;
            let piggyback = transfers.acks.piggyback(flow);
            let filled = self.relays.fill(flow, piggyback, cx.now, cx.rng, out)?;
            let is_hop_by_hop = self.scheme.forwarding().is_hop_by_hop();
            cx.counters.note_filled(if is_hop_by_hop { Payload::Native } else { Payload::Coded });
            self.on_air = OnAir::RelayData(flow);
            Some(Filled { to: unicast_to_known(cx, filled.to), ..filled })
        } else {
            let flow = own?.flow;
            let piggyback = transfers.acks.piggyback(flow);
            let source = transfers.sources.get_mut(&flow)?;
            let turns = self.sending.get_mut(&flow)?;
            let filled = turns.fill(cx, source, piggyback, &*self.scheme, out)?;
            self.on_air = OnAir::SourceData(flow);
            Some(filled)
        }
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: &TxReport) {
        match core::mem::replace(&mut self.on_air, OnAir::Nothing) {
            OnAir::Nothing => {}
            OnAir::Report(flow) => self.relays.handle_report_result(flow, report.result, cx.now),
            // Source rate limiting counts in packet times, so this node's own packets are measured.
            OnAir::SourceData(flow) => {
                self.packet_time.add(report.airtime);
                let packet_time = self.packet_time.value();
                if let Some(turns) = self.sending.get_mut(&flow) {
                    turns.handle_tx_result(&*self.scheme, report.result, packet_time, cx.now);
                }
            }
            OnAir::RelayData(flow) => {
                self.relays.handle_tx_result(flow, report.result, report.airtime, cx.now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.sending.values_mut().for_each(|turns| turns.poll_if_stalled(now));
    }

    fn poll_timeout(&self, transfers: &Transfers, after: Instant) -> Option<Instant> {
        let is_open = |flow| transfers.sources.get(flow).is_some_and(FileSource::is_open);
        let open = self.sending.iter().filter(|(flow, _)| is_open(flow));
        let own = open.filter_map(|(_, turns)| turns.poll_timeout(after));
        own.chain(self.relays.poll_timeout(after)).min()
    }

    fn tick(&mut self, cx: &mut Context<'_>) {
        self.relays.expire(cx.now);
    }

    fn is_idle(&self) -> bool {
        self.relays.is_empty()
    }

    fn begun(&self, flow: FlowId) -> Option<Begun> {
        self.receptions.begun(flow)
    }

    fn forwarders(&self, flow: FlowId) -> Vec<NodeId> {
        let turns = self.sending.get(&flow);
        turns.map(|turns| turns.forwarders.iter().copied().collect()).unwrap_or_default()
    }
}

/// Blames the senders of false packets that no plan named. A forwarder codes from what it holds and
/// seldom has it whole, so its false packets may be another's.
fn blame(cx: &mut Context<'_>, given: GivenBy) {
    for (node, given) in given.into_iter().filter(|(_, given)| given.vouched > 0) {
        cx.counters.blame.note(node, given, cx.now);
    }
}

/// Returns the unicast address `to`, which another node's frame named. Falls back to broadcast if
/// the mesh has no such node.
fn unicast_to_known(cx: &Context<'_>, to: Option<NodeId>) -> Option<NodeId> {
    to.filter(|node| cx.topology.state(*node).is_some())
}
