//! Per-hop ARQ: what the next hops of a node have of a batch, and what to send them next.
//!
//! A node sends every packet it holds until each child has it. What a child has it learns from the MAC's
//! acknowledgment, from overhearing the child pass it on, or from the child's report. Some packets ask for one: the
//! last of a batch, every [`STRETCH`]th, and one that is repeated because no report came.

use super::packets::PacketSet;
use ncmesh_engine::TxResult;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// After so many packets the children are asked what they have.
const STRETCH: u32 = 32;
/// Packet times a node waits for reports before it asks again, and at least how long.
const ANSWER_PACKETS: f64 = 16.0;
const ANSWER_LEAST: Duration = Duration::from_millis(20);
/// After so many questions in a row, and as many again, it waits twice as long, up to the longest. A poor link
/// needs several.
const PATIENCE: u32 = 16;
const LONGEST: Duration = Duration::from_secs(2);
/// The pause after the MAC gave up on a packet, growing likewise.
pub(super) const MAC_PAUSE: Duration = Duration::from_millis(4);
/// A node that has been done with its children for so long asks them once more if its batch goes on.
pub(super) const STALL: Duration = Duration::from_secs(1);

/// The next hops of one node, for one batch.
#[derive(Debug)]
pub(super) struct Arq {
    children: BTreeMap<NodeId, Child>,
    /// For each packet the number of the first poll after it was last sent; 0 if it was not.
    covered: Vec<u32>,
    /// Polls sent.
    polls: u32,
    /// Packets since the last.
    unpolled: u32,
    /// Nothing is sent before this.
    hold_until: Instant,
    /// When the children are asked (again).
    ask_at: Option<Instant>,
    /// Questions and failures in a row.
    tries: u32,
    /// When a packet or a report last brought something new.
    stirred_at: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Child {
    has: PacketSet,
    /// Sent, and nothing heard of them yet.
    pending: PacketSet,
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub packet: u8,
    /// The number of the poll, if children are to report.
    pub poll: Option<u32>,
}

impl Arq {
    /// Begins a batch of `packets` of which `children` have nothing.
    pub(super) fn new(children: impl Iterator<Item = NodeId>, packets: u8, now: Instant) -> Self {
        Self {
            children: children.map(|node| (node, Child::default())).collect(),
            covered: vec![0; usize::from(packets)],
            polls: 0,
            unpolled: 0,
            hold_until: now,
            ask_at: None,
            tries: 0,
            stirred_at: now,
        }
    }

    /// Goes on with other children, who are told so.
    pub(super) fn follow(&mut self, children: impl Iterator<Item = NodeId>, now: Instant) {
        let mut old = core::mem::take(&mut self.children);
        self.children = children.map(|n| (n, old.remove(&n).unwrap_or_default())).collect();
        self.hold_until = now;
        self.ask(now);
    }

    /// The only child, where there is just one.
    pub(super) fn only_child(&self) -> Option<NodeId> {
        self.children.keys().next().copied().filter(|_| self.children.len() == 1)
    }

    /// The packet to send now, of those `held`.
    pub(super) fn next(&self, held: PacketSet, now: Instant) -> Option<Next> {
        if now < self.hold_until || self.children.is_empty() {
            return None;
        }
        let due = self.due(held);
        let Some(packet) = due.lowest() else {
            let asked = self.ask_at.is_some_and(|at| at <= now);
            let repeated = self.pending().lowest().or(held.lowest()).filter(|_| asked)?;
            return Some(Next { packet: repeated, poll: Some(self.polls + 1) });
        };
        let is_last = due.len() == 1 && held.len() as usize == self.covered.len();
        let asks = is_last || self.unpolled + 1 >= STRETCH;
        Some(Next { packet, poll: asks.then_some(self.polls + 1) })
    }

