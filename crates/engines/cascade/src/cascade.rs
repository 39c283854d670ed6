//! The transfers that a node has a part in, and the frames that it sends and hears for them.

use super::flow::{Flow, Said};
use super::frame::{Data, DataHeader, Report, Wants};
use super::held::{Held, Role, Taken};
use super::sending::Sending;
use super::slot::Answering;
use super::tree::{self, METRIC};
use super::upstream::HeardFrame;
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::file::check::GenerationId;
use ncmesh_engine::file::{Begun, Manifest};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::bounded::MAX_FLOWS;
use ncmesh_engine::toolkit::hop::passing::{Addresses, Passing, is_passed_on, outcome, way};
use ncmesh_engine::toolkit::hop::{Handled, PacketTime};
use ncmesh_engine::{At, Context, Filled, Frame, PerPort, TxReport};
use ncmesh_transfer::frame::{self, Announcement, Check, write_packet};
use ncmesh_transfer::sink::{self, SinkOutcome, SinkPhase};
use ncmesh_transfer::source::Quorum;
use ncmesh_transfer::{Carrier, FileSource, PacketConfig, Transfers};
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Least time between two acknowledgments of a receiver to the source, for each receiver, and its
/// bounds. Nothing waits for them: they show progress, and that the receiver is alive. All of them
/// together take about a hundredth of the channel.
const ACK_PAUSE: Duration = Duration::from_millis(250);
const ACK_PAUSES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(8);

/// The transfers that this node has a part in.
#[derive(Debug)]
pub(super) struct Cascade {
    packets: PacketConfig,
    flows: BTreeMap<FlowId, Flow>,
    passing: Passing<PassingKey, Report>,
    on_air: PerPort<OnAir>,
    packet_time: PerPort<PacketTime>,
    answering: PerPort<Answering>,
    /// Most bytes for generations under way.
    memory: usize,
}

/// Name of a report that is passed on: its flow, the child that wrote it, and the parent.
type PassingKey = (FlowId, NodeId, NodeId);

/// The frame that is at the MAC of a port.
#[derive(Clone, Copy, Debug, Default)]
enum OnAir {
    #[default]
    Nothing,
    Report(FlowId),
    Data {
        flow: FlowId,
        /// Whether the packet polls this node's children.
        polls: bool,
    },
    Passing(PassingKey),
}

/// The packet to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NextPacket {
    /// Whether it gives way to all else.
    is_background: bool,
    /// When the transfer was last served: the one that has waited longest is next.
    sent_at: Instant,
    flow: FlowId,
    generation: u32,
}

/// Outcome of a data packet that this node heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// It was not used, for a reason that is counted.
    Dropped(DropReason),
    /// It was not needed.
    Redundant,
    /// It was needed.
    Innovative,
    /// It made its generation whole.
    Whole,
    /// Its generation is disputed.
    Disputed,
}

impl Cascade {
    /// Returns an engine without transfers, whose generations take at most `memory` bytes.
    pub(super) fn new(packets: PacketConfig, memory: usize) -> Self {
        Self {
            packets,
            flows: BTreeMap::new(),
            passing: Passing::default(),
            on_air: PerPort::default(),
            packet_time: PerPort::default(),
            answering: PerPort::default(),
            memory,
        }
    }
}

impl Carrier for Cascade {
    const NEEDS_PROGRESS: bool = false;
    const SERVES_PORTS: bool = true;

    fn packets(&self) -> PacketConfig {
        self.packets
    }

    fn overhead(&self, _: usize, packets: u8) -> usize {
        DataHeader::MAX_LEN + usize::from(packets)
    }

    fn open(&mut self, cx: &mut Context<'_>, source: &FileSource) {
        let sending = Sending::new(source.manifest.geometry.generations());
        let held = Held::new(source.manifest.clone(), Role::Source(sending));
        self.flows.insert(source.manifest.flow, Flow::new(held, cx.rng, cx.now));
        self.expect_children(cx, &source.manifest, source.unfinished());
    }

