//! Frames of all schemes that the engine hears: announcements, acknowledgments and checks.

use super::FileMulticast;
use crate::admission::Admission;
use crate::announcements::SILENT;
use crate::carrier::Carrier;
use crate::checks::Message;
use crate::frame::{Ack, Announcement, Check, CheckRequest, TransferPhase};
use crate::sink::{ClaimedEnd, FileSink, SinkPhase};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::check::COLUMNS;
use ncmesh_engine::file::{ReceiverState, Refusal, is_safe_name};
use ncmesh_engine::time::Duration;
use ncmesh_engine::{Context, Event, FileEngine, Frame};
use ncmesh_wire::identity::Signature;

/// Least time between two answers to announcements of one transfer.
const ANSWER_PAUSE: Duration = Duration::from_millis(150);

impl<C: Carrier> FileMulticast<C> {
    /// Handles an announcement: passes it on if it is new, and answers it if it is for this node.
    pub(super) fn handle_announcement(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(announcement) = Announcement::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };

        let flow = announcement.manifest.flow;
        if let Err(why) = self.check_announcement(cx, &announcement) {
            return cx.counters.drop(why);
        }

        // Both are asked before the announcement is taken, which changes the answers.
        let is_first = self.transfers.announcements.manifest(flow).is_none();
        let is_other_file = self.transfers.announcements.contradict(&announcement.manifest);
        match self.transfers.announcements.admit(&announcement, Some(frame.sender), cx.now, cx.rng)
        {
            Admission::Full => return cx.counters.drop(DropReason::Full),
            Admission::Disputed => return cx.counters.drop(DropReason::Disputed),
            Admission::Known => return self.drop_known_announcements(cx),
            Admission::New => {}
        }

        // An announcement of this node's own tells only which neighbours have it.
        if flow.source == cx.me {
            return;
        }

        // A source that was reinstalled may announce another file under the same id. Generations of
        // the former one are of no use then.
        let sink = self.transfers.sinks.get(&flow);
        let is_received = sink.is_some_and(|sink| sink.manifest != announcement.manifest);
        if is_received {
            self.forget(flow);
            cx.events.push_back(Event::Suspended(flow));
        }

        if is_other_file || is_received {
            self.carrier.close(flow);
        }

        if announcement.phase != TransferPhase::Open {
            self.carrier.close(flow);
            self.transfers.acks.forget(flow);
        } else if is_first {
            self.carrier.expect(cx, &announcement);
        }

