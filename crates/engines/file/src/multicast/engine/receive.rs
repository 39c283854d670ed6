//! Frames that the engine hears: parses them and hands them to the roles that this node has.

use super::{FileMulticast, Way};
use crate::multicast::admission::Admission;
use crate::multicast::announcements::SILENT;
use crate::multicast::frame::{Ack, Announcement, Data, Report, TransferPhase, Version};
use crate::multicast::relay::{HeardData, RelayOutcome};
use crate::multicast::sink::{ClaimedEnd, FileSink, SinkOutcome, SinkPhase, reserve_memory};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{ReceiverState, Refusal, is_safe_name};
use ncmesh_engine::time::Duration;
use ncmesh_engine::{Context, Event, FileEngine, Frame};
use ncmesh_wire::FlowId;

/// Least time between two answers to announcements of one transfer.
const ANSWER_PAUSE: Duration = Duration::from_millis(150);

impl FileMulticast {
    /// Handles an announcement: passes it on if it is new, and answers it if it is for this node.
    pub(super) fn handle_announcement(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(announcement) = Announcement::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let flow = announcement.manifest.flow;
        if let Err(why) = self.check_announcement(cx, &announcement) {
            return cx.counters.drop(why);
        }
        let is_first = self.announcements.manifest(flow).is_none();
        let is_other_file = self.announcements.contradict(&announcement.manifest);
        match self.announcements.admit(&announcement, Some(frame.sender), cx.now, cx.rng) {
            Admission::Full => return cx.counters.drop(DropReason::Full),
            Admission::Disputed => return cx.counters.drop(DropReason::Disputed),
            Admission::Known => return self.drop_known_announcements(cx),
            Admission::New => {}
        }
        if flow.source == cx.me {
            return;
        }
        let sink = self.sinks.get(&flow);
        let is_received = sink.is_some_and(|sink| sink.manifest != announcement.manifest);
        if is_received {
            self.forget(flow);
            cx.events.push_back(Event::Suspended(flow));
        }
        if is_other_file || is_received {
            self.forget_relayed(flow);
        }

        self.note_phase(flow, announcement.phase);
        if is_first && announcement.phase == TransferPhase::Open {
            self.expect_children(cx, &announcement);
        }

        // State of this node as the source knows it.
        let known = announcement.receivers.iter().find(|(node, _)| *node == cx.me);
        let known = known.map(|(_, state)| *state);
        match (self.sinks.get_mut(&flow), announcement.phase) {
            // It is said to be over, without this node.
            (Some(sink), phase @ (TransferPhase::Withdrawn | TransferPhase::Ended))
                if sink.is_incomplete() =>
            {
                let at = sink.claimed_end.map_or(cx.now, |claim| claim.at);
                let is_of_receiver = phase == TransferPhase::Ended && known.is_some();
                sink.claimed_end = Some(ClaimedEnd { at, is_of_receiver });
                if is_of_receiver {
                    self.acknowledge(cx, flow);
                }
            }
            // It goes on after an end that was believed.
            (Some(sink), TransferPhase::Open) if sink.phase == SinkPhase::Withdrawn => {
                self.sinks.remove(&flow);
                if known.is_some() || announcement.open_to_all {
                    self.begin_reception(cx, &announcement, known);
                }
            }
            // It goes on. The source may be wrong about this node: it restarted, or missed an
            // acknowledgment, or wants to know whether this node is alive.
            (Some(sink), TransferPhase::Open) => {
                sink.heard_at = cx.now;
                let was_over = sink.claimed_end.take().is_some();
                if let Way::ByRank(by_rank) = &mut self.way
                    && was_over
                    && sink.phase == SinkPhase::Receiving
                {
                    by_rank.receive(cx, &sink.manifest, &sink.have);
                }
                let known = known.unwrap_or(ReceiverState::Invited);
                let is_wrong = sink.phase != SinkPhase::Offered && known != sink.receiver_state();
                let answered_lately =
                    sink.acknowledged_at.is_some_and(|at| cx.now.since(at) < ANSWER_PAUSE);
                if is_wrong && !answered_lately {
                    self.acknowledge(cx, flow);
                }
            }
            // It is new, and this node may have it.
            (None, TransferPhase::Open) if known.is_some() || announcement.open_to_all => {
                self.begin_reception(cx, &announcement, known);
            }
            _ => {}
        }
    }

