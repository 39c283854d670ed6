//! What all readers of scenario files share: the text being read, names of nodes, where a value stands.

use super::error::Place;
use super::{Node, ScenarioError};
use ncmesh_engine::name::{MAX_NODE_NAME, harmless, is_node_name};
use ncmesh_medium::MAX_RADIOS;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use toml::{Spanned, Table};

/// Longest file that is read, bytes: the loss matrix of 2,000 nodes fits.
const LONGEST_FILE: u64 = 64 << 20;

/// Range of the times of a flow, s.
pub(super) const TIMES: std::ops::RangeInclusive<f64> = 0.0..=1e9;

/// What a scenario was made from, to make it anew with other settings.
#[derive(Clone, Debug)]
pub(super) struct Original {
    pub(super) table: Table,
    pub(super) origin: String,
    pub(super) directory: PathBuf,
}

/// The file that is read.
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

/// Returns the text of a file.
pub(super) fn text(path: &Path) -> Result<String, ScenarioError> {
    let name = || path.display().to_string();
    let failed = |source| ScenarioError::Read { path: name(), source };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(ScenarioError::TooLong { path: name(), limit: LONGEST_FILE });
    }
    Ok(text)
}

/// Adds a node after checking its name.
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

/// Checks a name of a node or scenario.
pub(super) fn check_name(name: &str, what: &str, place: &Place) -> Result<(), ScenarioError> {
    if is_node_name(name) {
        return Ok(());
    }
    let shown: String = harmless(name).chars().take(80).collect();
    let message = format!(
        "{what} `{shown}`: must be 1 to {MAX_NODE_NAME} of letters, digits, `.`, `_` and `-`"
    );
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

/// Returns the index of the node `name`.
pub(super) fn find(index: &Index<'_>, name: &str, place: &Place) -> Result<usize, ScenarioError> {
    index.get(name).copied().ok_or_else(|| {
        check_name(name, "node name", place).err().unwrap_or_else(|| {
            let some: Vec<_> = index.keys().take(8).copied().collect();
            let more = if index.len() > some.len() { ", ..." } else { "" };
            let message = format!("no node `{name}`: there are {}{more}", some.join(", "));
            ScenarioError::value(place.clone(), message)
        })
    })
}
