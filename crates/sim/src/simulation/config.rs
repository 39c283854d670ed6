//! What a simulation is built from.

use super::{SimulationError, node_id};
use crate::measure::measure;
use crate::scenario::{Measure, Scenario};
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::{LinkState, Topology};
use ncmesh_medium::{MediumConfig, MediumError};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_stack::{ConfigError, StackConfig};
use ncmesh_wire::{Cipher, Key};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a simulation is built from. Node i of the mesh has radio i and id i + 1.
#[derive(Clone, Debug)]
pub struct SimulationConfig {
    /// The ether, its seed included.
    pub medium: MediumConfig,
    /// The nodes' names, one per radio.
    pub names: Vec<String>,
    /// Seeds everything but the ether.
    pub seed: u64,
    /// The largest frame, bytes.
    pub mtu: usize,
    /// `[link]`.
    pub link: LinkConfig,
    /// `[route]`.
    pub route: RouteConfig,
    /// The engines' sections.
    pub engines: toml::Table,
    /// Frames are really encrypted; otherwise a null cipher of the same length stands in.
    pub sealed: bool,
    /// What nodes know of their links.
    pub knowledge: Knowledge,
    /// What happens to frames on their way from the medium to the nodes.
    pub disturbance: Disturbance,
}

/// What nodes know of their links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Knowledge {
    /// What they measure and tell each other themselves.
    #[default]
    Own,
    /// From the start and for ever what probes measured beforehand; they measure nothing (Pacifier, IV-A).
    Measured(Measure),
    /// From the start and for ever what frames of the MTU meet where nobody interferes.
    Perfect,
}

/// Disorder that a real driver or network card may cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// Share of frames delivered twice.
    pub duplicate: f64,
    /// Share of frames held back until after the next one of that node.
    pub reorder: f64,
}

impl SimulationConfig {
    /// The mesh of `scenario`. Its protocol sections are `link`, `route` and those of the engines; what else
    /// there is takes its default.
    ///
    /// # Errors
    /// [`SimulationError::Config`] names a setting that cannot be.
    pub fn from_scenario(scenario: &Scenario) -> Result<Self, SimulationError> {
        let mut engines = toml::Table::new();
        for (name, section) in &scenario.protocol {
            if !matches!(name.as_str(), "link" | "route") {
                engines.insert(name.clone(), toml::Value::Table(section.clone()));
            }
        }
        Ok(Self {
            medium: scenario.medium_config(),
            names: scenario.nodes.iter().map(|node| node.name.clone()).collect(),
            seed: scenario.seed,
            mtu: scenario.mtu,
            link: section(scenario, "link")?,
            route: section(scenario, "route")?,
            engines,
            sealed: scenario.sealed,
            knowledge: scenario.measure.map_or(Knowledge::Own, Knowledge::Measured),
            disturbance: Disturbance::default(),
        })
    }

    /// The cipher under which the mesh's frames travel; its key comes from the seed.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        if !self.sealed {
            return Cipher::Null;
        }
        Cipher::new(&Key::new(*blake3::hash(&self.seed.to_be_bytes()).as_bytes()))
    }

    /// What node `node` is built from at its `starts`-th start, from 0.
    pub(super) fn stack(&self, node: usize, starts: u64) -> StackConfig {
        StackConfig {
            node: node_id(node),
            name: self.names[node].clone(),
            epoch: starts + 1,
            seed: self.seed.wrapping_add(starts << 32),
            mtu: self.mtu,
            cipher: self.cipher(),
            link: self.link.clone(),
            route: self.route.clone(),
            engines: self.engines.clone(),
            file: FileLimits::default(),
        }
    }

    /// What all nodes know from the start, if anything.
    pub(super) fn known_beforehand(&self) -> Result<Option<Arc<Topology>>, MediumError> {
        let loss = match self.knowledge {
            Knowledge::Own => return Ok(None),
            Knowledge::Measured(how) => measure(&self.medium, how)?,
            Knowledge::Perfect => self.medium.expected_loss(self.mtu)?,
        };
        let mut hears = vec![BTreeMap::new(); self.names.len()];
        for (from, to, p) in loss.links() {
            hears[to.0].insert(node_id(from.0), 1.0 - p);
        }
        let mut topology = Topology::new(self.route.min_delivery);
        for (i, (name, hears)) in self.names.iter().zip(hears).enumerate() {
            let state = LinkState { version: (0, 1), name: name.clone(), hears };
            topology.learn(node_id(i), state, Instant::default());
        }
        Ok(Some(Arc::new(topology)))
    }
}

/// A protocol section of the scenario as the settings it stands for.
fn section<T: Default + DeserializeOwned>(
    scenario: &Scenario,
    name: &str,
) -> Result<T, ConfigError> {
    let Some(table) = scenario.protocol.get(name) else { return Ok(T::default()) };
    toml::Value::Table(table.clone()).try_into().map_err(|e: toml::de::Error| ConfigError {
        section: name.to_owned(),
        problem: e.message().to_owned(),
    })
}
