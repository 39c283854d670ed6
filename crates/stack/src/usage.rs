//! How much a node has used the channel.

use crate::{Stack, control};
use ncmesh_engine::time::Duration;
use ncmesh_engine::transmission::DATA;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Use of the channel by one node since it started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Data packets that the node sent.
    pub transmissions: u64,
    /// Time for which the frames of the node used the channel, control included, s.
    pub airtime_s: f64,
    /// Time for which the frames of each service used the channel, s, by its name: `file`,
    /// `tunnel`, `stream`.
    pub service_airtime_s: BTreeMap<String, f64>,
    /// Frames that measure links and carry link state, by kind: `hello`, `probe`, `compare`,
    /// `versions`, `request`. Link states travel behind hellos.
    pub control: BTreeMap<String, ControlUsage>,
}

/// Frames of control that a node has sent, of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ControlUsage {
    /// Number of frames.
    pub frames: u64,
    /// Bytes, outer frame included.
    pub bytes: u64,
    /// Time for which they used the channel, s.
    pub airtime_s: f64,
}

impl Stack {
    /// Returns this node's use of the channel.
    #[must_use]
    pub fn usage(&self) -> Usage {
        // Control has kinds of its own: only the engines' frames are data.
        let data = self.registry.entries().map(|entry| self.counters.sent(entry.id, DATA).frames);
        let control = control::LAYOUTS.iter().map(|layout| {
            let tally = self.counters.sent(control::SERVICE, layout.kind);
            let airtime = self.counters.airtime(control::SERVICE, layout.kind);
            let airtime_s = airtime.as_secs_f64();
            let usage = ControlUsage { frames: tally.frames, bytes: tally.bytes, airtime_s };
            (layout.name.to_owned(), usage)
        });

        // A service may have several engines: their airtime is summed.
        let mut service_airtime_s = BTreeMap::new();
        for entry in self.registry.entries() {
            let kinds = self.counters.all_sent().filter(|((id, _), _)| *id == entry.id);
            let airtime: Duration =
                kinds.map(|((id, kind), _)| self.counters.airtime(id, kind)).sum();
            *service_airtime_s.entry(entry.service().name().to_owned()).or_default() +=
                airtime.as_secs_f64();
        }

        let airtime: Duration = self.ports.iter().map(|port| port.egress.total()).sum();
        Usage {
            service_airtime_s,
            transmissions: data.sum(),
            airtime_s: airtime.as_secs_f64(),
            control: control.collect(),
        }
    }
}
