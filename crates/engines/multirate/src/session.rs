//! One stream at one node: its announcement, its place in the tree, and this node's own part.
//!
//! A node may be source, receiver or relay of a stream; a relay may be a receiver as well. While it
//! is in the tree its reports tell its parent how many receivers it reaches. While it is leaving
//! they say that there are none, several times because reports may be lost.

use crate::child::Child;
use crate::dropping::Dropping;
use crate::local_receiver::LocalReceiver;
use crate::packet_queue::{Packet, PacketQueue};
use crate::parameters::Parameters;
use crate::source::LocalSource;
use ncmesh_engine::stream::{LAYERS, StreamStatus};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::live::{Live, Part};
use ncmesh_engine::toolkit::sequence::{Received, SequenceWindow};
use ncmesh_wire::NodeId;

/// A stream at one node.
#[derive(Debug)]
pub(crate) struct Session {
    pub part: Part<Self>,
    /// The neighbour on the way to the source.
    pub parent: Option<NodeId>,
    /// Sequence numbers received in each layer; `None` before the first packet.
    received: [Option<SequenceWindow<u32>>; LAYERS],
}

/// Pressures that a node reports to its parent, which subtracts them in (25).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pressures {
    /// Sum of m Q over all children, packets only, plus this node's own Y if that is below 0.
    pub backlog: f64,
    /// Sum of the virtual pressures above 0. Place-holders represent them in queues upstream.
    pub virtual_pressure: f64,
}

/// How many packets queues may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// Packets of one queue.
    pub each: u32,
    /// Packets that all queues of the node may take in addition to what they hold.
    pub remaining: u32,
}

impl Live for Session {
    type Terms = ();
    type Source = LocalSource;
    type Receiver = LocalReceiver;
    type Child = Child;

    fn new(part: Part<Self>, _now: Instant) -> Self {
        Self { part, parent: None, received: [None; LAYERS] }
    }

    fn part(&self) -> &Part<Self> {
        &self.part
    }

    fn part_mut(&mut self) -> &mut Part<Self> {
        &mut self.part
    }

    fn entered(&self) -> Vec<u32> {
        let source = self.part.source.as_ref();
        source.map_or_else(Vec::new, |source| source.entered_total().to_vec())
    }
}

impl Session {
    /// Returns whether this node has something to report: it is in the tree, or is leaving it.
    pub(crate) fn has_report(&self) -> bool {
        self.part.receivers() > 0 || self.part.leave_notices > 0
    }

    /// Returns what this node reports to its parent.
    pub(crate) fn pressures(&self) -> Pressures {
        // Urgency (Y below 0) must reach the parent's differential backlog, so it is added to the
        // packets. Satisfaction (Y above 0) is kept apart: at the parent, place-holders and Y
        // cancel out in (25), and only its dropping decision (17) uses their number.
        let own = self.part.receiver.as_ref().map_or(0.0, |receiver| receiver.pressure);
        let mut sum = Pressures { backlog: own.min(0.0), virtual_pressure: own.max(0.0) };

        // The sum in (25) runs over all links that leave this node.
        for child in self.part.children.values() {
            sum.backlog += child.packet_pressure();
            sum.virtual_pressure += child.report.pressure;
        }

        sum
    }

    // ---- packets

    /// Records that a packet came. Returns whether it is new.
    pub(crate) fn note_packet(&mut self, layer: usize, seq: u32) -> bool {
        // A receiver may join in the middle of a stream, so any number can be the first.
        let Some(window) = &mut self.received[layer] else {
            self.received[layer] = Some(SequenceWindow::new(seq));
            return true;
        };
        matches!(window.receive(seq), Received::Ahead(_) | Received::Late(_))
    }

    /// Puts a packet into the queue of every child (II-A). A queue that is full, or for which the
    /// node has no room, drops a packet of its highest layer instead, so that the base always finds
    /// room. Returns how many packets were dropped.
    pub(crate) fn replicate(
        &mut self,
        packet: &Packet,
        rules: &Dropping,
        mut limits: QueueLimits,
        now: Instant,
    ) -> u32 {
        let mut dropped = 0;
        for child in self.part.children.values_mut() {
            // The packet goes in before one is dropped, so that the new packet itself is dropped
            // if the queue holds only lower layers.
            let queue = child.queue.get_or_insert_with(|| PacketQueue::new(rules, now));
            queue.push(packet.clone(), now);

            // Lemma 2 bounds the queue while the drop rule runs once in each slot. These limits
            // hold even when slots are late or a neighbour sends too much.
            if queue.len() > limits.each || limits.remaining == 0 {
                dropped += 1;
                if let Some(layer) = queue.drop_one() {
                    child.dropped[layer] += 1;
                }
            } else {
                limits.remaining -= 1;
            }
        }

        dropped
    }

    // ---- slots

    /// Returns whether this node has a part in the stream, so that slots have something to decide.
    pub(crate) fn is_active(&self) -> bool {
        self.part.source.is_some() || self.part.receiver.is_some() || !self.part.children.is_empty()
    }

    /// Ends a slot of length `slot` and begins the next. A queue that was empty for `idle` is
    /// removed.
    pub(crate) fn next_slot(
        &mut self,
        rules: &Dropping,
        parameters: &Parameters,
        slot: Duration,
        idle: Duration,
        now: Instant,
    ) {
        // Source: another A_max packets may enter.
        if let Some(source) = &mut self.part.source {
            source.next_slot();
        }

        // Receiver: congestion control (26), (27), from the packets that came in this slot.
        if let Some(receiver) = &mut self.part.receiver {
            receiver.next_slot(parameters, slot);
        }

        // Queues: drop (17) and discard (18) what the beginning of this slot decided, and decide
        // for the next. That decision uses the place-holders that the child reports now.
        for child in self.part.children.values_mut() {
            let place_holders = child.place_holders();
            let Some(queue) = &mut child.queue else { continue };
            let dropped = queue.next_slot(rules, place_holders);
            for (count, more) in child.dropped.iter_mut().zip(dropped.0) {
                *count += u64::from(more);
            }

            // An idle queue is removed with its drop queue. A new one starts at V theta again, as
            // the paper starts every queue, and not from whatever the old load left behind.
            if queue.len() == 0 && now.since(queue.fed_at) > idle {
                child.queue = None;
            }
        }
    }

    // ---- status

    /// Returns the stream's state. `rate_of` gives the packets per slot that a child's link
    /// carries.
    pub(crate) fn status(&self, rate_of: impl Fn(NodeId) -> f64) -> StreamStatus {
        let queues = self.part.children.iter().map(|(to, child)| child.status(*to, rate_of(*to)));
        let receiving = self.part.receiver.as_ref();
        self.part.status(
            self.parent,
            self.part.source.as_ref().map(LocalSource::status),
            receiving.map(|receiver| receiver.status(self.parent)),
            queues.collect(),
        )
    }
}
