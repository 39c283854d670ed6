//! One stream at one node: what is known of it, who takes it from here, and this node's own part as source or
//! receiver.

use super::backlog::{Backlog, Packet};
use super::frame::Announcement;
use super::taking::Taking;
use super::{Dropping, Parameters, differential_backlog, pressure};
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::stream::{Sending, StreamQueue, StreamStatus};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Packets of a layer that may come out of order and still be told from repetitions.
const WINDOW: u32 = 64;
/// Hops a packet goes at most.
const MAX_HOPS: u8 = 64;
/// A node that left a tree says so in so many reports.
const FAREWELLS: u8 = 3;

/// A stream at one node.
#[derive(Debug)]
pub(super) struct Session {
    pub announcement: Announcement,
    pub group: Arc<str>,
    pub layers: Vec<Arc<str>>,
    /// When it was last announced.
    pub announced_at: Instant,
    /// The neighbour on the way to the source.
    pub parent: Option<NodeId>,
    pub own: Option<Own>,
    pub taking: Option<Taking>,
    pub children: BTreeMap<NodeId, Child>,
    /// Reports that are still to say that this node left.
    pub farewells: u8,
    seen: [Seen; LAYERS],
}

/// This node's part as source.
#[derive(Debug, Default)]
pub(super) struct Own {
    next_seq: [u32; LAYERS],
    /// In this slot.
    entered: u32,
    /// What came beyond A_max.
    waiting: [VecDeque<Arc<[u8]>>; LAYERS],
    tally: Sending,
}

/// Packets that wait at a source at most: a burst of a large key frame.
const MAX_WAITING: usize = 1024;

/// A neighbour that takes the stream from here.
#[derive(Debug)]
pub(super) struct Child {
    /// Receivers behind it (m).
    pub receivers: u32,
    /// What it told of its own queues: packets that are there.
    pub downstream: f64,
    /// The sum of virtual pressures (Y) that it told of, where they are above 0.
    pub pressure: f64,
    pub heard_at: Instant,
    /// Whether its link shares no radio.
    pub wired: bool,
    /// From the first packet on.
    pub queue: Option<Backlog>,
    pub sent: [u64; LAYERS],
    pub dropped: [u64; LAYERS],
    pub lost: u64,
}

/// Which of a layer's packets have come.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    latest: Option<u32>,
    /// Bit i: the packet i + 1 before the latest.
    before: u64,
}

impl Seen {
    /// Takes note of a packet. Says whether it is new.
    fn note(&mut self, seq: u32) -> bool {
        let Some(latest) = self.latest else {
            self.latest = Some(seq);
            return true;
        };
        let ahead = seq.wrapping_sub(latest);
        if ahead == 0 {
            return false;
        }
        if ahead <= u32::MAX / 2 {
            let shifted = self.before.checked_shl(ahead).unwrap_or(0);
            self.before = shifted | 1u64.checked_shl(ahead - 1).unwrap_or(0);
            self.latest = Some(seq);
            return true;
        }
        let back = latest.wrapping_sub(seq) - 1;
        if back >= WINDOW {
            return false;
        }
        let new = self.before & (1 << back) == 0;
        self.before |= 1 << back;
        new
    }
}

