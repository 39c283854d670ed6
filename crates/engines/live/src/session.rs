//! A stream at one node: the packets that it holds, and for whom.

use crate::frame::{Got, Header};
use ncmesh_engine::stream::Deadline;
use ncmesh_engine::stream::{LAYERS, Sending, StreamQueue, StreamStatus};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::live::{Branch, Live, Part, Receiver};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Most packets of a layer that a node holds.
pub(crate) const MAX_HELD: usize = 2048;
/// Most numbers of packets of a layer that a node remembers.
const MAX_SEEN: usize = 4096;
/// Longest pause after a packet that a child's MAC did not acknowledge, in doublings of the first.
const MAX_DOUBLINGS: u32 = 6;
/// That first pause.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// Least delivery of a link that is believed.
const LEAST_DELIVERY: f64 = 0.05;

/// A stream at one node.
#[derive(Debug)]
pub(crate) struct Session {
    pub part: Part<Self>,
    /// The neighbour that the stream comes from.
    pub parent: Option<NodeId>,
    pub layers: [Layer; LAYERS],
    /// When a report is due, if one is.
    pub report_at: Option<Instant>,
    /// Reports that still have to tell a change.
    pub news: u8,
    /// Packets by broadcast that came since the last report.
    pub unreported: u32,
}

/// One layer at a node.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    /// Number of the next packet, at the source.
    pub next: u32,
    /// Packets that wait to be sent, or to be confirmed.
    pub held: BTreeMap<u32, Held>,
    /// Packets that came, and those of them that were sent on.
    pub seen: Seen,
    pub relayed: Seen,
}

/// A packet that is held.
#[derive(Debug)]
pub(crate) struct Held {
    pub bytes: Arc<[u8]>,
    /// When it is dropped.
    pub until: Instant,
    /// When it is to be sent for each node that lacks it, or is not known to have it.
    pub due: BTreeMap<NodeId, Instant>,
}

/// Numbers of packets; the earliest additions are forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    numbers: BTreeSet<u32>,
    order: VecDeque<u32>,
}

impl Seen {
    /// Adds a number. Returns whether it is new.
    pub(crate) fn add(&mut self, number: u32) -> bool {
        if !self.numbers.insert(number) {
            return false;
        }

        // The oldest of too many is forgotten.
        if self.order.len() >= MAX_SEEN
            && let Some(first) = self.order.pop_front()
        {
            self.numbers.remove(&first);
        }
        self.order.push_back(number);
        true
    }

    /// Returns what a report says of them.
    fn got(&self) -> Got {
        // The report names the newest packet, and which of those before it are here.
        let Some(newest) = self.numbers.last() else { return Got::default() };
        let before = (1..=Got::WIDTH).filter_map(|behind| {
            let number = newest.checked_sub(behind)?;
            self.numbers.contains(&number).then(|| 1u64 << (behind - 1))
        });
        Got { end: newest.saturating_add(1), before: before.sum() }
    }
}

/// A neighbour that gets the stream from here.
#[derive(Debug)]
pub(crate) struct Child {
    pub receivers: u32,
    /// When it last reported or acknowledged a packet.
    pub heard_at: Instant,
    /// Share of frames that reach it, and the tries by unicast that a packet takes.
    pub there: f64,
    pub tries: f64,
    /// When a packet goes to it by unicast at the soonest, after some that failed.
    pub ready_at: Instant,
    failures: u32,
    pub sent: [u64; LAYERS],
    pub dropped: [u64; LAYERS],
    pub no_room: [u64; LAYERS],
    pub lost: u64,
}

impl Child {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            receivers: 0,
            there: 1.0,
            tries: 1.0,
            heard_at: now,
            ready_at: now,
            failures: 0,
            sent: [0; LAYERS],
            dropped: [0; LAYERS],
            no_room: [0; LAYERS],
            lost: 0,
        }
    }

    /// Notes what link state says of the link to it and `back`.
    pub(crate) fn set_link(&mut self, there: f64, back: f64) {
        self.there = there.max(LEAST_DELIVERY);
        self.tries = 1.0 / (self.there * back.max(LEAST_DELIVERY));
    }

    /// Notes that its MAC acknowledged a packet.
    pub(crate) fn note_acked(&mut self, now: Instant) {
        self.heard_at = now;
        self.failures = 0;
    }

    /// Notes that the MAC gave up a packet: others go first for a while.
    pub(crate) fn note_failed(&mut self, now: Instant) {
        // The pause doubles with each packet in a row that the MAC gave up.
        self.lost += 1;
        self.ready_at = now + FIRST_PAUSE * (1 << self.failures.min(MAX_DOUBLINGS));
        self.failures += 1;
    }
}

