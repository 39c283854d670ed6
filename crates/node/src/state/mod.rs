//! State that should survive a restart: this node's epoch, files being sent, files received.

mod delivered;
mod outgoing;
mod record;
mod spool;

use crate::durable;
use crate::root::Root;
#[cfg(test)]
pub(crate) use delivered::KEPT as DELIVERIES_KEPT;
pub(crate) use delivered::append as append_delivery;
pub use delivered::{Delivered, Delivery};
use ncmesh_wire::FlowId;
pub use outgoing::{Left, OutgoingFile, OutgoingJournal, USUAL_PRIORITY};
pub(crate) use record::to_hex;
pub use record::{ManifestRecord, RecordError};
pub use spool::{Contents, Spool};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Length of the longest epoch file read, bytes: room for a number of 64 bits.
const LONGEST_EPOCH: u64 = 64;
/// Length of the longest list of inboxes read, bytes: room for all possible receptions with paths
/// of 4 KiB.
const LONGEST_INBOXES: u64 = 1 << 20;

/// Reason why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another daemon uses it.
    #[error(
        "{} is in use by another ncmesh daemon; \
         stop that one, or give this node its own [node] state_dir",
        .0.display()
    )]
    InUse(PathBuf),
    /// It cannot be read or written.
    #[error(
        "the state directory {dir} cannot be used: {1}; check [node] state_dir",
        dir = .0.display()
    )]
    Io(PathBuf, io::Error),
}

/// State directory of a daemon, locked until this is dropped.
#[derive(Debug)]
pub struct StateDir {
    dir: PathBuf,
    root: Arc<Root>,
    outgoing: OutgoingJournal,
    spool: Spool,
    _lock: File,
}

impl StateDir {
    /// Opens `dir` exclusively for this process. Makes it if it is absent.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(dir: &Path) -> Result<Self, StateError> {
        let failed = |e| StateError::Io(dir.to_owned(), e);
        let root = Arc::new(Root::make(dir).map_err(failed)?);
        let outgoing = OutgoingJournal::open(root.clone()).map_err(failed)?;
        let spool = Spool::open(root.clone()).map_err(failed)?;
        let lock = root.open_to_write("lock").map_err(failed)?;

        // Two daemons with one epoch and one journal would send in each other's name.
        match lock.try_lock() {
            Ok(()) => Ok(Self { dir: dir.to_owned(), root, outgoing, spool, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(StateError::InUse(dir.to_owned())),
            Err(TryLockError::Error(e)) => Err(failed(e)),
        }
    }

    /// Returns an epoch higher than any before.
    ///
    /// Epochs order what this node tells in different starts. They grow with the wall clock, so
    /// that they grow even if the directory was lost, and beyond the last one that was saved, so
    /// that they grow without a clock. A node that has neither learns from its neighbours.
    ///
    /// # Errors
    /// [`StateError::Io`] if the operating system has no random numbers.
    pub fn next_epoch(&self) -> Result<u64, StateError> {
        let file = self.epoch_file();
        let last = durable::read(&file, LONGEST_EPOCH).map(|bytes| (parse_epoch(&bytes), bytes));
        let last = match last {
            Ok((None, bytes)) if !bytes.is_empty() => {
                tracing::warn!("{} is damaged; the epoch is taken from the clock", file.display());
                None
            }
            Ok((last, _)) => last,
            Err(e) => {
                tracing::warn!("{} cannot be read: {e}; the clock is trusted", file.display());
                None
            }
        };

        // Milliseconds, and 16 random bits for two starts within one.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let chance = getrandom::u32().map_err(|e| StateError::Io(self.dir.clone(), e.into()))?;
        let clock = (since_1970.as_millis() as u64) << 16 | u64::from(chance & 0xFFFF);
        Ok(clock.max(last.map_or(0, |last| last + NEXT_EPOCH)))
    }

    /// Saves `epoch` as the one in use.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_epoch(&self, epoch: u64) -> io::Result<()> {
        durable::replace(&self.epoch_file(), format!("{epoch}\n").as_bytes())
    }

    /// Returns the directories of receptions that do not go to the configured inbox. Empty if the
    /// list is missing or damaged.
    #[must_use]
    pub fn inboxes(&self) -> BTreeMap<FlowId, PathBuf> {
        parse_inboxes(&self.read("inboxes", LONGEST_INBOXES))
    }

    /// Saves the directories of receptions that do not go to the configured inbox.
    ///
    /// # Errors
    /// The file cannot be written, or a path is not UTF-8.
    pub fn save_inboxes(&self, inboxes: &BTreeMap<FlowId, PathBuf>) -> io::Result<()> {
        let named: BTreeMap<String, &PathBuf> =
            inboxes.iter().map(|(flow, inbox)| (flow.to_string(), inbox)).collect();
        self.root.replace("inboxes", &serde_json::to_vec_pretty(&named)?)
    }

    /// Returns the contents that clients handed over.
    #[must_use]
    pub fn spool(&self) -> Spool {
        self.spool.clone()
    }

    /// Returns the journal of files being sent.
    #[must_use]
    pub fn outgoing(&self) -> OutgoingJournal {
        self.outgoing.clone()
    }

