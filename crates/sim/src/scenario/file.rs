//! The tables of a scenario file, as serde reads them.
//!
//! The types mirror the keys of the file and know their defaults. They check names and types of
//! keys only; `read` checks the values. [`Spanned`] keeps the place of a value for errors.

use std::collections::BTreeMap;

use ncmesh_engine::settings::{Declared, Section};
use ncmesh_medium::MAX_FRAME_BYTES;
use serde::Deserialize;
use toml::Spanned;

use super::medium::Medium;
use super::mobility::FARTHEST_M;
use super::placement::{Grid, Uniform};
use super::quantity::{self, Quantity};
use super::stream::StreamTable;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default = "default_seed")]
    pub(super) seed: u64,
    #[serde(default = "yes")]
    pub(super) sealed: bool,
    pub(super) scheme: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) nodes: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) node: Vec<Node>,
    #[serde(default)]
    pub(super) topology: Topology,
    #[serde(default)]
    pub(super) link: Vec<Spanned<Link>>,
    pub(super) medium: Spanned<Medium>,
    pub(super) measure: Option<Measure>,
    pub(super) processing: Option<Processing>,
    pub(super) traffic: Option<Traffic>,
    #[serde(default)]
    pub(super) flow: Vec<Flow>,
    #[serde(default)]
    pub(super) stream: Vec<StreamTable>,
    #[serde(default)]
    pub(super) protocol: BTreeMap<String, toml::Table>,
}

fn yes() -> bool {
    true
}

fn default_seed() -> u64 {
    1
}

ncmesh_engine::settings! {
    /// A table `[[node]]`.
    pub(super) struct Node {
        /// Name of the node.
        pub(super) name: Spanned<String>, allowed "1 to 63 of letters, digits, `.`, `_`, `-`";
        /// Metres east of any origin. Both `x` and `y`, or none.
        pub(super) x: Option<f64> = None, within -FARTHEST_M..=FARTHEST_M, unit "m";
        /// Metres north of the origin.
        pub(super) y: Option<f64> = None, within -FARTHEST_M..=FARTHEST_M, unit "m";
        /// Metres up.
        pub(super) z: f64 = 0.0, within -FARTHEST_M..=FARTHEST_M, unit "m";
    }
}

/// The table `[topology]`. A scenario may have at most one of its keys; `step_s` belongs to those
/// of nodes that move.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topology {
    pub(super) matrix: Option<Spanned<String>>,
    pub(super) links: Option<Spanned<String>>,
    pub(super) netjson: Option<Spanned<String>>,
    pub(super) positions: Option<Spanned<String>>,
    pub(super) bonnmotion: Option<Spanned<String>>,
    pub(super) fcd: Option<Spanned<String>>,
    pub(super) ns2: Option<Spanned<String>>,
    pub(super) step_s: Option<Spanned<f64>>,
    pub(super) uniform: Option<Spanned<Uniform>>,
    pub(super) grid: Option<Spanned<Grid>>,
}

/// A table `[[link]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<String>,
    pub(super) loss: Option<f64>,
    pub(super) loss_back: Option<f64>,
    pub(super) rate: Option<Spanned<Rate>>,
    #[serde(default)]
    pub(super) wired: bool,
}

ncmesh_engine::settings! {
    /// The table `[measure]`: broadcast probes that measure all links before the run.
    #[derive(Clone, Copy)]
    pub(super) struct Measure {
        /// Length of the measurement.
        pub(super) seconds: f64, within 0.001..=1e9, at_least "period_s", unit "s";
        /// Time between two probes of a node.
        // Shorter periods would fill the channel with probes.
        pub(super) period_s: f64, within 0.001..=1e6, unit "s";
        /// Length of a probe.
        pub(super) bytes: usize, within 1..=MAX_FRAME_BYTES, unit "bytes";
    }
}

ncmesh_engine::settings! {
    /// The table `[processing]`: time that nodes spend on each received frame.
    #[derive(Clone, Copy)]
    pub(super) struct Processing {
        /// Shortest time.
        pub(super) least_s: f64 = 0.0, within 0..=1, at_most "most_s", unit "s";
        /// Longest time.
        pub(super) most_s: f64, within 0..=1, unit "s";
    }
}

/// The table `[traffic]`: a file transfer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Traffic {
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<Vec<Spanned<String>>>,
    pub(super) size: Option<Spanned<Size>>,
    pub(super) file: Option<String>,
}

/// A table `[[flow]]`: packets through a tunnel.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flow {
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<String>,
    pub(super) rate: Option<Spanned<Rate>>,
    pub(super) packet: Option<usize>,
    #[serde(default)]
    pub(super) protocol: Protocol,
    #[serde(default)]
    pub(super) start_s: f64,
    #[serde(default)]
    pub(super) warm_up_s: f64,
    #[serde(default = "default_seconds")]
    pub(super) seconds: f64,
    pub(super) congestion: Option<String>,
    pub(super) window: Option<Spanned<Size>>,
    pub(super) ack_delay_s: Option<f64>,
    pub(super) min_rto_s: Option<f64>,
    pub(super) size: Option<Spanned<Size>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    #[default]
    Udp,
    Tcp,
}

/// A measurement lasts a minute by default.
fn default_seconds() -> f64 {
    60.0
}

/// A bit rate, bit/s.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Rate(#[serde(deserialize_with = "quantity::bit_rate")] pub(super) Quantity);

/// A size, bytes.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Size(#[serde(deserialize_with = "quantity::size")] pub(super) Quantity);

/// Returns what is declared of the tables of a scenario, by the names of the tables.
#[must_use]
pub fn sections() -> Vec<(&'static str, Vec<Declared>)> {
    let own = [
        ("node", Node::settings()),
        ("measure", Measure::settings()),
        ("processing", Processing::settings()),
    ];
    own.into_iter().chain(super::medium::sections()).collect()
}
