//! `[node] log`: the levels of the log, which `NCMESH_LOG` names too.

use ncmesh_engine::settings::{Kind, Mismatch, Toml, Value};
use ncmesh_engine::wording::did_you_mean;
use tracing::Level;

/// Names of the levels, the most severe first.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The names in a sentence.
pub(super) const ALLOWED: &str = "error, warn, info, debug or trace";

/// Level of the log, as a setting.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct LogLevel(pub(super) Level);

impl Value for LogLevel {
    const KINDS: &'static [Kind] = &[Kind::Text];
    const CHOICES: &'static [&'static str] = &LEVELS;

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let text = String::from_toml(value)?;
        level(&text).map(Self).map_err(|_| Mismatch::Choice(meant(&text)))
    }

    fn to_toml(&self) -> Option<Toml> {
        Some(self.0.as_str().to_lowercase().into())
    }
}

/// No level of the log has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?}: allowed is {ALLOWED}{}", meant(name))]
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

/// Returns a question about the level that was meant. Other programs have longer names for some,
/// such as `warning`.
fn meant(name: &str) -> String {
    let longer = LEVELS.into_iter().find(|level| name.to_lowercase().starts_with(level));
    did_you_mean(longer.unwrap_or(name), LEVELS)
}
