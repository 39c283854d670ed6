//! Generates the tables of the reference and the JSON Schema of `node.toml` from the declarations
//! of settings.
//!
//! `cargo run -p ncmesh-tests --example settings` writes them; a test compares them with the files.

mod markdown;
mod schema;

use ncmesh_engine::settings::Declared;
use ncmesh_engines::REGISTRY;
use ncmesh_node::config::sections;

pub use markdown::document;
pub use schema::node;

/// Pages with tables of settings, relative to the root of the repository.
pub const PAGES: [&str; 3] =
    ["docs/reference/configuration.md", "docs/reference/engines.md", "docs/reference/scenarios.md"];
/// The JSON Schema of `node.toml`, relative to the root of the repository.
pub const NODE_SCHEMA: &str = "docs/reference/node.schema.json";

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
    tables.filter(|name| name != "tree_flood").collect()
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
    let sections = all().into_iter().map(|Section { name, settings }| Table {
        name: name.to_owned(),
        head: "setting".into(),
        settings,
    });
    let of_scenarios = ncmesh_sim::scenario::sections().into_iter().map(|(name, settings)| Table {
        name: format!("scenario {name}"),
        head: if name == "node" { "key of `[[node]]`".into() } else { "key".into() },
        settings,
    });
    sections.chain(of_scenarios).collect()
}

/// Returns all sections of `node.toml`: those of the daemon, then those of the engines.
fn all() -> Vec<Section> {
    let own = sections().into_iter().map(|section| (section.name, section.settings));
    let engines = REGISTRY.entries().map(|entry| (entry.name, (entry.settings)()));
    own.chain(engines).map(|(name, settings)| Section { name, settings }).collect()
}
