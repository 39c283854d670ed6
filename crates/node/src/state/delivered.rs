//! List of files that were received or cancelled here.
//!
//! If a listed file is announced again, the daemon answers without receiving it again.

use crate::root::Root;
use crate::state::record::{from_hex, to_hex};
use ncmesh_engine::file::Manifest;
use ncmesh_wire::FlowId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the list in the state directory.
const NAME: &str = "delivered";
/// Number of newest entries that are kept, in memory and over a restart.
pub(crate) const KEPT: usize = 4096;
/// Largest part of the list that is read, bytes, counted from its end: 4,096 entries with paths of
/// 4 KiB.
const LONGEST: u64 = 16 << 20;

/// Result of a reception: the file was received or cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// BLAKE3 hash of the file.
    pub hash: [u8; 32],
    /// Path of the file, or `None` if it was cancelled here.
    pub path: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    flow: String,
    hash: String,
    path: Option<PathBuf>,
}

/// The list, in memory and on disk with one JSON object on each line.
#[derive(Debug)]
pub struct Delivered {
    file: Arc<File>,
    /// At most [`KEPT`] entries.
    known: BTreeMap<FlowId, Delivery>,
    /// Their flows, oldest first.
    order: VecDeque<FlowId>,
}

impl Delivered {
    /// Reads the newest 4,096 entries of the list. Damaged lines are skipped.
    pub(super) fn open(state: &Root) -> io::Result<Self> {
        let found = tail(state)?;

        // A crash while appending leaves half a line at the end.
        let whole = |line: &&[u8]| Delivery::from_line(line).is_some();
        let lines: Vec<&[u8]> = found.split(|byte| *byte == b'\n').filter(whole).collect();
        // Bounded, or the list would grow for as long as the node lives.
        let kept = &lines[lines.len().saturating_sub(KEPT)..];
        let rewritten: Vec<u8> =
            kept.iter().flat_map(|line| line.iter().chain(b"\n")).copied().collect();
        // Written again only if something was dropped, so that most starts write nothing.
        if rewritten != found {
            state.replace(NAME, &rewritten)?;
        }

        let file = state.open_to_append(NAME)?;
        let file = Arc::new(file);
        let mut list = Self { file, known: BTreeMap::new(), order: VecDeque::new() };

        for (flow, delivery) in kept.iter().filter_map(|line| Delivery::from_line(line)) {
            list.learn(flow, delivery);
        }
        Ok(list)
    }

    /// Returns the entry of the announced file, if it was received or cancelled under this flow.
    #[must_use]
    pub fn find(&self, manifest: &Manifest) -> Option<&Delivery> {
        self.known.get(&manifest.flow).filter(|known| known.hash == manifest.hash)
    }

    /// Returns the path of the file that was received as `flow`.
    #[must_use]
    pub fn path(&self, flow: FlowId) -> Option<&Path> {
        self.known.get(&flow).and_then(|known| known.path.as_deref())
    }

    /// Adds an entry that was appended to the list on disk. The oldest one makes room.
    pub fn learn(&mut self, flow: FlowId, delivery: Delivery) {
        // An entry that is there keeps its place, so that the order stays that of the file.
        if self.known.insert(flow, delivery).is_none() {
            self.order.push_back(flow);
        }

        while self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.len().max(self.order.len())
    }

    /// Returns the list's file, for appending on another thread.
    #[must_use]
    pub fn file(&self) -> Arc<File> {
        self.file.clone()
    }
}

/// Appends an entry to the list on disk and forces it there.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn append(mut list: &File, flow: FlowId, delivery: &Delivery) -> io::Result<()> {
    list.write_all(&delivery.to_line(flow)?)?;
    list.sync_data()
}

/// Returns the end of the list on disk, as far as its entries are kept.
fn tail(state: &Root) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = match state.open_to_read(NAME) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(bytes),
        other => other?,
    };

    // Bounded, whatever others wrote into the file. The first line may be cut, and is skipped.
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
    file.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Delivery {
    /// Parses a line of the list. Returns `None` if it is damaged.
    #[must_use]
    pub fn from_line(line: &[u8]) -> Option<(FlowId, Self)> {
        let line: Line = serde_json::from_slice(line).ok()?;
        Some((line.flow.parse().ok()?, Self { hash: from_hex(&line.hash)?, path: line.path }))
    }

    /// Returns the line for `flow`, with its newline.
    ///
    /// # Errors
    /// The path is not UTF-8.
    pub fn to_line(&self, flow: FlowId) -> io::Result<Vec<u8>> {
        let path = self.path.clone();
        let line = Line { flow: flow.to_string(), hash: to_hex(&self.hash), path };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        Ok(text)
    }
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
        let delivery = Delivery { hash: [7; 32], path: Some("/inbox/a".into()) };
        let list = Delivered::open(&Root::open(dir.path()).unwrap()).unwrap();
        append(&list.file(), flow(1), &delivery).unwrap();
        append(&list.file(), flow(2), &delivery).unwrap();
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        let list = Delivered::open(&Root::open(dir.path()).unwrap()).unwrap();
        assert_eq!(list.path(flow(1)), Some(Path::new("/inbox/a")));
        assert_eq!(list.path(flow(2)), None);
        append(&list.file(), flow(3), &delivery).unwrap();
        assert!(Delivered::open(&Root::open(dir.path()).unwrap()).unwrap().path(flow(3)).is_some());
    }

    #[test]
    fn bytes_that_are_no_text_cost_their_line_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("delivered");
        let flow = |serial| FlowId { source: NodeId(1), serial };
        let delivery = Delivery { hash: [7; 32], path: Some("/inbox/a".into()) };
        let mut text = delivery.to_line(flow(1)).unwrap();
        text.extend_from_slice(b"\xFF\xFE\n");
        text.extend(delivery.to_line(flow(2)).unwrap());
        std::fs::write(&path, text).unwrap();
        for _ in 0..2 {
            let list = Delivered::open(&Root::open(dir.path()).unwrap()).unwrap();
            assert!(list.path(flow(1)).is_some() && list.path(flow(2)).is_some());
        }
    }

    #[test]
    fn only_the_end_of_a_list_too_long_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("delivered");
        let flow = FlowId { source: NodeId(1), serial: 1 };
        let delivery = Delivery { hash: [7; 32], path: Some("/inbox/a".into()) };
        let line = delivery.to_line(flow).unwrap();
        let file = File::create(&path).unwrap();
        file.set_len(64 << 20).unwrap();
        drop(file);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"\n").unwrap();
        file.write_all(&line).unwrap();
        assert!(Delivered::open(&Root::open(dir.path()).unwrap()).unwrap().path(flow).is_some());
        assert_eq!(std::fs::read(&path).unwrap(), line);
    }
}
