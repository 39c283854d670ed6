//! Contents of a mesh: nodes, links, and the traffic over them.

use super::Count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Version of the schema. Since version 2, what is not known is absent or null, not zero. Since
/// version 3, links have ports. Since version 4, there are roll-outs. Readers refuse newer ones,
/// and those before [`OLDEST_SCHEMA`].
pub const SCHEMA: u32 = 4;

/// Oldest version of the schema that can be read.
pub const OLDEST_SCHEMA: u32 = 1;

/// Time between two ticks, s.
pub const TICK_S: f64 = 0.1;

/// Longest time between two keys, s.
pub const KEY_S: f64 = 5.0;

/// Contents of a mesh. A later one replaces it; its lists are the same and go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Version of the schema.
    pub schema: u32,
    /// Kind of mesh that the messages are from.
    pub source: Source,
    /// Version of ncmesh that made them.
    pub version: String,
    /// Name of the scenario; null if there is none.
    pub scenario: Option<String>,
    /// Seed of all random draws; null if there is none.
    pub seed: Option<Count>,
    /// Names of the schemes that carry traffic.
    pub schemes: Vec<String>,
    /// Bit rate of the radios, bit/s; null if it is not known.
    pub bit_rate_bps: Option<f64>,
    /// Time between two ticks, s.
    pub tick_s: f64,
    /// Longest time between two keys, s.
    pub key_s: f64,
    /// Node that tells, if the messages are what one node knows; null if they are the truth about
    /// all.
    pub observer: Option<u16>,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All directed links.
    pub links: Vec<Link>,
    /// All files being sent.
    pub transfers: Vec<Transfer>,
    /// All flows of packets through tunnels.
    pub flows: Vec<Flow>,
    /// All live streams.
    pub streams: Vec<Stream>,
    /// All roll-outs that the node that tells has led; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<Rollout>>", optional)]
    pub rollouts: Vec<Rollout>,
}

/// Kind of mesh that messages are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A run of the simulator, on its virtual clock.
    Simulation,
    /// A lab: real daemons, emulated channel.
    Lab,
    /// A daemon in a real mesh.
    Daemon,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Its id, not 0.
    pub id: u16,
    /// Its name. Any text: it must never be taken for HTML.
    pub name: String,
    /// Where it is; null if that is not known.
    pub position: Option<Position>,
}

/// Position of a node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Position {
    /// On a plan.
    Plan {
        /// East of an arbitrary origin, m.
        x: f64,
        /// North of it, m.
        y: f64,
        /// Above it, m.
        z: f64,
    },
    /// On the Earth (WGS 84).
    Earth {
        /// Degrees north of the equator, -90 to 90.
        latitude: f64,
        /// Degrees east of Greenwich, -180 to 180.
        longitude: f64,
    },
}

/// A directed link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Id of the node that sends.
    pub from: u16,
    /// Id of the node that hears it.
    pub to: u16,
    /// True share of the long frames that the channel loses, without collisions, 0 to 1; null if
    /// nobody knows.
    pub loss: Option<f64>,
    /// Names of the ports by which it is heard, or of the channels that it is on; absent if there
    /// is one only, or if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(as = "Option<Vec<String>>", optional)]
    pub ports: Vec<String>,
}

/// A file being sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Its id, as commands know it, such as `3-09ab12ff`.
    pub id: String,
    /// Name of the file. Any text.
    pub name: String,
    /// Name of the scheme.
    pub scheme: String,
    /// Id of the source.
    pub from: u16,
    /// Ids of the receivers.
    pub to: Vec<u16>,
    /// Size of the file, bytes.
    pub bytes: Count,
    /// Number of generations that the file is cut into; null if that is not known.
    pub generations: Option<u32>,
}

/// A flow of packets through a tunnel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Id of the node where it begins.
    pub from: u16,
    /// Id of the node where it ends.
    pub to: u16,
    /// Protocol of its packets, `udp` or `tcp`; null if that is not known.
    pub protocol: Option<String>,
    /// Rate that is offered, bit/s; null if it is as much as the tunnel takes, or not known.
    pub rate_bps: Option<f64>,
    /// Length of its packets, bytes; null if that is not known.
    pub packet_bytes: Option<u32>,
}

/// A live stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Group that it is sent to. Any text.
    pub group: String,
    /// Name of the scheme.
    pub scheme: String,
    /// Id of the source.
    pub from: u16,
    /// Its layers, the base first.
    pub layers: Vec<Layer>,
    /// Ids of the receivers that are known beforehand.
    pub to: Vec<u16>,
}

/// A layer of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Its name. Any text.
    pub name: String,
    /// Rate that its source offers, bit/s; null if that is not known.
    pub rate_bps: Option<f64>,
}

/// A roll-out of router images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// Its number.
    pub number: Count,
    /// Firmware that the release is of. Any text.
    pub name: String,
    /// Version of the release.
    pub version: String,
    /// Id of the node that leads it.
    pub from: u16,
}
