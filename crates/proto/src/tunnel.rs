//! What all tunnel schemes share: packets of other protocols, IP foremost, carried between two nodes.
//!
//! A packet is taken or refused at once, and a refusal is the back-pressure: the driver waits for room, or drops.
//! What arrives comes up as [`Event::Packet`](crate::service::Event::Packet). Packets may be lost, as IP allows.

pub(crate) mod coder;

use crate::core_nc::Relay;
use crate::service::{Cx, Malformed};
use crate::time::{Duration, Instant};
use ncmesh_wire::{FlowId, NodeId, Reader, Writer};
use std::collections::BTreeMap;

/// The kind of all tunnels' data frames.
pub const DATA: u8 = 1;

/// A flow as traces name it: its source, and its destination for a number.
#[must_use]
pub fn flow_of(source: NodeId, destination: NodeId) -> FlowId {
    FlowId { source, serial: u32::from(destination.0) }
}

/// Which flow, of which start of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start {
    pub source: NodeId,
    pub destination: NodeId,
    /// Of the source's starts a later one has a higher number.
    pub incarnation: u32,
}

impl Start {
    /// A flow from this node, the `begun`-th it begins.
    pub(crate) fn new(cx: &Cx<'_>, destination: NodeId, begun: u32) -> Self {
        let incarnation = (cx.epoch as u32).wrapping_shl(16).wrapping_add(begun);
        Self { source: cx.me, destination, incarnation }
    }

    /// Its flow, whichever start it is of.
    pub(crate) fn key(self) -> (NodeId, NodeId) {
        (self.source, self.destination)
    }

    /// Whether it is a later one than `known`, of the same flow.
    pub(crate) fn is_later(self, known: Self) -> bool {
        let ahead = self.incarnation.wrapping_sub(known.incarnation);
        ahead != 0 && ahead <= u32::MAX / 2
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        Writer::new(out).node(self.source).node(self.destination).u32(self.incarnation);
    }

    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let start = Self { source: r.node()?, destination: r.node()?, incarnation: r.u32()? };
        if start.source == start.destination { Err(Malformed) } else { Ok(start) }
    }
}

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No frame has room for it.
    #[error("a packet of {bytes} bytes is too long: this scheme carries up to {longest}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// [`TunnelService::longest`].
        longest: usize,
    },
    /// It is empty: there is nothing to carry.
    #[error("an empty packet")]
    Empty,
    /// The queue for its destination is full.
    #[error("the queue is full")]
    Full,
    /// The mesh knows no way to its destination.
    #[error("no path leads to {0}")]
    NoPath(NodeId),
    /// Its destination is this node.
    #[error("the destination is this very node")]
    Oneself,
}

/// A flow as one node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// Where it begins.
    pub source: NodeId,
    /// Where it ends.
    pub destination: NodeId,
    /// Packets this node is to transfer yet: of MC2 its credits |C(n, c)|, else the packets queued here.
    pub credits: u64,
    /// Data frames of it heard here that were sent to this node, or to more than one.
    pub heard: u64,
    /// Of those, the ones that brought something new.
    pub innovative: u64,
    /// Packets of it handed up here.
    pub delivered: u64,
    /// Packets of it given up here.
    pub lost: u64,
}

/// What a node codes and decodes of packets that cross.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodingStatus {
    /// Data frames sent.
    pub sent: u64,
    /// Of those, the ones with two packets in them.
    pub coded: u64,
    /// Packets decoded here.
    pub decoded: u64,
    /// Frames with two packets, one of them for this node, that could not be decoded.
    pub undecodable: u64,
    /// Packets sent again because a neighbour missed them.
    pub repeated: u64,
    /// How long packets are held, by their way through this node, where it finds that out for itself.
    pub holds: Vec<HoldStatus>,
    /// Neighbours for whom nothing is coded now, and why: what the neighbour did, in words.
    pub stopped: Vec<(NodeId, String)>,
    /// What this node does as a relay, where it has the choice.
    pub relaying: Relaying,
}

/// What a node does as a relay, of schemes that leave it a choice; to change it, what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relaying {
    /// Which relay of CORE it is.
    pub relay: Option<Relay>,
    /// Whether it combines packets of flows that cross.
    pub coding: Option<bool>,
}

impl CodingStatus {
    /// Coded over all transmissions (Huang et al., V-A); none before the first.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        coding_ratio(self.coded, self.sent)
    }
}

/// Coded over all transmissions (Huang et al., V-A); none before the first.
#[must_use]
pub fn coding_ratio(coded: u64, sent: u64) -> Option<f64> {
    (sent > 0).then(|| coded as f64 / sent as f64)
}

/// How long a relay holds packets of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldStatus {
    /// From whom they come.
    pub previous: NodeId,
    /// To whom they go.
    pub next: NodeId,
    /// What is best as far as known, s.
    pub hold_s: f64,
}

