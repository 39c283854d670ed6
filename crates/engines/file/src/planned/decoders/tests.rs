//! A receiver that hears forged data, data that does not fit, and many generations at once.

use super::*;
use crate::planned::frame::{Coding, DataHeader, TurnId};
use crate::planned::routing::Routing;
use ncmesh_engine::file::merkle::{MerkleTree, digest};
use ncmesh_engine::file::{GenerationSet, Manifest};
use ncmesh_engine::rng::stream;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_wire::NodeId;

const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };
const AT: Instant = Instant::from_nanos(0);
const SOURCE: Origin = Origin { sender: NodeId(1), is_vouched: true };

fn rng() -> impl RngCore {
    stream(1, NodeId(2), "decoders", "test")
}

/// A file of two generations of two packets of 100 bytes, its manifest and its hash tree.
fn file() -> (Vec<u8>, Manifest, MerkleTree) {
    let contents: Vec<u8> = (0..300u16).map(|i| (i % 251) as u8).collect();
    let geometry = Geometry::new(300, 2, 100).unwrap();
    assert_eq!((geometry.generations(), geometry.depth()), (2, 1));
    let digest = digest(contents.as_slice(), &geometry).unwrap();
    let tree = MerkleTree::new(digest.leaves, geometry.depth());
    let root = tree.root();
    let hash = digest.whole;
    (contents, Manifest { flow: FLOW, name: "f".into(), geometry, root, hash }, tree)
}

/// The packets of a generation as they are, branch included.
fn packets(generation: u32) -> Vec<Vec<u8>> {
    let (contents, manifest, tree) = file();
    let g = manifest.geometry;
    let start = g.offset(generation) as usize;
    let mut bytes = contents[start..start + g.data_len(generation)].to_vec();
    tree.write_branch(generation, &mut bytes);
    bytes.resize(usize::from(g.packets(generation)) * 100, 0);
    bytes.chunks(100).map(<[u8]>::to_vec).collect()
}

fn header(turn: u32, generation: u32) -> DataHeader {
    DataHeader {
        flow: FLOW,
        turn: TurnId { incarnation: 7, number: turn },
        generation,
        packets: 2,
        routing: Routing::default(),
        revision: 0,
        poll: None,
        piggyback: None,
    }
}

/// A receiver of one file.
struct Receiver {
    sink: FileSink,
    receptions: Receptions,
    storage: MemoryStorage,
    found: Found,
}

impl Receiver {
    fn new(manifest: Manifest) -> Self {
        let receptions = Receptions::new(true, usize::MAX);
        let sink = FileSink::new(manifest, AT);
        Self { sink, receptions, storage: MemoryStorage::default(), found: Found::default() }
    }

    /// Returns a receiver that has accepted the file.
    fn accepted(manifest: Manifest) -> Self {
        let mut receiver = Self::new(manifest);
        receiver.sink.accept(GenerationSet::none(2));
        receiver
    }

    /// Hands over packet `i`.
    fn hear(&mut self, header: DataHeader, i: u8, payload: &[u8]) -> SinkOutcome {
        self.hear_from(SOURCE, header, i, payload)
    }

    fn hear_from(
        &mut self,
        origin: Origin,
        header: DataHeader,
        i: u8,
        payload: &[u8],
    ) -> SinkOutcome {
        let data = Data { header, coding: Coding::Systematic(i), payload };
        let received = Received { origin, data: &data, now: AT };
        let Self { sink, receptions, storage, found } = self;
        receptions.handle_data(sink, received, &mut rng(), storage, found)
    }
}

#[test]
fn a_forged_generation_is_never_written_and_the_true_one_is_taken_afterwards() {
    let (contents, manifest, _) = file();
    let mut receiver = Receiver::accepted(manifest);
    assert_eq!(receiver.hear(header(1, 0), 0, &[9; 100]), SinkOutcome::Quiet);
    assert_eq!(receiver.hear(header(1, 0), 1, &packets(0)[1]), SinkOutcome::GenerationForged);
    assert!(receiver.storage.received(FLOW).is_empty() && !receiver.sink.have.contains(0));
    for generation in [1, 0] {
        let last = packets(generation).len() - 1;
        for (i, packet) in packets(generation).iter().enumerate() {
            let expected =
                if i == last { SinkOutcome::GenerationWritten } else { SinkOutcome::Quiet };
            assert_eq!(receiver.hear(header(2, generation), i as u8, packet), expected);
        }
    }
    assert_eq!(receiver.sink.phase, SinkPhase::Verifying);
    assert_eq!(receiver.storage.received(FLOW), contents);
}