    /// It was handed to the MAC.
    pub(super) fn sent(&mut self, next: Next, held: PacketSet) {
        let is_repeated = !self.due(held).contains(next.packet);
        self.tries += u32::from(is_repeated);
        self.covered[usize::from(next.packet)] = self.polls + 1;
        self.unpolled += 1;
        if let Some(poll) = next.poll {
            self.polls = poll;
            self.unpolled = 0;
        }
        for child in self.children.values_mut().filter(|c| !c.has.contains(next.packet)) {
            child.pending.insert(next.packet);
        }
    }

    /// The MAC's word on it; a packet takes about `packet_time` on the air.
    pub(super) fn report(
        &mut self,
        packet: u8,
        to: Option<NodeId>,
        result: TxResult,
        packet_time: Duration,
        now: Instant,
    ) {
        match result {
            TxResult::Acked => to.into_iter().for_each(|child| self.overhear(child, packet, now)),
            // It may have arrived even so: the child's next report tells.
            TxResult::Failed => self.hold_until = now + self.pause(MAC_PAUSE),
            TxResult::Sent => {}
        }
        let answer = packet_time.mul_f64(ANSWER_PACKETS).max(ANSWER_LEAST);
        self.ask_at = (!self.pending().is_empty()).then(|| now + self.pause(answer));
    }

    /// A child reports what it has, as far as it knew when it heard poll number `poll`.
    pub(super) fn hear_report(&mut self, from: NodeId, poll: u32, has: PacketSet, now: Instant) {
        let Some(child) = self.children.get_mut(&from) else { return };
        let before = *child;
        for (i, covered) in self.covered.iter().enumerate() {
            let packet = i as u8;
            if has.contains(packet) {
                child.take(packet);
            } else if *covered <= poll {
                child.has.remove(packet);
                child.pending.remove(packet);
            }
        }
        if *child != before {
            self.stir(now);
        }
    }

    /// A child shows that it has a packet: it passes it on, or its MAC acknowledges it.
    pub(super) fn overhear(&mut self, child: NodeId, packet: u8, now: Instant) {
        let child = self.children.get_mut(&child).filter(|child| !child.has.contains(packet));
        if let Some(child) = child {
            child.take(packet);
            self.stir(now);
        }
    }

    /// A packet arrived that was not held before.
    pub(super) fn gain(&mut self, now: Instant) {
        self.stirred_at = now;
    }

    /// The batch goes on though this node has nothing to do: asks the children what they have, unless it did so
    /// lately.
    pub(super) fn prod(&mut self, held: PacketSet, now: Instant) {
        let is_idle = self.due(held).is_empty() && self.pending().is_empty();
        if is_idle && now.since(self.stirred_at) >= STALL {
            self.stirred_at = now;
            self.ask(now);
        }
    }

    /// When it would be time to [`prod`](Self::prod).
    pub(super) fn stalls_at(&self) -> Instant {
        self.stirred_at + STALL
    }

    /// When, later than `after`, a packet may fall due.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let times = [Some(self.hold_until), self.ask_at];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }

    fn due(&self, held: PacketSet) -> PacketSet {
        let lacks = |child: &Child| held.without(child.has).without(child.pending);
        self.children.values().map(lacks).fold(PacketSet::default(), PacketSet::or)
    }

    fn pending(&self) -> PacketSet {
        self.children.values().map(|c| c.pending).fold(PacketSet::default(), PacketSet::or)
    }

    fn ask(&mut self, now: Instant) {
        self.ask_at = (!self.children.is_empty()).then_some(now);
    }

    fn stir(&mut self, now: Instant) {
        self.stirred_at = now;
        self.tries = 0;
        self.hold_until = now;
        if self.pending().is_empty() {
            self.ask_at = None;
        }
    }

    fn pause(&self, first: Duration) -> Duration {
        (first * (1 << (self.tries / PATIENCE).min(9))).min(LONGEST)
    }
}

impl Child {
    fn take(&mut self, packet: u8) {
        self.has.insert(packet);
        self.pending.remove(packet);
    }
}
