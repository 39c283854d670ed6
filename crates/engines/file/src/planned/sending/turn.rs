//! A source's turn on a generation: whom it is for, by which plan, and what to send next.
//!
//! How a turn sends depends on the scheme. One that codes sends each packet of the generation once
//! as it is, in the first turn, then random combinations for as long as the turn lasts. One that
//! does not code leaves the choice to the per-hop [`Arq`].

use crate::planned::arq::{Arq, NextPacket, OnAir};
use crate::planned::frame::{Coding, Data, Report};
use crate::planned::packet_set::PacketSet;
use crate::planned::routing::Cast;
use crate::planned::scheme::Plan;
use ncmesh_engine::TxResult;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

/// Time without a receiver finishing after which a turn counts as stuck. A forwarder's buffer may
/// be spoiled then by a forged packet, and the turn is better begun anew.
const STUCK: Duration = Duration::from_secs(60);

/// Task of a turn.
#[derive(Debug)]
pub(super) struct Assignment {
    pub generation: u32,
    /// Receivers that the turn is for.
    pub receivers: BTreeSet<NodeId>,
    pub plan: Plan,
}

/// A turn under way.
#[derive(Debug)]
pub(super) struct GenerationTurn {
    pub assignment: Assignment,
    /// Counts the plans after the first one, modulo 2^8.
    pub revision: u8,
    /// Packets of the generation (k).
    packets: u8,
    /// Packets still scheduled (C_s).
    scheduled: f64,
    sending: Sending,
    /// When the turn began, or a receiver last finished the generation.
    progress_at: Instant,
}

/// How a turn sends its packets.
#[derive(Debug)]
pub(super) enum Sending {
    /// Packets from `next_systematic` on as they are, then combinations.
    Coded { next_systematic: u8 },
    /// Packets as they are, until the source's children in the tree have them.
    HopByHop { cast: Cast, arq: Arq, on_air: Option<OnAir> },
}

/// The packet that a turn sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnPacket {
    /// A random combination of the whole generation.
    Combination,
    /// One packet as it is.
    Systematic(NextPacket),
}

impl GenerationTurn {
    pub(super) fn new(assignment: Assignment, packets: u8, sending: Sending, now: Instant) -> Self {
        Self {
            scheduled: assignment.plan.source_transmissions * f64::from(packets),
            assignment,
            revision: 0,
            packets,
            sending,
            progress_at: now,
        }
    }

    /// Goes on for `receivers` by `plan`. A plan that differs gets a new revision, so that
    /// forwarders can tell it from the old one.
    pub(super) fn replan(
        &mut self,
        receivers: BTreeSet<NodeId>,
        plan: Plan,
        source: NodeId,
        now: Instant,
    ) {
        // Fewer receivers are progress, which the timer of the turn counts from.
        if receivers != self.assignment.receivers {
            self.assignment.receivers = receivers;
            self.progress_at = now;
        }

        // Forwarders and children need not know that receivers changed, only that the plan did.
        if plan == self.assignment.plan {
            return;
        }

        self.assignment.plan = plan;
        self.revision = self.revision.wrapping_add(1);
        if let Sending::HopByHop { arq, .. } = &mut self.sending {
            arq.set_children(self.assignment.plan.routing.children(source), now);
        }
    }

    /// Returns whether no receiver has finished for [`STUCK`].
    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        now.since(self.progress_at) >= STUCK
    }

    /// Begins anew towards the source's children, as if they had nothing of the generation.
    pub(super) fn restart(&mut self, source: NodeId, now: Instant) {
        self.progress_at = now;
        if let Sending::HopByHop { arq, .. } = &mut self.sending {
            *arq = Arq::new(self.assignment.plan.routing.children(source), self.packets, now);
        }
    }

    /// Returns the packet to send now, if there is one.
    pub(super) fn next_packet(&self, now: Instant) -> Option<TurnPacket> {
        match &self.sending {
            Sending::HopByHop { arq, .. } => {
                arq.next(self.all_packets(), now).map(TurnPacket::Systematic)
            }
            Sending::Coded { next_systematic } if *next_systematic < self.packets => {
                let next = NextPacket { packet: *next_systematic, poll: None };
                Some(TurnPacket::Systematic(next))
            }
            Sending::Coded { .. } => Some(TurnPacket::Combination),
        }
    }

    /// Notes that `packet` was handed to the MAC. Returns the child that it goes to, `None` for
    /// broadcast.
    pub(super) fn note_sent(&mut self, packet: TurnPacket) -> Option<NodeId> {
        self.scheduled -= 1.0;

        // Combinations go to all, and each is another one: nothing of them is kept.
        let TurnPacket::Systematic(next) = packet else { return None };
        let all = self.all_packets();

        match &mut self.sending {
            Sending::Coded { next_systematic } => {
                *next_systematic += 1;
                None
            }
            Sending::HopByHop { cast, arq, on_air } => {
                let to = arq.only_child().filter(|_| *cast == Cast::Unicast);
                arq.note_sent(next, all);
                *on_air = Some(OnAir { packet: next.packet, to });
                to
            }
        }
    }

    /// Returns whether all scheduled packets have been sent (C_s is used up).
    pub(super) fn is_used_up(&self) -> bool {
        self.scheduled <= 0.0
    }

    /// Handles the MAC's report on the packet sent last; `packet_time` is the mean airtime of one.
    pub(super) fn handle_tx_result(
        &mut self,
        result: TxResult,
        packet_time: Duration,
        now: Instant,
    ) {
        if let Sending::HopByHop { arq, on_air, .. } = &mut self.sending
            && let Some(sent) = on_air.take()
        {
            arq.handle_tx_result(sent, result, packet_time, now);
        }
    }

    /// Handles a data packet of this transfer that `sender` passed on.
    pub(super) fn handle_data(&mut self, sender: NodeId, data: &Data<'_>, now: Instant) {
        if let Sending::HopByHop { arq, .. } = &mut self.sending
            && let Coding::Systematic(packet) = data.coding
            && data.header.generation == self.assignment.generation
            && packet < self.packets
        {
            arq.note_child_has(sender, packet, now);
        }
    }

    /// Handles the report of a child in the tree.
    pub(super) fn handle_report(&mut self, from: NodeId, report: &Report, now: Instant) {
        if let Sending::HopByHop { arq, .. } = &mut self.sending {
            arq.handle_report(from, report.poll, report.has, now);
        }
    }

    /// Polls the children if all that they were sent has arrived and yet the turn goes on.
    pub(super) fn poll_if_stalled(&mut self, now: Instant) {
        let all = self.all_packets();
        if let Sending::HopByHop { arq, .. } = &mut self.sending {
            arq.poll_if_stalled(all, now);
        }
    }

    /// Returns the first time later than `after` at which there may be something to send, or at
    /// which [`poll_if_stalled`](Self::poll_if_stalled) may have an effect.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let Sending::HopByHop { arq, .. } = &self.sending else { return None };
        let stalls_at = Some(arq.stalls_at()).filter(|at| *at > after);
        [arq.poll_timeout(after), stalls_at].into_iter().flatten().min()
    }

    fn all_packets(&self) -> PacketSet {
        PacketSet::first_of(self.packets)
    }
}
