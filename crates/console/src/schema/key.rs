//! The whole state of a mesh at an instant. Counters are those since the start.

use super::{Count, Stage};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Whole state at an instant. Rows and lists are those of [`Meta`](super::Meta), in its order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Time of the run, s.
    pub time_s: f64,
    /// One row for each node.
    pub nodes: NodeTable,
    /// One row for each link.
    pub links: LinkTable,
    /// All transfers.
    pub transfers: Vec<TransferState>,
    /// All flows.
    pub flows: Vec<FlowState>,
    /// All streams.
    pub streams: Vec<StreamState>,
    /// Where the nodes are now; absent if they stay where the meta has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub places: Option<Places>,
}

/// Where the nodes of a plan are, a row for each node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// East of the origin, dm.
    pub x_dm: Vec<i32>,
    /// North of it, dm.
    pub y_dm: Vec<i32>,
    /// Above it, dm.
    pub z_dm: Vec<i32>,
}

/// State of all nodes, a row for each node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct NodeTable {
    /// Whether it runs, and is heard of.
    pub up: Vec<bool>,
    /// Frames sent that carry no payload: hellos, link state, announcements, acknowledgments.
    pub control: Vec<Count>,
    /// Frames sent with payload as its source gave it.
    pub data: Vec<Count>,
    /// Frames sent with payload that is a combination of packets.
    pub coded: Vec<Count>,
    /// Time on the air of the control frames, us.
    pub control_us: Vec<Count>,
    /// Time on the air of the data frames, us.
    pub data_us: Vec<Count>,
    /// Time on the air of the coded frames, us.
    pub coded_us: Vec<Count>,
    /// Packets that wait to be sent.
    pub queue: Vec<u32>,
}

impl NodeTable {
    /// Returns the table of nodes that are down and have sent nothing.
    #[must_use]
    pub fn of(rows: usize) -> Self {
        let zeros = || vec![Count(0); rows];
        Self {
            up: vec![false; rows],
            control: zeros(),
            data: zeros(),
            coded: zeros(),
            control_us: zeros(),
            data_us: zeros(),
            coded_us: zeros(),
            queue: vec![0; rows],
        }
    }
}

/// State of all links, a row for each link. Frames are those on the air, repetitions by the MAC
/// included. Where the channel tells of no losses, because it is a real one, both kinds are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// Frames that arrived.
    pub heard: Vec<Count>,
    /// Frames that the channel lost.
    pub channel: Vec<Count>,
    /// Frames lost to a collision: another frame, noise, or the receiver itself sending.
    pub collision: Vec<Count>,
    /// Frames that arrived with payload new to the receiver.
    pub innovative: Vec<Count>,
    /// Frames that arrived with payload the receiver could do without.
    pub redundant: Vec<Count>,
    /// Share of the long frames that arrives, as the receiver has measured it, 0 to 1. It is 0
    /// while the nodes are no neighbours.
    pub delivery: Vec<f64>,
}

impl LinkTable {
    /// Returns the table of links that have carried nothing.
    #[must_use]
    pub fn of(rows: usize) -> Self {
        let zeros = || vec![Count(0); rows];
        Self {
            heard: zeros(),
            channel: zeros(),
            collision: zeros(),
            innovative: zeros(),
            redundant: zeros(),
            delivery: vec![0.0; rows],
        }
    }
}

/// State of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TransferState {
    /// Its stage at the source.
    pub stage: Stage,
    /// Data packets that the source has sent.
    pub packets: Count,
    /// Ids of the nodes that forward.
    pub forwarders: Vec<u16>,
    /// Its receivers.
    pub receivers: Vec<ReceiverState>,
}

/// State of a transfer at a receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ReceiverState {
    /// Id of the receiver.
    pub node: u16,
    /// Stage of the transfer there.
    pub stage: Stage,
    /// Bytes of the file that it has.
    pub bytes: Count,
    /// Innovative packets that it has heard.
    pub innovative: Count,
    /// Packets that it has heard and that were not innovative.
    pub redundant: Count,
    /// Numbers of the generations that it has decoded, ascending.
    pub complete: Vec<u32>,
    /// Generation that is being received, and how much of it is there; null if that is not known.
    pub rank: Option<Rank>,
}

/// How much of a generation is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Rank {
    /// Number of the generation, from 0.
    pub generation: u32,
    /// Innovative packets of it that are there.
    pub rank: u32,
    /// Packets that it takes to decode it.
    pub size: u32,
}

/// State of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FlowState {
    /// Packets that the source's host has offered.
    pub offered: Count,
    /// Packets that have arrived.
    pub delivered: Count,
    /// Bits of the packets that have arrived.
    pub bits: Count,
    /// Mean time on the way of the packets that arrived last, s; null before the first, and where
    /// nobody can measure it.
    pub delay_s: Option<f64>,
    /// Packets that wait at the source.
    pub queue: u32,
    /// Name of the scheme that carries it.
    pub scheme: String,
    /// Why packets of it are not coded now, in words; empty if they are, or nobody says.
    pub why: String,
    /// Share of combinations among the frames with payload of the scheme that nodes have sent in
    /// the last second, 0 to 1; null for schemes that combine nothing.
    pub coded_share: Option<f64>,
    /// Round trip from the source to the destination's hosts and back, smoothed, s. Absent where
    /// nobody measures it, and once nobody has for 10 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub rtt_s: Option<f64>,
    /// Shortest round trip of the last 10 s, s. Absent where `rtt_s` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub min_rtt_s: Option<f64>,
}

/// State of a live stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct StreamState {
    /// Packets that its source has taken, by layer.
    pub taken: Vec<Count>,
    /// Its receivers.
    pub receivers: Vec<StreamReceiverState>,
    /// Its tree: each node in it with its previous hop.
    pub tree: Vec<Hop>,
}

/// State of a stream at a receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct StreamReceiverState {
    /// Id of the receiver.
    pub node: u16,
    /// Packets received, by layer.
    pub packets: Vec<Count>,
    /// Bits received, by layer.
    pub bits: Vec<Count>,
    /// Why it gets too little, in words; empty if it does not.
    pub problem: String,
}

/// A hop of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Id of the node.
    pub node: u16,
    /// Id of its previous hop, towards the source.
    pub parent: u16,
}
