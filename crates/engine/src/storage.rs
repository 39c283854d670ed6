//! Storage backend for files: a file system in the daemon, memory in the simulator and in tests.
//!
//! Engines read generations of files they send and write generations of files they receive. The
//! driver decides where the files are.

use crate::file::merkle::{self, Hash};
use crate::file::{GenerationSet, Geometry};
use ncmesh_wire::FlowId;
use std::collections::BTreeMap;

/// Reason why a generation could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The file is gone or cannot be read.
    #[error("the file cannot be read any more")]
    Unreadable,
    /// The file cannot be read for now: the disk does not answer as it should.
    #[error("the file cannot be read for now")]
    Busy,
    /// No space left.
    #[error("no space is left")]
    NoSpace,
    /// The directory or the file cannot be written.
    #[error("the place cannot be written")]
    Unwritable,
}

/// Access to the files that this node sends and receives.
pub trait Storage {
    /// Fills `data` with the bytes at `offset` of a file that this node sends.
    ///
    /// # Errors
    /// [`StorageError::Unreadable`] if the file is gone, or shorter than it was;
    /// [`StorageError::Busy`] if it may be readable later.
    fn read(&mut self, flow: FlowId, offset: u64, data: &mut [u8]) -> Result<(), StorageError>;

    /// Writes a complete and verified generation at its `offset`. After a restart, `hash` tells
    /// whether the generation has reached the disk.
    ///
    /// # Errors
    /// [`StorageError::NoSpace`] or [`StorageError::Unwritable`].
    fn write(
        &mut self,
        flow: FlowId,
        generation: u32,
        offset: u64,
        data: &[u8],
        hash: &Hash,
    ) -> Result<(), StorageError>;
}

/// Storage in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    outgoing: BTreeMap<FlowId, Vec<u8>>,
    incoming: BTreeMap<FlowId, Vec<u8>>,
    written: BTreeMap<FlowId, BTreeMap<u32, Hash>>,
}

impl MemoryStorage {
    /// Sets the contents of a file that is to be sent.
    pub fn provide(&mut self, flow: FlowId, contents: Vec<u8>) {
        self.outgoing.insert(flow, contents);
    }

    /// Returns the bytes of a file that were received so far.
    #[must_use]
    pub fn received(&self, flow: FlowId) -> &[u8] {
        self.incoming.get(&flow).map_or(&[], Vec::as_slice)
    }

    /// Returns the numbers of the generations of a file that were written, unchecked.
    pub fn written_generations(&self, flow: FlowId) -> impl Iterator<Item = u32> + '_ {
        self.written.get(&flow).into_iter().flatten().map(|(generation, _)| *generation)
    }

    /// Returns the generations of a file that were written, each checked against its hash.
    #[must_use]
    pub fn written(&self, flow: FlowId, geometry: &Geometry) -> GenerationSet {
        let mut have = GenerationSet::none(geometry.generations());
        let file = self.received(flow);
        for (generation, hash) in self.written.get(&flow).into_iter().flatten() {
            let start = geometry.offset(*generation) as usize;
            let data = file.get(start..start + geometry.data_len(*generation));
            if data.is_some_and(|d| merkle::leaf(d) == *hash) {
                have.insert(*generation);
            }
        }

        have
    }

    /// Returns the BLAKE3 hash of the bytes received.
    #[must_use]
    pub fn received_hash(&self, flow: FlowId) -> Hash {
        merkle::leaf(self.received(flow))
    }
}

impl Storage for MemoryStorage {
    fn read(&mut self, flow: FlowId, offset: u64, data: &mut [u8]) -> Result<(), StorageError> {
        let start = usize::try_from(offset).map_err(|_| StorageError::Unreadable)?;
        let file = self.outgoing.get(&flow).ok_or(StorageError::Unreadable)?;
        let stretch = file.get(start..start + data.len()).ok_or(StorageError::Unreadable)?;
        data.copy_from_slice(stretch);
        Ok(())
    }

    fn write(
        &mut self,
        flow: FlowId,
        generation: u32,
        offset: u64,
        data: &[u8],
        hash: &Hash,
    ) -> Result<(), StorageError> {
        self.written.entry(flow).or_default().insert(generation, *hash);
        let start = usize::try_from(offset).map_err(|_| StorageError::NoSpace)?;
        let file = self.incoming.entry(flow).or_default();
        if file.len() < start + data.len() {
            file.resize(start + data.len(), 0);
        }
        file[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}
