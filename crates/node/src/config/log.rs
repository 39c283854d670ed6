//! `[node] log`: the levels of the log, which `NCMESH_LOG` names too.

use ncmesh_engine::wording::did_you_mean;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use tracing::Level;

/// Names of the levels, the most severe first.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// No level of the log has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?}: allowed is error, warn, info, debug or trace{}", meant(name))]
pub struct UnknownLevel {
    name: String,
}

/// Returns the level of the log that has this name.
///
/// # Errors
/// [`UnknownLevel`], which asks whether a similar name was meant.
pub fn level(name: &str) -> Result<Level, UnknownLevel> {
    name.parse().map_err(|_| UnknownLevel { name: name.to_owned() })
}

pub(super) fn log<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
    let text = String::deserialize(deserializer)?;
    level(&text).map_err(|e| D::Error::custom(format!("log = {e}")))
}

/// Returns a question about the level that was meant. Other programs have longer names for some,
/// such as `warning`.
fn meant(name: &str) -> String {
    let longer = LEVELS.into_iter().find(|level| name.to_lowercase().starts_with(level));
    did_you_mean(longer.unwrap_or(name), LEVELS)
}
