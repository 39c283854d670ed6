//! Directories that were made in an inbox for [trees](crate::tree), by a list beside the parts.
//!
//! By that list a restart finds the directory of a tree again, and [`space`](super::space) knows that
//! what is in it came through the mesh.

use super::naming::{name_in, names};
use super::places::DIR;
use crate::root::Root;
use crate::tree::format::check_path;
use ncmesh_engine::file::Manifest;
use ncmesh_wire::FlowId;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// List of the directories that were made for trees, among the parts.
const LIST: &str = "trees";
/// Longest list that is read, bytes.
const MAX_LIST: u64 = 1 << 20;
/// A directory that was made for a tree, as the list has it.
struct Made {
    /// The transfer, until it has ended.
    flow: Option<FlowId>,
    name: String,
}

/// Returns the directory of a tree. Makes one with the first free name if there is none.
pub(super) fn claim(inbox: &Root, manifest: &Manifest) -> io::Result<PathBuf> {
    let flow = manifest.flow;
    let mut list = read_list(inbox)?;
    let own = list.iter().find(|made| made.flow == Some(flow));
    // One that its user took away is made anew.
    if let Some(made) = own
        && inbox.has_dir(&made.name)?
    {
        return Ok(made.name.clone().into());
    }

    for name in names(&name_in(inbox, DIR, manifest.file_name())?) {
        match inbox.make_new_dir(&name) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            made => {
                made?;
                list.retain(|made| made.flow != Some(flow));
                let text = name.to_string_lossy().into_owned();
                list.push(Made { flow: Some(flow), name: text });
                write_list(inbox, &list)?;
                return Ok(name);
            }
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "every name is taken"))
}

/// Notes that a transfer has ended: a later one of the same id has nothing to do with its
/// directory.
pub(super) fn release(inbox: &Root, flow: FlowId) -> io::Result<()> {
    let mut list = read_list(inbox)?;
    let Some(own) = list.iter_mut().find(|made| made.flow == Some(flow)) else { return Ok(()) };
    own.flow = None;
    write_list(inbox, &list)
}

/// Returns the directories that were made for trees.
pub(super) fn directories(inbox: &Root) -> io::Result<Vec<String>> {
    Ok(read_list(inbox)?.into_iter().map(|made| made.name).collect())
}

/// Reads the list: a line for each directory, with its transfer or `-`, and its name.
fn read_list(inbox: &Root) -> io::Result<Vec<Made>> {
    if !inbox.has(DIR)? {
        return Ok(Vec::new());
    }
    let text = inbox.read(Path::new(DIR).join(LIST), MAX_LIST)?;
    let text = String::from_utf8_lossy(&text);
    let made = text.lines().filter_map(|line| {
        let (flow, name) = line.split_once(' ')?;
        // A damaged line must not lead out of the inbox.
        check_path(name).ok()?;
        Some(Made { flow: flow.parse().ok(), name: name.to_owned() })
    });
    Ok(made.collect())
}

/// Writes the list, without directories that are gone.
fn write_list(inbox: &Root, list: &[Made]) -> io::Result<()> {
    let mut text = String::new();
    for made in list {
        if inbox.has_dir(&made.name)? {
            let flow = made.flow.map_or_else(|| "-".into(), |flow| flow.to_string());
            text += &format!("{flow} {}\n", made.name);
        }
    }
    inbox.replace(Path::new(DIR).join(LIST), text.as_bytes())
}