        // State of this node as the source knows it.
        let known = announcement.receivers.iter().find(|(node, _)| *node == cx.me);
        let known = known.map(|(_, state)| *state);
        match (self.transfers.sinks.get_mut(&flow), announcement.phase) {
            // It is said to be over, without this node.
            (Some(sink), phase @ (TransferPhase::Withdrawn | TransferPhase::Ended))
                if sink.is_incomplete() =>
            {
                let at = sink.claimed_end.map_or(cx.now, |claim| claim.at);
                let is_of_receiver = phase == TransferPhase::Ended && known.is_some();
                sink.claimed_end = Some(ClaimedEnd { at, is_of_receiver });
                if is_of_receiver {
                    self.transfers.acknowledge(cx, flow);
                }
            }

            // It goes on after an end that was believed.
            (Some(sink), TransferPhase::Open) if sink.phase == SinkPhase::Withdrawn => {
                self.transfers.sinks.remove(&flow);
                if known.is_some() || announcement.open_to_all {
                    self.begin_reception(cx, &announcement, known);
                }
            }

            // It goes on. The source may be wrong about this node: it restarted, or missed an
            // acknowledgment, or wants to know whether this node is alive.
            (Some(sink), TransferPhase::Open) => {
                sink.heard_at = cx.now;
                let was_over = sink.claimed_end.take().is_some();
                let goes_on = was_over && sink.phase == SinkPhase::Receiving;
                let known = known.unwrap_or(ReceiverState::Invited);
                let is_wrong = sink.phase != SinkPhase::Offered && known != sink.receiver_state();
                let answered_lately =
                    sink.acknowledged_at.is_some_and(|at| cx.now.since(at) < ANSWER_PAUSE);
                if goes_on {
                    self.carrier.receive(cx, &mut self.transfers, flow);
                }
                if is_wrong && !answered_lately {
                    self.transfers.acknowledge(cx, flow);
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
            let source = self.transfers.sources.get_mut(&flow).ok_or(DropReason::UnknownFlow)?;
            if source.has_announced(version, cx.epoch) {
                return Ok(());
            }
            // Only this start can have announced in this epoch, so another node uses this node's
            // id.
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
            self.transfers.announcements.forget_after(flow, epoch);
            if version.epoch > epoch {
                return Err(DropReason::Unproven);
            }
        }

        // A generation that was proved belongs to the file that was announced before.
        let sink = self.transfers.sinks.get(&flow);
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
        if self.transfers.sinks.len() >= self.limits.kept && !self.evict_sink(cx) {
            cx.counters.drop(DropReason::Full);

            // Once is enough: an announcement that shows the refusal needs no answer.
            if known != Some(ReceiverState::Refused(Refusal::Busy)) {
                let version = self.transfers.next_ack_version(cx);
                self.transfers.pass_on(cx, Ack::refusal(flow, cx.me, version, Refusal::Busy));
            }

            return;
        }

        self.transfers.sinks.insert(flow, FileSink::new(manifest.clone(), cx.now));
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
        let evictable = self.transfers.sinks.iter().filter(|(_, s)| !s.is_open() || is_silent(s));
        let victim = evictable.min_by_key(|(_, s)| (s.is_open(), s.finished, s.heard_at));
        let Some((flow, is_open)) = victim.map(|(flow, s)| (*flow, s.is_open())) else {
            return false;
        };
        self.transfers.sinks.remove(&flow);
        self.carrier.stop_receiving(flow);
        if is_open {
            cx.events.push_back(Event::Suspended(flow));
        }
        true
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
            if self.transfers.pass_on(cx, ack.clone()) {
                self.transfers.acks.note_received(&ack);
            }
            return;
        }

        match self.transfers.sources.get_mut(&ack.flow) {
            None => cx.counters.drop(DropReason::UnknownFlow),
            Some(source) => {
                self.transfers.acks.note_received(&ack);
                let was_open = source.is_open();
                if source.handle_ack(&ack, cx) {
                    self.carrier.review(cx, source, false);
                    source.close_if_done(cx);
                } else {
                    cx.counters.drop(DropReason::Stale);
                }
                // An objection that came in time opens the transfer again, and its packets flow on.
                if !was_open && source.is_open() {
                    self.carrier.open(cx, source);
                }
            }
        }
    }

    /// Handles a question: answers it as the source, or passes it on.
    pub(super) fn handle_check_request(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(request) = CheckRequest::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if request.next_hop != cx.me {
            return;
        }
        if request.verifier == cx.me {
            return cx.counters.drop(DropReason::Malformed);
        }
        if request.of.flow.source != cx.me {
            return self.pass_check_on(cx, Message::Request(request));
        }

        let CheckRequest { verifier, of, nonce, .. } = request;
        let source = self.transfers.sources.get_mut(&of.flow).filter(|source| source.is_open());
        let Some(source) = source.filter(|s| of.generation < s.manifest.geometry.generations())
        else {
            return cx.counters.drop(DropReason::UnknownFlow);
        };
        if !self.transfers.checks.may_answer(verifier, cx.now) {
            return cx.counters.drop(DropReason::Full);
        }

        // Generations of many packets leave room for fewer sums of each.
        let room = cx.mtu.saturating_sub(Check::HEADER + Signature::LEN);
        let packets = usize::from(source.manifest.geometry.packets(of.generation)).max(1);
        let columns = (room / packets).min(*COLUMNS.end());
        if !COLUMNS.contains(&columns) {
            return;
        }
        let Some(sums) = source.sums(cx, of, nonce, columns) else { return };
        let next_hop = verifier;
        self.pass_check_on(cx, Message::Check(Check { next_hop, verifier, of, nonce, sums }));
    }

    /// Handles a check: passes it on, or hands it to the carrier if this node asked for it.
    pub(super) fn handle_check(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(check) = Check::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if check.next_hop != cx.me {
            return;
        }

        // This node alone makes checks of its files.
        if check.of.flow.source == cx.me {
            return cx.counters.drop(DropReason::Malformed);
        }
        if check.verifier != cx.me {
            return self.pass_check_on(cx, Message::Check(check));
        }
        if !self.transfers.checks.take_answer(&check) {
            return cx.counters.drop(DropReason::Stale);
        }
        self.carrier.handle_check(cx, &mut self.transfers, &check);
    }

    fn pass_check_on(&mut self, cx: &mut Context<'_>, message: Message) {
        if !self.transfers.checks.pass_on(message, cx.now) {
            cx.counters.drop(DropReason::Full);
        }
    }
}
