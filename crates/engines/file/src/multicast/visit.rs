//! The source's turn at one batch: who it is for, the plan, and what is to be sent of it.

use super::arq::{Arq, Next};
use super::data::{Coding, Data};
use super::frame::Report;
use super::packets::PacketSet;
use super::routing::{Cast, Forwarding};
use super::scheme::Plan;
use ncmesh_engine::TxResult;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

/// A turn in which no receiver finishes for so long counts as stuck: what a forwarder holds may be spoiled.
const STUCK: Duration = Duration::from_secs(60);

/// The batch being sent from.
#[derive(Debug)]
pub(super) struct Visit {
    pub batch: u32,
    /// Packets still scheduled (C_s).
    pub remaining: f64,
    pub plan: Plan,
    /// Counts the plans that came after the first.
    pub revision: u8,
    /// Receivers it is for.
    pub wanted_by: BTreeSet<NodeId>,
    /// When it began, or a receiver last had the batch.
    since: Instant,
    packets: u8,
    /// The next packet to send as it is; from the batch's size on, combinations.
    next_plain: u8,
    /// What the source's own children have, where packets go hop by hop.
    arq: Option<Arq>,
    /// The packet at the MAC, and to whom.
    on_air: Option<(u8, Option<NodeId>)>,
}

/// What to send of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// A fresh combination.
    Combination,
    /// A packet as it is.
    Plain(Next),
}

impl Visit {
    /// A turn at `batch` of `packets`, which go out as they are first if it is the first turn.
    pub(super) fn new(
        batch: u32,
        packets: u8,
        is_first: bool,
        wanted_by: BTreeSet<NodeId>,
        plan: Plan,
        arq: Option<Arq>,
        now: Instant,
    ) -> Self {
        Self {
            batch,
            remaining: plan.source_transmissions * f64::from(packets),
            plan,
            revision: 0,
            wanted_by,
            since: now,
            packets,
            next_plain: if is_first { 0 } else { packets },
            arq,
            on_air: None,
        }
    }

    /// Goes on for `wanted_by`, by another plan.
    pub(super) fn adopt(
        &mut self,
        wanted_by: BTreeSet<NodeId>,
        plan: Plan,
        source: NodeId,
        now: Instant,
    ) {
        if wanted_by != self.wanted_by {
            self.wanted_by = wanted_by;
            self.since = now;
        }
        if plan == self.plan {
            return;
        }
        self.plan = plan;
        self.revision = self.revision.wrapping_add(1);
        if let Some(arq) = &mut self.arq {
            arq.follow(self.plan.routing.children(source), now);
        }
    }

    /// Whether nobody has finished the batch for so long that forwarders had better begin it anew.
    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        now.since(self.since) >= STUCK
    }

    /// Begins it anew.
    pub(super) fn renew(&mut self, source: NodeId, now: Instant) {
        self.since = now;
        if let Some(arq) = &mut self.arq {
            *arq = Arq::new(self.plan.routing.children(source), self.packets, now);
        }
    }

    /// What to send now, if anything.
    pub(super) fn pick(&self, now: Instant) -> Option<Pick> {
        match &self.arq {
            Some(arq) => arq.next(self.all(), now).map(Pick::Plain),
            None if self.next_plain < self.packets => {
                Some(Pick::Plain(Next { packet: self.next_plain, poll: None }))
            }
            None => Some(Pick::Combination),
        }
    }

    /// It is handed to the MAC; says to whom it goes if not to all.
    pub(super) fn sent(&mut self, pick: Pick, forwarding: Forwarding) -> Option<NodeId> {
        self.remaining -= 1.0;
        let Pick::Plain(next) = pick else { return None };
        self.next_plain = self.next_plain.saturating_add(1);
        let all = self.all();
        let arq = self.arq.as_mut()?;
        let is_unicast = forwarding == Forwarding::HopByHop(Cast::Unicast);
        let to = arq.only_child().filter(|_| is_unicast);
        arq.sent(next, all);
        self.on_air = Some((next.packet, to));
        to
    }

    /// The MAC's word on the packet sent last; `packet_time` is the mean airtime of one.
    pub(super) fn report(&mut self, result: TxResult, packet_time: Duration, now: Instant) {
        if let (Some((packet, to)), Some(arq)) = (self.on_air.take(), &mut self.arq) {
            arq.report(packet, to, result, packet_time, now);
        }
    }

    /// A data packet of this transfer was overheard.
    pub(super) fn overhear(&mut self, sender: NodeId, data: &Data<'_>, now: Instant) {
        if let (Some(arq), Coding::Systematic(packet)) = (&mut self.arq, data.coding)
            && data.header.batch == self.batch
            && packet < self.packets
        {
            arq.overhear(sender, packet, now);
        }
    }

    /// A child reports what it has.
    pub(super) fn hear_report(&mut self, from: NodeId, report: &Report, now: Instant) {
        if let Some(arq) = &mut self.arq {
            arq.hear_report(from, report.poll, report.has, now);
        }
    }

    /// Asks the children anew if all they were sent has arrived, and yet the batch goes on.
    pub(super) fn prod(&mut self, now: Instant) {
        let all = self.all();
        if let Some(arq) = &mut self.arq {
            arq.prod(all, now);
        }
    }

    /// When, later than `after`, there may be something to send or to [`prod`](Self::prod).
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let arq = self.arq.as_ref()?;
        let stalls_at = Some(arq.stalls_at()).filter(|at| *at > after);
        [arq.poll_timeout(after), stalls_at].into_iter().flatten().min()
    }

    fn all(&self) -> PacketSet {
        PacketSet::first_of(self.packets)
    }
}
