//! Writes what is generated from the declarations of settings: the tables of the reference, and the
//! JSON Schemas of `node.toml` and of scenarios.
//!
//! ```console
//! cargo run -p ncmesh-tests --example settings
//! ```

use ncmesh_tests::frames::root;
use ncmesh_tests::settings::{NODE_SCHEMA, PAGES, SCENARIO_SCHEMA, document, node, scenario};
use std::fs;

fn main() -> std::io::Result<()> {
    for page in PAGES {
        let written = fs::read_to_string(root().join(page))?;
        fs::write(root().join(page), document(&written))?;
    }
    fs::write(root().join(NODE_SCHEMA), node())?;
    fs::write(root().join(SCENARIO_SCHEMA), scenario())
}
