//! Frames that the engine sends when the channel is granted.

use super::{FileMulticast, OnAir, Way};
use crate::multicast::ack_cache::AckKey;
use crate::multicast::frame::{self, Ack};
use crate::multicast::ready::ReadyTransfer;
use ncmesh_engine::counters::Payload;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::{Context, Filled};
use ncmesh_wire::NodeId;

/// Acknowledgments take links that bring nothing back if there are no others.
const METRIC: Metric = Metric::Answered;
/// Time that an acknowledgment waits if there is no route to the source.
const NO_ROUTE_PAUSE: Duration = Duration::from_secs(1);

impl FileMulticast {
    /// Sends the acknowledgment that is due, to the next hop on the shortest path to its source.
    pub(super) fn fill_ack(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        while let Some(ack) = self.acks.due(cx.now).cloned() {
            let key = AckKey::of(&ack);
            let Some(next) = cx.topology.next_hop(cx.me, ack.flow.source, METRIC) else {
                let is_own = ack.receiver == cx.me;
                self.acks.postpone(key, cx.now + NO_ROUTE_PAUSE, is_own);
                continue;
            };
            // Another node's may be longer than this node's radio can send.
            if ack.bits.len() + Ack::HEADER > cx.mtu {
                self.acks.give_up(key);
                continue;
            }
            ack.write(next, out);
            self.acks.note_sent(key, next, cx.now);
            self.on_air = OnAir::Ack(key);
            return Some(Filled { kind: frame::ACK, to: Some(next) });
        }
        None
    }

    /// Reports to the parent in a tree what is held here.
    pub(super) fn fill_report(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let Way::Planned(planned) = &mut self.way else { return None };
        let mut report = planned.relays.due_report(cx.now)?;

        // The forwarder and the receiver at this node have buffers of their own. A packet is here
        // only if both have it, as far as the receiver still wants the batch.
        let wanted = self.sinks.get(&report.flow).and_then(|sink| sink.held_packets(report.batch));
        if let Some(held) = wanted {
            report.has = report.has.and(held);
        }

        report.write(out);
        planned.relays.note_report_sent(report.flow);
        self.on_air = OnAir::Report(report.flow);
        Some(Filled { kind: frame::REPORT, to: unicast_to_known(cx, Some(report.parent)) })
    }

    /// Passes an announcement on.
    pub(super) fn fill_announcement(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let announcement = self.announcements.due(cx.now)?;
        let flow = announcement.manifest.flow;
        let start = out.len();
        announcement.write(out);
        self.announcements.note_sent(flow, cx.now, cx.rng);
        // Another node's may be longer than this node's radio can send.
        if out.len() - start > cx.mtu {
            out.truncate(start);
            return None;
        }
        self.on_air = OnAir::Announcement;
        Some(Filled { kind: frame::ANNOUNCE, to: None })
    }

    /// Sends a data packet, for the transfer that was served longest ago. A forwarded one goes
    /// before one of this node's own that was served at the same time.
    pub(super) fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        // A node that is both forwarder and source would starve one role if it always preferred the
        // other.
        let own = self.ready_source(cx.now);
        let Way::Planned(planned) = &mut self.way else { return None };
        let relayed = planned.relays.ready(cx.now);
        let is_relayed_first =
            own.is_none_or(|own| relayed.is_some_and(|relayed| relayed.sent_at <= own.sent_at));

        if is_relayed_first {
            let flow = relayed?.flow;
            let piggyback = self.acks.piggyback(flow);
            let filled = planned.relays.fill(flow, piggyback, cx.now, cx.rng, out)?;
            let is_hop_by_hop = planned.scheme.forwarding().is_hop_by_hop();
            cx.counters.note_filled(if is_hop_by_hop { Payload::Native } else { Payload::Coded });
            self.on_air = OnAir::RelayData(flow);
            Some(Filled { to: unicast_to_known(cx, filled.to), ..filled })
        } else {
            let flow = own?.flow;
            let piggyback = self.acks.piggyback(flow);
            let source = self.sources.get_mut(&flow)?;
            let filled = source.fill(cx, piggyback, &*planned.scheme, out)?;
            self.on_air = OnAir::SourceData(flow);
            Some(filled)
        }
    }

    /// Returns the own file to send from next.
    pub(super) fn ready_source(&self, now: Instant) -> Option<ReadyTransfer> {
        let ready = self.sources.iter().filter(|(_, source)| source.is_ready(now));
        ready.map(|(flow, source)| ReadyTransfer { sent_at: source.sent_at, flow: *flow }).min()
    }
}

/// Returns the unicast address `to`, which another node's frame named. Falls back to broadcast if
/// the mesh has no such node.
fn unicast_to_known(cx: &Context<'_>, to: Option<NodeId>) -> Option<NodeId> {
    to.filter(|node| cx.topology.state(*node).is_some())
}
