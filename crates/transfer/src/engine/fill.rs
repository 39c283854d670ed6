//! Frames of all schemes that the engine sends when the channel is granted.

use super::{FileMulticast, OnAir};
use crate::acks::AckKey;
use crate::carrier::Carrier;
use crate::checks::Message;
use crate::frame::{self, Ack, Check, CheckRequest};
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::hop::passing::way;
use ncmesh_engine::topology::Metric;
use ncmesh_engine::{Context, Filled, TxResult};
use ncmesh_wire::NodeId;

/// Acknowledgments and checks take links that bring nothing back if there are no others.
const METRIC: Metric = Metric::Answered;
/// Time that an acknowledgment waits if there is no route to the source.
const NO_ROUTE_PAUSE: Duration = Duration::from_secs(1);

impl<C: Carrier> FileMulticast<C> {
    /// Sends the acknowledgment that is due, to the next hop on the shortest path to its source.
    pub(super) fn fill_ack(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        while let Some(ack) = self.transfers.acks.due(cx.now).cloned() {
            let key = AckKey::of(&ack);
            // Link state may lack a path for a minute where links are poor or of one direction. The
            // announcement came, so the way that it took is tried.
            let next = cx.topology.next_hop(cx.me, ack.flow.source, METRIC);
            let mut senders = self.transfers.announcements.heard_from(ack.flow);
            let hears = |node: &NodeId| cx.topology.delivery(cx.me, *node) > 0.0;
            let next = next.or_else(|| senders.find(hears));
            let Some(next) = next else {
                // The source may come back, so an own acknowledgment waits. One of another node may
                // be given up.
                let is_own = ack.receiver == cx.me;
                self.transfers.acks.postpone(key, cx.now + NO_ROUTE_PAUSE, is_own);
                continue;
            };

            // Another node's may be longer than this node's radio can send.
            if ack.bits.len() + Ack::HEADER > cx.mtu {
                self.transfers.acks.give_up(key);
                continue;
            }

            ack.write(next, out);
            self.transfers.acks.note_sent(key, next, cx.now);
            self.on_air[cx.at.port] = OnAir::Ack(key);
            return Some(Filled { kind: frame::ACK, to: Some(next) });
        }

        None
    }

    /// Sends the question or check that is due, to the next hop on its way.
    pub(super) fn fill_check(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        while let Some((key, message)) = self.transfers.checks.due(cx.now) {
            let next_hop = way(cx.topology, cx.me, message.to(), METRIC);
            let start = out.len();
            let kind = match message {
                Message::Request(request) => {
                    CheckRequest { next_hop, ..request.clone() }.write(out);
                    frame::CHECK_REQUEST
                }
                Message::Check(check) => {
                    Check { next_hop, ..check.clone() }.write(out);
                    frame::CHECK
                }
            };

            self.transfers.checks.note_sent(key, cx.now);
            // Another node's may be longer than this node's radio can send.
            if out.len() - start > cx.mtu {
                out.truncate(start);
                self.transfers.checks.handle_tx_result(key, TxResult::Sent, cx.now);
                continue;
            }
            self.on_air[cx.at.port] = OnAir::Check { key, next_hop };
            return Some(Filled { kind, to: Some(next_hop) });
        }

        None
    }

    /// Passes an announcement on.
    pub(super) fn fill_announcement(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let announcement = self.transfers.announcements.due(cx.now)?;
        let flow = announcement.manifest.flow;
        let start = out.len();
        announcement.write(out);
        self.transfers.announcements.note_sent(flow, cx.now, cx.rng);

        // Another node's may be longer than this node's radio can send.
        if out.len() - start > cx.mtu {
            out.truncate(start);
            return None;
        }

        Some(Filled { kind: frame::ANNOUNCE, to: None })
    }
}
