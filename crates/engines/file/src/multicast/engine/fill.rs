//! What the service sends when it is granted a transmission.

use super::{FileMulticast, Last};
use crate::multicast::frame::{self, Ack};
use crate::multicast::scheme::Scheme;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Context, Filled};
use ncmesh_wire::{FlowId, NodeId};

/// An acknowledgment that finds no way to the source waits so long.
const NO_ROUTE_PAUSE: Duration = Duration::from_secs(1);

impl<S: Scheme> FileMulticast<S> {
    /// Tells the node before in a tree what is held here: what the forwarder has, and the receiver too if it
    /// wants the batch.
    pub(super) fn fill_report(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let (parent, mut report) = self.relays.owed(cx.now)?;
        let wanted = self.sinks.get(&report.flow).and_then(|sink| sink.holds(report.batch));
        if let Some(held) = wanted {
            report.has = report.has.and(held);
        }
        report.write(parent, out);
        self.relays.answer(report.flow);
        self.last = Last::Report(report.flow);
        Some(Filled { kind: frame::REPORT, to: address(cx, Some(parent)) })
    }

    pub(super) fn fill_ack(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        while let Some(ack) = self.acks.due(cx.now).cloned() {
            let Some(next) = self.next_hops.towards(cx.topology, cx.me, ack.flow.source) else {
                let own = ack.receiver == cx.me;
                self.acks.postpone(ack.flow, ack.receiver, cx.now + NO_ROUTE_PAUSE, own);
                continue;
            };
            if ack.bits.len() + Ack::HEADER > cx.mtu {
                self.acks.drop(ack.flow, ack.receiver);
                continue;
            }
            ack.write(next, out);
            self.acks.sent(ack.flow, ack.receiver, next, cx.now);
            self.last = Last::Ack(ack.flow, ack.receiver);
            return Some(Filled { kind: frame::ACK, to: Some(next) });
        }
        None
    }

    pub(super) fn fill_announce(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let announce = self.announces.due(cx.now)?;
        let flow = announce.manifest.flow;
        let start = out.len();
        announce.write(out);
        self.announces.sent(flow, cx.now, cx.rng);
        if out.len() - start > cx.mtu {
            out.truncate(start);
            return None;
        }
        self.last = Last::Other;
        Some(Filled { kind: frame::ANNOUNCE, to: None })
    }

    pub(super) fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let relayed = self.relays.ready(cx.now);
        let own = self.ready_source(cx.now);
        match (relayed, own) {
            (Some((flow, at)), other) if other.is_none_or(|(_, own_at)| at <= own_at) => {
                self.fill_relayed(cx, flow, out)
            }
            (_, Some((flow, _))) => self.fill_own(cx, flow, out),
            _ => None,
        }
    }

    fn fill_relayed(
        &mut self,
        cx: &mut Context<'_>,
        flow: FlowId,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let piggyback = self.acks.piggyback(flow);
        let to = self.relays.fill(flow, piggyback, cx.now, cx.rng, out)?;
        self.last = Last::Relayed(flow);
        Some(Filled { kind: frame::DATA, to: address(cx, to) })
    }

    fn fill_own(
        &mut self,
        cx: &mut Context<'_>,
        flow: FlowId,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let piggyback = self.acks.piggyback(flow);
        let source = self.sources.get_mut(&flow)?;
        source.prepare(cx, &self.scheme)?;
        let to = source.fill(cx, piggyback, &self.scheme, out)?;
        self.last = Last::Source(flow);
        Some(Filled { kind: frame::DATA, to })
    }

    /// Of the files that can be sent from, the one longest not sent from.
    pub(super) fn ready_source(&self, now: Instant) -> Option<(FlowId, Instant)> {
        let ready = self.sources.iter().filter(|(_, s)| s.is_ready(now));
        ready.map(|(flow, s)| (*flow, s.sent_at)).min_by_key(|(flow, at)| (*at, *flow))
    }
}

/// Where a frame goes that another's list of nodes says is for `to`: to all, if there is no such node.
fn address(cx: &Context<'_>, to: Option<NodeId>) -> Option<NodeId> {
    to.filter(|node| cx.topology.state(*node).is_some())
}