/// A service that carries packets between two nodes.
pub trait TunnelService {
    /// The longest packet it carries where frame bodies have `mtu` bytes, bytes.
    fn longest(&self, mtu: usize) -> usize;

    /// Whether a packet for `to` would be taken now, if it is not too long and there is a way.
    fn has_room(&self, to: NodeId) -> bool;

    /// Whether a packet for `to` would be sent soon. Others are better kept outside, in queues that know connections and
    /// how long a packet waits, as long as there are such.
    fn wants_packet(&self, to: NodeId) -> bool {
        self.has_room(to)
    }

    /// The application offers a packet for `to`.
    ///
    /// # Errors
    /// [`Refused`].
    fn handle_packet(&mut self, cx: &mut Cx<'_>, to: NodeId, packet: &[u8]) -> Result<(), Refused>;

    /// How every flow through this node stands.
    fn flows(&self) -> Vec<FlowStatus>;

    /// What it codes of packets that cross; `None` of a scheme that does not.
    fn coding(&self, _now: Instant) -> Option<CodingStatus> {
        None
    }

    /// This node relays so from now on, as far as the scheme leaves a choice. Nodes before and behind it need not know.
    fn relay_as(&mut self, _cx: &mut Cx<'_>, _change: Relaying) {}
}

/// Packets of its own that a scheme without windows wants to have ready: enough for a channel that is granted to be used.
const READY: usize = 4;

/// Whether it has that many.
pub(crate) fn has_enough<T>(mut own: impl Iterator<Item = T>) -> bool {
    own.nth(READY - 1).is_some()
}

/// Flows a node takes part in at most, of schemes that keep state for each.
const MAX_STATES: usize = 32;
/// A flow silent for so long is forgotten by them.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// Sees to it that there is a place for the flow `key`: the one longest silent, by `last`, makes room.
pub(crate) fn make_room<F>(
    flows: &mut BTreeMap<(NodeId, NodeId), F>,
    key: (NodeId, NodeId),
    last: impl Fn(&F) -> Instant,
) {
    if flows.len() < MAX_STATES || flows.contains_key(&key) {
        return;
    }
    let silent = flows.iter().min_by_key(|(_, flow)| last(flow)).map(|(key, _)| *key);
    silent.and_then(|key| flows.remove(&key));
}

/// Flows of which a node keeps count; others are carried all the same.
const MAX_FLOWS: usize = 1024;

/// What a node counts of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    heard: u64,
    innovative: u64,
    delivered: u64,
    lost: u64,
}

/// What a node counts of flows, by source and destination.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    flows: BTreeMap<(NodeId, NodeId), Tally>,
}

impl Tallies {
    /// A flow is known from now on.
    pub(crate) fn begin(&mut self, source: NodeId, destination: NodeId) {
        self.count(source, destination, |_| ());
    }

    /// A frame of it was heard that was sent to this node.
    pub(crate) fn heard(&mut self, source: NodeId, destination: NodeId, innovative: bool) {
        self.count(source, destination, |tally| {
            tally.heard += 1;
            tally.innovative += u64::from(innovative);
        });
    }

    /// A packet of it was handed up.
    pub(crate) fn delivered(&mut self, source: NodeId, destination: NodeId) {
        self.count(source, destination, |tally| tally.delivered += 1);
    }

    /// A packet of it was given up.
    pub(crate) fn lost(&mut self, source: NodeId, destination: NodeId) {
        self.count(source, destination, |tally| tally.lost += 1);
    }

    fn count(&mut self, source: NodeId, destination: NodeId, change: impl FnOnce(&mut Tally)) {
        let key = (source, destination);
        if self.flows.len() < MAX_FLOWS || self.flows.contains_key(&key) {
            change(self.flows.entry(key).or_default());
        }
    }

    /// How all of them stand; `credits` tells what of a flow is to be transferred yet.
    pub(crate) fn statuses(&self, credits: impl Fn(NodeId, NodeId) -> u64) -> Vec<FlowStatus> {
        let status = |((source, destination), tally): (&(NodeId, NodeId), &Tally)| FlowStatus {
            source: *source,
            destination: *destination,
            credits: credits(*source, *destination),
            heard: tally.heard,
            innovative: tally.innovative,
            delivered: tally.delivered,
            lost: tally.lost,
        };
        self.flows.iter().map(status).collect()
    }
}

/// Checks what no scheme can carry.
///
/// # Errors
/// [`Refused::Empty`], [`Refused::TooLong`], [`Refused::Oneself`].
pub(crate) fn check(me: NodeId, to: NodeId, packet: &[u8], longest: usize) -> Result<(), Refused> {
    match packet.len() {
        _ if to == me => Err(Refused::Oneself),
        0 => Err(Refused::Empty),
        bytes if bytes > longest => Err(Refused::TooLong { bytes, longest }),
        _ => Ok(()),
    }
}
