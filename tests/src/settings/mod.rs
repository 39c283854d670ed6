//! Generates the tables of the reference, and the JSON Schemas of `node.toml` and of scenarios,
//! from the declarations of settings.
//!
//! `cargo run -p ncmesh-tests --example settings` writes them; a test compares them with the files.

mod markdown;
mod schema;

use ncmesh_engine::registry::AUTO;
use ncmesh_engine::settings::Declared;
use ncmesh_engines::registry;
use ncmesh_node::config::{RadioConfig, sections};

pub use markdown::document;
pub use schema::{node, scenario};

/// Pages with tables of settings or of the default schemes, relative to the root of the repository.
pub const PAGES: [&str; 4] = [
    "docs/guide/schemes.md",
    "docs/reference/configuration.md",
    "docs/reference/engines.md",
    "docs/reference/scenarios.md",
];
/// The JSON Schema of `node.toml`, relative to the root of the repository.
pub const NODE_SCHEMA: &str = "docs/reference/node.schema.json";
/// The JSON Schema of scenarios, relative to the root of the repository.
pub const SCENARIO_SCHEMA: &str = "docs/reference/scenario.schema.json";

/// A section of `node.toml`.
struct Section {
    name: &'static str,
    settings: Vec<Declared>,
}

/// Returns the names of the tables of the reference. `tree_flood` has the settings of
/// `etx_unicast`.
#[must_use]
pub fn names() -> Vec<String> {
    let tables = tables().into_iter().map(|table| table.name);
    tables.filter(|name| name != "tree_flood").chain([AUTO.to_owned()]).collect()
}

/// Table of the reference.
struct Table {
    name: String,
    /// Head of the first column.
    head: String,
    settings: Vec<Declared>,
}

/// Returns the tables of all sections, and those of scenarios.
fn tables() -> Vec<Table> {
    // A port has the settings of a radio, whose table tells them.
    let of_radio: Vec<&str> = RadioConfig::settings().iter().map(|setting| setting.key).collect();
    let is_own = |name: &str, key: &str| name != PORT || !of_radio.contains(&key);
    let sections = all().into_iter().map(|Section { name, settings }| Table {
        head: "setting".into(),
        name: name.to_owned(),
        settings: settings.into_iter().filter(|setting| is_own(name, setting.key)).collect(),
    });
    let of_scenarios = ncmesh_sim::scenario::sections().into_iter().map(|(name, settings)| Table {
        head: match name {
            "node" | "link" | "channel" => format!("key of `[[{name}]]`"),
            // These have headings of their own.
            "medium.propagation" | "medium.reception" => "key".into(),
            _ if name == "topology" || name.contains('.') => format!("key of `{name}`"),
            _ => "key".into(),
        },
        name: format!("scenario {name}").trim_end().to_owned(),
        settings,
    });
    sections.chain(of_scenarios).collect()
}

/// Section of `node.toml` that may stand there several times, as a list of tables.
const PORT: &str = "port";

/// Sections of `node.toml` that a scenario does not have among its protocols.
const DAEMON: [&str; 11] =
    ["node", "trust", "radio", PORT, "inbox", "fleet", "api", "web", "tunnel", "stream", "limits"];

/// Returns the sections of `[protocol]` of scenarios.
fn protocols() -> impl Iterator<Item = Section> {
    all().into_iter().filter(|section| !DAEMON.contains(&section.name))
}

/// Returns all sections of `node.toml`: those of the daemon, then those of the engines.
fn all() -> Vec<Section> {
    let own = sections().into_iter().map(|section| (section.name, section.settings));
    let engines = registry().entries().map(|entry| (entry.name, (entry.settings)()));
    own.chain(engines).map(|(name, settings)| Section { name, settings }).collect()
}
