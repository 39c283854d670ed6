//! The `ncmesh` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ncmesh::main(&[])
}
