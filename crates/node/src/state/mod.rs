//! What a daemon must not forget: its epoch, its peers' epochs, what it was sending, what it has received.

mod delivered;
mod outgoing;
mod record;

use crate::durable;
pub(crate) use delivered::append as append_delivery;
pub use delivered::{Delivered, Delivery};
use ncmesh_wire::NodeId;
pub use outgoing::{OutgoingFile, OutgoingJournal};
pub(crate) use record::to_hex;
pub use record::{ManifestRecord, RecordError};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another daemon has it.
    #[error(
        "{} is in use by another ncmesh daemon; stop that one, or give this node its own [node] state_dir",
        .0.display()
    )]
    InUse(PathBuf),
    /// It cannot be read or written.
    #[error("the state directory {dir} cannot be used: {1}; check [node] state_dir", dir = .0.display())]
    Io(PathBuf, io::Error),
}

/// A daemon's state directory, locked for as long as this lives.
#[derive(Debug)]
pub struct StateDir {
    dir: PathBuf,
    _lock: File,
}

impl StateDir {
    /// Opens `dir`, made if it is not there, for this process alone.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(dir: &Path) -> Result<Self, StateError> {
        let failed = |e| StateError::Io(dir.to_owned(), e);
        std::fs::create_dir_all(dir.join("outgoing")).map_err(failed)?;
        let lock = File::create(dir.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir: dir.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StateError::InUse(dir.to_owned())),
            Err(TryLockError::Error(e)) => Err(failed(e)),
        }
    }

    /// An epoch higher than any before, on disk before this returns: nonces of sealed frames contain it and
    /// must never repeat. Grows with the wall clock too, so that it also grows if the directory was lost.
    ///
    /// # Errors
    /// [`StateError::Io`] where it cannot be written; then nothing may be sent.
    pub fn next_epoch(&self) -> Result<u64, StateError> {
        let failed = |e| StateError::Io(self.dir.clone(), e);
        let last = std::fs::read_to_string(self.epoch_file()).unwrap_or_default();
        let last: u64 = last.trim().parse().unwrap_or(0);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let chance = getrandom::u32().map_err(|e| failed(e.into()))?;
        let clock = (since_1970.as_millis() as u64) << 16 | u64::from(chance & 0xFFFF);
        let epoch = clock.max(last + 1);
        self.save_epoch(epoch).map_err(failed)?;
        Ok(epoch)
    }

    /// Remembers that `epoch` is in use.
    ///
    /// # Errors
    /// What writing gives.
    pub fn save_epoch(&self, epoch: u64) -> io::Result<()> {
        durable::replace(&self.epoch_file(), format!("{epoch}\n").as_bytes())
    }

    /// The latest epochs heard of other nodes before this start; none where the file is missing or damaged.
    #[must_use]
    pub fn peer_epochs(&self) -> Vec<(NodeId, u64)> {
        let text = std::fs::read_to_string(self.dir.join("peers")).unwrap_or_default();
        let line = |line: &str| {
            let (node, epoch) = line.split_once(' ')?;
            Some((NodeId(node.parse().ok()?), epoch.parse().ok()?))
        };
        text.lines().filter_map(line).collect()
    }

    /// Remembers the latest epochs heard of other nodes.
    ///
    /// # Errors
    /// What writing gives.
    pub fn save_peer_epochs(&self, epochs: &BTreeMap<NodeId, u64>) -> io::Result<()> {
        let lines: String =
            epochs.iter().map(|(node, epoch)| format!("{node} {epoch}\n")).collect();
        durable::replace(&self.dir.join("peers"), lines.as_bytes())
    }

    /// The journal of files being sent.
    #[must_use]
    pub fn outgoing(&self) -> OutgoingJournal {
        OutgoingJournal::new(self.dir.join("outgoing"))
    }

    /// The list of files received.
    ///
    /// # Errors
    /// What reading or writing it gives.
    pub fn delivered(&self) -> Result<Delivered, StateError> {
        Delivered::open(&self.dir.join("delivered"))
            .map_err(|e| StateError::Io(self.dir.clone(), e))
    }

    fn epoch_file(&self) -> PathBuf {
        self.dir.join("epoch")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_grow_even_where_the_clock_went_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let first = state.next_epoch().unwrap();
        assert!(state.next_epoch().unwrap() > first);
        state.save_epoch(u64::MAX / 2).unwrap();
        assert_eq!(state.next_epoch().unwrap(), u64::MAX / 2 + 1);
    }

    #[test]
    fn a_second_daemon_is_told_so() {
        let dir = tempfile::tempdir().unwrap();
        let _first = StateDir::open(dir.path()).unwrap();
        let refused = StateDir::open(dir.path()).unwrap_err();
        assert!(matches!(refused, StateError::InUse(_)), "{refused}");
        assert!(refused.to_string().contains("state_dir"));
    }

    #[test]
    fn peers_are_remembered_and_damage_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        assert_eq!(state.peer_epochs(), []);
        state.save_peer_epochs(&BTreeMap::from([(NodeId(3), 9), (NodeId(4), 8)])).unwrap();
        assert_eq!(state.peer_epochs(), [(NodeId(3), 9), (NodeId(4), 8)]);
        std::fs::write(dir.path().join("peers"), "3 9\n4").unwrap();
        assert_eq!(state.peer_epochs(), [(NodeId(3), 9)]);
    }
}
