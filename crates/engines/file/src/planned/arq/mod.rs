//! Per-hop ARQ: brings every packet of a generation from one node to each of its children in a
//! tree.
//!
//! The node sends each packet it holds until it knows that every child has it. It learns that from
//! the MAC's acknowledgment (unicast), from overhearing the child pass the packet on, or from the
//! child's report. Reports cost airtime, so a packet asks for one only now and then; it then
//! carries a numbered *poll*. Polls are in the last packet of a generation, in every
//! [`POLL_INTERVAL`]th one, and in a packet that is repeated because no report came.
//!
//! For each child a packet is in one of three states:
//!
//! ```text
//!              sent                 report lists it, child overheard, MAC acknowledged
//!   missing ---------> pending ------------------------------------------> has
//!      ^                  |                                                 |
//!      +------------------+-------------------------------------------------+
//!          a report that answers a poll sent later does not list it
//! ```
//!
//! The arrow back from *has* is for a child that restarted or lost its generation. A report says
//! nothing about packets sent after the poll it answers: those may have been on their way still.

#[cfg(test)]
mod tests;

use super::packet_set::PacketSet;
use ncmesh_engine::TxResult;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Most packets between two polls.
const POLL_INTERVAL: u32 = 32;
/// Time a node waits for reports before it polls again, in packet times, and at least.
const REPORT_TIMEOUT_PACKETS: f64 = 16.0;
const REPORT_TIMEOUT_MIN: Duration = Duration::from_millis(20);
/// Repetitions and failures in a row after which timeouts double; they double again after as many
/// more. A poor link needs several tries, so they do not double each time.
const TRIES_PER_DOUBLING: u32 = 16;
/// Longest timeout.
const TIMEOUT_MAX: Duration = Duration::from_secs(2);
/// First pause after the MAC gave up on a packet; grows as timeouts do.
pub(super) const MAC_PAUSE: Duration = Duration::from_millis(4);
/// Time without progress after which a node that has nothing to send polls its children once more.
pub(super) const STALL: Duration = Duration::from_secs(1);

/// ARQ of one node for one generation.
#[derive(Debug)]
pub(super) struct Arq {
    children: BTreeMap<NodeId, Child>,
    /// For each packet the number of the first poll that covers it: sent with the packet's last
    /// transmission or after it. 0 if the packet was not sent.
    covered_by: Vec<u32>,
    /// Number of the last poll.
    last_poll: u32,
    /// Packets sent since the last poll.
    unpolled: u32,
    /// Nothing is sent before this.
    hold_until: Instant,
    /// When the children are polled, once nothing else is left to send.
    poll_at: Option<Instant>,
    /// Repetitions and failures since the last progress.
    tries: u32,
    /// When this node last gained a packet, or learned that a child did.
    progress_at: Instant,
}

/// A child, as far as this node knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Child {
    has: PacketSet,
    /// Sent, and not known to have arrived or not.
    pending: PacketSet,
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextPacket {
    /// Index in the generation.
    pub packet: u8,
    /// Number of the poll that it carries.
    pub poll: Option<u32>,
}

/// A packet that was handed to the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnAir {
    /// Index in the generation.
    pub packet: u8,
    /// The child that it goes to by unicast, `None` for broadcast.
    pub to: Option<NodeId>,
}

impl Arq {
    /// Begins a generation of `packets`, of which `children` have nothing.
    pub(super) fn new(children: impl Iterator<Item = NodeId>, packets: u8, now: Instant) -> Self {
        Self {
            children: children.map(|node| (node, Child::default())).collect(),
            covered_by: vec![0; usize::from(packets)],
            last_poll: 0,
            unpolled: 0,
            hold_until: now,
            poll_at: None,
            tries: 0,
            progress_at: now,
        }
    }

    /// Goes on with other children, keeping what is known of those that stay. Polls them all, so
    /// that they learn of the new tree at once.
    pub(super) fn set_children(&mut self, children: impl Iterator<Item = NodeId>, now: Instant) {
        let mut old = core::mem::take(&mut self.children);
        self.children =
            children.map(|node| (node, old.remove(&node).unwrap_or_default())).collect();
        self.hold_until = now;
        self.schedule_poll(now);
    }

    /// Returns the child, if there is exactly one.
    pub(super) fn only_child(&self) -> Option<NodeId> {
        self.children.keys().next().copied().filter(|_| self.children.len() == 1)
    }

    /// Returns the packet to send now, out of those `held`.
    pub(super) fn next(&self, held: PacketSet, now: Instant) -> Option<NextPacket> {
        if now < self.hold_until || self.children.is_empty() {
            return None;
        }

        // First whatever a child lacks, in order. It polls if no other will follow: it is the last
        // one missing and the generation is complete here.
        let missing = self.missing(held);
        if let Some(packet) = missing.lowest() {
            let is_last = missing.len() == 1 && held.len() as usize == self.covered_by.len();
            let is_poll = is_last || self.unpolled + 1 >= POLL_INTERVAL;
            return Some(NextPacket { packet, poll: is_poll.then_some(self.last_poll + 1) });
        }

        // Then a poll that is due. Any packet can carry it; best is one that may have been lost.
        let is_poll_due = self.poll_at.is_some_and(|at| at <= now);
        let packet = self.pending().lowest().or(held.lowest()).filter(|_| is_poll_due)?;
        Some(NextPacket { packet, poll: Some(self.last_poll + 1) })
    }

