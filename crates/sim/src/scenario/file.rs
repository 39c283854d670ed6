//! The scenario file as it is written: shapes only, no meaning yet.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::quantity::{self, Quantity};

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default = "first_seed")]
    pub(super) seed: u64,
    #[serde(default)]
    pub(super) nodes: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) node: Vec<Node>,
    #[serde(default)]
    pub(super) topology: Topology,
    #[serde(default)]
    pub(super) link: Vec<Spanned<Link>>,
    pub(super) medium: Spanned<Medium>,
    pub(super) traffic: Option<Traffic>,
    #[serde(default)]
    pub(super) protocol: BTreeMap<String, toml::Table>,
}

fn first_seed() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub(super) name: Spanned<String>,
    pub(super) x: Option<f64>,
    pub(super) y: Option<f64>,
    #[serde(default)]
    pub(super) z: f64,
}

/// At most one of these.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Topology {
    pub(super) matrix: Option<Spanned<String>>,
    pub(super) links: Option<Spanned<String>>,
    pub(super) netjson: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) loss: f64,
    pub(super) loss_back: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Medium {
    pub(super) phy: PhyName,
    #[serde(deserialize_with = "quantity::bit_rate")]
    pub(super) bit_rate: Quantity,
    #[serde(default)]
    pub(super) sense: SenseName,
    pub(super) retry_limit: Option<u32>,
    pub(super) mac_overhead_bytes: Option<usize>,
    pub(super) mtu: Option<Spanned<usize>>,
    pub(super) cw_min: Option<u32>,
    pub(super) cw_max: Option<u32>,
    #[serde(default)]
    pub(super) overhear_unicast: bool,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) enum PhyName {
    #[serde(rename = "802.11b")]
    Dot11b,
    #[serde(rename = "802.11a")]
    Dot11a,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SenseName {
    #[default]
    Audible,
    Everyone,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Traffic {
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<Vec<Spanned<String>>>,
    pub(super) size: Option<Spanned<Size>>,
    pub(super) file: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct Size(#[serde(deserialize_with = "quantity::size")] pub(super) Quantity);
