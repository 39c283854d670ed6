//! JSON types of roll-outs: the commands of an operator, and how far a roll-out is.

use super::types::Recipients;
use ncmesh_fleet::rollout::Batch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Body of `POST /v1/fleet/push`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushRequest {
    /// File of the manifest, an absolute path.
    pub manifest: PathBuf,
    /// Directory of the images, an absolute path.
    pub images: PathBuf,
    /// Nodes that take part. With `"all"` those that come up later do so as well.
    pub to: Recipients,
    /// Most airtime that images may take in the background, 1 to 100 percent. 100 if absent.
    #[serde(default)]
    pub background: Option<u8>,
    /// Time after which nodes that have not staged the release are listed as missing.
    #[serde(default)]
    pub stage_within_s: Option<u64>,
    /// Whether nodes may go to an older version.
    #[serde(default)]
    pub downgrade: bool,
}

/// Body of `POST /v1/fleet/apply`. What is absent has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// Update those that have staged the release, though some have not.
    #[serde(default)]
    pub without_missing: bool,
    /// Nodes that are updated at once: `{"nodes": 3}` or `{"percent": 10}`.
    #[serde(default)]
    pub batch: Option<Batch>,
    /// Nodes that are updated before all others, by name or id.
    #[serde(default)]
    pub canaries: Vec<String>,
    /// Time in which the nodes of a batch must be updated.
    #[serde(default)]
    pub update_within_s: Option<u64>,
    /// Time that a node waits for its confirmation before it goes back.
    #[serde(default)]
    pub confirm_within_s: Option<u64>,
    /// Whether nodes on trial are kept by a `confirm` alone.
    #[serde(default)]
    pub by_hand: bool,
    /// Time after which the first batch begins, s. At once if absent.
    #[serde(default)]
    pub after_s: Option<u64>,
}

/// Answer to all paths below `/v1/fleet`: roll-outs of router images at this node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetStatus {
    /// This node as one that takes part in roll-outs. Absent without `[fleet] model`.
    pub member: Option<FleetMember>,
    /// The roll-out that this node leads, or led last.
    pub rollout: Option<FleetRollout>,
}

/// A node that takes part in roll-outs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetMember {
    /// Its model.
    pub model: String,
    /// Version that it runs.
    pub running: String,
    /// Version of the roll-out that it takes part in, once it has the manifest.
    pub version: Option<String>,
    /// Public key of the operator of that roll-out.
    pub operator: Option<String>,
    /// How far it is: `staging`, `staged`, `applying`, `trial`, `kept`, `rolling_back`,
    /// `rolled_back`, `refused`, `failed`, `aborted`, or `has_no_fleet` of a node that takes part
    /// in no roll-outs.
    pub standing: Option<String>,
    /// Why, if there is more to say.
    pub why: Option<String>,
}

/// A roll-out, at the node that leads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetRollout {
    /// Its number.
    pub number: u64,
    /// Firmware that the release is of.
    pub name: String,
    /// Version of the release.
    pub version: String,
    /// Id of the release.
    pub release: String,
    /// Stage: `pushing`, `pushed`, `scheduled`, `applying`, `done`, `stopped`, `rolling_back` or
    /// `rolled_back`.
    pub stage: String,
    /// The thing that it waits for, or how it ended, in words.
    pub waits_for: String,
    /// Time until the first batch begins, s, if that is to come.
    pub begins_in_s: Option<f64>,
    /// Number of batches, once the release is applied.
    pub batches: usize,
    /// Batch that is updated now, from 1.
    pub batch: Option<usize>,
    /// Its nodes.
    pub nodes: Vec<FleetNode>,
}

/// A node of a roll-out, as its operator knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetNode {
    /// Its id.
    pub id: u16,
    /// Its name; its id while that is unknown.
    pub name: String,
    /// Its model. Absent if it never answered.
    pub model: Option<String>,
    /// Version that it runs.
    pub running: Option<String>,
    /// How far it is, as in the state of a node that takes part.
    pub standing: Option<String>,
    /// Why, if there is more to say.
    pub why: Option<String>,
    /// Batch in which it is updated, from 1.
    pub batch: Option<usize>,
    /// Time since it was heard last, s. Absent if it was not heard since the daemon started.
    pub last_heard_s: Option<f64>,
}

/// Answer to `GET /v1/fleet/events`: the latest events of the roll-out that this node leads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetEvents {
    /// The events, the oldest first.
    pub events: Vec<FleetEvent>,
}

/// A change of a roll-out or of one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetEvent {
    /// Number of the event in its roll-out, from 1.
    pub number: u64,
    /// Time by the clock of the operator's node, s since 1970.
    pub unix_s: u64,
    /// Number of the roll-out.
    pub rollout: u64,
    /// Id of the node. Absent if the stage of the whole roll-out changed.
    pub node: Option<u16>,
    /// Name of the node.
    pub name: Option<String>,
    /// Stage of the roll-out, or how far the node is.
    pub state: String,
    /// Why, if there is more to say.
    pub why: Option<String>,
}
