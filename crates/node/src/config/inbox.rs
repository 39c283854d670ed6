//! `[inbox]`: where received files go, how much space they may take, and who may send them.

use crate::store::naming::Naming;
use ncmesh_engine::path::expand;
use ncmesh_engine::settings::{Kind, Mismatch, Toml, Value};
use ncmesh_wire::NodeId;
use std::path::PathBuf;
use std::time::Duration;

/// Days for which parts of files are kept whose source is gone, unless `keep_days` says otherwise.
const DEFAULT_KEEP_DAYS: u16 = 7;
/// Length of a day.
const DAY: Duration = Duration::from_secs(24 * 3600);

ncmesh_engine::settings! {
    /// `[inbox]` as it is written.
    pub(super) struct InboxSection {
        /// Directory that received files go to; made if it is absent.
        pub(super) dir: PathBuf, allowed "a directory";
        /// Most bytes that the files in the inbox may take together, those under way included.
        max_bytes: Option<Bytes> = None, absent "no limit", allowed BYTES;
        /// Bytes that stay free on the inbox's file system.
        reserve: Option<Bytes> = None, allowed BYTES,
            absent "a twentieth of the file system, at most 16 MB";
        /// Nodes whose files are taken; those of others are refused. Any node with the network key
        /// can claim any id.
        allow_from: Option<Vec<Sender>> = None, absent "all nodes", read senders,
            allowed "a list of names and ids";
        /// Gives a file whose name the inbox's file system refuses another one: `_` for all but
        /// letters and digits of ASCII, `.`, `-` and spaces, at most 100 bytes. Without it, such a
        /// file is refused when it is announced.
        rename: bool = false;
        /// Days for which a part is kept without progress while its source is gone.
        keep_days: u16 = DEFAULT_KEEP_DAYS, within 0..=3650, unit "days";
        /// Program that is run after each received file, with its arguments, see below.
        pub(super) hook: Vec<String> = Vec::new(), read program,
            allowed "a list: a program and its arguments";
    }
}

/// Limits on received files, whichever inbox they go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxLimits {
    /// Limits on space.
    pub space: SpaceLimits,
    /// Names that files get.
    pub naming: Naming,
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
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
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
            naming: Naming::Announced,
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
            naming: if section.rename { Naming::Adapted } else { Naming::Announced },
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

/// Reads names and ids of nodes.
fn senders(value: Toml) -> Result<Option<Vec<Sender>>, Mismatch> {
    let allowed = || {
        let allowed = "a list of nodes' names and ids 1 to 65534, such as [\"barn\", 5]";
        Mismatch::Value(allowed.into())
    };

    // An id of 0 or 65535 is no node's, so it would allow no sender, without a word.
    let sender = |one: Toml| match one {
        Toml::String(name) => Some(Sender::Name(name)),
        Toml::Integer(id) => {
            let id = u16::try_from(id).ok().filter(|id| (1..u16::MAX).contains(id));
            id.map(Sender::Id)
        }
        _ => None,
    };

    let Toml::Array(list) = value else { return Err(allowed()) };
    let senders: Option<Vec<Sender>> = list.into_iter().map(sender).collect();
    senders.map(Some).ok_or_else(allowed)
}

/// Reads a program and its arguments.
pub(super) fn program(value: Toml) -> Result<Vec<String>, Mismatch> {
    let mut words = Vec::<String>::from_toml(value)?;
    // The arguments may be for a shell, which expands them itself.
    if let Some(program) = words.first_mut().filter(|program| program.contains('/')) {
        let expanded = expand(program).map_err(Mismatch::Problem)?;
        *program = expanded.to_string_lossy().into_owned();
    }
    let has_program = words.first().is_some_and(|program| !program.is_empty());
    if has_program && !words.iter().any(|word| word.contains('\0')) {
        return Ok(words);
    }
    let allowed = "a program and its arguments, such as [\"/usr/local/bin/received\", \"--quiet\"]";
    Err(Mismatch::Value(allowed.into()))
}

/// Number of bytes: `64_000_000`, or text such as `"64M"`.
#[derive(Clone, Copy)]
pub(super) struct Bytes(pub(super) u64);

/// Bytes that are allowed.
pub(super) const BYTES: &str = "bytes such as 500_000, \"500k\", \"64M\", \"2G\"";

impl Value for Bytes {
    const KINDS: &'static [Kind] = &[Kind::Whole, Kind::Text];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let bytes = match &value {
            Toml::Integer(number) => u64::try_from(*number).ok(),
            Toml::String(text) => bytes(text),
            _ => None,
        };
        bytes.map(Self).ok_or_else(|| Mismatch::Value(BYTES.into()))
    }

    fn to_toml(&self) -> Option<Toml> {
        self.0.to_toml()
    }
}

/// Returns the bytes that a text such as `64M` means.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 'k')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        Some((at, 'T')) => (&text[..at], 1_000_000_000_000),
        _ => (text, 1),
    };
    number.trim().parse::<u64>().ok()?.checked_mul(unit)
}