    /// Notes that `next` was handed to the MAC.
    pub(super) fn note_sent(&mut self, next: NextPacket, held: PacketSet) {
        let is_repeated = !self.missing(held).contains(next.packet);
        self.tries += u32::from(is_repeated);

        // The next poll covers this packet, or the poll that it carries itself.
        self.covered_by[usize::from(next.packet)] = self.last_poll + 1;
        self.unpolled += 1;
        if let Some(poll) = next.poll {
            self.last_poll = poll;
            self.unpolled = 0;
        }

        for child in self.children.values_mut().filter(|c| !c.has.contains(next.packet)) {
            child.pending.insert(next.packet);
        }
    }

    /// Handles the MAC's report on a packet; `packet_time` is about the airtime of one.
    pub(super) fn handle_tx_result(
        &mut self,
        sent: OnAir,
        result: TxResult,
        packet_time: Duration,
        now: Instant,
    ) {
        match result {
            TxResult::Acked => {
                if let Some(child) = sent.to {
                    self.note_child_has(child, sent.packet, now);
                }
            }
            // It may have arrived even so: the child's next report tells. The pause lets a channel
            // recover that is bad right now.
            TxResult::Failed => self.hold_until = now + self.backed_off(MAC_PAUSE),
            TxResult::Sent => {}
        }

        // Every transmission puts the next poll off: reports are not asked for while packets flow.
        let timeout = packet_time.mul_f64(REPORT_TIMEOUT_PACKETS).max(REPORT_TIMEOUT_MIN);
        self.poll_at = (!self.pending().is_empty()).then(|| now + self.backed_off(timeout));
    }

    /// Handles a child's report: it held the packets `has` when it heard poll number `poll`.
    pub(super) fn handle_report(&mut self, from: NodeId, poll: u32, has: PacketSet, now: Instant) {
        let Some(child) = self.children.get_mut(&from) else { return };
        let before = *child;
        for (i, covered_by) in self.covered_by.iter().enumerate() {
            let packet = i as u8;
            if has.contains(packet) {
                child.gain(packet);
            } else if *covered_by <= poll {
                // It was sent before the poll and did not arrive: it is missing again.
                child.has.remove(packet);
                child.pending.remove(packet);
            }
        }

        // A report without news must not reset the backoff: a silent child would be asked too
        // often.
        if *child != before {
            self.note_progress(now);
        }
    }

    /// Notes that a child has a packet: it was overheard to pass it on, or its MAC acknowledged it.
    pub(super) fn note_child_has(&mut self, child: NodeId, packet: u8, now: Instant) {
        let child = self.children.get_mut(&child).filter(|child| !child.has.contains(packet));
        if let Some(child) = child {
            child.gain(packet);
            self.note_progress(now);
        }
    }

    /// Notes that this node got a packet that it did not hold before.
    pub(super) fn note_gain(&mut self, now: Instant) {
        self.progress_at = now;
    }

    /// Polls the children if this node has nothing to send and nothing changed for [`STALL`]. The
    /// caller knows that the generation is not done: some child has lost what it once had.
    pub(super) fn poll_if_stalled(&mut self, held: PacketSet, now: Instant) {
        let is_idle = self.missing(held).is_empty() && self.pending().is_empty();
        if is_idle && now.since(self.progress_at) >= STALL {
            self.progress_at = now;
            self.schedule_poll(now);
        }
    }

    /// Returns when [`poll_if_stalled`](Self::poll_if_stalled) may have an effect.
    pub(super) fn stalls_at(&self) -> Instant {
        self.progress_at + STALL
    }

    /// Returns the first time later than `after` at which a packet may fall due.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let times = [Some(self.hold_until), self.poll_at];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }

    /// Returns the packets of `held` that are missing at some child.
    fn missing(&self, held: PacketSet) -> PacketSet {
        let lacks = |child: &Child| held.without(child.has).without(child.pending);
        self.children.values().map(lacks).fold(PacketSet::default(), PacketSet::or)
    }

    /// Returns the packets that are pending at some child.
    fn pending(&self) -> PacketSet {
        self.children.values().map(|c| c.pending).fold(PacketSet::default(), PacketSet::or)
    }

    fn schedule_poll(&mut self, at: Instant) {
        self.poll_at = (!self.children.is_empty()).then_some(at);
    }

    /// Notes that a child gained or lost a packet: the link works, so timeouts begin anew.
    fn note_progress(&mut self, now: Instant) {
        self.progress_at = now;
        self.tries = 0;
        self.hold_until = now;
        if self.pending().is_empty() {
            self.poll_at = None;
        }
    }

    /// Returns `first`, doubled for every [`TRIES_PER_DOUBLING`] tries in a row.
    fn backed_off(&self, first: Duration) -> Duration {
        Backoff { first, longest: TIMEOUT_MAX }.pause(self.tries / TRIES_PER_DOUBLING)
    }
}

impl Child {
    fn gain(&mut self, packet: u8) {
        self.has.insert(packet);
        self.pending.remove(packet);
    }
}
