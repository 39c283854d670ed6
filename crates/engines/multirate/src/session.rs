//! One stream at one node: its announcement, its place in the tree, and this node's own part.
//!
//! A node may be source, receiver or relay of a stream; a relay may be a receiver as well. Its
//! place in the tree follows from that:
//!
//! ```text
//!   outside --a receiver here or a child--> in the tree --the last one leaves--> leaving
//!      ^                                        ^                                 |    |
//!      |                                        +-----------a new one-------------+    |
//!      +------------------------- leave notices sent ----------------------------------+
//! ```
//!
//! While it is in the tree its reports tell its parent how many receivers it reaches. While it is
//! leaving they say that there are none, several times because reports may be lost.

use crate::child::Child;
use crate::dropping::Dropping;
use crate::frame::Announcement;
use crate::local_receiver::LocalReceiver;
use crate::packet_queue::{Packet, PacketQueue};
use crate::parameters::Parameters;
use crate::source::LocalSource;
use ncmesh_engine::stream::{LAYERS, StreamStatus};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::sequence::{Received, SequenceWindow};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reports in which a node says that it has left a tree.
const LEAVE_NOTICES: u8 = 3;

/// A stream at one node.
#[derive(Debug)]
pub(crate) struct Session {
    pub announcement: Announcement,
    pub group: Arc<str>,
    /// Names of the layers, the base first; none once the stream has ended.
    pub layers: Vec<Arc<str>>,
    /// When it was last announced.
    pub announced_at: Instant,
    /// The neighbour on the way to the source.
    pub parent: Option<NodeId>,
    pub source: Option<LocalSource>,
    pub receiver: Option<LocalReceiver>,
    pub children: BTreeMap<NodeId, Child>,
    /// Number of reports that still have to say that this node has left the tree.
    pub leave_notices: u8,
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

impl Session {
    /// Returns a stream as it is announced.
    pub(crate) fn new(announcement: Announcement, now: Instant) -> Self {
        let group = announcement.group.as_str().into();
        let layers = announcement.layers.iter().map(|name| name.as_str().into()).collect();
        Self {
            announcement,
            group,
            layers,
            announced_at: now,
            parent: None,
            source: None,
            receiver: None,
            children: BTreeMap::new(),
            leave_notices: 0,
            received: [None; LAYERS],
        }
    }

    // ---- announcements

    /// Returns whether the source has announced the end of the stream.
    pub(crate) fn has_ended(&self) -> bool {
        self.layers.is_empty()
    }

    /// Ends the stream: this node no longer sends, receives or forwards it.
    pub(crate) fn end(&mut self) {
        // An announcement without layers is how the end is flooded. The session stays until the
        // announcement times out, so that neighbours which have not heard it can still be told.
        self.announcement.layers.clear();
        self.announcement.sent.clear();
        self.layers.clear();
        self.source = None;
        self.receiver = None;
        self.children.clear();
        self.leave_notices = 0;
    }

    /// Prepares the source's next announcement, with the version after `version`.
    pub(crate) fn announce_after(&mut self, version: u32, now: Instant) {
        // Saturates, because a neighbour may have claimed the largest version (see `supersede`).
        self.announcement.version = version.saturating_add(1);
        self.announced_at = now;
        if let Some(source) = &self.source {
            self.announcement.sent = source.entered_total()[..self.layers.len()].to_vec();
        }
    }

    /// Handles a later announcement. It says that `sent` packets of each layer have entered so far.
    pub(crate) fn handle_announcement(&mut self, version: u32, mut sent: Vec<u32>, now: Instant) {
        self.announcement.version = version;
        self.announced_at = now;

        // The number of layers is fixed by the first announcement. A false one may count others.
        sent.resize(self.layers.len(), 0);
        if let Some(receiver) = &mut self.receiver {
            receiver.handle_announcement(&sent, now);
        }
        self.announcement.sent = sent;
    }

    // ---- the tree

    /// Returns the receivers reached through this node, itself included (m).
    pub(crate) fn receivers(&self) -> u32 {
        let behind = self.children.values().map(|child| child.report.receivers);
        behind.fold(u32::from(self.receiver.is_some()), u32::saturating_add)
    }

    /// Returns whether this node has something to report: it is in the tree, or is leaving it.
    pub(crate) fn has_report(&self) -> bool {
        self.receivers() > 0 || self.leave_notices > 0
    }

    /// Notes that a receiver or a child has left. After the last one, this node leaves the tree.
    pub(crate) fn note_departure(&mut self) {
        if self.receivers() == 0 {
            self.leave_notices = LEAVE_NOTICES;
        }
    }

    /// Returns what this node reports to its parent.
    pub(crate) fn pressures(&self) -> Pressures {
        // Urgency (Y below 0) must reach the parent's differential backlog, so it is added to the
        // packets. Satisfaction (Y above 0) is kept apart: at the parent, place-holders and Y
        // cancel out in (25), and only its dropping decision (17) uses their number.
        let own = self.receiver.as_ref().map_or(0.0, |receiver| receiver.pressure);
        let mut sum = Pressures { backlog: own.min(0.0), virtual_pressure: own.max(0.0) };

        // The sum in (25) runs over all links that leave this node.
        for child in self.children.values() {
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
        for child in self.children.values_mut() {
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
        self.source.is_some() || self.receiver.is_some() || !self.children.is_empty()
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
        if let Some(source) = &mut self.source {
            source.next_slot();
        }

        // Receiver: congestion control (26), (27), from the packets that came in this slot.
        if let Some(receiver) = &mut self.receiver {
            receiver.next_slot(parameters, slot);
        }

        // Queues: drop (17) and discard (18) what the beginning of this slot decided, and decide
        // for the next. That decision uses the place-holders that the child reports now.
        for child in self.children.values_mut() {
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
        let queues = self.children.iter().map(|(to, child)| child.status(*to, rate_of(*to)));
        StreamStatus {
            flow: self.announcement.flow,
            group: self.announcement.group.clone(),
            layers: self.announcement.layers.clone(),
            receivers: self.receivers(),
            parent: self.parent.filter(|_| self.receivers() > 0),
            sending: self.source.as_ref().map(LocalSource::status),
            receiving: self.receiver.as_ref().map(|receiver| receiver.status(self.parent)),
            queues: queues.collect(),
        }
    }
}
