//! A receiver that meets forged data, data that does not fit, and many batches at once.

use super::*;
use crate::multicast::frame::{Coding, DataHeader, TurnId};
use crate::multicast::routing::Routing;
use ncmesh_engine::file::Geometry;
use ncmesh_engine::file::merkle::{MerkleTree, digest};
use ncmesh_engine::storage::{MemoryStorage, Storage, StorageError};

const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };
const AT: Instant = Instant::from_nanos(0);

/// A file of two batches of two packets of 100 bytes, its manifest and its hash tree.
fn file() -> (Vec<u8>, Manifest, MerkleTree) {
    let contents: Vec<u8> = (0..300u16).map(|i| (i % 251) as u8).collect();
    let geometry = Geometry::new(300, 2, 100).unwrap();
    assert_eq!((geometry.batches(), geometry.depth()), (2, 1));
    let digest = digest(contents.as_slice(), &geometry).unwrap();
    let tree = MerkleTree::new(digest.leaves, geometry.depth());
    let (root, hash) = (tree.root(), digest.whole);
    (contents, Manifest { flow: FLOW, name: "f".into(), geometry, root, hash }, tree)
}

/// The packets of a batch as they are, branch included.
fn packets(batch: u32) -> Vec<Vec<u8>> {
    let (contents, manifest, tree) = file();
    let g = manifest.geometry;
    let start = g.offset(batch) as usize;
    let mut bytes = contents[start..start + g.data_len(batch)].to_vec();
    tree.write_branch(batch, &mut bytes);
    bytes.resize(usize::from(g.packets(batch)) * 100, 0);
    bytes.chunks(100).map(<[u8]>::to_vec).collect()
}

fn header(turn: u32, batch: u32) -> DataHeader {
    DataHeader {
        flow: FLOW,
        turn: TurnId { incarnation: 7, number: turn },
        batch,
        packets: 2,
        routing: Routing::default(),
        revision: 0,
        poll: None,
        piggyback: None,
    }
}

/// Hands packet `i` to the receiver.
fn hear(
    sink: &mut FileSink,
    storage: &mut MemoryStorage,
    header: DataHeader,
    i: u8,
    payload: &[u8],
) -> SinkOutcome {
    let data = Data { header, coding: Coding::Systematic(i), payload };
    sink.handle_data(&data, AT, storage)
}

#[test]
fn a_forged_batch_is_never_written_and_the_true_one_is_taken_afterwards() {
    let (contents, manifest, _) = file();
    let mut storage = MemoryStorage::default();
    let mut sink = FileSink::new(manifest, AT);
    sink.accept(BatchSet::none(2));
    let (forged, second) = ([9; 100], &packets(0)[1]);
    let mut hear = |sink: &mut FileSink, header, i, payload: &[u8]| {
        let outcome = hear(sink, &mut storage, header, i, payload);
        (outcome, storage.received(FLOW).to_vec())
    };
    assert_eq!(hear(&mut sink, header(1, 0), 0, &forged).0, SinkOutcome::Quiet);
    assert_eq!(hear(&mut sink, header(1, 0), 1, second), (SinkOutcome::BatchForged, vec![]));
    assert!(!sink.have.contains(0));
    let mut received = Vec::new();
    for batch in [1, 0] {
        let last = packets(batch).len() - 1;
        for (i, packet) in packets(batch).iter().enumerate() {
            let expected = if i == last { SinkOutcome::BatchWritten } else { SinkOutcome::Quiet };
            let (outcome, so_far) = hear(&mut sink, header(2, batch), i as u8, packet);
            assert_eq!(outcome, expected);
            received = so_far;
        }
    }
    assert_eq!(sink.phase, SinkPhase::Verifying);
    assert_eq!(received, contents);
    assert_eq!(sink.bad_batches, 1);
}

#[test]
fn a_batch_of_another_place_is_forged() {
    let (_, manifest, _) = file();
    let mut storage = MemoryStorage::default();
    let mut sink = FileSink::new(manifest, AT);
    sink.accept(BatchSet::none(2));
    let outcomes: Vec<SinkOutcome> = packets(1)
        .iter()
        .enumerate()
        .map(|(i, packet)| hear(&mut sink, &mut storage, header(1, 0), i as u8, packet))
        .collect();
    assert_eq!(outcomes.last(), Some(&SinkOutcome::BatchForged));
}