    /// Checks that an announcement may come from its source.
    fn check_announcement(
        &mut self,
        cx: &mut Context<'_>,
        announcement: &Announcement,
    ) -> Result<(), DropReason> {
        let manifest = &announcement.manifest;
        let version = announcement.version;
        let flow = manifest.flow;

        // This node knows what it has announced.
        if flow.source == cx.me {
            let source = self.sources.get_mut(&flow).ok_or(DropReason::UnknownFlow)?;
            if source.has_announced(version, cx.epoch) {
                return Ok(());
            }
            if version.epoch == cx.epoch {
                source.note_lie(cx.epoch);
                cx.events.push_back(Event::Impersonated);
            }
            return Err(DropReason::DuplicateId);
        }

        // No node announces a transfer in an epoch that it has not come to. Where paths are given,
        // no epoch is known.
        let epoch = cx.topology.state(flow.source).map(|state| state.version.0);
        if let Some(epoch) = epoch.filter(|epoch| *epoch > 0) {
            self.announcements.forget_after(flow, epoch);
            if version.epoch > epoch {
                return Err(DropReason::Unproven);
            }
        }

        // A batch that was proved belongs to the file that was announced before.
        let sink = self.sinks.get(&flow);
        let is_other = sink.is_some_and(|sink| sink.manifest != *manifest && !sink.is_unproven());
        if is_other { Err(DropReason::Disputed) } else { Ok(()) }
    }

    /// Offers a new file to the driver. `known` is the state of this node as the source knows it.
    fn begin_reception(
        &mut self,
        cx: &mut Context<'_>,
        announcement: &Announcement,
        known: Option<ReceiverState>,
    ) {
        let manifest = &announcement.manifest;
        let flow = manifest.flow;
        if self.sinks.len() >= self.limits.kept && !self.evict_sink(cx) {
            cx.counters.drop(DropReason::Full);
            // Once is enough: an announcement that shows the refusal needs no answer.
            if known != Some(ReceiverState::Refused(Refusal::Busy)) {
                let version = self.next_ack_version(cx);
                self.pass_on(cx, Ack::refusal(flow, cx.me, version, Refusal::Busy));
            }
            return;
        }
        self.sinks.insert(flow, FileSink::new(manifest.clone(), cx.now));
        if is_safe_name(&manifest.name) {
            cx.events.push_back(Event::Announced(Box::new(manifest.clone())));
        } else {
            self.refuse(cx, flow, Refusal::BadName);
        }
    }

    /// Makes room for another file to receive: drops one that ended, or else one whose source is
    /// silent, which goes on when it is announced again. Returns whether there was any.
    fn evict_sink(&mut self, cx: &mut Context<'_>) -> bool {
        let is_silent = |sink: &FileSink| cx.now.since(sink.heard_at) >= SILENT;
        let evictable = self.sinks.iter().filter(|(_, s)| !s.is_open() || is_silent(s));
        let victim = evictable.min_by_key(|(_, s)| (s.is_open(), s.finished, s.heard_at));
        let Some((flow, is_open)) = victim.map(|(flow, s)| (*flow, s.is_open())) else {
            return false;
        };
        self.sinks.remove(&flow);
        self.stop_receiving(flow);
        if is_open {
            cx.events.push_back(Event::Suspended(flow));
        }
        true
    }

    /// Handles a data packet in each role that this node has in the transfer.
    pub(super) fn handle_data(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Way::Planned(planned) = &mut self.way else { return };
        let data = Data::parse(frame.body);
        let forwarding = planned.scheme.forwarding();
        let Some(data) = data.ok().filter(|data| data.header.routing.is_for(forwarding)) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let flow = data.header.flow;
        self.acks.handle_data(frame.sender, &data.header, cx.now);
        if let Some(source) = self.sources.get_mut(&flow) {
            return source.handle_data(frame.sender, &data, cx.now);
        }

        // As a forwarder.
        let (me, sender, mtu, now) = (cx.me, frame.sender, cx.mtu, cx.now);
        let is_announced = self.announcements.manifest(flow).is_some();
        let heard = HeardData { me, sender, data: &data, is_announced, mtu, now };
        match planned.relays.handle_data(heard) {
            RelayOutcome::Malformed => cx.counters.drop(DropReason::Malformed),
            RelayOutcome::Unannounced => cx.counters.drop(DropReason::UnknownFlow),
            RelayOutcome::Stale => cx.counters.drop(DropReason::Stale),
            RelayOutcome::Data { is_innovative } => cx.counters.note_payload(is_innovative),
            RelayOutcome::NotListed | RelayOutcome::Taken => {}
        }

        // As a receiver. A packet that is too old for a forwarder may still serve a receiver.
        let sink = self.sinks.get(&flow);
        let needed = sink.map_or(0, |sink| sink.memory_needed(data.header.batch));
        if !reserve_memory(&mut self.sinks, needed, self.limits.memory) {
            return cx.counters.drop(DropReason::Full);
        }
        let Some(sink) = self.sinks.get_mut(&flow) else { return };
        let innovative = sink.innovative;
        let outcome = sink.handle_data(&data, cx.now, cx.storage);
        cx.counters.note_payload(sink.innovative > innovative);
        if self.note_outcome(cx, flow, outcome) {
            self.acknowledge_progress(cx, flow);
        }
    }

