//! The `ncmesh` command with three schemes of its own: `even` for files, `twice` for tunnels,
//! `ripple` for streams.
//!
//! All of its commands know them: `simulate --scheme even`, `lab`, `node`, `send`, `doctor`. A
//! scheme is one file, with its row in the registry at its end.

mod even;
mod ripple;
mod twice;

use std::process::ExitCode;

fn main() -> ExitCode {
    ncmesh::main(&[even::EVEN, twice::TWICE, ripple::RIPPLE])
}
