//! Configuration of a simulation: the mesh, its medium and the settings of its nodes.

use super::{SimulationError, node_id};
use crate::measure::measure;
use crate::scenario::{Channel, FIRST_CHANNEL, Measure, Mobility, Processing, Scenario};
use ncmesh_engine::Port;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::port::MAX_PORTS;
use ncmesh_engine::rng;
use ncmesh_engine::settings::{Section, from_table};
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::{LinkState, Links, Topology};
use ncmesh_medium::{MediumConfig, MediumError};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_stack::share::ShareConfig;
use ncmesh_stack::trust::{FirstUse, Membership, TrustConfig, TrustMode};
use ncmesh_stack::{ConfigError, StackConfig};
use ncmesh_wire::identity::{Authority, Certificate, SecretKey, Subject, Validity};
use ncmesh_wire::prefix::Prefixes;
use ncmesh_wire::{Cipher, Key, Salt, Versions};
use rand_core::RngCore;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Binary logarithm of the milliseconds by which the epochs of two starts of a node differ. They
/// are 17 minutes, so that flows of one start are never taken for flows of the next.
const BETWEEN_STARTS: u32 = 20;

/// Configuration of a simulation. Node i of the mesh has radio i and id i + 1.
#[derive(Clone, Debug)]
pub struct SimulationConfig {
    /// Settings of the medium, with its seed.
    pub medium: MediumConfig,
    /// Nodes that have no port on that medium, but on another channel.
    pub absent: BTreeSet<usize>,
    /// Further channels. A node has a port on each channel that it is on, in this order.
    pub channels: Vec<Channel>,
    /// Names of the nodes, one for each radio.
    pub names: Vec<String>,
    /// Seed of everything except the medium.
    pub seed: u64,
    /// Length of the largest frame, bytes.
    pub mtu: usize,
    /// Settings of link measurement, section `link`.
    pub link: LinkConfig,
    /// Settings of routing, section `route`.
    pub route: RouteConfig,
    /// `[share]`.
    pub share: ShareConfig,
    /// Sections of the engines, by name.
    pub engines: toml::Table,
    /// Whether frames are encrypted. If not, a null cipher adds as many bytes.
    pub sealed: bool,
    /// How nodes trust each other.
    pub trust: TrustMode,
    /// Source of the nodes' knowledge about links.
    pub knowledge: Knowledge,
    /// Time that nodes spend on each received frame; none if absent.
    pub processing: Option<Processing>,
    /// How nodes move; they stay if absent.
    pub mobility: Option<Mobility>,
    /// Disorder of frames on their way from the medium to the nodes.
    pub disturbance: Disturbance,
    /// Ports that fail or come back, in the order of time.
    pub outages: Vec<Outage>,
    /// Whether to measure the time that the machine spends on each part.
    pub time_parts: bool,
}

/// A port that is cut off its channel, or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When it happens.
    pub at: Instant,
    /// Node that has the port.
    pub node: usize,
    /// The channel.
    pub channel: usize,
    /// Whether the port comes back.
    pub is_on: bool,
    /// Whether the node sees it at once, as the link state of a cable.
    pub is_seen: bool,
}

/// Source of the nodes' knowledge about links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Knowledge {
    /// Nodes measure their links and exchange link states.
    #[default]
    Own,
    /// Nodes know from the start what probes measured before the run, and measure nothing
    /// themselves (Pacifier, IV-A).
    Measured(Measure),
    /// Nodes know from the start the exact delivery of frames of the MTU without interference, and
    /// measure nothing themselves.
    Perfect,
}

/// Disorder that a real driver or network card may cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// Share of frames delivered twice.
    pub duplicate: f64,
    /// Share of frames delivered after the next frame for the same node.
    pub reorder: f64,
}

