//! JSON types of answers that only one path of the API gives.

use serde::{Deserialize, Serialize};
use std::fmt;
use ts_rs::TS;

/// Answer to `GET /v1/paths/{node}`: the best path from this node to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Path {
    /// Id of the node that it leads to.
    pub id: u16,
    /// Name of that node.
    pub name: String,
    /// Expected number of transmissions along the path (ETX).
    pub etx: f64,
    /// The hops, the nearest first.
    pub hops: Vec<Hop>,
}

/// A hop of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Hop {
    /// Id of the node that the hop leads to.
    pub id: u16,
    /// Name of that node.
    pub name: String,
    /// Share of broadcasts that it receives of the node before it, 0 to 1.
    pub delivery: f64,
    /// Share of its broadcasts that the node before it receives, 0 to 1.
    pub delivery_back: f64,
    /// Expected number of transmissions of this hop, with the MAC's acknowledgment.
    pub etx: f64,
    /// Median of measured round trips from this node to the end of the hop, s. Absent if none was
    /// measured, or nothing came back.
    pub rtt_s: Option<f64>,
    /// Name of the port by which this node sends to it. Only of the first hop of a node with
    /// several ports: other nodes do not tell theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub port: Option<String>,
}

/// Body of `POST /v1/paths/{node}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct EchoRequest {
    /// Echo requests to each hop, 0 to 20.
    pub count: u8,
}

/// Body of `POST /v1/bandwidth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandwidthRequest {
    /// Receiver, by name or id.
    pub node: String,
    /// Time for which packets are sent, 0.1 to 60 s.
    pub seconds: f64,
    /// Length of each packet, bytes.
    pub bytes: usize,
    /// Rate at which packets are sent, bit/s. As fast as the scheme takes them if absent.
    #[serde(default)]
    pub rate_bps: Option<f64>,
}

/// Answer to `POST /v1/bandwidth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Id of the receiver.
    pub id: u16,
    /// Name of the receiver.
    pub name: String,
    /// Scheme that carried the packets.
    pub scheme: String,
    /// Time for which packets were sent, or in which they arrived if that is longer, s.
    pub seconds: f64,
    /// Length of each packet, bytes.
    pub bytes: usize,
    /// Packets that the scheme took.
    pub sent: u32,
    /// Packets that arrived.
    pub received: u32,
    /// Share of packets that did not arrive, 0 to 1.
    pub lost: f64,
    /// Rate at which bytes of packets arrived, bit/s.
    pub goodput_bps: f64,
}

/// Answer to `POST /v1/reload`: what became of the settings that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Reloaded {
    /// Settings that were changed.
    pub changed: Vec<String>,
    /// Settings and sections that hold from the next start on.
    pub restart: Vec<String>,
}

impl fmt::Display for Reloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changed, restart } = self;
        match (changed.is_empty(), restart.is_empty()) {
            (true, true) => f.write_str("nothing differs from the running configuration"),
            (false, true) => write!(f, "changed: {}", changed.join(", ")),
            (true, false) => write!(f, "holds after a restart: {}", restart.join(", ")),
            (false, false) => write!(
                f,
                "changed: {}; holds after a restart: {}",
                changed.join(", "),
                restart.join(", ")
            ),
        }
    }
}
