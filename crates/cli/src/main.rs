//! The `ncmesh` command.
fn main() {}
