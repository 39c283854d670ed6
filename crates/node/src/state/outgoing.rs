//! The journal of files being sent: a source that was killed sends on under the same flow, so that receivers
//! keep what they have.

use super::record::{ManifestRecord, RecordError};
use crate::durable;
use ncmesh_engine::file::{Manifest, ReceiverState};
use ncmesh_wire::{FlowId, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest entry read, bytes: one with every node there can be as a receiver fits.
const LONGEST: u64 = 4 << 20;

/// A file being sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What was announced of it.
    pub manifest: Manifest,
    /// The engine that sends it.
    pub scheme: String,
    /// Who is to get it.
    pub receivers: Vec<NodeId>,
    /// How receivers ended so far.
    pub done: BTreeMap<NodeId, ReceiverState>,
    /// Whether others may join.
    pub open: bool,
}

#[derive(Serialize, Deserialize)]
struct Record {
    path: PathBuf,
    manifest: ManifestRecord,
    scheme: String,
    receivers: Vec<u16>,
    /// By receiver the code of its state.
    done: BTreeMap<u16, u8>,
    open: bool,
}

impl OutgoingFile {
    /// Reads an entry of the journal.
    ///
    /// # Errors
    /// [`RecordError`]: what is wrong with it.
    pub fn from_json(bytes: &[u8]) -> Result<Self, RecordError> {
        let record: Record =
            serde_json::from_slice(bytes).map_err(|e| RecordError::Json(e.to_string()))?;
        Ok(Self {
            manifest: Manifest::try_from(&record.manifest)?,
            path: record.path,
            scheme: record.scheme,
            receivers: record.receivers.into_iter().map(NodeId).collect(),
            done: record.done.into_iter().filter_map(final_state).collect(),
            open: record.open,
        })
    }

    /// This file's entry in the journal.
    ///
    /// # Errors
    /// A path that is no UTF-8.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        let record = Record {
            path: self.path.clone(),
            manifest: (&self.manifest).into(),
            scheme: self.scheme.clone(),
            receivers: self.receivers.iter().map(|node| node.0).collect(),
            done: self.done.iter().map(|(node, state)| (node.0, state.code())).collect(),
            open: self.open,
        };
        Ok(serde_json::to_vec_pretty(&record)?)
    }
}

fn final_state((node, code): (u16, u8)) -> Option<(NodeId, ReceiverState)> {
    let state = ReceiverState::from_code(code).filter(|state| state.is_final());
    state.map(|state| (NodeId(node), state))
}

/// One file per transfer in a directory.
#[derive(Clone, Debug)]
pub struct OutgoingJournal {
    dir: PathBuf,
    /// Held while it is changed: an update must not bring back what was removed.
    changes: Arc<Mutex<()>>,
}

impl OutgoingJournal {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, changes: Arc::default() }
    }

    /// Remembers a transfer, durably.
    ///
    /// # Errors
    /// What writing gives.
    pub fn save(&self, file: &OutgoingFile) -> io::Result<()> {
        durable::replace(&self.file(file.manifest.flow), &file.to_json()?)
    }

    /// Writes anew what is remembered of a transfer, durably, unless it was forgotten.
    ///
    /// # Errors
    /// What writing gives.
    pub fn update(&self, file: &OutgoingFile) -> io::Result<()> {
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.file(file.manifest.flow).exists() { self.save(file) } else { Ok(()) }
    }

    /// Forgets a transfer that ended.
    ///
    /// # Errors
    /// What removing gives.
    pub fn remove(&self, flow: FlowId) -> io::Result<()> {
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        durable::remove(&self.file(flow))
    }

    /// The transfers that had not ended. An entry that is damaged or cannot be read is logged and left where it is.
    ///
    /// # Errors
    /// What reading the directory gives.
    pub fn load(&self) -> io::Result<Vec<OutgoingFile>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match durable::read(&path, LONGEST).map(|bytes| OutgoingFile::from_json(&bytes)) {
                Ok(Ok(file)) => found.push(file),
                Ok(Err(e)) => tracing::warn!("{} is not resumed: {e}", path.display()),
                Err(e) => tracing::warn!("{} is not resumed: {e}", path.display()),
            }
        }
        Ok(found)
    }

    fn file(&self, flow: FlowId) -> PathBuf {
        self.dir.join(format!("{flow}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::file::{Geometry, Refusal};

    #[test]
    fn transfers_are_remembered_until_they_end() {
        let dir = tempfile::tempdir().unwrap();
        let journal = OutgoingJournal::new(dir.path().to_owned());
        let flow = FlowId { source: NodeId(2), serial: 7 };
        let geometry = Geometry::new(100_000, 32, 1400).unwrap();
        let manifest =
            Manifest { flow, name: "ü.bin".into(), geometry, root: [1; 32], hash: [2; 32] };
        let file = OutgoingFile {
            path: "/a/b".into(),
            manifest,
            scheme: "pacifier".into(),
            receivers: vec![NodeId(3)],
            done: BTreeMap::new(),
            open: true,
        };
        journal.save(&file).unwrap();
        let file = OutgoingFile {
            done: [(NodeId(4), ReceiverState::Refused(Refusal::NoInbox))].into(),
            ..file
        };
        journal.update(&file).unwrap();
        std::fs::write(dir.path().join("4-00000001.json"), "{\"path\":").unwrap();
        std::fs::create_dir(dir.path().join("5-00000001.json")).unwrap();
        assert_eq!(journal.load().unwrap(), std::slice::from_ref(&file));
        journal.remove(flow).unwrap();
        journal.update(&file).unwrap();
        journal.remove(flow).unwrap();
        assert_eq!(journal.load().unwrap(), []);
    }
}
