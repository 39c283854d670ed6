//! `ncmesh node`: runs the daemon.

use crate::args::NodeArgs;
use crate::failure::Failure;
use ncmesh_node::{NodeConfig, NodeError, daemon};
use std::io::{self, IsTerminal};
#[cfg(feature = "journal")]
use std::os::unix::fs::MetadataExt;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// Runs the command. Returns when the daemon has ended.
pub(crate) fn run(args: &NodeArgs) -> Result<(), Failure> {
    // An invalid filter is ignored: a typing error in a variable must not keep a node down.
    let variable: Option<Targets> =
        std::env::var("NCMESH_LOG").ok().and_then(|text| text.parse().ok());
    let at_level = |level: Level| Targets::new().with_default(level);
    let (filter, handle) =
        reload::Layer::new(variable.clone().unwrap_or_else(|| at_level(Level::INFO)));
    tracing_subscriber::registry().with(log(filter)).init();
    // This fails only without the subscriber, which stays until the process ends.
    let set_log = move |level| drop(handle.reload(at_level(level)));

    let config = NodeConfig::read(&args.config).map_err(NodeError::from)?;
    if variable.is_none() {
        set_log(config.log);
    }
    Ok(daemon::run(&config, set_log)?)
}

/// Returns what writes the log: lines on standard error, or entries with fields in systemd's
/// journal where that is what standard error is.
fn log(filter: reload::Layer<Targets, Registry>) -> Box<dyn Layer<Registry> + Send + Sync> {
    #[cfg(feature = "journal")]
    if is_journal()
        && let Ok(journal) = tracing_journald::layer()
    {
        return journal.with_filter(filter).boxed();
    }
    fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // Otherwise an unwritable standard error would be reported there, which panics.
        .log_internal_errors(false)
        .with_filter(filter)
        .boxed()
}

/// Returns whether standard error leads to systemd's journal: systemd says which socket does.
#[cfg(feature = "journal")]
fn is_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let own = std::fs::metadata("/dev/stderr");
    own.is_ok_and(|file| stream == format!("{}:{}", file.dev(), file.ino()))
}