impl Session {
    pub(super) fn new(announcement: Announcement, now: Instant) -> Self {
        let group = announcement.group.as_str().into();
        let layers = announcement.layers.iter().map(|name| name.as_str().into()).collect();
        Self {
            announcement,
            group,
            layers,
            announced_at: now,
            parent: None,
            own: None,
            taking: None,
            children: BTreeMap::new(),
            farewells: 0,
            seen: Default::default(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.layers.is_empty()
    }

    /// It is announced to have ended.
    pub(super) fn end(&mut self) {
        self.announcement.layers.clear();
        self.announcement.sent.clear();
        self.layers.clear();
        self.own = None;
        self.taking = None;
        self.children.clear();
        self.farewells = 0;
    }

    /// The source announces it once more, as the version after that one.
    pub(super) fn announce(&mut self, after: u32, now: Instant) {
        (self.announcement.version, self.announced_at) = (after.saturating_add(1), now);
        if let Some(own) = &self.own {
            self.announcement.sent = own.next_seq[..self.layers.len()].to_vec();
        }
    }

    /// It was announced once more, with so many packets `sent`.
    pub(super) fn announced(&mut self, version: u32, mut sent: Vec<u32>, now: Instant) {
        (self.announcement.version, self.announced_at) = (version, now);
        sent.resize(self.layers.len(), 0);
        if let Some(taking) = &mut self.taking {
            taking.announced(&sent, now);
        }
        self.announcement.sent = sent;
    }

    /// Receivers reached through this node, itself included (m).
    pub(super) fn receivers(&self) -> u32 {
        let behind = self.children.values().map(|child| child.receivers);
        behind.fold(u32::from(self.taking.is_some()), u32::saturating_add)
    }

    /// Whether slots matter to it.
    pub(super) fn is_active(&self) -> bool {
        self.own.is_some() || self.taking.is_some() || !self.children.is_empty()
    }

    /// What this node tells its parent of the part of (25) that is taken off there: packets and urgency, and virtual
    /// pressure, which place-holders stand for on the way.
    pub(super) fn pressures(&self) -> (f64, f64) {
        let own = self.taking.as_ref().map_or(0.0, |taking| taking.pressure);
        let sum = |backlog: f64, pressed: f64, child: &Child| {
            (backlog + pressure(child.receivers, child.backlog()), pressed + child.pressure)
        };
        let children = self.children.values();
        children.fold((own.min(0.0), own.max(0.0)), |(b, p), child| sum(b, p, child))
    }

    /// Whether the packet is new here.
    pub(super) fn is_new(&mut self, layer: usize, seq: u32) -> bool {
        self.seen[layer].note(seq)
    }

    /// Puts a packet into every queue. Where it would hold more than `most` packets, or all of them together no more
    /// than `room`, one of the highest layer goes. Says how many did.
    pub(super) fn replicate(
        &mut self,
        packet: &Packet,
        rules: &Dropping,
        (most, mut room): (u32, u32),
        now: Instant,
    ) -> u32 {
        let mut shed = 0;
        for child in self.children.values_mut() {
            let queue = child.queue.get_or_insert_with(|| Backlog::new(rules, now));
            queue.push(packet.clone(), now);
            if queue.len() > most || room == 0 {
                shed += 1;
                queue.shed().into_iter().for_each(|layer| child.dropped[layer] += 1);
            } else {
                room -= 1;
            }
        }
        shed
    }

    /// A receiver or a next hop left: if it was the last, this node leaves the tree.
    pub(super) fn part(&mut self) {
        if self.receivers() == 0 {
            self.farewells = FAREWELLS;
        }
    }

    /// A slot ends and the next begins.
    pub(super) fn next_slot(
        &mut self,
        rules: &Dropping,
        parameters: &Parameters,
        (slot, idle): (Duration, Duration),
        now: Instant,
    ) {
        if let Some(own) = &mut self.own {
            own.entered = 0;
        }
        if let Some(taking) = &mut self.taking {
            taking.next_slot(parameters, slot);
        }
        for child in self.children.values_mut() {
            let place_holders = child.place_holders();
            let Some(queue) = &mut child.queue else { continue };
            let dropped = queue.next_slot(rules, place_holders);
            for (count, more) in child.dropped.iter_mut().zip(dropped.0) {
                *count += u64::from(more);
            }
            if queue.len() == 0 && now.since(queue.fed_at) > idle {
                child.queue = None;
            }
        }
    }

    pub(super) fn status(&self, rate_of: impl Fn(NodeId) -> f64) -> StreamStatus {
        StreamStatus {
            flow: self.announcement.flow,
            group: self.announcement.group.clone(),
            layers: self.announcement.layers.clone(),
            receivers: self.receivers(),
            parent: self.parent.filter(|_| self.receivers() > 0),
            sending: self.own.as_ref().map(Own::status),
            receiving: self.taking.as_ref().map(|taking| taking.status(self.parent)),
            queues: self
                .children
                .iter()
                .map(|(to, child)| child.status(*to, rate_of(*to)))
                .collect(),
        }
    }
}

impl Own {
    /// A packet is offered. Says whether it is taken: it enters by [`next`](Self::next).
    pub(super) fn offer(&mut self, layer: usize, bytes: &[u8]) -> bool {
        let taken = self.waiting() < MAX_WAITING;
        if taken {
            self.waiting[layer].push_back(bytes.into());
            self.tally.packets[layer] += 1;
        } else {
            self.tally.refused += 1;
        }
        taken
    }

    /// The next packet that enters in this slot, the base first, of at most `a_max`.
    pub(super) fn next(&mut self, a_max: u32) -> Option<Packet> {
        if self.entered >= a_max {
            return None;
        }
        let layer = self.waiting.iter().position(|queue| !queue.is_empty())?;
        let bytes = self.waiting[layer].pop_front()?;
        self.entered += 1;
        let seq = self.next_seq[layer];
        self.next_seq[layer] = seq.wrapping_add(1);
        Some(Packet { layer, seq, hops: MAX_HOPS, bytes })
    }

    fn waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    fn status(&self) -> Sending {
        Sending { waiting: self.waiting() as u32, ..self.tally.clone() }
    }
}

impl Child {
    pub(super) fn new(wired: bool, now: Instant) -> Self {
        Self {
            receivers: 0,
            downstream: 0.0,
            pressure: 0.0,
            heard_at: now,
            wired,
            queue: None,
            sent: [0; LAYERS],
            dropped: [0; LAYERS],
            lost: 0,
        }
    }

    /// Packets held (Q less its place-holders).
    pub(super) fn backlog(&self) -> u32 {
        self.queue.as_ref().map_or(0, Backlog::len)
    }

    /// The part of Q that is no packets: the mean virtual pressure of the receivers behind it.
    fn place_holders(&self) -> f64 {
        self.pressure / f64::from(self.receivers.max(1))
    }

    /// W (25): what place-holders add to m Q is what virtual pressures take off.
    pub(super) fn weight(&self) -> f64 {
        differential_backlog(pressure(self.receivers, self.backlog()), self.downstream)
    }

    fn status(&self, to: NodeId, rate: f64) -> StreamQueue {
        StreamQueue {
            to,
            receivers: self.receivers,
            held: self.queue.as_ref().map_or([0; LAYERS], |queue| queue.queues().held().0),
            place_holders: self.place_holders(),
            drop_queue: self.queue.as_ref().map_or(0.0, |queue| queue.queues().drop_queue()),
            downstream: self.downstream,
            weight: self.weight(),
            rate,
            sent: self.sent,
            dropped: self.dropped,
            lost: self.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_told_from_late_packets() {
        let mut seen = Seen::default();
        let new = |seen: &mut Seen, seqs: &[u32]| {
            seqs.iter().map(|seq| seen.note(*seq)).collect::<Vec<_>>()
        };
        assert_eq!(
            new(&mut seen, &[5, 5, 7, 6, 6, 7, 5]),
            [true, false, true, true, false, false, false]
        );
        // Far ahead, the window's last place, and one too old.
        assert_eq!(new(&mut seen, &[200, 136, 136, 135, 7]), [true, true, false, false, false]);
        let mut wrapped = Seen::default();
        assert_eq!(new(&mut wrapped, &[u32::MAX, 0, u32::MAX, 1]), [true, true, false, true]);
    }
}
