//! `[inbox]`: where received files go, how much space they may take, and who may send them.

use super::value;
use ncmesh_wire::NodeId;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Days for which parts of files are kept whose source is gone, unless `keep_days` says otherwise.
const DEFAULT_KEEP_DAYS: u16 = 7;
/// Length of a day.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// `[inbox]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InboxSection {
    pub(super) dir: PathBuf,
    max_bytes: Option<Bytes>,
    reserve: Option<Bytes>,
    allow_from: Option<Vec<Sender>>,
    #[serde(default = "default_keep_days", deserialize_with = "keep_days")]
    keep_days: u16,
    #[serde(default, deserialize_with = "hook")]
    pub(super) hook: Vec<String>,
}

/// Limits on received files, whichever inbox they go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxLimits {
    /// Limits on space.
    pub space: SpaceLimits,
    /// Nodes whose files are taken. `None` for all.
    pub allow_from: Option<Vec<Sender>>,
    /// Time for which a part is kept without progress once its source is gone.
    pub keep: Duration,
}

/// Limits on the space that an inbox takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceLimits {
    /// Most bytes of all files in the inbox together, those under way included.
    pub max_bytes: Option<u64>,
    /// Bytes that stay free on the file system; `None` for a share of it.
    pub reserve: Option<u64>,
}

/// Name or id of a node that may send files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Sender {
    /// By its id.
    Id(u16),
    /// By its name, or its id in quotes.
    Name(String),
}

impl Default for InboxLimits {
    fn default() -> Self {
        Self {
            space: SpaceLimits { max_bytes: None, reserve: None },
            allow_from: None,
            keep: DAY * u32::from(DEFAULT_KEEP_DAYS),
        }
    }
}

impl From<&InboxSection> for InboxLimits {
    fn from(section: &InboxSection) -> Self {
        Self {
            space: SpaceLimits {
                max_bytes: section.max_bytes.map(|bytes| bytes.0),
                reserve: section.reserve.map(|bytes| bytes.0),
            },
            allow_from: section.allow_from.clone(),
            keep: DAY * u32::from(section.keep_days),
        }
    }
}

impl Sender {
    /// Returns whether this is the node with this id and, if it is known, this name.
    #[must_use]
    pub fn is(&self, node: NodeId, name: Option<&str>) -> bool {
        match self {
            Self::Id(id) => *id == node.0,
            Self::Name(given) => name == Some(given) || given.parse() == Ok(node.0),
        }
    }
}

/// Reads a program and its arguments.
fn hook<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    let has_program = words.first().is_some_and(|program| !program.is_empty());
    if has_program && !words.iter().any(|word| word.contains('\0')) {
        return Ok(words);
    }
    let allowed = "a program and its arguments, such as [\"/usr/local/bin/received\", \"--quiet\"]";
    Err(D::Error::custom(format!("hook: allowed are {allowed}")))
}

fn default_keep_days() -> u16 {
    DEFAULT_KEEP_DAYS
}

fn keep_days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    value::ranged(deserializer, "keep_days", 0..=3650)
}

/// Number of bytes: `64_000_000`, or text such as `"64M"`.
#[derive(Clone, Copy)]
struct Bytes(u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BytesReader)
    }
}

struct BytesReader;

impl Visitor<'_> for BytesReader {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes such as 500_000 or \"64M\"")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Bytes, E> {
        u64::try_from(number).map(Bytes).map_err(|_| self.refused(&number.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        let (number, unit) = match text.char_indices().next_back() {
            Some((at, 'k')) => (&text[..at], 1_000),
            Some((at, 'M')) => (&text[..at], 1_000_000),
            Some((at, 'G')) => (&text[..at], 1_000_000_000),
            Some((at, 'T')) => (&text[..at], 1_000_000_000_000),
            _ => (text, 1),
        };
        let bytes = number.trim().parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
        bytes.map(Bytes).ok_or_else(|| self.refused(text))
    }
}

impl BytesReader {
    fn refused<E: Error>(&self, given: &str) -> E {
        E::custom(format!(
            "invalid value: `{given}`: allowed are bytes such as 500_000, \"500k\", \"64M\", \"2G\""
        ))
    }
}