    /// Reads the list of received files.
    ///
    /// # Errors
    /// [`StateError::Io`] if it cannot be read or written.
    pub fn delivered(&self) -> Result<Delivered, StateError> {
        Delivered::open(&self.root).map_err(|e| StateError::Io(self.dir.clone(), e))
    }

    /// Reads a file that the daemon can do without. If it cannot be read, logs a warning and
    /// returns nothing.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Vec<u8> {
        self.try_read(name, limit).unwrap_or_else(|e| {
            tracing::warn!("{} cannot be read: {e}", self.root.join(name).display());
            Vec::new()
        })
    }

    /// Returns the contents of a file of the directory; nothing if there is none.
    pub(crate) fn try_read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.root.read(name, limit)
    }

    /// Replaces a file of the directory.
    pub(crate) fn replace(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        self.root.replace(name, contents)
    }

    fn epoch_file(&self) -> PathBuf {
        self.dir.join("epoch")
    }
}

/// Difference between an epoch and the least one after it. Flows are told apart by the bits above
/// the random ones.
const NEXT_EPOCH: u64 = 1 << 16;

/// Number that no epoch reaches before the year 2500. A member may have made the node believe that
/// the mesh knows it under a greater one; that must not outlive a restart.
const ABSURD_EPOCH: u64 = 1 << 60;

/// Parses the file with this node's epoch. Returns `None` if it is damaged, or holds an absurd
/// number.
#[must_use]
pub fn parse_epoch(bytes: &[u8]) -> Option<u64> {
    let epoch = std::str::from_utf8(bytes).ok()?.trim().parse().ok()?;
    (epoch < ABSURD_EPOCH).then_some(epoch)
}

/// Parses the list of inboxes. Damaged entries are skipped.
#[must_use]
pub fn parse_inboxes(bytes: &[u8]) -> BTreeMap<FlowId, PathBuf> {
    let named: BTreeMap<String, PathBuf> = serde_json::from_slice(bytes).unwrap_or_default();
    named.into_iter().filter_map(|(flow, inbox)| Some((flow.parse().ok()?, inbox))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::NodeId;

    #[test]
    fn inboxes_are_remembered_and_damage_is_survived() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let flow = FlowId { source: NodeId(3), serial: 9 };
        let inboxes = BTreeMap::from([(flow, PathBuf::from("/srv/in"))]);
        assert_eq!(state.inboxes(), BTreeMap::new());
        state.save_inboxes(&inboxes).unwrap();
        assert_eq!(state.inboxes(), inboxes);
        std::fs::write(dir.path().join("inboxes"), b"{\"3-0000").unwrap();
        assert_eq!(state.inboxes(), BTreeMap::new());
    }

    #[test]
    fn epochs_grow_even_where_the_clock_went_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let first = state.next_epoch().unwrap();
        state.save_epoch(first).unwrap();
        assert!(state.next_epoch().unwrap() >> 16 > first >> 16);
        state.save_epoch(ABSURD_EPOCH / 2).unwrap();
        assert_eq!(state.next_epoch().unwrap(), ABSURD_EPOCH / 2 + NEXT_EPOCH);
    }

    #[test]
    fn a_damaged_epoch_is_replaced_by_the_clock() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let absurd = [&b"18446744073709551615"[..], b"4611686018427387904"];
        for damaged in [&b""[..], b"\xFF", b"12x", b"-1"].into_iter().chain(absurd) {
            std::fs::write(dir.path().join("epoch"), damaged).unwrap();
            assert!(state.next_epoch().unwrap() < ABSURD_EPOCH);
        }
        std::fs::remove_file(dir.path().join("epoch")).unwrap();
        std::fs::create_dir(dir.path().join("epoch")).unwrap();
        assert!(state.next_epoch().unwrap() < u64::MAX / 2);
    }

    #[test]
    fn a_second_daemon_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let _first = StateDir::open(dir.path()).unwrap();
        let refused = StateDir::open(dir.path()).unwrap_err();
        assert!(matches!(refused, StateError::InUse(_)), "{refused}");
        assert!(refused.to_string().contains("state_dir"));
    }

    #[test]
    fn links_in_the_state_directory_lead_nowhere() {
        let beside = tempfile::tempdir().unwrap();
        let victim = beside.path().join("victim");
        std::fs::write(&victim, "3 9\n").unwrap();
        let names = ["epoch", "inboxes", "delivered", "lock"];
        for name in names.iter().flat_map(|name| [(*name).to_owned(), format!("{name}.new")]) {
            let dir = tempfile::tempdir().unwrap();
            std::os::unix::fs::symlink(&victim, dir.path().join(&name)).unwrap();
            if let Ok(state) = StateDir::open(dir.path()) {
                let _ = state.next_epoch();
                let _ = state.save_inboxes(&BTreeMap::new());
                let _ = state.delivered();
            }
            assert_eq!(std::fs::read(&victim).unwrap(), b"3 9\n", "{name} was written");
        }
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(beside.path(), dir.path().join("outgoing")).unwrap();
        assert!(StateDir::open(dir.path()).is_err());
    }
}