    fn close(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    fn expect(&mut self, cx: &mut Context<'_>, announcement: &Announcement) {
        let open = announcement.receivers.iter().filter(|(_, state)| !state.is_final());
        self.expect_children(cx, &announcement.manifest, open.map(|(node, _)| *node));
    }

    fn receive(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, flow: FlowId) {
        let Some(sink) = transfers.sinks.get(&flow) else { return };
        if sink.have.is_full() {
            return;
        }

        // A relay becomes a receiver: it keeps what it holds, and wants the rest.
        let Some(joined) = self.join(cx, &sink.manifest) else { return };
        joined.held.role = Role::Receiver(sink.have.clone());
        joined.drop_unwanted();
        joined.upstream.report(cx.now);
        self.review_parent(cx, flow);

        // It may have relayed some of the file before.
        for generation in self.whole_but_lacking(flow) {
            self.check_whole(cx, transfers, flow, generation);
        }
    }

    fn stop_receiving(&mut self, flow: FlowId) {
        if let Some(flow) = self.flows.get_mut(&flow).filter(|flow| !flow.held.is_source()) {
            flow.held.role = Role::Relay;
            flow.drop_unwanted();
        }
    }

    fn handle_data(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, frame: &Frame<'_>) {
        let Ok(packet) = Data::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let flow = packet.header.flow;
        transfers.note_heard(flow, frame.body.len(), cx.now);
        let heard = self.hear(cx, frame.sender, &packet);
        if let Heard::Dropped(reason) = heard {
            // Nodes that have no part in a transfer overhear it.
            if reason != DropReason::UnknownFlow {
                cx.counters.drop(reason);
            }
            return;
        }

        let is_innovative = heard != Heard::Redundant;
        cx.counters.note_payload(is_innovative);

        // The source is told that the receiver makes progress.
        let sink = transfers.sinks.get_mut(&flow);
        if let Some(sink) = sink.filter(|sink| sink.phase == SinkPhase::Receiving) {
            sink.note_heard(is_innovative, cx.now);
        }
        let generation = packet.header.generation;
        let is_settled = heard == Heard::Disputed && self.settle(cx, transfers, flow, generation);
        if heard == Heard::Whole || is_settled {
            self.check_whole(cx, transfers, flow, generation);
        }
    }

    fn handle_check(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, check: &Check) {
        let GenerationId { flow: id, generation } = check.of;
        let Some(flow) = self.flows.get_mut(&id).filter(|flow| !flow.held.is_source()) else {
            return;
        };
        if !flow.held.judge(check) {
            return cx.counters.drop(DropReason::Malformed);
        }

        // The parent learns how much is still missing.
        flow.upstream.report(cx.now);
        if self.settle(cx, transfers, id, generation) {
            self.check_whole(cx, transfers, id, generation);
        }
    }

    fn handle_report(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
        frame: &Frame<'_>,
    ) {
        let Ok(report) = Report::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if report.child == frame.sender {
            self.note_report(cx, &report);
        }

        // A node may hear a report before it has relayed anything: then the announcement says what
        // the file is.
        let own = transfers.sources.get(&report.flow).filter(|source| source.is_open());
        let manifest = own.map(|source| &source.manifest);
        let manifest = manifest.or_else(|| transfers.announcements.manifest(report.flow));
        if let Err(reason) = self.hear_report(cx, frame.sender, report, manifest) {
            cx.counters.drop(reason);
        }
    }

    fn has_report(&self, now: Instant, at: At<'_>) -> bool {
        self.passing.due(now).is_some()
            || self.flows.values().any(|flow| flow.upstream.reports_to(now, at).is_some())
    }

    fn fill_report(
        &mut self,
        cx: &mut Context<'_>,
        _: &Transfers,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let port = cx.at.port;
        let packet_time = self.packet_time[port].value();

        // Reports of this node go before those that it passes on.
        let due =
            |(id, flow): (&FlowId, &Flow)| Some((*id, flow.upstream.reports_to(cx.now, cx.at)?));
        if let Some((id, parent)) = self.flows.iter().find_map(due) {
            let flow = self.flows.get_mut(&id)?;
            let next_hop = way_to(cx, parent);
            let number = flow.begin_frame(port, cx.now);
            let wants = flow.wants(Report::LISTED);
            let delivery = cx.topology.delivery(cx.me, next_hop);
            // A broadcast would not leave this port, so a next hop elsewhere gets it by unicast.
            let insists = flow.upstream.insists() || !cx.at.reaches(next_hop);
            let to = insists.then_some(next_hop);
            flow.upstream.note_reported(delivery, packet_time, cx.now);
            let handled = flow.upstream.handled(cx.now);
            let child = cx.me;
            Report { next_hop, parent, child, flow: id, number, handled, wants }.write(out);
            self.on_air[port] = OnAir::Report(id);
            return Some(Filled { kind: frame::REPORT, to });
        }

        let (key, report) = self.passing.due(cx.now)?;
        let next_hop = way_to(cx, report.parent);
        Report { next_hop, ..report.clone() }.write(out);
        self.passing.note_sent(key, cx.now);
        self.on_air[port] = OnAir::Passing(key);
        Some(Filled { kind: frame::REPORT, to: Some(next_hop) })
    }

    fn next_data(&self, transfers: &Transfers, now: Instant, at: At<'_>) -> Option<FlowId> {
        self.next_packet(transfers, now, at).map(|next| next.flow)
    }

    /// Sends for the transfer that was served longest ago.
    fn fill_data(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let next = self.next_packet(transfers, cx.now, cx.at)?;

        // The header is written first: the packet is coded right behind it.
        let (header, systematic) = self.begin(next, cx)?;
        let start = out.len();
        header.write(systematic.is_some(), out);
        let is_filled = match transfers.sources.get_mut(&next.flow) {
            Some(source) => self.encode(cx, source, next, systematic, out),
            None => self.recode(next, cx.rng, out),
        };

        if !is_filled {
            out.truncate(start);
            return None;
        }

        let is_native = systematic.is_some();
        cx.counters.note_filled(if is_native { Payload::Native } else { Payload::Coded });
        Some(Filled { kind: frame::DATA, to: None })
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: &TxReport) {
        let port = cx.at.port;
        match core::mem::take(&mut self.on_air[port]) {
            OnAir::Nothing => {}
            OnAir::Report(id) => {
                if let Some(flow) = self.flows.get_mut(&id) {
                    flow.note_ended(port, cx.now);
                }
            }
            OnAir::Passing(key) => {
                let result = outcome(cx.topology, cx.me, way_to(cx, key.2), report.result);
                self.passing.handle_tx_result(key, result, cx.now);
            }
            OnAir::Data { flow: id, polls } => {
                self.packet_time[port].add(report.airtime);
                if polls {
                    self.answering[port].note_polled(id, cx.now);
                }
                let packet_time = self.packet_time[port].value();
                if let Some(flow) = self.flows.get_mut(&id) {
                    flow.note_ended(port, cx.now);
                    flow.ease(cx, packet_time);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for flow in self.flows.values_mut().filter(|flow| !flow.held.is_source()) {
            if flow.upstream.take_question(now) && flow.lowest_wanted().is_some() {
                flow.upstream.report(now);
            }
        }
    }

    fn poll_timeout(&self, _: &Transfers, after: Instant) -> Option<Instant> {
        let flows = self.flows.values().filter_map(|flow| flow.poll_timeout(after));
        let silences = self.answering.values().map(Answering::until);
        let own = silences.chain(self.passing.poll_timeout(after));
        flows.chain(own.filter(|at| *at > after)).min()
    }

    fn tick(&mut self, cx: &mut Context<'_>) {
        let ids: Vec<FlowId> = self.flows.keys().copied().collect();
        for id in ids {
            self.review_parent(cx, id);
            let Some(flow) = self.flows.get_mut(&id) else { continue };
            let is_over = !flow.expire(cx.now);
            if flow.is_idle() {
                // Nobody here or below wants anything, so its parent need not send. What it holds
                // stays for a while.
                if let Some(parent) = flow.upstream.parent.take() {
                    let number = flow.begin_frame(cx.at.ways.port_to(parent), cx.now);
                    self.leave_parent(cx, id, parent, number);
                }

                if is_over {
                    self.flows.remove(&id);
                }
            } else if !flow.held.is_source() && flow.lowest_wanted().is_some() {
                flow.upstream.report_if_idle(cx.now);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.flows.is_empty()
    }

    fn begun(&self, flow: FlowId) -> Option<Begun> {
        let held = &self.flows.get(&flow)?.held;
        let generation =
            held.begun(held.lowest_lacking()?).find(|generation| !held.is_whole(*generation))?;
        Some(Begun {
            generation,
            rank: held.rank(generation).into(),
            packets: held.packets(generation).into(),
        })
    }
}

impl Cascade {
    // ---- transfers begin and end

    /// Returns the generations that are held whole for children, and that this node lacks itself.
    fn whole_but_lacking(&self, flow: FlowId) -> Vec<u32> {
        let Some(flow) = self.flows.get(&flow) else { return Vec::new() };
        let held = &flow.held;
        held.begun(0).filter(|g| held.is_whole(*g) && held.lacks(*g)).collect()
    }

    /// Takes parent and children from the tree to `receivers`: a transfer that was just announced
    /// need not wait for reports.
    fn expect_children(
        &mut self,
        cx: &mut Context<'_>,
        manifest: &Manifest,
        receivers: impl Iterator<Item = NodeId>,
    ) {
        // Every node finds the same tree, as far as link state is the same everywhere.
        let parents = tree::parents(cx.topology, manifest.flow.source, receivers);
        let planned = parents.get(&cx.me).copied();
        let fed = parents.iter().filter(|(_, parent)| **parent == cx.me);
        let children: Vec<NodeId> = fed.map(|(child, _)| *child).collect();
        if planned.is_none() && children.is_empty() {
            return;
        }
        if let Some(flow) = self.join(cx, manifest) {
            flow.upstream.planned = planned;
            for child in children {
                flow.expect_child(cx, child);
            }
            self.review_parent(cx, manifest.flow);
        }
    }

    /// Returns a transfer, as a relay of it if this node had no part in it. If it relays too many,
    /// the one that was silent longest makes room; those that it sends or receives never do.
    fn join(&mut self, cx: &mut Context<'_>, manifest: &Manifest) -> Option<&mut Flow> {
        let id = manifest.flow;
        if !self.flows.contains_key(&id) {
            // State of relayed transfers is bounded, since any member can announce them.
            let relayed = || self.flows.iter().filter(|(_, flow)| flow.held.is_relay());
            if relayed().count() >= MAX_FLOWS {
                let oldest = relayed().min_by_key(|(_, flow)| flow.heard_at).map(|(id, _)| *id)?;
                self.flows.remove(&oldest);
            }

            let held = Held::new(manifest.clone(), Role::Relay);
            self.flows.insert(id, Flow::new(held, cx.rng, cx.now));
        }

        self.flows.get_mut(&id)
    }

    // ---- what is heard

    /// Takes a data packet.
    fn hear(&mut self, cx: &Context<'_>, sender: NodeId, packet: &Data<'_>) -> Heard {
        let is_avoided = cx.counters.blame.is_avoided(sender, cx.now);
        let header = &packet.header;
        let packet_time = self.packet_time[cx.at.port].value();
        let generation = header.generation;
        let Some(flow) = self.flows.get_mut(&header.flow) else {
            return Heard::Dropped(DropReason::UnknownFlow);
        };
        flow.heard_at = cx.now;
        let heard = HeardFrame { number: header.number, port: cx.at.port, at: cx.now };
        flow.upstream.count(sender, heard, cx.topology.delivery(sender, cx.me));

        // A child says what it still wants, or that it has another parent.
        if flow.children.contains_key(&sender) {
            self.answering[cx.at.port].hear_child(sender, header.poll, packet_time, cx.now);
            if header.parent == cx.me {
                if let Some(child) = flow.children.get_mut(&sender) {
                    child.note_own(cx.now);
                }
                let DataHeader { number, handled, ref wants, .. } = *header;
                flow.hear_child(cx, sender, Said { number, handled, wants });
                flow.make_way(cx, sender, packet_time);
            } else {
                flow.lose_child(sender, header.number, cx.now);
            }
        }

        flow.note_elsewhere(cx, sender, header, packet_time);
        if flow.held.is_source() {
            return Heard::Redundant;
        }

        // A packet of any node is of use. Only the parent is told what is wanted.
        let is_from_parent = flow.upstream.parent == Some(sender);
        let is_wanted = flow.is_wanted(generation);
        if is_from_parent {
            flow.upstream.hear_parent(header.poll, is_wanted, cx.now);
        }
        if !is_wanted || (flow.held.is_spoiled(generation) && !is_from_parent) {
            return Heard::Redundant;
        }

        // A parent is kept in spite of its false packets where there is no other.
        if is_avoided && !is_from_parent {
            return Heard::Dropped(DropReason::Blamed);
        }
        if !flow.held.has_begun(generation) && !self.make_room(header.flow, generation) {
            return Heard::Dropped(DropReason::Full);
        }
        let Some(flow) = self.flows.get_mut(&header.flow) else { return Heard::Redundant };
        match flow.held.absorb(sender, packet) {
            Taken::Malformed => Heard::Dropped(DropReason::Malformed),
            Taken::Redundant => Heard::Redundant,
            Taken::Innovative => Heard::Innovative,
            Taken::Whole => Heard::Whole,
            Taken::Disputed => Heard::Disputed,
        }
    }

    /// Makes room for another generation: what nobody wants goes first, then the transfer that
    /// takes most gives up its last. Returns whether there is room.
    fn make_room(&mut self, id: FlowId, generation: u32) -> bool {
        let Some(needed) = self.flows.get(&id).map(|flow| flow.held.memory_of_generation()) else {
            return false;
        };

        // First, generations that no node wants.
        if !self.has_room(needed) {
            self.flows.values_mut().for_each(|flow| flow.drop_unwanted_beyond(0));
        }
        while !self.has_room(needed) {
            // The last generation goes first: it has the fewest packets, and is wanted last. A
            // transfer that would only drop its own later generations gains nothing.
            let largest = self.flows.iter_mut().max_by_key(|(_, flow)| flow.held.memory());
            let Some((largest, flow)) = largest else { return false };
            let last = flow.held.last_begun();
            if last.is_none_or(|last| *largest == id && last <= generation) {
                return false;
            }
            flow.held.drop_last();
        }

        true
    }

    fn has_room(&self, bytes: usize) -> bool {
        let used: usize = self.flows.values().map(|flow| flow.held.memory()).sum();
        used.saturating_add(bytes) <= self.memory
    }

    /// Checks a generation that is whole, and writes it if this node receives the file.
    fn check_whole(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
        id: FlowId,
        generation: u32,
    ) {
        // A relay checks a generation, too, so that it passes on nothing false.
        let Some(flow) = self.flows.get_mut(&id) else { return };
        let Some(symbols) = flow.held.decode(generation) else { return };
        let outcome = match transfers.sinks.get_mut(&id).filter(|sink| sink.wants(generation)) {
            Some(sink) => sink.handle_whole(generation, symbols, cx.storage),
            None => match transfers.announcements.manifest(id) {
                Some(file) if sink::is_genuine(file, generation, symbols) => SinkOutcome::Quiet,
                _ => SinkOutcome::GenerationForged,
            },
        };

        self.record_check(cx, id, generation, outcome != SinkOutcome::GenerationForged);
        self.ask_for_check(cx, transfers, GenerationId { flow: id, generation });
        if outcome == SinkOutcome::WriteFailed {
            self.stop_receiving(id);
        }
        if !transfers.note_outcome(cx, id, outcome) {
            return;
        }

        // The source needs to know progress only now and then, and all receivers share the channel.
        let pause = ACK_PAUSE * transfers.announcements.receivers(id);
        let pause = pause.clamp(*ACK_PAUSES.start(), *ACK_PAUSES.end());
        let is_due = transfers.sinks.get(&id).is_some_and(|sink| {
            let lately = |at| cx.now.since(at) < pause;
            sink.phase == SinkPhase::Verifying || !sink.acknowledged_at.is_some_and(lately)
        });

        if is_due {
            transfers.acknowledge_progress(cx, id);
        }
    }

    /// Notes that a generation which was whole is genuine or, if not, that it is disputed.
    fn record_check(&mut self, cx: &Context<'_>, flow: FlowId, generation: u32, is_genuine: bool) {
        let Some(flow) = self.flows.get_mut(&flow) else { return };
        if is_genuine {
            flow.held.complete(generation);
            flow.drop_unwanted();
        } else {
            // A false generation that came only from the parent means that the parent forges, or
            // does not verify.
            let parent = flow.upstream.parent.filter(|_| flow.held.is_spoiled(generation));
            if let Some(parent) = parent {
                flow.upstream.avoid(parent, cx.now);
            }
            flow.spoil(generation, cx.now);
        }

        flow.upstream.report(cx.now);
    }

    /// Looks for the true packets of a disputed generation, and blames the senders of the false
    /// ones. Returns whether it is whole now.
    fn settle(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
        id: FlowId,
        generation: u32,
    ) -> bool {
        let Some(flow) = self.flows.get_mut(&id) else { return false };
        if !flow.held.is_due(generation) {
            return false;
        }
        let before = flow.held.told_rank(generation);
        let given = flow.held.settle(generation, cx.rng);
        if flow.held.take_misled() {
            transfers.checks.note_misled(id);
        }
        let Some(given) = given else {
            // Where the true packets were looked for in vain, more are wanted than the parent
            // knows, or another parent.
            if flow.held.told_rank(generation) < before {
                flow.upstream.report(cx.now);
                let parent = flow.upstream.parent.filter(|_| flow.held.is_stubborn(generation));
                if let Some(parent) = parent {
                    flow.upstream.avoid(parent, cx.now);
                    self.review_parent(cx, id);
                }
            }

            self.ask_for_check(cx, transfers, GenerationId { flow: id, generation });
            return false;
        };

        let blame = &mut cx.counters.blame;
        let liars = given.into_iter().filter(|(node, given)| blame.note(*node, *given, cx.now));
        if liars.count() > 0 {
            self.review_parent(cx, id);
        }
        transfers.checks.drop_question(GenerationId { flow: id, generation });
        true
    }

    /// Asks the source for a check of a generation, if it is disputed and one would
    /// help.
    fn ask_for_check(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, of: GenerationId) {
        let Some(flow) = self.flows.get_mut(&of.flow) else { return };
        if !transfers.checks.may_ask(of) {
            return;
        }
        if let Some(nonce) = flow.held.ask(of.generation, cx.rng) {
            transfers.checks.ask(cx.me, of, nonce, cx.now);
        }
    }

    /// Handles a report that was heard: passes it on, or takes it if it is for this node.
    /// `manifest` is that of its transfer, if it is known and open.
    fn hear_report(
        &mut self,
        cx: &mut Context<'_>,
        sender: NodeId,
        report: Report,
        manifest: Option<&Manifest>,
    ) -> Result<(), DropReason> {
        let id = report.flow;
        self.answering[cx.at.port].hear_report(report.parent);
        if report.parent != cx.me {
            // The child has another parent now.
            if let Some(flow) = self.flows.get_mut(&id) {
                flow.lose_child(report.child, report.number, cx.now);
            }

            // A report for another node, whose link may bring nothing from this child: whoever lies
            // on a way that exists passes it on.
            let Report { child: author, next_hop, parent: to, .. } = report;
            let passes =
                is_passed_on(cx.topology, cx.me, Addresses { author, next_hop, to }, METRIC);
            let is_full = passes && !self.pass_on(report, cx.now);
            return if is_full { Err(DropReason::Full) } else { Ok(()) };
        }

        let manifest = manifest.ok_or(DropReason::UnknownFlow)?;
        let wants_nothing = report.wants.lowest().is_none();
        let packet_time = self.packet_time[cx.at.port].value();
        if report.child == cx.me || cx.topology.state(report.child).is_none() {
            return Err(DropReason::Malformed);
        }
        let flow = match self.flows.get_mut(&id) {
            None if wants_nothing || id.source == cx.me => return Err(DropReason::UnknownFlow),
            None => self.join(cx, manifest).ok_or(DropReason::Full)?,
            Some(flow) => flow,
        };

        if let Some(child) = flow.children.get_mut(&report.child) {
            if child.is_stale(report.number, cx.now) {
                return Err(DropReason::Stale);
            }

            // A child whose own frames arrive speaks for itself, unless its reports take another
            // way.
            let is_near = || way(cx.topology, report.child, cx.me, METRIC) == cx.me;
            if sender == report.child {
                child.note_own(cx.now);
            } else if child.speaks_itself(cx.now) && is_near() {
                return Err(DropReason::Disputed);
            }
        }

        flow.heard_at = cx.now;
        let Report { number, handled, ref wants, .. } = report;
        flow.hear_child(cx, report.child, Said { number, handled, wants });
        self.answering[cx.at.port].hear_answer(id, packet_time, cx.now);
        self.review_parent(cx, id);
        Ok(())
    }

    /// Counts a report of a neighbour that was heard from itself.
    fn note_report(&mut self, cx: &Context<'_>, report: &Report) {
        if let Some(flow) = self.flows.get_mut(&report.flow) {
            let told = cx.topology.delivery(report.child, cx.me);
            let heard = HeardFrame { number: report.number, port: cx.at.port, at: cx.now };
            flow.upstream.count(report.child, heard, told);
        }
    }

    // ---- time

    /// Looks for a better parent, and tells the old one that this node has left it.
    fn review_parent(&mut self, cx: &Context<'_>, id: FlowId) {
        let takes = |flow: &&mut Flow| !flow.held.is_source() && !flow.is_idle();
        let Some(flow) = self.flows.get_mut(&id).filter(takes) else { return };
        let children = &flow.children;
        let is_child = |node| children.contains_key(&node);
        if let Some(old) = flow.upstream.review(cx, id.source, is_child) {
            let number = flow.begin_frame(cx.at.ways.port_to(old), cx.now);
            self.leave_parent(cx, id, old, number);
        }
    }

    fn leave_parent(&mut self, cx: &Context<'_>, flow: FlowId, parent: NodeId, number: u16) {
        let next_hop = parent;
        let child = cx.me;
        let wants = Wants::nothing();
        let handled = Handled::default();
        // A parent that does not hear it forgets this node in time.
        self.pass_on(Report { next_hop, parent, child, flow, number, handled, wants }, cx.now);
    }

    /// Keeps a report to send it on. Returns whether there was room.
    fn pass_on(&mut self, report: Report, now: Instant) -> bool {
        self.passing.admit((report.flow, report.child, report.parent), report, now)
    }

    // ---- what is sent

    /// Returns the packet to send next by a port.
    fn next_packet(&self, transfers: &Transfers, now: Instant, at: At<'_>) -> Option<NextPacket> {
        if now < self.answering[at.port].until() {
            return None;
        }
        let may_send = |id: &FlowId| {
            let source = transfers.sources.get(id);
            source.is_none_or(|source| source.may_send(Quorum::Half, now))
                && transfers.is_within_bound(*id, now)
        };

        let ready = self.flows.iter().filter(|(id, _)| may_send(id)).filter_map(|(id, flow)| {
            let generation = flow.next_generation(now, at)?;
            let is_background = transfers.background(*id).is_some();
            Some(NextPacket { is_background, sent_at: flow.sent_at, flow: *id, generation })
        });

        ready.min()
    }

    /// Notes that a packet is sent now. Returns its header, and the packet of the generation if one
    /// is to be sent as it is.
    fn begin(&mut self, next: NextPacket, cx: &Context<'_>) -> Option<(DataHeader, Option<u8>)> {
        let port = cx.at.port;
        let packet_time = self.packet_time[port].value();
        let flow = self.flows.get_mut(&next.flow)?;
        let sent = flow.note_sent(cx, next.generation, packet_time);
        self.on_air[port] = OnAir::Data { flow: next.flow, polls: sent.0.poll };
        Some(sent)
    }

    /// Appends coding vector and payload of a packet of a file that this node sends. Returns
    /// whether the file could be read.
    fn encode(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut FileSource,
        next: NextPacket,
        systematic: Option<u8>,
        out: &mut Vec<u8>,
    ) -> bool {
        let role = self.flows.get_mut(&next.flow).map(|flow| &mut flow.held.role);
        let Some(Role::Source(sending)) = role else { return false };
        let Some(encoder) = sending.encoder(cx, source, next.generation) else { return false };
        source.packets_sent += 1;
        write_packet(encoder, systematic, cx.rng, out).is_some()
    }

    /// Appends coding vector and payload of a combination of what is held. Returns whether there
    /// was anything.
    fn recode(&self, next: NextPacket, rng: &mut impl RngCore, out: &mut Vec<u8>) -> bool {
        let flow = self.flows.get(&next.flow);
        flow.is_some_and(|flow| flow.held.recode(next.generation, rng, out).unwrap_or(false))
    }
}

/// Returns the next node on the way to a parent, which may not hear this one well.
fn way_to(cx: &Context<'_>, parent: NodeId) -> NodeId {
    way(cx.topology, cx.me, parent, METRIC)
}