#[test]
fn the_sender_of_a_false_packet_is_told_once_the_true_ones_are_known() {
    let (_, manifest, _) = file();
    let mut receiver = Receiver::accepted(manifest);
    let liar = Origin { sender: NodeId(7), is_vouched: true };
    receiver.hear_from(liar, header(1, 0), 0, &[9; 100]);
    let [first, second] = packets(0).try_into().unwrap();
    assert_eq!(receiver.hear(header(1, 0), 1, &second), SinkOutcome::GenerationForged);
    assert!(receiver.found.given.is_empty());
    receiver.hear(header(1, 0), 0, &first);
    assert_eq!(receiver.hear(header(1, 0), 1, &second), SinkOutcome::GenerationWritten);
    assert_eq!(receiver.found.given[&NodeId(7)].vouched, 1);
    assert_eq!(receiver.found.given[&NodeId(1)].false_packets(), 0);
}

#[test]
fn a_generation_of_another_place_is_forged() {
    let (_, manifest, _) = file();
    let mut receiver = Receiver::accepted(manifest);
    let heard = packets(1).into_iter().enumerate();
    let outcomes = heard.map(|(i, packet)| receiver.hear(header(1, 0), i as u8, &packet));
    assert_eq!(outcomes.last(), Some(SinkOutcome::GenerationForged));
}

#[test]
fn packets_that_do_not_fit_the_file_are_malformed() {
    let (_, manifest, _) = file();
    let mut receiver = Receiver::new(manifest);
    let good = packets(0).remove(0);
    let early = receiver.hear(header(1, 0), 0, &good);
    assert_eq!((early, receiver.sink.innovative), (SinkOutcome::Quiet, 0), "it is not accepted");
    receiver.sink.accept(GenerationSet::none(2));
    for (header, payload) in [
        (header(1, 2), &good[..]),
        (header(1, u32::MAX), &good[..]),
        (header(1, 0), &good[..99]),
        (DataHeader { packets: 3, ..header(1, 0) }, &good[..]),
    ] {
        assert_eq!(receiver.hear(header, 0, payload), SinkOutcome::Malformed);
    }
}

/// A receiver of transfer `serial`, in generations of 8 packets of 100 bytes.
fn large(serial: u32) -> FileSink {
    let flow = FlowId { serial, ..FLOW };
    let geometry = Geometry::new(1_000_000, 8, 100).unwrap();
    let root = [0; 32];
    let hash = [0; 32];
    let mut sink = FileSink::new(Manifest { flow, name: "f".into(), geometry, root, hash }, AT);
    sink.accept(GenerationSet::none(geometry.generations()));
    sink
}

#[test]
fn memory_is_bounded_and_the_transfer_that_uses_most_gives_it_up() {
    let memory_of_generation = 8 * 164;
    let mut receptions = Receptions::new(true, 3 * memory_of_generation);
    let mut storage = MemoryStorage::default();
    let mut sinks = [large(1), large(2)];
    let mut begin_generation = |receptions: &mut Receptions, sink: &mut FileSink, generation| {
        let header = DataHeader { packets: 8, ..header(1, generation) };
        let header = DataHeader { flow: sink.manifest.flow, ..header };
        assert!(receptions.reserve(sink, generation));
        let data = Data { header, coding: Coding::Systematic(0), payload: &[1; 100] };
        let received = Received { origin: SOURCE, data: &data, now: AT };
        let mut found = Found::default();
        let outcome = receptions.handle_data(sink, received, &mut rng(), &mut storage, &mut found);
        assert_eq!(outcome, SinkOutcome::Quiet);
        assert!(receptions.memory() <= receptions.limit);
    };
    for generation in 0..200 {
        begin_generation(&mut receptions, &mut sinks[0], generation);
    }
    begin_generation(&mut receptions, &mut sinks[1], 0);
    let under_way: Vec<usize> = receptions.files.values().map(|file| file.begun.len()).collect();
    assert_eq!(under_way, [2, 1]);
    assert!(!Receptions::new(true, memory_of_generation - 1).reserve(&sinks[0], 7), "none fits");
}

#[test]
fn a_file_that_is_forgotten_takes_no_memory() {
    let (_, manifest, _) = file();
    let mut receiver = Receiver::accepted(manifest);
    receiver.hear(header(1, 0), 0, &packets(0)[0]);
    let begun = receiver.receptions.begun(FLOW).map(|begun| (begun.generation, begun.rank));
    assert_eq!(begun, Some((0, 1)));
    assert!(receiver.receptions.memory() > 0);
    receiver.receptions.forget(FLOW);
    assert_eq!((receiver.receptions.begun(FLOW), receiver.receptions.memory()), (None, 0));
}
