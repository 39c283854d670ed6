//! What all tunnel schemes share: packets of other protocols, IP foremost, carried between two nodes.
//!
//! A packet is taken or refused at once, and a refusal is the back-pressure: the driver waits for room, or drops.
//! What arrives comes up as [`Event::Packet`](crate::service::Event::Packet). Packets may be lost, as IP allows.

use crate::service::Cx;
use ncmesh_wire::{FlowId, NodeId};

/// The kind of all tunnels' data frames.
pub const DATA: u8 = 1;

/// A flow as traces name it: its source, and its destination for a number.
#[must_use]
pub fn flow_of(source: NodeId, destination: NodeId) -> FlowId {
    FlowId { source, serial: u32::from(destination.0) }
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

/// A service that carries packets between two nodes.
pub trait TunnelService {
    /// The longest packet it carries where frame bodies have `mtu` bytes, bytes.
    fn longest(&self, mtu: usize) -> usize;

    /// Whether a packet for `to` would be taken now, if it is not too long and there is a way.
    fn has_room(&self, to: NodeId) -> bool;

    /// The application offers a packet for `to`.
    ///
    /// # Errors
    /// [`Refused`].
    fn handle_packet(&mut self, cx: &mut Cx<'_>, to: NodeId, packet: &[u8]) -> Result<(), Refused>;

    /// How every flow through this node stands.
    fn flows(&self) -> Vec<FlowStatus>;
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
