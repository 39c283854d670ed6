//! Random meshes: radios on a square, held together by good links.

use crate::Error;
use crate::graph::Graph;
use ncmesh_engine::rng;
use ncmesh_medium::{ChannelConfig, LinkPower, LinksConfig, LossMatrix, LossyLink, RadioId, Sense};
use ncmesh_sim::SimulationConfig;
use ncmesh_sim::scenario::Scenario;
use ncmesh_wire::NodeId;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Distance at which a frame is received without fading, m: that of `scenarios/mesh.toml`.
const RANGE_M: f64 = 250.0;
/// Distance at which a frame is sensed without fading, m: that of `scenarios/mesh.toml`.
const SENSING_RANGE_M: f64 = 460.0;
/// Bit rate of all frames, Mbit/s.
const BIT_RATE_MBPS: u32 = 11;
/// Most times that nodes without a good link to the others are placed anew.
const MOST_DRAWS: usize = 10_000;

/// How a mesh is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    pub(crate) nodes: usize,
    /// Radios per square kilometre.
    pub(crate) density: f64,
    pub(crate) seed: u64,
    /// Changes of the scenario, as `Scenario::set` takes them.
    pub(crate) settings: Vec<String>,
}

/// A mesh of radios with positions.
pub(crate) struct Mesh {
    pub(crate) config: SimulationConfig,
    /// Positions, m.
    pub(crate) positions: Vec<[f64; 2]>,
    /// Loss of frames of the MTU on every link, without interference.
    pub(crate) loss: LossMatrix,
    /// For each node, the nodes within sensing range, itself included.
    pub(crate) senses: Vec<Vec<usize>>,
}

impl Mesh {
    /// Draws positions until all nodes are connected by good links. Only nodes outside the largest
    /// component are drawn anew, so that this ends at low densities too.
    pub(crate) fn draw(draw: &Draw) -> Result<Self, Error> {
        let side_m = 1_000.0 * (draw.nodes as f64 / draw.density).sqrt();
        let mut rng = rng::stream(draw.seed, NodeId(0), "control", "placement");
        let mut position = || [rng::unit(&mut rng) * side_m, rng::unit(&mut rng) * side_m];
        let mut positions: Vec<_> = (0..draw.nodes).map(|_| position()).collect();
        for _ in 0..MOST_DRAWS {
            let mut mesh = Self::at(positions, draw)?;
            let outside = mesh.outside();
            if outside.is_empty() {
                mesh.senses = sensed(&mesh.positions);
                return Ok(mesh);
            }
            positions = mesh.positions;
            outside.into_iter().for_each(|node| positions[node] = position());
        }
        Err(format!("no connected mesh in {MOST_DRAWS} draws: the density is too low").into())
    }

    /// Reads the nodes and links of a scenario. It is taken for true that a radio senses those from
    /// which it may receive something.
    pub(crate) fn load(path: &Path, settings: &[String]) -> Result<Self, Error> {
        let mut scenario = Scenario::load(path)?;
        for setting in settings {
            scenario.set(setting)?;
        }
        let config = SimulationConfig::from_scenario(&scenario)?;
        let loss = config.medium.expected_loss(config.mtu)?;
        let mut senses: Vec<Vec<usize>> = (0..loss.radios()).map(|node| vec![node]).collect();
        for link in loss.links().filter(|link| link.loss < 1.0) {
            senses[link.to.0].push(link.from.0);
        }
        Ok(Self { config, positions: Vec::new(), loss, senses })
    }

    fn at(positions: Vec<[f64; 2]>, draw: &Draw) -> Result<Self, Error> {
        let mut scenario = Scenario::parse(&scenario(&positions), "control", Path::new(""))?;
        scenario.set(&format!("seed={}", draw.seed))?;
        for setting in &draw.settings {
            scenario.set(setting)?;
        }
        let config = SimulationConfig::from_scenario(&scenario)?;
        let loss = config.medium.expected_loss(config.mtu)?;
        Ok(Self { config, positions, loss, senses: Vec::new() })
    }

