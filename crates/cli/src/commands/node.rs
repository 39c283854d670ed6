//! `ncmesh node`: runs the daemon.

use crate::args::NodeArgs;
use crate::failure::Failure;
use ncmesh_node::{NodeConfig, NodeError, daemon};
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// Runs the command. Returns when the daemon has ended.
pub(crate) fn run(args: &NodeArgs) -> Result<(), Failure> {
    // An invalid filter is ignored: a typing error in a variable must not keep a node down.
    let level = EnvFilter::try_from_env("NCMESH_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(level)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // Otherwise an unwritable standard error would be reported there, which panics.
        .log_internal_errors(false)
        .init();

    let config = NodeConfig::read(&args.config).map_err(NodeError::from)?;
    Ok(daemon::run(&config)?)
}