#[test]
fn packets_that_do_not_fit_the_file_are_malformed() {
    let (_, manifest, _) = file();
    let mut storage = MemoryStorage::default();
    let mut sink = FileSink::new(manifest, AT);
    let good = packets(0).remove(0);
    let early = hear(&mut sink, &mut storage, header(1, 0), 0, &good);
    assert_eq!((early, sink.innovative), (SinkOutcome::Quiet, 0), "it is not accepted yet");
    sink.accept(BatchSet::none(2));
    for (header, payload) in [
        (header(1, 2), &good[..]),
        (header(1, u32::MAX), &good[..]),
        (header(1, 0), &good[..99]),
        (DataHeader { packets: 3, ..header(1, 0) }, &good[..]),
    ] {
        let outcome = hear(&mut sink, &mut storage, header, 0, payload);
        assert_eq!(outcome, SinkOutcome::Malformed);
    }
}

/// A receiver of transfer `serial`, in batches of 8 packets of 100 bytes.
fn large(serial: u32) -> (FlowId, FileSink) {
    let flow = FlowId { serial, ..FLOW };
    let geometry = Geometry::new(1_000_000, 8, 100).unwrap();
    let (root, hash) = ([0; 32], [0; 32]);
    let mut sink = FileSink::new(Manifest { flow, name: "f".into(), geometry, root, hash }, AT);
    sink.accept(BatchSet::none(geometry.batches()));
    (flow, sink)
}

#[test]
fn memory_is_bounded_and_the_transfer_that_uses_most_gives_it_up() {
    let memory_of_batch = 8 * 164;
    let limit = 3 * memory_of_batch;
    let mut sinks = BTreeMap::from([large(1), large(2)]);
    let mut storage = MemoryStorage::default();
    let mut begin_batch = |sinks: &mut BTreeMap<FlowId, FileSink>, serial, batch| {
        let flow = FlowId { serial, ..FLOW };
        let header = DataHeader { packets: 8, ..header(1, batch) };
        let needed = sinks[&flow].memory_needed(batch);
        assert!(reserve_memory(sinks, needed, limit));
        let sink = sinks.get_mut(&flow).unwrap();
        assert_eq!(hear(sink, &mut storage, header, 0, &[1; 100]), SinkOutcome::Quiet);
        assert!(sinks.values().map(FileSink::memory).sum::<usize>() <= limit);
    };
    for batch in 0..200 {
        begin_batch(&mut sinks, 1, batch);
    }
    begin_batch(&mut sinks, 2, 0);
    let under_way: Vec<usize> = sinks.values().map(|sink| sink.decoders.len()).collect();
    assert_eq!(under_way, [2, 1]);
    assert!(!reserve_memory(&mut sinks, limit + 1, limit));
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
    let (contents, manifest, _) = file();
    let (mut storage, mut sink) = (MemoryStorage::default(), FileSink::new(manifest, AT));
    sink.accept(BatchSet::none(2));
    let hear_all = |sink: &mut FileSink, storage: &mut dyn Storage, batch| {
        let mut outcomes = packets(batch).into_iter().enumerate().map(|(i, payload)| {
            let coding = Coding::Systematic(i as u8);
            sink.handle_data(
                &Data { header: header(1, batch), coding, payload: &payload },
                AT,
                storage,
            )
        });
        (outcomes.next().unwrap(), outcomes.last().unwrap())
    };
    assert_eq!(hear_all(&mut sink, &mut Full, 0).1, SinkOutcome::WriteFailed);
    assert_eq!((sink.phase, sink.receiver_state()), (SinkPhase::Offered, ReceiverState::Invited));
    assert_eq!((sink.memory(), sink.is_open()), (0, true));
    let paused = hear_all(&mut sink, &mut storage, 0);
    assert_eq!(paused, (SinkOutcome::Quiet, SinkOutcome::Quiet));

    sink.accept(BatchSet::none(2));
    for batch in [0, 1] {
        assert_eq!(hear_all(&mut sink, &mut storage, batch).1, SinkOutcome::BatchWritten);
    }
    assert_eq!((storage.received(FLOW), sink.phase), (&contents[..], SinkPhase::Verifying));
}
