//! Files that this node sends, and files that it receives into its inbox.
//!
//! A file being received is `.ncmesh/<flow>.part` in the inbox, at its full length from the start
//! but without blocks, with its [`journal`] beside it. Each generation claims its space as it
//! arrives. [`reception`] prepares and resumes it, [`delivery`] verifies and renames it, [`parts`]
//! collects what is left of files whose sources are gone. All are opened below the inbox only,
//! never through a symbolic link.

pub mod delivery;
pub mod journal;
mod made;
pub mod naming;
pub mod parts;
mod places;
mod placing;
pub mod reception;
pub(crate) mod space;

use crate::config::SpaceLimits;
use crate::tree::format::is_no_tree;
use journal::Journal;
use ncmesh_engine::file::merkle::Hash;
use ncmesh_engine::file::{GenerationSet, Manifest, Refusal};
use ncmesh_engine::storage::{Storage, StorageError};
use ncmesh_host::files::Obstacle;
use ncmesh_wire::FlowId;
use placing::Placed;
pub(crate) use placing::place_whole;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Open files of all transfers.
#[derive(Debug)]
pub struct FileStorage {
    outgoing: BTreeMap<FlowId, File>,
    incoming: BTreeMap<FlowId, Incoming>,
    /// Bytes that each inbox takes, as far as is known. The operator names the inboxes.
    used: BTreeMap<PathBuf, u64>,
    limits: SpaceLimits,
    /// Files sent that cannot be read for now, and why.
    unread: BTreeMap<FlowId, String>,
}

/// A file being received.
#[derive(Debug)]
pub struct Incoming {
    part: File,
    journal: Journal,
    inbox: PathBuf,
    /// Bytes that the inbox took when this was prepared.
    used: u64,
    /// If it is a tree: what is to be placed.
    tree: Option<Box<TreeParts>>,
}

/// Parts of a tree that is being received.
#[derive(Debug)]
struct TreeParts {
    manifest: Manifest,
    have: GenerationSet,
    /// How many generations were there at the last look.
    seen: u32,
    /// The files that were placed; away while somebody places more.
    placed: Option<Placed>,
}

/// A tree of which more is there than at the last look.
#[derive(Debug)]
pub(crate) struct Grown {
    pub inbox: PathBuf,
    pub manifest: Manifest,
    pub have: GenerationSet,
    pub placed: Placed,
}

impl FileStorage {
    /// Returns a storage without files, whose inboxes keep to `limits`.
    #[must_use]
    pub fn new(limits: SpaceLimits) -> Self {
        Self {
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            used: BTreeMap::new(),
            limits,
            unread: BTreeMap::new(),
        }
    }

    /// Keeps to other limits from now on.
    pub fn limit(&mut self, limits: SpaceLimits) {
        self.limits = limits;
    }

    /// Registers the file that is sent as `flow`.
    pub fn provide(&mut self, flow: FlowId, file: File) {
        self.outgoing.insert(flow, file);
    }

    /// Registers the part file and journal that are received as `flow`.
    pub fn receive(&mut self, flow: FlowId, incoming: Incoming) {
        self.used.insert(incoming.inbox.clone(), incoming.used);
        self.incoming.insert(flow, incoming);
    }

    /// Returns the trees of which more is there than at the last look. Give back what is placed
    /// ([`put_placed`](Self::put_placed)).
    pub(crate) fn take_grown(&mut self) -> Vec<Grown> {
        let grown = self.incoming.values_mut().filter_map(|incoming| {
            let tree = incoming.tree.as_mut().filter(|tree| tree.have.count() > tree.seen)?;
            let placed = tree.placed.take()?;
            tree.seen = tree.have.count();
            let inbox = incoming.inbox.clone();
            Some(Grown { inbox, manifest: tree.manifest.clone(), have: tree.have.clone(), placed })
        });
        grown.collect()
    }

