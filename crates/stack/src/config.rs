//! Configuration of a node, and its errors.

use crate::link::LinkConfig;
use crate::route::RouteConfig;
use crate::share::ShareConfig;
use crate::trust::TrustConfig;
use ncmesh_engine::AnyEngine;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::name::{NODE_NAMES, is_node_name};
use ncmesh_engine::registry::{Registry, Settings};
use ncmesh_engine::settings::{Refused, Section};
use ncmesh_engine::topology::Profile;
use ncmesh_engine::wording::did_you_mean;
use ncmesh_wire::{Cipher, NodeId, Salt, Versions};
use std::ops::RangeInclusive;

/// Sizes of the largest frame that a radio may take, bytes. Announcements and acknowledgments need
/// some room; UDP over IPv4 carries no more than the upper end.
pub const MTUS: RangeInclusive<usize> = 256..=65_507;

/// Configuration of a node.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// Its id, unique in the mesh, 1 to 65534.
    pub node: NodeId,
    /// Its name, told to the others.
    pub name: String,
    /// Profile that it tells the other nodes.
    pub profile: Profile,
    /// Random number of this start of the node.
    pub salt: Salt,
    /// Number of this start of the node, greater than at any start before if possible.
    pub epoch: u64,
    /// Seed of the node's randomness, together with its id.
    pub seed: u64,
    /// Size of the largest frame that the radio takes, bytes.
    pub mtu: usize,
    /// Versions of the wire format that it understands: [`Versions::OWN`], except in tests of
    /// nodes that are of an earlier or later release.
    pub versions: Versions,
    /// How frames are sealed.
    pub cipher: Cipher,
    /// Whose link states are believed.
    pub trust: TrustConfig,
    /// `[link]`.
    pub link: LinkConfig,
    /// `[route]`.
    pub route: RouteConfig,
    /// `[share]`.
    pub share: ShareConfig,
    /// The engines' own sections, by engine name.
    pub engines: toml::Table,
    /// Bounds for engines that multicast files.
    pub file: FileLimits,
}

/// A setting with a value that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[{section}] {problem}")]
pub struct ConfigError {
    /// Section of the configuration.
    pub section: String,
    /// The defect, and what is allowed.
    pub problem: String,
}

impl ConfigError {
    fn in_section(section: &str) -> impl FnOnce(String) -> Self {
        let section = section.to_owned();
        move |problem| Self { section, problem }
    }
}

impl StackConfig {
    /// Checks all settings and builds one engine for each row of `registry`, in its order.
    ///
    /// # Errors
    /// [`ConfigError`] names the first setting that is wrong.
    pub(crate) fn build_engines(&self, registry: Registry) -> Result<Vec<AnyEngine>, ConfigError> {
        let error = ConfigError::in_section;
        self.check_node().map_err(error("node"))?;
        let of = |refused: Refused| refused.to_string();
        self.link.check().map_err(of).map_err(error("link"))?;
        self.route.check().map_err(of).map_err(error("route"))?;
        self.share.check().map_err(of).map_err(error("share"))?;

        // Announcements need room in a frame, and UDP carries no more than the upper end.
        if !MTUS.contains(&self.mtu) {
            let min = MTUS.start();
            let max = MTUS.end();
            let problem = format!("mtu = {}: allowed is {min} to {max} bytes", self.mtu);
            return Err(error("radio")(problem));
        }

        // Each engine gets its own section; a missing one means defaults.
        let mut engines = Vec::new();
        let none = toml::Table::new();
        for entry in registry.entries() {
            let section = match self.engines.get(entry.name) {
                None => &none,
                Some(value) => value
                    .as_table()
                    .ok_or("must be a section".to_owned())
                    .map_err(error(entry.name))?,
            };
            let settings = Settings { section, file: self.file };
            engines.push(entry.engine(&settings).map_err(error(entry.name))?);
        }

        // A section that belongs to no engine is a typing error, not something to pass over.
        if let Some(unknown) = self.engines.keys().find(|name| registry.entry(name).is_none()) {
            let known: Vec<&str> = registry.entries().map(|entry| entry.name).collect();
            let question = did_you_mean(unknown, known.iter().copied());
            let problem = format!("no such engine; there are: {}{question}", known.join(", "));
            return Err(error(unknown)(problem));
        }

        Ok(engines)
    }

    fn check_node(&self) -> Result<(), String> {
        let node = self.node;
        let name = &self.name;
        if node.0 == 0 || node.0 == u16::MAX {
            return Err(format!("id = {node}: allowed is 1 to 65534"));
        }
        if !is_node_name(name) {
            return Err(format!("name = {name:?}: allowed are {NODE_NAMES}"));
        }
        Ok(())
    }
}