impl Branch for Child {
    fn receivers(&self) -> u32 {
        self.receivers
    }
}

impl Live for Session {
    type Terms = Deadline;
    type Source = Sending;
    type Receiver = Receiver;
    type Child = Child;

    fn new(part: Part<Self>, _now: Instant) -> Self {
        Self {
            part,
            parent: None,
            layers: std::array::from_fn(|_| Layer::default()),
            report_at: None,
            news: 0,
            unreported: 0,
        }
    }

    fn part(&self) -> &Part<Self> {
        &self.part
    }

    fn part_mut(&mut self) -> &mut Part<Self> {
        &mut self.part
    }

    fn entered(&self) -> Vec<u32> {
        self.layers.iter().map(|layer| layer.next).collect()
    }

    fn clear(&mut self) {
        self.layers = std::array::from_fn(|_| Layer::default());
    }
}

impl Session {
    /// Returns whether this node has something to report.
    pub(crate) fn reports(&self) -> bool {
        self.parent.is_some() && (self.part.receivers() > 0 || self.part.leave_notices > 0)
    }

    /// Asks for a report at `at`, or earlier.
    pub(crate) fn report_by(&mut self, at: Instant) {
        self.report_at = Some(self.report_at.map_or(at, |due| due.min(at)));
    }

    /// Returns what this node has of each layer.
    pub(crate) fn got(&self) -> Vec<Got> {
        self.layers[..self.part.layers.len()].iter().map(|layer| layer.seen.got()).collect()
    }

    /// Holds a packet for these nodes. Returns whether there was room.
    pub(crate) fn hold(
        &mut self,
        header: &Header,
        bytes: &[u8],
        due: BTreeMap<NodeId, Instant>,
        now: Instant,
    ) -> bool {
        let left = self.part.announcement.deadline().saturating_sub(header.age());
        let held = &mut self.layers[usize::from(header.layer)].held;
        // A packet without a receiver, or too late for any, is done with.
        if due.is_empty() || left.is_zero() {
            return true;
        }

        if held.len() >= MAX_HELD {
            let layer = usize::from(header.layer);
            for node in due.keys() {
                if let Some(child) = self.part.children.get_mut(node) {
                    child.dropped[layer] += 1;
                    child.no_room[layer] += 1;
                }
            }

            return false;
        }

        held.insert(header.number, Held { bytes: bytes.into(), until: now + left, due });
        true
    }

    /// Drops packets whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        for (at, layer) in self.layers.iter_mut().enumerate() {
            let children = &mut self.part.children;
            layer.held.retain(|_, held| {
                let is_late = held.until <= now;
                for node in held.due.keys().filter(|_| is_late) {
                    if let Some(child) = children.get_mut(node) {
                        child.dropped[at] += 1;
                    }
                }

                !is_late
            });
        }
    }

    /// Takes what a child says that it has.
    pub(crate) fn confirm(&mut self, child: NodeId, layers: &[Got], now: Instant) {
        for (layer, got) in self.layers.iter_mut().zip(layers) {
            layer.held.retain(|number, held| {
                match got.has(*number) {
                    Some(true) => drop(held.due.remove(&child)),
                    // It was sent and lost.
                    Some(false) => {
                        held.due.entry(child).and_modify(|due| *due = now.min(*due));
                    }
                    None => {}
                }

                !held.due.is_empty()
            });
        }
    }

    /// Forgets packets for a node that gets the stream elsewhere.
    pub(crate) fn release(&mut self, child: NodeId) {
        for layer in &mut self.layers {
            layer.held.retain(|_, held| {
                held.due.remove(&child);
                !held.due.is_empty()
            });
        }
    }

    /// Returns the stream's state.
    pub(crate) fn status(&self) -> StreamStatus {
        let held_for = |node: &NodeId| {
            std::array::from_fn(|layer| {
                let held = self.layers[layer].held.values();
                held.filter(|held| held.due.contains_key(node)).count() as u32
            })
        };

        let queues = self.part.children.iter().map(|(to, child)| StreamQueue {
            to: *to,
            receivers: child.receivers,
            held: held_for(to),
            place_holders: 0.0,
            drop_queue: 0.0,
            downstream: 0.0,
            weight: 0.0,
            rate: 0.0,
            sent: child.sent,
            dropped: child.dropped,
            no_room: child.no_room,
            lost: child.lost,
        });

        let receiving = self.part.receiver.as_ref();
        self.part.status(
            self.parent,
            self.part.source.clone(),
            receiving.map(|receiver| receiver.status(self.parent)),
            queues.collect(),
        )
    }
}
