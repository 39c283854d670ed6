//! Writes what is generated from the declarations of settings: the tables of the reference, and the
//! JSON Schema of `node.toml`.
//!
//! ```console
//! cargo run -p ncmesh-tests --example settings
//! ```

use ncmesh_tests::frames::root;
use ncmesh_tests::settings::{NODE_SCHEMA, PAGES, document, node};
use std::fs;

fn main() -> std::io::Result<()> {
    for page in PAGES {
        let written = fs::read_to_string(root().join(page))?;
        fs::write(root().join(page), document(&written))?;
    }
    fs::write(root().join(NODE_SCHEMA), node())
}