    /// Keeps what of a tree is placed until its next look.
    pub(crate) fn put_placed(&mut self, flow: FlowId, placed: Placed) {
        let incoming = self.incoming.get_mut(&flow);
        if let Some(tree) = incoming.and_then(|incoming| incoming.tree.as_mut()) {
            tree.placed = Some(placed);
        }
    }

    /// Closes the files of `flow`.
    pub fn close(&mut self, flow: FlowId) {
        self.outgoing.remove(&flow);
        self.incoming.remove(&flow);
        self.unread.remove(&flow);
    }

    /// Returns the files that cannot be read for now, and why.
    pub fn unread(&self) -> impl Iterator<Item = (FlowId, &str)> {
        self.unread.iter().map(|(flow, why)| (*flow, why.as_str()))
    }
}

impl Storage for FileStorage {
    fn read(&mut self, flow: FlowId, offset: u64, data: &mut [u8]) -> Result<(), StorageError> {
        let file = self.outgoing.get(&flow).ok_or(StorageError::Unreadable)?;

        match file.read_exact_at(data, offset) {
            Ok(()) => {
                self.unread.remove(&flow);
                Ok(())
            }
            Err(e) => {
                tracing::warn!("{flow}: cannot read at {offset}: {e}");
                // The engine withdraws a file that cannot be read; a disk that is slow is waited
                // for.
                if !is_temporary(&e) {
                    return Err(StorageError::Unreadable);
                }

                self.unread.insert(flow, e.to_string());
                Err(StorageError::Busy)
            }
        }
    }

    fn write(
        &mut self,
        flow: FlowId,
        generation: u32,
        offset: u64,
        data: &[u8],
        hash: &Hash,
    ) -> Result<(), StorageError> {
        let incoming = self.incoming.get_mut(&flow).ok_or(StorageError::Unwritable)?;
        let used = self.used.entry(incoming.inbox.clone()).or_insert(incoming.used);

        // Checked for each generation, since other programs use the same disk.
        let written = space::check(&incoming.part, *used, data.len() as u64, &self.limits)
            .and_then(|()| incoming.part.write_all_at(data, offset))
            .and_then(|()| incoming.journal.append(generation, hash));

        // Counted even if it failed, because a part of it may be there.
        *used = used.saturating_add(data.len() as u64);
        if let (Ok(()), Some(tree)) = (&written, &mut incoming.tree) {
            tree.have.insert(generation);
        }
        written.map_err(|e| {
            tracing::warn!("{flow}: cannot write generation {generation}: {e}");
            if is_full(&e) { StorageError::NoSpace } else { StorageError::Unwritable }
        })
    }
}

fn is_full(e: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(e.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Returns whether what failed may succeed later without anybody's help to this node: no descriptor
/// or memory is left, or the disk or its network did not answer as it should.
pub(crate) fn is_temporary(e: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, ResourceBusy, TimedOut, WouldBlock};
    let codes = [Errno::MFILE, Errno::NFILE, Errno::IO, Errno::NOBUFS, Errno::STALE];
    let is_listed = |code| codes.iter().any(|errno| errno.raw_os_error() == code);
    matches!(e.kind(), Interrupted | OutOfMemory | ResourceBusy | TimedOut | WouldBlock)
        || e.raw_os_error().is_some_and(is_listed)
}

/// Returns what an error of the disk means for a file. A full disk is no reason to refuse a file of
/// which something `is_there`.
fn obstacle(e: &io::Error, is_there: bool) -> Obstacle {
    match e {
        e if is_temporary(e) || is_full(e) && is_there => Obstacle::Temporary(e.to_string()),
        e if is_full(e) => Obstacle::Refused(Refusal::NoSpace),
        e if is_no_tree(e) => Obstacle::Refused(Refusal::Corrupt),
        e if naming::is_refused(e) => Obstacle::Refused(Refusal::BadName),
        _ => Obstacle::Refused(Refusal::Unwritable),
    }
}

#[cfg(test)]
mod tests;
