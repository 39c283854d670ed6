//! Schemes that send by rank: their frames, handed to the roles of this node and taken from them.

use super::{FileMulticast, OnAir, Way};
use crate::multicast::by_rank::{ByRank, Heard, NextCoded};
use crate::multicast::frame::{self, Announcement, RankReport, Ranked, TransferPhase};
use crate::multicast::sink::{self, SinkOutcome, SinkPhase};
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Context, Filled, Frame};
use ncmesh_wire::FlowId;
use std::ops::RangeInclusive;

/// Least time between two acknowledgments of a receiver to the source, for each receiver, and its
/// bounds. Nothing waits for them: they show progress, and that the receiver is alive. All of them
/// together take about a hundredth of the channel.
const ACK_PAUSE: Duration = Duration::from_millis(250);
const ACK_PAUSES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(8);

impl FileMulticast {
    /// Takes the nodes next down the paths to the receivers of a transfer that is heard of for the
    /// first time for children.
    pub(super) fn expect_children(&mut self, cx: &mut Context<'_>, announcement: &Announcement) {
        if let Way::ByRank(by_rank) = &mut self.way {
            let open = announcement.receivers.iter().filter(|(_, state)| !state.is_final());
            by_rank.expect(cx, &announcement.manifest, open.map(|(node, _)| *node));
        }
    }

    /// Handles a data packet.
    pub(super) fn handle_coded(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Way::ByRank(by_rank) = &mut self.way else { return };
        let Ok(packet) = Ranked::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let (flow, generation) = (packet.header.flow, packet.header.generation);
        let heard = by_rank.handle_data(cx, frame.sender, &packet);
        let sink = self.sinks.get_mut(&flow).filter(|sink| sink.phase == SinkPhase::Receiving);
        if let Heard::Dropped(reason) = heard {
            // Nodes that have no part in a transfer overhear it.
            if reason != DropReason::UnknownFlow {
                cx.counters.drop(reason);
            }
            return;
        }
        cx.counters.note_payload(heard != Heard::Redundant);
        if let Some(sink) = sink {
            sink.note_heard(heard != Heard::Redundant, cx.now);
        }
        if heard == Heard::Whole {
            self.check_whole(cx, flow, generation);
        }
    }

    /// Checks a generation that is whole, and writes it if this node receives the file.
    pub(super) fn check_whole(&mut self, cx: &mut Context<'_>, flow: FlowId, generation: u32) {
        let Way::ByRank(by_rank) = &mut self.way else { return };
        let sink = self.sinks.get_mut(&flow).filter(|sink| sink.wants(generation));
        let manifest = self.announcements.manifest(flow);
        let Some(symbols) = by_rank.decode(flow, generation) else { return };
        let outcome = match (sink, manifest) {
            (Some(sink), _) => sink.handle_whole(generation, symbols, cx.storage),
            (None, Some(manifest)) if sink::is_genuine(manifest, generation, symbols) => {
                SinkOutcome::Quiet
            }
            _ => SinkOutcome::BatchForged,
        };
        by_rank.record_check(cx, flow, generation, outcome != SinkOutcome::BatchForged);
        if !self.note_outcome(cx, flow, outcome) {
            return;
        }

        // The source needs to know progress only now and then, and all receivers share the channel.
        let pause = ACK_PAUSE * self.announcements.receivers(flow);
        let pause = pause.clamp(*ACK_PAUSES.start(), *ACK_PAUSES.end());
        let is_due = self.sinks.get(&flow).is_some_and(|sink| {
            let lately = |at| cx.now.since(at) < pause;
            sink.phase == SinkPhase::Verifying || !sink.acknowledged_at.is_some_and(lately)
        });
        if is_due {
            self.acknowledge_progress(cx, flow);
        }
    }

    /// Handles a report, which may be for this node or pass it.
    pub(super) fn handle_rank_report(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Way::ByRank(by_rank) = &mut self.way else { return };
        let Ok(report) = RankReport::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if report.child == frame.sender {
            by_rank.note_report(cx, &report);
        }
        let own = self.sources.get(&report.flow).filter(|source| source.is_open());
        let manifest = own.map(|source| &source.manifest);
        let manifest = manifest.or_else(|| self.announcements.manifest(report.flow));
        if let Err(reason) = by_rank.handle_report(cx, report, manifest) {
            cx.counters.drop(reason);
        }
    }

    /// Sends the report that is due.
    pub(super) fn fill_rank_report(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let Way::ByRank(by_rank) = &mut self.way else { return None };
        let to = by_rank.fill_report(cx, out)?;
        self.on_air = OnAir::ByRank;
        Some(Filled { kind: frame::REPORT, to })
    }

    /// Returns the packet to send next.
    pub(super) fn next_coded(&self, by_rank: &ByRank, now: Instant) -> Option<NextCoded> {
        let may_send = |flow| self.sources.get(&flow).is_none_or(|s| s.may_start_by_half(now));
        by_rank.next(may_send, now)
    }

    /// Sends a data packet, of the transfer that was served longest ago.
    pub(super) fn fill_coded(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let Way::ByRank(by_rank) = &self.way else { return None };
        let next = self.next_coded(by_rank, cx.now)?;
        let Way::ByRank(by_rank) = &mut self.way else { return None };
        let (header, systematic) = by_rank.begin(next, cx.me, cx.now)?;
        let start = out.len();
        header.write(systematic.is_some(), out);
        let is_filled = match self.sources.get_mut(&next.flow) {
            Some(source) => source.encode(cx, next.generation, systematic, out).is_some(),
            None => by_rank.recode(next, cx.rng, out),
        };
        if !is_filled {
            out.truncate(start);
            return None;
        }
        let is_native = systematic.is_some();
        cx.counters.note_filled(if is_native { Payload::Native } else { Payload::Coded });
        self.on_air = OnAir::ByRank;
        Some(Filled { kind: frame::DATA, to: None })
    }

    /// Notes that this node does not receive a file any more.
    pub(super) fn stop_receiving(&mut self, flow: FlowId) {
        if let Way::ByRank(by_rank) = &mut self.way {
            by_rank.stop_receiving(flow);
        }
    }

    /// Takes what an announcement says of a transfer's phase.
    pub(super) fn note_phase(&mut self, flow: FlowId, phase: TransferPhase) {
        if phase == TransferPhase::Open {
            return;
        }
        self.forget_relayed(flow);
        self.acks.forget(flow);
    }

    /// Forgets what this node holds of a transfer as a relay.
    pub(super) fn forget_relayed(&mut self, flow: FlowId) {
        match &mut self.way {
            Way::Planned(planned) => planned.relays.forget(flow),
            Way::ByRank(by_rank) => by_rank.close(flow),
        }
    }

    /// Goes on with a file of this node to whose end a receiver objected.
    pub(super) fn reopen(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        if let (Way::ByRank(by_rank), Some(source)) = (&mut self.way, self.sources.get(&flow)) {
            by_rank.open(cx, &source.manifest);
            by_rank.expect(cx, &source.manifest, source.unfinished());
        }
    }
}
