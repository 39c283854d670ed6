//! `ncmesh node`: runs the daemon.

use crate::args::NodeArgs;
use crate::failure::Failure;
use ncmesh_node::{NodeConfig, NodeError, daemon};
use std::io::{self, IsTerminal};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Runs the command. Returns when the daemon has ended.
pub(crate) fn run(args: &NodeArgs) -> Result<(), Failure> {
    // An invalid filter is ignored: a typing error in a variable must not keep a node down.
    let filter = std::env::var("NCMESH_LOG").ok().and_then(|text| text.parse().ok());
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // Otherwise an unwritable standard error would be reported there, which panics.
        .log_internal_errors(false)
        .with_filter(filter.unwrap_or_else(|| Targets::new().with_default(Level::INFO)));
    tracing_subscriber::registry().with(lines).init();

    let config = NodeConfig::read(&args.config).map_err(NodeError::from)?;
    Ok(daemon::run(&config)?)
}
