//! A receiver that is handed forged generations, and one that cannot write.

use super::*;
use ncmesh_engine::file::Geometry;
use ncmesh_engine::file::merkle::{MerkleTree, digest};
use ncmesh_engine::storage::{MemoryStorage, StorageError};
use ncmesh_wire::FlowId;

const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };
const AT: Instant = Instant::from_nanos(0);

/// A file of two generations of two packets of 100 bytes.
struct File {
    contents: Vec<u8>,
    manifest: Manifest,
    tree: MerkleTree,
}

impl File {
    fn new() -> Self {
        let contents: Vec<u8> = (0..300u16).map(|i| (i % 251) as u8).collect();
        let geometry = Geometry::new(300, 2, 100).unwrap();
        assert_eq!((geometry.generations(), geometry.depth()), (2, 1));
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
        sink.accept(GenerationSet::none(2));
        sink
    }

    /// Returns the packets of a generation one after the other, branch included.
    fn generation(&self, generation: u32) -> Vec<u8> {
        let g = &self.manifest.geometry;
        let start = g.offset(generation) as usize;
        let mut bytes = self.contents[start..start + g.data_len(generation)].to_vec();
        self.tree.write_branch(generation, &mut bytes);
        bytes.resize(usize::from(g.packets(generation)) * 100, 0);
        bytes
    }
}

#[test]
fn a_forged_generation_is_never_written_and_the_true_one_is_taken_afterwards() {
    let file = File::new();
    let mut storage = MemoryStorage::default();
    let mut sink = file.sink();
    for forged in [&[9; 200][..], &file.generation(1), &[]] {
        assert_eq!(sink.handle_whole(0, forged, &mut storage), SinkOutcome::GenerationForged);
        assert!(sink.wants(0) && storage.received(FLOW).is_empty());
    }
    for generation in [1, 0] {
        let outcome = sink.handle_whole(generation, &file.generation(generation), &mut storage);
        assert_eq!(outcome, SinkOutcome::GenerationWritten);
    }
    assert_eq!((sink.phase, sink.bad_generations), (SinkPhase::Verifying, 3));
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
fn a_generation_that_cannot_be_written_pauses_the_reception_until_it_is_accepted_again() {
    let file = File::new();
    let mut sink = file.sink();
    assert_eq!(sink.handle_whole(0, &file.generation(0), &mut Full), SinkOutcome::WriteFailed);
    assert_eq!((sink.phase, sink.receiver_state()), (SinkPhase::Offered, ReceiverState::Invited));
    assert!(sink.is_open() && !sink.wants(0));

    sink.accept(GenerationSet::none(2));
    let mut storage = MemoryStorage::default();
    for generation in [0, 1] {
        let outcome = sink.handle_whole(generation, &file.generation(generation), &mut storage);
        assert_eq!(outcome, SinkOutcome::GenerationWritten);
    }
    assert_eq!((storage.received(FLOW), sink.phase), (&file.contents[..], SinkPhase::Verifying));
}
