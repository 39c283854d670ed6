//! Types that tunnel schemes share: packets of other protocols, IP foremost, between two nodes.
//!
//! A scheme takes or refuses each packet at once; a refusal is the back-pressure. A packet that
//! arrives comes up as [`Event::Packet`](crate::Event::Packet). Packets may be lost, as IP allows.

mod class;

pub use crate::transmission::DATA;
pub use class::{is_real_time, traffic_class};
use ncmesh_wire::{FlowId, NodeId};

/// Returns the flow as traces name it: its source, and its destination as serial number.
#[must_use]
pub fn flow_of(source: NodeId, destination: NodeId) -> FlowId {
    FlowId { source, serial: u32::from(destination.0) }
}

/// Why a tunnel does not take a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// This program has no tunnel scheme of that name.
    #[error("no tunnel scheme has this name")]
    UnknownScheme,
    /// No frame has room for it.
    #[error("a packet of {bytes} bytes is too long: this scheme carries up to {longest}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest that the scheme carries.
        longest: usize,
    },
    /// It is empty: there is nothing to carry.
    #[error("an empty packet")]
    Empty,
    /// The queue for its destination is full.
    #[error("the queue is full")]
    Full,
    /// The mesh knows no path to its destination.
    #[error("no path leads to {0}")]
    NoPath(NodeId),
    /// Its destination is this node.
    #[error("the destination is this very node")]
    Oneself,
}

/// Checks what no scheme can carry.
///
/// # Errors
/// [`PacketError::Empty`], [`PacketError::TooLong`], [`PacketError::Oneself`].
pub fn check_packet(
    me: NodeId,
    to: NodeId,
    packet: &[u8],
    longest: usize,
) -> Result<(), PacketError> {
    match packet.len() {
        _ if to == me => Err(PacketError::Oneself),
        0 => Err(PacketError::Empty),
        bytes if bytes > longest => Err(PacketError::TooLong { bytes, longest }),
        _ => Ok(()),
    }
}

/// State of a flow at one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// Node where it begins.
    pub source: NodeId,
    /// Node where it ends.
    pub destination: NodeId,
    /// Packets that this node has yet to transfer: credits |C(n, c)| in MC2, else packets queued.
    pub credits: u64,
    /// Data frames of it heard here that were sent to this node, or to several.
    pub heard: u64,
    /// Innovative ones among them.
    pub innovative: u64,
    /// Packets of it handed up here.
    pub delivered: u64,
    /// Bytes of these packets.
    pub delivered_bytes: u64,
    /// Packets of it given up here.
    pub lost: u64,
}

/// Counters of packets that a node codes and decodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodingStatus {
    /// Data frames sent.
    pub sent: u64,
    /// Ones among them with two packets.
    pub coded: u64,
    /// Packets decoded here.
    pub decoded: u64,
    /// Frames with two packets, one of them for this node, that could not be decoded.
    pub undecodable: u64,
    /// Packets sent again because a neighbour missed them.
    pub repeated: u64,
    /// Hold times, by the way of the packets through this node, for schemes that learn them.
    pub holds: Vec<HoldStatus>,
    /// Neighbours for whom nothing is coded now, each with what it did, in words.
    pub stopped: Vec<(NodeId, String)>,
    /// How this node relays, for schemes that leave it a choice.
    pub relaying: Relaying,
    /// Frames that plain forwarding would have sent for what the next hops got, for schemes that
    /// reckon it: 1/(d_f d_r) for each packet (De Couto, Aguayo, Bicket, Morris, MobiCom 2003).
    pub forwarding: Option<f64>,
    /// Why packets that pass here now are not coded, in words.
    pub why_not: Vec<String>,
}

impl CodingStatus {
    /// Returns how many frames forwarding would have sent for each one that was; `None` if that is
    /// not known.
    #[must_use]
    pub fn gain(&self) -> Option<f64> {
        self.forwarding.filter(|_| self.sent > 0).map(|frames| frames / self.sent as f64)
    }

    /// Returns coded over all transmissions (Huang et al., V-A); `None` before the first.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.coded as f64 / self.sent as f64)
    }
}

/// Time for which a relay holds packets of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldStatus {
    /// Previous hop of the packets.
    pub previous: NodeId,
    /// Next hop of the packets.
    pub next: NodeId,
    /// Best hold time known so far, s.
    pub hold_s: f64,
}

crate::choices! {
    /// The three relays that CORE compares (Hansen et al., section 4).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum RelayMode {
        /// Recodes, knows its rank, stops the previous hop and answers requests itself.
        #[default]
        Core = "core",
        /// Recodes; leaves requests to the source.
        Recoding = "recoding",
        /// Forwards packets as they are; leaves requests to the source.
        NonRecoding = "non_recoding",
    }
}

/// How a node relays, for schemes that leave it a choice. In a change, `None` means as before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relaying {
    /// Relay mode, for CORE.
    pub relay: Option<RelayMode>,
    /// Whether it combines packets of flows that cross.
    pub coding: Option<bool>,
}
