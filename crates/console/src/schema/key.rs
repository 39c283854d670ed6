//! The whole state of a mesh at an instant. Counters are those since the start.

use super::{FlowState, LinkTable, NodeTable, Places, RolloutState, StreamState, TransferState};
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
    /// All roll-outs; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<RolloutState>>", optional)]
    pub rollouts: Vec<RolloutState>,
    /// Where the nodes are now; absent if they stay where the meta has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub places: Option<Places>,
}
