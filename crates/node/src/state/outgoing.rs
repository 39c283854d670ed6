//! Journal of files being sent.
//!
//! A source that was killed continues under the same flow after its restart, so that receivers keep
//! what they have.

use super::record::{ManifestRecord, RecordError};
use crate::root::Root;
use crate::store::is_temporary;
use ncmesh_engine::Background;
use ncmesh_engine::file::{Allowance, Manifest, ReceiverState};
use ncmesh_wire::{FlowId, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

/// Directory of the journal in the state directory.
const DIR: &str = "outgoing";
/// Extension of damaged entries.
const DAMAGED: &str = "damaged";
/// Length of the longest entry read, bytes: room for every possible node as a receiver.
const LONGEST: u64 = 4 << 20;

/// A file being sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The announcement.
    pub manifest: Manifest,
    /// Name of the scheme.
    pub scheme: String,
    /// Why this scheme. Absent in journals of older versions.
    pub scheme_reason: Option<String>,
    /// Receivers.
    pub receivers: Vec<NodeId>,
    /// Final states of receivers so far.
    pub done: BTreeMap<NodeId, ReceiverState>,
    /// Whether further receivers may join.
    pub open: bool,
    /// Airtime and rate that it may take.
    pub allowance: Allowance,
    /// Its turn among the files that wait: 0 to 9, the highest first.
    pub priority: u8,
}

/// Priority of a file that was given none.
pub const USUAL_PRIORITY: u8 = 5;

fn usual_priority() -> u8 {
    USUAL_PRIORITY
}

#[derive(Serialize, Deserialize)]
struct Record {
    path: PathBuf,
    manifest: ManifestRecord,
    scheme: String,
    #[serde(default)]
    scheme_reason: Option<String>,
    receivers: Vec<u16>,
    /// Receivers and the codes of their final states.
    done: BTreeMap<u16, u8>,
    open: bool,
    /// In percent.
    #[serde(default)]
    background: Option<u8>,
    #[serde(default)]
    limit_bps: Option<u64>,
    #[serde(default = "usual_priority")]
    priority: u8,
}

impl OutgoingFile {
    /// Parses an entry of the journal.
    ///
    /// # Errors
    /// [`RecordError`] if the entry is damaged.
    pub fn from_json(bytes: &[u8]) -> Result<Self, RecordError> {
        let record: Record =
            serde_json::from_slice(bytes).map_err(|e| RecordError::Json(e.to_string()))?;
        // A state that this release does not know is left out: its receiver is asked again.
        let done = record.done.iter().filter_map(|(node, code)| {
            let state = final_state(*code)?;
            Some((NodeId(*node), state))
        });

        Ok(Self {
            manifest: Manifest::try_from(&record.manifest)?,
            path: record.path,
            scheme: record.scheme,
            scheme_reason: record.scheme_reason,
            receivers: record.receivers.into_iter().map(NodeId).collect(),
            done: done.collect(),
            open: record.open,
            allowance: Allowance {
                background: record.background.and_then(Background::of),
                limit_bps: record.limit_bps,
            },
            priority: record.priority,
        })
    }

    /// Returns the journal's entry for this file.
    ///
    /// # Errors
    /// The path is not UTF-8.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        let record = Record {
            path: self.path.clone(),
            manifest: (&self.manifest).into(),
            scheme: self.scheme.clone(),
            scheme_reason: self.scheme_reason.clone(),
            receivers: self.receivers.iter().map(|node| node.0).collect(),
            done: self.done.iter().map(|(node, state)| (node.0, state.code())).collect(),
            open: self.open,
            background: self.allowance.background.map(Background::percent),
            limit_bps: self.allowance.limit_bps,
            priority: self.priority,
        };

        Ok(serde_json::to_vec_pretty(&record)?)
    }
}

fn final_state(code: u8) -> Option<ReceiverState> {
    ReceiverState::from_code(code).filter(|state| state.is_final())
}

/// The journal: a directory with one file for each transfer.
#[derive(Clone, Debug)]
pub struct OutgoingJournal {
    state: Arc<Root>,
    /// Lock for changes: an update must not restore an entry that was removed.
    changes: Arc<Mutex<()>>,
}

impl OutgoingJournal {
    /// Opens the journal in a state directory. Makes it if it is absent.
    pub(super) fn open(state: Arc<Root>) -> io::Result<Self> {
        state.make_dir(DIR)?;
        Ok(Self { state, changes: Arc::default() })
    }

    /// Saves a transfer and forces it to disk.
    ///
    /// # Errors
    /// The entry cannot be written.
    pub fn save(&self, file: &OutgoingFile) -> io::Result<()> {
        self.state.replace(entry(file.manifest.flow), &file.to_json()?)
    }

