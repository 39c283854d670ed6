//! `ncmesh node`: runs the daemon.

use crate::args::NodeArgs;
use crate::failure::{Failure, Kind};
use ncmesh_node::config::level;
use ncmesh_node::{NodeConfig, NodeError, daemon};
use std::io::{self, IsTerminal};
#[cfg(feature = "journal")]
use std::os::unix::fs::MetadataExt;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// Runs the command. Returns when the daemon has ended.
pub(crate) fn run(args: &NodeArgs) -> Result<(), Failure> {
    // A typing error in a variable must not keep a node down, so that the log says what is wrong.
    let variable = std::env::var("NCMESH_LOG").ok().map(|text| filter(&text)).transpose();
    let (variable, problem) = match variable {
        Ok(variable) => (variable, None),
        Err(problem) => (None, Some(problem)),
    };

    let at_level = |level: Level| Targets::new().with_default(level);

    // The configuration may set another level later. The variable, if given, keeps precedence.
    let (filter, handle) =
        reload::Layer::new(variable.clone().unwrap_or_else(|| at_level(Level::INFO)));
    tracing_subscriber::registry().with(log(filter)).init();

    // This fails only without the subscriber, which stays until the process ends.
    let set_log = move |level| drop(handle.reload(at_level(level)));

    if let Some(problem) = problem {
        tracing::error!("{}", problem.message());
    }
    let config = NodeConfig::read(&args.config).map_err(NodeError::from)?;
    if variable.is_none() {
        set_log(config.log);
    }
    Ok(daemon::run(&config, set_log)?)
}

/// Returns the filter that a text describes: a level, levels of targets, or both, with commas.
fn filter(text: &str) -> Result<Targets, Failure> {
    // `Targets` takes every other word for a target, and then logs nothing else.
    let words = text.split(',').filter(|directive| !directive.contains('='));
    for word in words.filter(|word| !is_target(word) && word.parse::<LevelFilter>().is_err()) {
        level(word)
            .map_err(|e| unusable(&format!("{e} (a target needs a level: {word}=debug)")))?;
    }
    text.parse().map_err(|e: ParseError| unusable(&e.to_string()))
}

fn unusable(problem: &str) -> Failure {
    Failure::new(Kind::Usage, format!("NCMESH_LOG is ignored: {problem}"))
}

/// Returns whether a word without a level can only be one of our targets.
fn is_target(word: &str) -> bool {
    word.starts_with("ncmesh")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_are_told_apart_from_typing_errors() {
        for text in ["warn", "WARN", "off", "warn,ncmesh_stack=trace", "ncmesh_node", "hyper=debug"]
        {
            assert_eq!(filter(text).unwrap(), text.parse().unwrap(), "{text}");
        }
        for (text, words) in [
            ("warning", "did you mean `warn`?"),
            ("dbug", "did you mean `debug`?"),
            ("info,wran", "did you mean `warn`?"),
            ("loud", "\"loud\": allowed is error, warn, info, debug or trace (a target needs"),
            ("hyper=loud", "level"),
        ] {
            let problem = filter(text).unwrap_err();
            assert!(problem.message().contains(words), "{problem:?}");
        }
        assert!(filter("ncmesh_stack=debug").unwrap().would_enable("ncmesh_stack", &Level::DEBUG));
    }
}
