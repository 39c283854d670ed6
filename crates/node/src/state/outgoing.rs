//! The journal of files being sent: a source that was killed sends on under the same flow, so that receivers
//! keep what they have.

use super::record::{ManifestRecord, RecordError};
use crate::durable;
use ncmesh_proto::file::Manifest;
use ncmesh_wire::{FlowId, NodeId};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

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
    /// Whether others may join.
    pub open: bool,
}

#[derive(Serialize, Deserialize)]
struct Record {
    path: PathBuf,
    manifest: ManifestRecord,
    scheme: String,
    receivers: Vec<u16>,
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
            open: self.open,
        };
        Ok(serde_json::to_vec_pretty(&record)?)
    }
}

/// One file per transfer in a directory.
#[derive(Clone, Debug)]
pub struct OutgoingJournal {
    dir: PathBuf,
}

impl OutgoingJournal {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Remembers a transfer, durably.
    ///
    /// # Errors
    /// What writing gives.
    pub fn save(&self, file: &OutgoingFile) -> io::Result<()> {
        durable::replace(&self.file(file.manifest.flow), &file.to_json()?)
    }

    /// Forgets a transfer that ended.
    ///
    /// # Errors
    /// What removing gives.
    pub fn remove(&self, flow: FlowId) -> io::Result<()> {
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
    use ncmesh_proto::file::Geometry;

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
            open: true,
        };
        journal.save(&file).unwrap();
        std::fs::write(dir.path().join("4-00000001.json"), "{\"path\":").unwrap();
        std::fs::create_dir(dir.path().join("5-00000001.json")).unwrap();
        assert_eq!(journal.load().unwrap(), [file]);
        journal.remove(flow).unwrap();
        journal.remove(flow).unwrap();
        assert_eq!(journal.load().unwrap(), []);
    }
}
