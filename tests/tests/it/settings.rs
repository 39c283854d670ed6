//! The files that are generated from the declarations of settings are up to date.

use ncmesh_tests::frames::root;
use ncmesh_tests::settings::{
    NODE_SCHEMA, PAGES, SCENARIO_SCHEMA, document, names, node, scenario,
};
use std::fs;

const REMEDY: &str = "run `cargo run -p ncmesh-tests --example settings`";

#[test]
fn the_tables_of_the_reference_are_those_of_the_declarations() {
    let mut pages = String::new();
    for page in PAGES {
        let written = fs::read_to_string(root().join(page)).unwrap();
        assert!(document(&written) == written, "{page} is not up to date: {REMEDY}");
        pages += &written;
    }
    for name in names() {
        let marks = pages.matches(&format!("<!-- settings: {name} -->")).count();
        assert_eq!(marks, 1, "the reference has one table of [{name}]");
    }
}

#[test]
fn the_schemas_are_those_of_the_declarations() {
    for (file, schema) in [(NODE_SCHEMA, node()), (SCENARIO_SCHEMA, scenario())] {
        let written = fs::read_to_string(root().join(file)).unwrap();
        assert!(schema == written, "{file} is not up to date: {REMEDY}");
    }
}