impl SimulationConfig {
    /// Returns the configuration of the mesh of `scenario`. The protocol sections are `link`,
    /// `route` and those of the engines. Settings that are absent have their defaults.
    ///
    /// # Errors
    /// [`SimulationError::Config`] names an invalid setting.
    pub fn from_scenario(scenario: &Scenario) -> Result<Self, SimulationError> {
        // Each engine checks its own section when a node is built.
        let mut engines = toml::Table::new();
        for (name, section) in &scenario.protocol {
            if !matches!(name.as_str(), "link" | "route" | "share") {
                engines.insert(name.clone(), toml::Value::Table(section.clone()));
            }
        }

        Ok(Self {
            medium: scenario.medium_config(),
            absent: scenario.absent.clone(),
            channels: scenario.channels.clone(),
            names: scenario.nodes.iter().map(|node| node.name.clone()).collect(),
            seed: scenario.seed,
            mtu: scenario.mtu,
            link: section(scenario, "link")?,
            route: section(scenario, "route")?,
            share: section(scenario, "share")?,
            engines,
            sealed: scenario.sealed,
            trust: scenario.trust,
            knowledge: scenario.measure.map_or(Knowledge::Own, Knowledge::Measured),
            processing: scenario.processing,
            mobility: scenario.mobility.clone(),
            disturbance: Disturbance::default(),
            outages: Vec::new(),
            time_parts: false,
        })
    }

