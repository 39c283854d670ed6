//! A receiver that is handed forged batches, and one that cannot write.

use super::*;
use ncmesh_engine::file::Geometry;
use ncmesh_engine::file::merkle::{MerkleTree, digest};
use ncmesh_engine::storage::{MemoryStorage, StorageError};
use ncmesh_wire::FlowId;

const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };
const AT: Instant = Instant::from_nanos(0);

/// A file of two batches of two packets of 100 bytes.
struct File {
    contents: Vec<u8>,
    manifest: Manifest,
    tree: MerkleTree,
}

impl File {
    fn new() -> Self {
        let contents: Vec<u8> = (0..300u16).map(|i| (i % 251) as u8).collect();
        let geometry = Geometry::new(300, 2, 100).unwrap();
        assert_eq!((geometry.batches(), geometry.depth()), (2, 1));
        let digest = digest(contents.as_slice(), &geometry).unwrap();
        let tree = MerkleTree::new(digest.leaves, geometry.depth());
        let manifest = Manifest {
            flow: FLOW,
            name: "f".into(),
            geometry,
            root: tree.root(),
            hash: digest.whole,
        };
        Self { contents, manifest, tree }
    }

    /// Returns a reception of the file that was accepted.
    fn sink(&self) -> FileSink {
        let mut sink = FileSink::new(self.manifest.clone(), AT);
        sink.accept(BatchSet::none(2));
        sink
    }

    /// Returns the packets of a batch one after the other, branch included.
    fn batch(&self, batch: u32) -> Vec<u8> {
        let g = &self.manifest.geometry;
        let start = g.offset(batch) as usize;
        let mut bytes = self.contents[start..start + g.data_len(batch)].to_vec();
        self.tree.write_branch(batch, &mut bytes);
        bytes.resize(usize::from(g.packets(batch)) * 100, 0);
        bytes
    }
}

#[test]
fn a_forged_batch_is_never_written_and_the_true_one_is_taken_afterwards() {
    let file = File::new();
    let mut storage = MemoryStorage::default();
    let mut sink = file.sink();
    for forged in [&[9; 200][..], &file.batch(1), &[]] {
        assert_eq!(sink.handle_whole(0, forged, &mut storage), SinkOutcome::BatchForged);
        assert!(sink.wants(0) && storage.received(FLOW).is_empty());
    }
    for batch in [1, 0] {
        let outcome = sink.handle_whole(batch, &file.batch(batch), &mut storage);
        assert_eq!(outcome, SinkOutcome::BatchWritten);
    }
    assert_eq!((sink.phase, sink.bad_batches), (SinkPhase::Verifying, 3));
    assert_eq!(storage.received(FLOW), file.contents);
}

/// Storage that takes nothing.
struct Full;

impl Storage for Full {
    fn read(&mut self, _: FlowId, _: u64, _: &mut [u8]) -> Result<(), StorageError> {
        Err(StorageError::Unreadable)
    }

    fn write(&mut self, _: FlowId, _: u32, _: u64, _: &[u8], _: &Hash) -> Result<(), StorageError> {
        Err(StorageError::NoSpace)
    }
}

#[test]
fn a_batch_that_cannot_be_written_pauses_the_reception_until_it_is_accepted_again() {
    let file = File::new();
    let mut sink = file.sink();
    assert_eq!(sink.handle_whole(0, &file.batch(0), &mut Full), SinkOutcome::WriteFailed);
    assert_eq!((sink.phase, sink.receiver_state()), (SinkPhase::Offered, ReceiverState::Invited));
    assert!(sink.is_open() && !sink.wants(0));

    sink.accept(BatchSet::none(2));
    let mut storage = MemoryStorage::default();
    for batch in [0, 1] {
        let outcome = sink.handle_whole(batch, &file.batch(batch), &mut storage);
        assert_eq!(outcome, SinkOutcome::BatchWritten);
    }
    assert_eq!((storage.received(FLOW), sink.phase), (&file.contents[..], SinkPhase::Verifying));
}
