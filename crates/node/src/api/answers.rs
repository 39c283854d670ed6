//! JSON types of answers that only one path of the API gives.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Answer to `GET /v1/paths/{node}`: the best path from this node to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// Answer to `POST /v1/reload`: what became of the settings that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
