//! A node's part in a stream: as source, as receiver, and as parent of other nodes.

use super::announcement::{ANNOUNCE_INTERVAL, Announcement, Contents};
use super::receiver::Listener;
use crate::counters::DropReason;
use crate::event::Event;
use crate::stream::{Receiving, Sending, StreamQueue, StreamStatus};
use crate::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most children of a node in one tree.
pub const MAX_CHILDREN: usize = 64;
/// Reports in which a node says that it takes no part any more.
pub const LEAVE_NOTICES: u8 = 3;

/// A stream at one node, as a scheme keeps it.
pub trait Live: Sized {
    /// Fields of announcements besides names and counts.
    type Terms: Clone;
    /// This node as the source.
    type Source;
    /// This node as a receiver.
    type Receiver: Listener;
    /// A neighbour that gets the stream from here.
    type Child: Branch;

    /// Returns a stream that was just announced.
    fn new(part: Part<Self>, now: Instant) -> Self;

    /// Returns this node's part in it.
    fn part(&self) -> &Part<Self>;

    /// Returns this node's part in it, to change it.
    fn part_mut(&mut self) -> &mut Part<Self>;

    /// Returns the packets of each layer that have entered the stream here, modulo 2^32. Asked of
    /// sources only.
    fn entered(&self) -> Vec<u32>;

    /// Forgets packets, because the stream has ended.
    fn clear(&mut self) {}

    /// Notes that a receiver or a child has left. After the last one, this node leaves the tree.
    fn note_departure(&mut self) {
        self.part_mut().note_departure();
    }

    /// Returns the time from this announcement of the source to the next.
    fn announce_interval(&self) -> Duration {
        ANNOUNCE_INTERVAL
    }
}

/// A neighbour that gets a stream from this node.
pub trait Branch {
    /// Returns the receivers that are reached through it.
    fn receivers(&self) -> u32;
}

/// A node's part in a stream.
#[derive(Debug)]
pub struct Part<L: Live> {
    /// The announcement that is flooded.
    pub announcement: Announcement<L::Terms>,
    /// Group to which it is sent.
    pub group: Arc<str>,
    /// Names of the layers, the base first; none once the stream has ended.
    pub layers: Vec<Arc<str>>,
    /// When it was last announced.
    pub announced_at: Instant,
    /// This node as the source.
    pub source: Option<L::Source>,
    /// This node as a receiver.
    pub receiver: Option<L::Receiver>,
    /// Neighbours that get it from here.
    pub children: BTreeMap<NodeId, L::Child>,
    /// Reports that still have to say that this node has left the tree.
    pub leave_notices: u8,
}

/// Place of a neighbour in a tree, as it says.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The neighbour.
    pub node: NodeId,
    /// The node that it wants the stream from.
    pub parent: NodeId,
    /// Receivers reached through it, itself included; 0: it leaves the tree.
    pub receivers: u16,
}

/// Place of a neighbour in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It gets the stream elsewhere, or not at all. `left`: it got the stream from here.
    Elsewhere {
        /// Whether it got the stream from here before.
        left: bool,
    },
    /// It cannot get the stream from here, although it says so.
    Refused(DropReason),
    /// It gets the stream from here. `is_new`: it did not before.
    Child {
        /// Whether it did not get the stream from here before.
        is_new: bool,
    },
}

impl<L: Live> Part<L> {
    /// Returns the part of a node that knows a stream by its announcement.
    pub fn new(announcement: Announcement<L::Terms>, now: Instant) -> Self {
        let Contents { group, layers, .. } = &announcement.contents;
        Self {
            group: group.as_str().into(),
            layers: layers.iter().map(|name| name.as_str().into()).collect(),
            announcement,
            announced_at: now,
            source: None,
            receiver: None,
            children: BTreeMap::new(),
            leave_notices: 0,
        }
    }

    /// Returns whether the source has announced the end of the stream.
    pub fn has_ended(&self) -> bool {
        self.layers.is_empty()
    }

    /// Ends the stream: this node no longer sends, receives or forwards it.
    pub(super) fn end(&mut self) {
        // An announcement without layers is how the end is flooded. The stream stays until the
        // announcement times out, so that neighbours which have not heard it can still be told.
        self.announcement.contents.layers.clear();
        self.announcement.contents.sent.clear();
        self.layers.clear();
        self.source = None;
        self.receiver = None;
        self.children.clear();
        self.leave_notices = 0;
    }

    /// Handles a later announcement. It says that `sent` packets of each layer have entered so far.
    pub(super) fn handle_announcement(&mut self, version: u32, mut sent: Vec<u32>, now: Instant) {
        self.announcement.version = version;
        self.announced_at = now;

        // The number of layers is fixed by the first announcement. A false one may count others.
        sent.resize(self.layers.len(), 0);
        if let Some(receiver) = &mut self.receiver {
            receiver.handle_announcement(&sent, now);
        }
        self.announcement.contents.sent = sent;
    }

    // ---- the tree

    /// Returns the receivers reached through this node, itself included (m).
    pub fn receivers(&self) -> u32 {
        let behind = self.children.values().map(Branch::receivers);
        behind.fold(u32::from(self.receiver.is_some()), u32::saturating_add)
    }

    /// Returns whether this node sends, receives or passes on the stream.
    pub fn takes_part(&self) -> bool {
        self.source.is_some() || self.receivers() > 0
    }

    /// Notes that a receiver or a child has left. After the last one, reports say so.
    pub fn note_departure(&mut self) {
        if self.receivers() == 0 {
            self.leave_notices = LEAVE_NOTICES;
        }
    }

    /// Finds the place of a neighbour, and removes it from the children if that is elsewhere. `me`
    /// gets the stream from `parent`.
    pub fn place(&mut self, member: Member, me: NodeId, parent: Option<NodeId>) -> Place {
        let Member { node, .. } = member;

        // Reports are broadcast, so a child that has changed its parent, or leaves, is heard.
        if member.parent != me || member.receivers == 0 {
            return Place::Elsewhere { left: self.children.remove(&node).is_some() };
        }

        // A node's parent cannot be its child. Both routes change at the same time, or one of the
        // two lies.
        if parent == Some(node) || self.announcement.flow.source == node {
            return Place::Refused(DropReason::Stale);
        }

        if self.has_ended() {
            return Place::Refused(DropReason::UnknownFlow);
        }

        // A known child only renews its place, so the bound is for new ones.
        let is_new = !self.children.contains_key(&node);
        if is_new && self.children.len() >= MAX_CHILDREN {
            return Place::Refused(DropReason::Full);
        }
        Place::Child { is_new }
    }

    // ---- packets and status

    /// Returns a packet of a layer as the host gets it.
    pub fn event(&self, layer: usize, packet: Vec<u8>) -> Event {
        Event::StreamPacket {
            flow: self.announcement.flow,
            group: self.group.clone(),
            layer: self.layers[layer].clone(),
            packet,
        }
    }

    /// Returns the stream's state at a node that gets it from `parent`.
    pub fn status(
        &self,
        parent: Option<NodeId>,
        sending: Option<Sending>,
        receiving: Option<Receiving>,
        queues: Vec<StreamQueue>,
    ) -> StreamStatus {
        StreamStatus {
            flow: self.announcement.flow,
            group: self.announcement.contents.group.clone(),
            layers: self.announcement.contents.layers.clone(),
            receivers: self.receivers(),
            parent: parent.filter(|_| self.receivers() > 0),
            sending,
            receiving,
            queues,
        }
    }
}
