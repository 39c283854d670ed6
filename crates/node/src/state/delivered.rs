//! The list of files received whole: one that is announced again is answered, not received again.

use crate::durable;
use crate::state::record::{from_hex, to_hex};
use ncmesh_proto::file::Manifest;
use ncmesh_wire::FlowId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// As many of the newest entries survive a restart.
const KEPT: usize = 4096;

/// A file that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// BLAKE3 of the file.
    pub hash: [u8; 32],
    /// Where it was put.
    pub path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Line {
    flow: String,
    hash: String,
    path: PathBuf,
}

/// The list, in memory and as one JSON object a line on disk.
#[derive(Debug)]
pub struct Delivered {
    file: File,
    known: BTreeMap<FlowId, Delivery>,
}

impl Delivered {
    /// Reads the list, without what is damaged and without the oldest beyond 4,096.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| parse(line).is_some()).collect();
        let kept = &lines[lines.len().saturating_sub(KEPT)..];
        let rewritten: String = kept.iter().map(|line| format!("{line}\n")).collect();
        if rewritten != text {
            durable::replace(path, rewritten.as_bytes())?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, known: kept.iter().filter_map(|line| parse(line)).collect() })
    }

    /// The announced file, if it was received under this flow.
    #[must_use]
    pub fn find(&self, manifest: &Manifest) -> Option<&Delivery> {
        self.known.get(&manifest.flow).filter(|known| known.hash == manifest.hash)
    }

    /// Where the file of `flow` was put.
    #[must_use]
    pub fn path(&self, flow: FlowId) -> Option<&Path> {
        self.known.get(&flow).map(|known| known.path.as_path())
    }

    /// Adds a file that was appended to the list on disk.
    pub fn learn(&mut self, flow: FlowId, delivery: Delivery) {
        self.known.insert(flow, delivery);
    }

    /// The list on disk, to append to on another thread.
    ///
    /// # Errors
    /// Where no further descriptor is to be had.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

/// Adds a line to the list on disk, durably.
///
/// # Errors
/// What writing gives.
pub(crate) fn append(mut list: &File, flow: FlowId, delivery: &Delivery) -> io::Result<()> {
    let path = delivery.path.clone();
    let line = Line { flow: flow.to_string(), hash: to_hex(&delivery.hash), path };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    list.write_all(&text)?;
    list.sync_data()
}

fn parse(line: &str) -> Option<(FlowId, Delivery)> {
    let line: Line = serde_json::from_str(line).ok()?;
    Some((line.flow.parse().ok()?, Delivery { hash: from_hex(&line.hash)?, path: line.path }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::NodeId;

    #[test]
    fn survives_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("delivered");
        let flow = |serial| FlowId { source: NodeId(1), serial };
        let delivery = Delivery { hash: [7; 32], path: "/inbox/a".into() };
        let list = Delivered::open(&path).unwrap();
        append(&list.file().unwrap(), flow(1), &delivery).unwrap();
        append(&list.file().unwrap(), flow(2), &delivery).unwrap();
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        let list = Delivered::open(&path).unwrap();
        assert_eq!(list.path(flow(1)), Some(Path::new("/inbox/a")));
        assert_eq!(list.path(flow(2)), None);
        append(&list.file().unwrap(), flow(3), &delivery).unwrap();
        assert!(Delivered::open(&path).unwrap().path(flow(3)).is_some());
    }
}