    /// Returns the nodes outside the largest component of good links.
    fn outside(&self) -> Vec<usize> {
        let nodes = self.positions.len();
        let graph = Graph::new(&self.loss, &vec![true; nodes]);
        let mut open: Vec<usize> = (0..nodes).collect();
        let mut largest = Vec::new();
        while let Some(&first) = open.first() {
            let component = graph.component(first, None);
            open.retain(|&node| !component[node]);
            let size = |component: &[bool]| component.iter().filter(|&&member| member).count();
            if size(&component) > size(&largest) {
                largest = component;
            }
        }
        (0..nodes).filter(|&node| !largest[node]).collect()
    }

    /// Replaces the radios by links of the same losses, so that links can be changed while the
    /// simulation runs. Their power follows from their loss as under Rayleigh fading. A radio
    /// senses all others in sensing range; fading does not change that here.
    pub(crate) fn use_links(&mut self) {
        let others = |(me, list): (usize, &Vec<usize>)| {
            list.iter().filter(|&&other| other != me).map(|&other| RadioId(other)).collect()
        };
        self.config.medium.channel = ChannelConfig::Links(LinksConfig {
            loss: self.loss.clone(),
            sense: Sense::Listeners(self.senses.iter().enumerate().map(others).collect()),
            bursts: None,
            power: LinkPower::Rayleigh,
        });
    }

    /// Returns the parameters of the medium.
    pub(crate) fn parameters(&self) -> Value {
        let phy = &self.config.medium.phy;
        json!({
            "phy": "802.11b, long preamble, DCF",
            "bit_rate_bps": self.config.medium.bit_rate_bps,
            "preamble_ns": phy.preamble_ns,
            "mac_overhead_bytes": self.config.medium.mac_overhead_bytes,
            "path_loss": "two_ray",
            "fading": "rayleigh",
            "range_m": RANGE_M,
            "sensing_range_m": SENSING_RANGE_M,
            "reception": "threshold, 10 dB",
            "channel": match self.config.medium.channel {
                ChannelConfig::Links(_) => "links",
                ChannelConfig::Radio(_) => "radio",
            },
        })
    }

    /// Returns positions, links and which radios sense each other, for models of other protocols.
    pub(crate) fn to_json(&self) -> Value {
        let links = self.loss.links().filter(|link| link.loss < 0.99);
        let link = |link: LossyLink| json!([link.from.0, link.to.0, 1.0 - link.loss]);
        json!({
            "positions": self.positions,
            "links": links.map(link).collect::<Vec<_>>(),
            "senses": self.senses,
        })
    }
}

/// Returns the nodes within sensing range of each node, itself included.
fn sensed(positions: &[[f64; 2]]) -> Vec<Vec<usize>> {
    let near =
        |a: &[f64; 2], b: &[f64; 2]| libm::hypot(a[0] - b[0], a[1] - b[1]) <= SENSING_RANGE_M;
    let list = |a| (0..positions.len()).filter(|&b| near(a, &positions[b])).collect();
    positions.iter().map(list).collect()
}

/// Returns the scenario file: the medium of `scenarios/mesh.toml` at 11 Mbit/s, and no `[measure]`,
/// so that nodes measure their links themselves.
fn scenario(positions: &[[f64; 2]]) -> String {
    let mut text = format!(
        r#"
        name = "control"
        [medium]
        phy = "802.11b"
        bit_rate = "{BIT_RATE_MBPS}M"
        [medium.propagation]
        model = "two_ray"
        range_m = {RANGE_M}
        sensing_range_m = {SENSING_RANGE_M}
        fading = "rayleigh"
        [medium.reception]
        model = "threshold"
        sinr_db = 10
        "#
    );
    for (node, [x, y]) in positions.iter().enumerate() {
        let _ = write!(text, "\n[[node]]\nname = \"n{}\"\nx = {x:.3}\ny = {y:.3}\n", node + 1);
    }
    text
}
