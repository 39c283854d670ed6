//! Helpers that all readers of scenario files share: the text, places of values, names of nodes.

use super::error::Place;
use super::shipped;
use super::{Node, ScenarioError};
use flate2::read::MultiGzDecoder;
use ncmesh_engine::name::{NODE_NAMES, harmless, is_node_name};
use ncmesh_engine::text::decode;
use ncmesh_engine::wording::did_you_mean;
use ncmesh_medium::MAX_RADIOS;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};
use toml::{Spanned, Table};

/// Length of the longest file that is read, bytes. A loss matrix of 2,000 nodes fits.
const LONGEST_FILE: u64 = 64 << 20;

/// First bytes of files of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// First bytes of files of other programs that compress, and the names of these.
const COMPRESSED: [(&[u8], &str); 4] =
    [(b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip")];

/// Range of the times of flows and streams, s.
pub(super) const TIMES: std::ops::RangeInclusive<f64> = 0.0..=1e9;
/// Range of the length of their measurements, s.
pub(super) const MEASUREMENTS: std::ops::RangeInclusive<f64> = 0.001..=1e9;

/// Table that a scenario was read from. Overrides change it and read it again.
#[derive(Clone, Debug)]
pub(super) struct Original {
    pub(super) table: Table,
    pub(super) origin: String,
    pub(super) directory: PathBuf,
}

/// The scenario file that is being read: its text, its name in errors, and the directory of the
/// files it names.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) origin: &'a str,
    pub(super) directory: &'a Path,
}

impl Reader<'_> {
    /// Returns the place of `value` in the file.
    pub(super) fn place<T>(&self, value: &Spanned<T>) -> Place {
        Place::span(self.origin, self.text, Some(value.span()))
    }
}

/// Returns the text of a file, at most [`LONGEST_FILE`] bytes.
pub(super) fn text(path: &Path) -> Result<String, ScenarioError> {
    if let Some(text) = shipped::data(path) {
        return Ok(text.to_owned());
    }

    let name = || path.display().to_string();
    let failed = |source| ScenarioError::Read { path: name(), source: advised(path, source) };
    let read = |mut from: Box<dyn Read + '_>| {
        // One byte more than allowed tells a file that is too long without reading all of it.
        let mut bytes = Vec::new();
        from.as_mut().take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > LONGEST_FILE {
            return Err(ScenarioError::TooLong { path: name(), limit: LONGEST_FILE });
        }
        Ok(bytes)
    };

    // Traces often come compressed. Their first bytes tell, whatever the name.
    let mut bytes = read(Box::new(std::fs::File::open(path).map_err(failed)?))?;
    if bytes.starts_with(&GZIP) {
        bytes = read(Box::new(MultiGzDecoder::new(bytes.as_slice())))?;
    }

    let invalid = |problem: String| failed(Error::new(ErrorKind::InvalidData, problem));
    if let Some((_, program)) = COMPRESSED.iter().find(|(first, _)| bytes.starts_with(first)) {
        return Err(invalid(format!(
            "compressed by {program}: only gzip is read, unpack it first"
        )));
    }

    decode(bytes).map_err(|problem| invalid(problem.to_string()))
}

/// Returns an error that names the shipped scenarios, if one of them may have been meant.
fn advised(path: &Path, error: Error) -> Error {
    if error.kind() != ErrorKind::NotFound || path.components().count() != 1 {
        return error;
    }
    let names = shipped::names().collect::<Vec<_>>().join(", ");
    let given = path.with_extension("");
    let question = did_you_mean(&given.to_string_lossy(), shipped::names());
    let message = format!("no such file; scenarios that are built in: {names}{question}");
    Error::new(error.kind(), message)
}

/// Checks the name of a node and adds the node.
pub(super) fn add_node(
    nodes: &mut Vec<Node>,
    node: Node,
    place: Place,
) -> Result<(), ScenarioError> {
    check_name(&node.name, "node name", &place)?;
    if nodes.len() == MAX_RADIOS {
        return Err(ScenarioError::value(place, format!("more than {MAX_RADIOS} nodes")));
    }
    nodes.push(node);
    Ok(())
}

/// Checks the name of a node or scenario. `what` says in errors which of them it is.
pub(super) fn check_name(name: &str, what: &str, place: &Place) -> Result<(), ScenarioError> {
    if is_node_name(name) {
        return Ok(());
    }

    // A name may come from a foreign file, so control characters are not printed.
    let shown: String = harmless(name).chars().take(80).collect();
    let message = format!("{what} `{shown}`: must be {NODE_NAMES}");
    Err(ScenarioError::value(place.clone(), message))
}

/// Indices of nodes by name.
pub(super) type Index<'a> = BTreeMap<&'a str, usize>;

/// Returns the index of each node by its name.
pub(super) fn index_by_name<'a>(
    nodes: &'a [Node],
    origin: &str,
) -> Result<Index<'a>, ScenarioError> {
    let mut index = Index::new();
    for (at, node) in nodes.iter().enumerate() {
        if index.insert(&node.name, at).is_some() {
            let message = format!("two nodes are named `{}`: names must be unique", node.name);
            return Err(ScenarioError::value(Place::file(origin), message));
        }
    }
    Ok(index)
}

/// Returns the index of the node `name`. An error lists the first nodes that exist.
pub(super) fn find(index: &Index<'_>, name: &str, place: &Place) -> Result<usize, ScenarioError> {
    index.get(name).copied().ok_or_else(|| {
        // A name that no node can have is reported as such. Otherwise it is probably misspelled,
        // and a few existing names help.
        check_name(name, "node name", place).err().unwrap_or_else(|| {
            let some: Vec<_> = index.keys().take(8).copied().collect();
            let more = if index.len() > some.len() { ", ..." } else { "" };
            let question = did_you_mean(name, index.keys().copied());
            let message =
                format!("no node `{name}`: there are {}{more}{question}", some.join(", "));
            ScenarioError::value(place.clone(), message)
        })
    })
}
