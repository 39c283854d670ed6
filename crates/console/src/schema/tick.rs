//! What changed in a tick: counters by how much they grew, everything else by its new value.

use super::{Hop, Rank, Stage};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Returns whether a list is empty, or nothing but zeros: then it is left out.
fn is_zero<T: Default + PartialEq>(column: &[T]) -> bool {
    column.iter().all(|grown| *grown == T::default())
}

/// Returns whether a counter did not grow.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_unchanged(grown: &u32) -> bool {
    *grown == 0
}

/// Changes since the key or tick before. What is absent did not change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Tick {
    /// Time of the run, s.
    pub time_s: f64,
    /// Nodes that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub nodes: Option<NodeTicks>,
    /// Links that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub links: Option<LinkTicks>,
    /// Transfers that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<TransferTick>>", optional)]
    pub transfers: Vec<TransferTick>,
    /// Flows that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<FlowTick>>", optional)]
    pub flows: Vec<FlowTick>,
    /// Streams that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<StreamTick>>", optional)]
    pub streams: Vec<StreamTick>,
    /// Nodes that moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub moves: Option<Moves>,
}

/// Nodes that moved, a row for each, and how far. A column that is absent has zeros only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Moves {
    /// Places in the list of nodes, ascending.
    pub row: Vec<u32>,
    /// To the east, dm.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<i32>>", optional)]
    pub x_dm: Vec<i32>,
    /// To the north, dm.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<i32>>", optional)]
    pub y_dm: Vec<i32>,
    /// Upwards, dm.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<i32>>", optional)]
    pub z_dm: Vec<i32>,
}

/// Nodes that changed, a row for each. A column that is absent has zeros only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct NodeTicks {
    /// Places in the list of nodes, ascending.
    pub row: Vec<u32>,
    /// Control frames sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub control: Vec<u32>,
    /// Data frames sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub data: Vec<u32>,
    /// Coded frames sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub coded: Vec<u32>,
    /// Time on the air of the control frames, us.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub control_us: Vec<u32>,
    /// Time on the air of the data frames, us.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub data_us: Vec<u32>,
    /// Time on the air of the coded frames, us.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub coded_us: Vec<u32>,
    /// Packets that wait to be sent now: the value, not its change.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub queue: Vec<u32>,
    /// Whether the nodes run now, if that changed for any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<bool>>", optional)]
    pub up: Vec<bool>,
}

/// Links that changed, a row for each. A column that is absent has zeros only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct LinkTicks {
    /// Places in the list of links, ascending.
    pub row: Vec<u32>,
    /// Frames that arrived.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub heard: Vec<u32>,
    /// Frames that the channel lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub channel: Vec<u32>,
    /// Frames lost to a collision.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub collision: Vec<u32>,
    /// Frames that arrived with payload new to the receiver.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub innovative: Vec<u32>,
    /// Frames that arrived with payload the receiver could do without.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub redundant: Vec<u32>,
    /// Places in the list of links whose measured delivery changed, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub delivery_row: Vec<u32>,
    /// New measured delivery of those links, 0 to 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<f64>>", optional)]
    pub delivery: Vec<f64>,
}

/// Changes of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct TransferTick {
    /// Place of the transfer in the list of transfers.
    pub transfer: u32,
    /// New stage at the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub stage: Option<Stage>,
    /// Data packets that the source sent.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    #[ts(as = "Option<u32>", optional)]
    pub packets: u32,
    /// Ids of the nodes that forward now: the whole list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub forwarders: Option<Vec<u16>>,
    /// Receivers that changed, or joined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<ReceiverTick>>", optional)]
    pub receivers: Vec<ReceiverTick>,
}

/// Changes of a transfer at a receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct ReceiverTick {
    /// Id of the receiver.
    pub node: u16,
    /// New stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub stage: Option<Stage>,
    /// Bytes of the file that it got.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    #[ts(as = "Option<u32>", optional)]
    pub bytes: u32,
    /// Innovative packets that it heard.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    #[ts(as = "Option<u32>", optional)]
    pub innovative: u32,
    /// Packets that it heard and that were not innovative.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    #[ts(as = "Option<u32>", optional)]
    pub redundant: u32,
    /// Numbers of the generations that it decoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub complete: Vec<u32>,
    /// Generation that is being received now, and how much of it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub rank: Option<Rank>,
}

/// Changes of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct FlowTick {
    /// Place of the flow in the list of flows.
    pub flow: u32,
    /// Packets that the source's host offered.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    #[ts(as = "Option<u32>", optional)]
    pub offered: u32,
    /// Packets that arrived.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    #[ts(as = "Option<u32>", optional)]
    pub delivered: u32,
    /// Bits of the packets that arrived.
    #[serde(default, skip_serializing_if = "is_unchanged")]
    #[ts(as = "Option<u32>", optional)]
    pub bits: u32,
    /// Mean time on the way of the packets that arrived, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub delay_s: Option<f64>,
    /// Packets that wait at the source now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub queue: Option<u32>,
    /// New scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub scheme: Option<String>,
    /// Why packets are not coded now; empty if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub why: Option<String>,
    /// New share of combinations, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub coded_share: Option<f64>,
    /// New smoothed round trip, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub rtt_s: Option<f64>,
    /// New shortest round trip, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub min_rtt_s: Option<f64>,
}

/// Changes of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct StreamTick {
    /// Place of the stream in the list of streams.
    pub stream: u32,
    /// Packets that its source took, by layer.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub taken: Vec<u32>,
    /// Receivers that changed, or joined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<StreamReceiverTick>>", optional)]
    pub receivers: Vec<StreamReceiverTick>,
    /// Its tree now: the whole of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub tree: Option<Vec<Hop>>,
}

/// Changes of a stream at a receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct StreamReceiverTick {
    /// Id of the receiver.
    pub node: u16,
    /// Packets received, by layer.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub packets: Vec<u32>,
    /// Bits received, by layer.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[ts(as = "Option<Vec<u32>>", optional)]
    pub bits: Vec<u32>,
    /// Why it gets too little; empty if it no longer does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub problem: Option<String>,
}
