//! Generates tables for Wireshark and for the wire format from the declarations of frames, and
//! seeds for fuzzing from its golden vectors.
//!
//! `cargo run -p ncmesh-tests --example frames` writes them. A test compares the dissector and the
//! seeds with the files; the tables of the wire format are made where the site is built.

mod golden;
mod lua;
mod markdown;

use ncmesh_engines::registry;
use ncmesh_stack::summary::{Service, services};
use ncmesh_wire::layout::Layout;
use std::path::PathBuf;

pub use golden::{Body, golden, hex, seeds};
pub use lua::dissector;
pub use markdown::{document, marks};

/// The tables of the dissector, relative to the root of the repository.
pub const DISSECTOR: &str = "wireshark/ncmesh_frames.lua";
/// The wire format, relative to the root of the repository.
pub const DOCUMENT: &str = "docs/reference/wire-format.md";
/// The tables that the site puts into the wire format, relative to the root of the repository.
pub const TABLES: &str = "target/wire-format-tables.md";

/// Frames that fuzzing begins with, relative to the root of the repository.
pub const SEEDS: &str = "fuzz/seeds/stack";

/// Returns the root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Layouts that one or more services share, under the name of the first.
struct Family {
    name: &'static str,
    /// Id and name of each service.
    services: Vec<(u8, &'static str)>,
    layouts: &'static [Layout],
}

/// Returns the families of all services, in the order of their ids.
fn families() -> Vec<Family> {
    let mut all: Vec<_> = services(registry()).collect();
    all.sort_by_key(|service| service.id);
    let mut families: Vec<Family> = Vec::new();
    for Service { id, name, layouts } in all {
        match families.iter_mut().find(|family| std::ptr::eq(family.layouts, layouts)) {
            Some(family) => family.services.push((id.0, name)),
            None => families.push(Family { name, services: vec![(id.0, name)], layouts }),
        }
    }
    families
}

/// Returns whether two layouts describe the same frame, as those of schemes do that have some kinds
/// of frames in common. They need not be at the same address.
#[must_use]
pub fn are_alike(one: &Layout, other: &Layout) -> bool {
    one.kind == other.kind && one.name == other.name && format!("{one:?}") == format!("{other:?}")
}