    /// Returns the cipher of the mesh's frames. Its key is derived from the seed.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        if !self.sealed {
            return Cipher::Null;
        }
        Cipher::new(&Key::new(*blake3::hash(&self.seed.to_be_bytes()).as_bytes()))
    }

    /// Checks that the channels are those of one mesh.
    pub(super) fn check_channels(&self) -> Result<(), SimulationError> {
        let nodes = self.names.len();
        for (channel, radios) in self.channels.iter().map(|c| c.medium.radios()).enumerate() {
            if radios != nodes {
                let channel = channel + 1;
                return Err(SimulationError::Channel { channel, radios, nodes });
            }
        }

        if !self.channels.is_empty() && self.knowledge != Knowledge::Own {
            return Err(SimulationError::Unmeasured);
        }
        for node in 0..nodes {
            let further = self.channels.iter().filter(|channel| channel.nodes.contains(&node));
            let channels = further.count() + usize::from(!self.absent.contains(&node));
            if !(1..=MAX_PORTS).contains(&channels) {
                return Err(SimulationError::Ports { node, channels });
            }
        }
        Ok(())
    }

    /// Returns the settings of the medium of each channel, the first one included.
    pub fn media(&self) -> impl Iterator<Item = &MediumConfig> {
        core::iter::once(&self.medium).chain(self.channels.iter().map(|channel| &channel.medium))
    }

    /// Returns whether a node has a port on a channel: 0 for that of `[medium]`.
    #[must_use]
    pub fn is_on(&self, node: usize, channel: usize) -> bool {
        match channel.checked_sub(1) {
            Some(further) => self.channels[further].nodes.contains(&node),
            None => !self.absent.contains(&node),
        }
    }

    /// Returns the name of a channel; `None` if there is one only.
    #[must_use]
    pub fn channel_name(&self, channel: usize) -> Option<&str> {
        let named = |further: usize| self.channels[further].name.as_str();
        let name = channel.checked_sub(1).map_or(FIRST_CHANNEL, named);
        (!self.channels.is_empty()).then_some(name)
    }

    /// Returns the port that a node has on each channel, the first one included.
    pub(super) fn ports(&self, node: usize) -> Vec<Option<Port>> {
        let mut count = 0;
        let ports = (0..=self.channels.len()).map(|channel| {
            let is_on = self.is_on(node, channel);
            let port = Port::new(count).filter(|_| is_on);
            count += usize::from(is_on);
            port
        });
        ports.collect()
    }

    /// Returns the configuration of a node at its `starts`-th start, counted from 0. A restarted
    /// node has a new salt, a greater epoch and other random draws.
    pub(super) fn stack(&self, node: usize, starts: u64) -> StackConfig {
        let (salt, epoch) = self.start(node, starts);
        StackConfig {
            node: node_id(node),
            name: self.names[node].clone(),
            profile: Default::default(),
            salt,
            epoch,
            seed: self.seed.wrapping_add(starts << 32),
            mtu: self.mtu,
            versions: Versions::OWN,
            cipher: self.cipher(),
            trust: self.trust_of(node),
            link: self.link.clone(),
            route: self.route.clone(),
            share: self.share.clone(),
            engines: self.engines.clone(),
            file: FileLimits::default(),
        }
    }

    /// Returns the secret key of a node: derived from the seed, as everything is.
    #[must_use]
    pub fn identity(&self, node: usize) -> SecretKey {
        self.secret_key(&node_id(node).to_string())
    }

    /// Returns the key of the network whose certificates nodes have.
    #[must_use]
    pub fn network(&self) -> SecretKey {
        self.secret_key("network")
    }

    fn secret_key(&self, of: &str) -> SecretKey {
        let mut hasher = blake3::Hasher::new_derive_key("ncmesh simulation identity 1");
        hasher.update(&self.seed.to_be_bytes()).update(of.as_bytes());
        SecretKey::new(&(*hasher.finalize().as_bytes()).into())
    }

    /// Returns the certificate of a node. Its number is the node's id.
    #[must_use]
    pub fn certificate(&self, node: usize) -> Certificate {
        let id = node_id(node);
        let validity = Validity { serial: id.0.into(), issued: 0, expires: u64::MAX };
        let subject = Subject {
            node: id,
            key: self.identity(node).public(),
            name: self.names[node].clone(),
            prefixes: Prefixes::default(),
        };
        Certificate::issue(&self.network(), validity, subject)
    }

    fn trust_of(&self, node: usize) -> TrustConfig {
        let key = self.identity(node);
        match self.trust {
            TrustMode::Key => TrustConfig::Key,
            TrustMode::FirstUse => {
                TrustConfig::FirstUse(Box::new(FirstUse { key, pins: Vec::new() }))
            }
            TrustMode::Network => TrustConfig::Network(Box::new(Membership {
                key,
                certificate: self.certificate(node),
                authority: Authority::new([self.network().public()]),
                known: Vec::new(),
            })),
        }
    }

    /// Returns the salt and the epoch of a start as daemons make them: 128 random bits; and
    /// milliseconds that grow from start to start, with 16 random bits.
    fn start(&self, node: usize, starts: u64) -> (Salt, u64) {
        let mut rng = rng::stream(self.seed, node_id(node), "start", &starts.to_string());
        let epoch = (starts + 1) << (BETWEEN_STARTS + 16) | u64::from(rng.next_u32() & 0xFFFF);
        let mut salt = [0; 16];
        rng.fill_bytes(&mut salt);
        (Salt(salt), epoch)
    }

    /// Returns the topology that all nodes know from the start; `None` if they measure it.
    pub(super) fn known_beforehand(&self) -> Result<Option<Arc<Topology>>, MediumError> {
        let loss = match self.knowledge {
            Knowledge::Own => return Ok(None),
            Knowledge::Measured(how) => measure(&self.medium, how)?,
            Knowledge::Perfect => self.medium.expected_loss(self.mtu)?,
        };

        // Each node's link state says how well the node hears its neighbours.
        let mut hears = vec![Links::new(); self.names.len()];
        for link in loss.links() {
            hears[link.to.0].insert(node_id(link.from.0), 1.0 - link.loss);
        }

        let mut topology = Topology::new(self.route.min_delivery);
        for (i, (name, hears)) in self.names.iter().zip(hears).enumerate() {
            let state = LinkState {
                version: (0, 1),
                base: 1,
                name: name.clone(),
                hears,
                ..Default::default()
            };
            topology.learn(node_id(i), state);
        }

        Ok(Some(Arc::new(topology)))
    }
}

/// Returns the settings of a protocol section; their defaults if the section is absent.
fn section<T: Default + Section>(scenario: &Scenario, name: &str) -> Result<T, ConfigError> {
    let Some(table) = scenario.protocol.get(name) else { return Ok(T::default()) };
    from_table(table).map_err(|problem| ConfigError { section: name.to_owned(), problem })
}