    /// Replaces a transfer's entry and forces it to disk, unless it was removed.
    ///
    /// # Errors
    /// The entry cannot be written.
    pub fn update(&self, file: &OutgoingFile) -> io::Result<()> {
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if self.state.has(entry(file.manifest.flow))? { self.save(file) } else { Ok(()) }
    }

    /// Removes the entry of a transfer that ended.
    ///
    /// # Errors
    /// The entry cannot be removed.
    pub fn remove(&self, flow: FlowId) -> io::Result<()> {
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.remove(entry(flow))
    }

    /// Returns the transfers that had not ended. Moves damaged entries aside, and names them at
    /// each start until somebody removes them.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn load(&self) -> io::Result<Left> {
        let mut left = Left::default();
        for name in self.state.names(DIR)? {
            // Only whole entries end so; a draft that a crash left is ignored.
            let path = Path::new(DIR).join(name);
            match path.extension().and_then(OsStr::to_str) {
                Some("json") => {}
                Some(DAMAGED) => {
                    left.damaged.insert(self.state.join(path));
                    continue;
                }
                _ => continue,
            }

            let read = self.state.read(&path, LONGEST);
            // A damaged entry must not keep the others from being resumed.
            match read.map(|bytes| OutgoingFile::from_json(&bytes)) {
                Ok(Ok(file)) => left.files.push(file),
                Ok(Err(e)) => drop(left.damaged.insert(self.move_aside(&path, &e))),
                // The disk or its network may answer at the next start, so the entry stays.
                Err(e) if is_temporary(&e) => {
                    let shown = self.state.join(&path);
                    tracing::warn!("{} is not resumed: {e}", shown.display());
                    left.damaged.insert(shown);
                }
                Err(e) => drop(left.damaged.insert(self.move_aside(&path, &e))),
            }
        }

        Ok(left)
    }

    /// Gives a damaged entry another name, under which no transfer overwrites or removes it.
    /// Returns its path.
    fn move_aside(&self, path: &Path, why: &dyn fmt::Display) -> PathBuf {
        let aside = path.with_extension(DAMAGED);
        let moved = self.state.rename_to_free(path, &aside);
        let shown = self.state.join(if moved.is_ok() { &aside } else { path });
        tracing::warn!("{} is not resumed: {why}", shown.display());
        shown
    }
}

/// Entries of the journal at a start.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Transfers that had not ended.
    pub files: Vec<OutgoingFile>,
    /// Paths of damaged entries.
    pub damaged: BTreeSet<PathBuf>,
}

/// Returns the place of a transfer's entry in the state directory.
fn entry(flow: FlowId) -> PathBuf {
    Path::new(DIR).join(format!("{flow}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::file::{Geometry, Refusal};

    #[test]
    fn transfers_are_remembered_until_they_end() {
        let dir = tempfile::tempdir().unwrap();
        let journal = OutgoingJournal::open(Arc::new(Root::open(dir.path()).unwrap())).unwrap();
        let flow = FlowId { source: NodeId(2), serial: 7 };
        let geometry = Geometry::new(100_000, 32, 1400).unwrap();
        let manifest =
            Manifest { flow, name: "ü.bin".into(), geometry, root: [1; 32], hash: [2; 32] };
        let file = OutgoingFile {
            path: "/a/b".into(),
            manifest,
            scheme: "pacifier".into(),
            scheme_reason: Some("as asked".into()),
            receivers: vec![NodeId(3)],
            done: BTreeMap::new(),
            open: true,
            allowance: Allowance { background: Background::of(10), limit_bps: Some(200_000) },
            priority: 5,
        };
        journal.save(&file).unwrap();
        let file = OutgoingFile {
            done: [(NodeId(4), ReceiverState::Refused(Refusal::NoInbox))].into(),
            ..file
        };
        journal.update(&file).unwrap();
        std::fs::write(dir.path().join("outgoing/4-00000001.json"), "{\"path\":").unwrap();
        std::fs::create_dir(dir.path().join("outgoing/5-00000001.json")).unwrap();
        // Damaged entries are named at every start, and are not lost.
        let aside = ["4-00000001.damaged", "5-00000001.damaged"];
        let damaged: BTreeSet<_> =
            aside.iter().map(|name| dir.path().join("outgoing").join(name)).collect();
        for _ in 0..2 {
            let left = journal.load().unwrap();
            assert_eq!(left, Left { files: vec![file.clone()], damaged: damaged.clone() });
        }
        let kept = dir.path().join("outgoing/4-00000001.damaged");
        assert_eq!(std::fs::read(kept).unwrap(), b"{\"path\":");
        journal.remove(flow).unwrap();
        journal.update(&file).unwrap();
        journal.remove(flow).unwrap();
        assert_eq!(journal.load().unwrap(), Left { files: vec![], damaged });
    }
}
