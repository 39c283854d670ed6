//! What is generated from the declarations of settings: tables of the reference, and the JSON
//! Schema of `node.toml`.
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
pub const PAGES: [&str; 2] = ["docs/reference/configuration.md", "docs/reference/engines.md"];
/// The JSON Schema of `node.toml`, relative to the root of the repository.
pub const NODE_SCHEMA: &str = "docs/reference/node.schema.json";

/// A section of `node.toml`.
struct Section {
    name: &'static str,
    settings: Vec<Declared>,
}

/// Returns the names of all sections with a table of their own. `tree_flood` has the settings of
/// `etx_unicast`.
#[must_use]
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|section| section.name).filter(|name| *name != "tree_flood").collect()
}

/// Returns all sections: those of the daemon, then those of the engines.
fn all() -> Vec<Section> {
    let own = sections().into_iter().map(|section| (section.name, section.settings));
    let engines = REGISTRY.entries().map(|entry| (entry.name, (entry.settings)()));
    own.chain(engines).map(|(name, settings)| Section { name, settings }).collect()
}
