//! `[radio]` and `[[port]]`: the ports of a node.

use super::radio::{PortConfig, RadioConfig};
use ncmesh_engine::name::{NODE_NAMES, is_node_name};
use ncmesh_engine::port::MAX_PORTS;
use ncmesh_engine::settings::{Declared, Mismatch, Section, Toml, Value};
use serde::Deserialize;
use std::fmt;

/// A port of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct PortEntry {
    /// Name, which no other port of the node has.
    pub name: String,
    /// Kind and settings.
    pub radio: RadioConfig,
    /// Where the settings stand.
    pub place: PortPlace,
}

/// Where the settings of a port stand in the file, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortPlace {
    /// In `[radio]`.
    Radio,
    /// In a `[[port]]`, counted from 0.
    Port(usize),
}

impl fmt::Display for PortPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Radio => "[radio]",
            Self::Port(_) => "[[port]]",
        })
    }
}

ncmesh_engine::settings! {
    /// Setting of `[[port]]` beside those of `[radio]`.
    struct PortNaming {
        /// Name of the port in `status`, `peers` and metrics. `ncmesh reload` knows the port by it.
        name: Option<String> = None, absent "`interface`", read port_name,
            allowed "1 to 63 of a-z, A-Z, 0-9, `.`, `_` and `-`, another one for each port";
    }
}

/// Reads the name of a port.
fn port_name(value: Toml) -> Result<Option<String>, Mismatch> {
    let name = String::from_toml(value)?;
    if is_node_name(&name) { Ok(Some(name)) } else { Err(Mismatch::Value(NODE_NAMES.into())) }
}

/// Returns what is declared of the settings of `[[port]]`.
pub(super) fn settings() -> Vec<Declared> {
    PortNaming::settings().into_iter().chain(RadioConfig::settings()).collect()
}

impl PortEntry {
    /// Returns the port of `[radio]`.
    fn of_radio(radio: RadioConfig) -> Self {
        Self { name: default_name(&radio), radio, place: PortPlace::Radio }
    }

    /// Reads a `[[port]]`.
    fn of_table(place: usize, table: &Toml) -> Result<Self, String> {
        let mut settings = table.as_table().cloned().ok_or("must be a table, [[port]]")?;
        let name = settings.remove_entry("name");
        let words = |e: toml::de::Error| e.message().trim_end().replace('\n', "; ");
        let PortNaming { name } = toml::Table::from_iter(name).try_into().map_err(words)?;
        let radio = RadioConfig::deserialize(settings).map_err(words)?;
        let name = name.unwrap_or_else(|| default_name(&radio));
        Ok(Self { name, radio, place: PortPlace::Port(place) })
    }

    /// Returns the settings of its interface; `None` for a radio of the channel emulator.
    #[must_use]
    pub fn port(&self) -> Option<&PortConfig> {
        match &self.radio {
            RadioConfig::Port(port) => Some(port),
            RadioConfig::Air(_) => None,
        }
    }

    /// Returns what keeps it from being a port beside an earlier one of the same node.
    fn conflict(&self, earlier: &Self) -> Option<String> {
        if self.name == earlier.name {
            let name = &self.name;
            return Some(format!("name = {name:?}: another port has it; give each its own name"));
        }
        let interface = &self.port()?.interface;
        let name = &earlier.name;
        (*interface == earlier.port()?.interface)
            .then(|| format!("interface = {interface:?}: the port {name} has it already"))
    }
}

/// Returns the name of a port that was given none.
fn default_name(radio: &RadioConfig) -> String {
    match radio {
        RadioConfig::Port(port) => port.interface.clone(),
        RadioConfig::Air(_) => "air".into(),
    }
}

/// A mistake in the ports of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrongPort {
    /// The `[[port]]` that it is in, counted from 0; `None` if there is none.
    pub(super) place: Option<usize>,
    /// The mistake, and what is allowed.
    pub(super) problem: String,
}

/// Returns the ports that a file names, at least one.
///
/// # Errors
/// The first mistake.
pub(super) fn read(
    radio: Option<RadioConfig>,
    port: Option<&Toml>,
) -> Result<Vec<PortEntry>, WrongPort> {
    let wrong = |place, problem: &str| WrongPort { place, problem: problem.to_owned() };
    let none = "no port: write [radio] with an interface, or a [[port]] for each of several";
    let entries = match (radio, port) {
        (Some(radio), None) => return Ok(vec![PortEntry::of_radio(radio)]),
        (None, None) => return Err(wrong(None, none)),
        (None, Some(Toml::Array(entries))) => entries,
        (None, Some(_)) => return Err(wrong(Some(0), "stands in double brackets: [[port]]")),
        (Some(_), Some(_)) => {
            let problem = "[radio] is short for the only port; make it a [[port]] beside this one";
            return Err(wrong(Some(0), problem));
        }
    };

    let mut ports: Vec<PortEntry> = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        if place == MAX_PORTS {
            return Err(wrong(Some(place), &format!("a node has at most {MAX_PORTS} ports")));
        }
        let port = PortEntry::of_table(place, entry).map_err(|e| wrong(Some(place), &e))?;
        if let Some(problem) = ports.iter().find_map(|earlier| port.conflict(earlier)) {
            return Err(wrong(Some(place), &problem));
        }
        ports.push(port);
    }
    if ports.is_empty() { Err(wrong(None, none)) } else { Ok(ports) }
}
