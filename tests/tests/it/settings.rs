//! The files that are generated from the declarations of settings are up to date.

use ncmesh_tests::frames::root;
use ncmesh_tests::settings::{NODE_SCHEMA, PAGES, document, names, node};
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
fn the_schema_is_that_of_the_declarations() {
    let written = fs::read_to_string(root().join(NODE_SCHEMA)).unwrap();
    assert!(node() == written, "{NODE_SCHEMA} is not up to date: {REMEDY}");
}
