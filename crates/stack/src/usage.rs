//! How much a node has used the channel.

use crate::Stack;
use ncmesh_engine::transmission::DATA;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Use of the channel by one node since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Data packets that the node sent.
    pub transmissions: u64,
    /// Time for which the frames of the node used the channel, control included, s.
    pub airtime_s: f64,
}

impl Stack {
    /// Returns this node's use of the channel.
    #[must_use]
    pub fn usage(&self) -> Usage {
        // Links and routes have kinds of their own: only the engines' frames are data.
        let data = self.registry.entries().map(|entry| self.counters.sent(entry.id, DATA).frames);
        Usage { transmissions: data.sum(), airtime_s: self.egress.total().as_secs_f64() }
    }
}