    /// Notes what became of a batch. Returns whether it was written.
    pub(super) fn note_outcome(
        &mut self,
        cx: &mut Context<'_>,
        flow: FlowId,
        outcome: SinkOutcome,
    ) -> bool {
        match outcome {
            SinkOutcome::Quiet => {}
            SinkOutcome::Malformed | SinkOutcome::BatchForged => {
                cx.counters.drop(DropReason::Malformed);
            }
            SinkOutcome::WriteFailed => {
                self.stop_receiving(flow);
                self.acknowledge(cx, flow);
                cx.events.push_back(Event::Unwritable(flow));
            }
            SinkOutcome::BatchWritten => return true,
        }
        false
    }

    /// Handles an acknowledgment that is addressed to this node: passes it on, or takes it in as
    /// the source.
    pub(super) fn handle_ack(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok((next_hop, ack)) = Ack::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if next_hop != cx.me {
            return;
        }
        // This node alone says what it has.
        if ack.receiver == cx.me {
            return cx.counters.drop(DropReason::Malformed);
        }
        if ack.flow.source != cx.me {
            // One that is not kept must not be confirmed to the previous hop.
            if self.pass_on(cx, ack.clone()) {
                self.acks.note_received(&ack);
            }
            return;
        }
        match self.sources.get_mut(&ack.flow) {
            None => cx.counters.drop(DropReason::UnknownFlow),
            Some(source) => {
                self.acks.note_received(&ack);
                let was_open = source.is_open();
                if !source.handle_ack(&ack, cx, self.way.scheme()) {
                    cx.counters.drop(DropReason::Stale);
                }
                if !was_open && source.is_open() {
                    self.reopen(cx, ack.flow);
                }
            }
        }
    }

    /// Handles a report that is addressed to this node, as the source or as a forwarder.
    pub(super) fn handle_report(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Way::Planned(planned) = &mut self.way else { return };
        let has_reports = planned.scheme.forwarding().is_hop_by_hop();
        let Some(report) = Report::parse(frame.body).ok().filter(|_| has_reports) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if report.parent != cx.me {
            return;
        }

        // A report on a turn that is over says nothing about the packets of this one.
        let sender = frame.sender;
        let is_current = match self.sources.get_mut(&report.flow) {
            Some(source) => source.handle_report(sender, &report, cx.now),
            None => planned.relays.handle_report(sender, &report, cx.now) == RelayOutcome::Taken,
        };
        if !is_current {
            cx.counters.drop(DropReason::Stale);
        }
    }

    /// Acknowledges what is complete by now, and tells the driver if that is the whole file.
    pub(super) fn acknowledge_progress(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        self.acknowledge(cx, flow);
        if self.sinks.get(&flow).is_some_and(|sink| sink.phase == SinkPhase::Verifying) {
            cx.events.push_back(Event::Assembled(flow));
        }
    }

    /// Acknowledges to the source what this receiver has.
    pub(super) fn acknowledge(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        let version = self.next_ack_version(cx);
        let Some(sink) = self.sinks.get_mut(&flow) else { return };
        let ack = sink.ack(cx.me, version, cx.mtu.saturating_sub(Ack::HEADER));
        sink.acknowledged_at = Some(cx.now);
        self.pass_on(cx, ack);
    }

    /// Returns the version of this node's next acknowledgment.
    fn next_ack_version(&mut self, cx: &Context<'_>) -> Version {
        self.acks_written += 1;
        Version { epoch: cx.epoch, number: self.acks_written }
    }

    /// Puts an acknowledgment, this node's or another's, on its way to the source. Returns whether
    /// there is room for it.
    fn pass_on(&mut self, cx: &mut Context<'_>, ack: Ack) -> bool {
        let has_room = self.acks.admit(ack, cx.now) != Admission::Full;
        if !has_room {
            cx.counters.drop(DropReason::Full);
        }
        has_room
    }
}
