//! Cost of relaying in CORE, for each packet that the relay receives.
//!
//! Two flows of 64 packets each cross at a relay of each kind. The time runs from the first frame
//! heard to the last one filled; frames are not sealed.

#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::{Links, Topology};
use ncmesh_engine::tunnel::{DATA, RelayMode};
use ncmesh_engine::{Context, Engine, Frame, TunnelEngine};
use ncmesh_engine_core::{Core, CoreConfig, ID};
use ncmesh_wire::{NodeId, StartId};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

const PACKETS: usize = 64;
const BYTES: usize = 1100;
/// Id of the relay. Nodes 1 and 2 are sources, 4 and 5 destinations.
const RELAY: u16 = 3;

/// Returns the cross, with links that lose a tenth.
fn cross() -> Topology {
    let hears = |from: &[u16]| from.iter().map(|id| (NodeId(*id), 0.9)).collect::<Links>();
    Topology::known(vec![
        hears(&[RELAY, 5]),
        hears(&[RELAY, 4]),
        hears(&[1, 2, 4, 5]),
        hears(&[RELAY, 2]),
        hears(&[RELAY, 1]),
    ])
}

struct Node {
    id: NodeId,
    engine: Core,
    rng: ChaCha8Rng,
}

impl Node {
    fn new(id: u16, relay: RelayMode) -> Self {
        let config = CoreConfig { relay, ..CoreConfig::default() };
        let id = NodeId(id);
        Self { id, engine: Core::new(&config), rng: rng::stream(1, id, "core_nc", "bench") }
    }

    fn with<R>(
        &mut self,
        topology: &Topology,
        call: impl FnOnce(&mut Core, &mut Context<'_>) -> R,
    ) -> R {
        let mut counters = Counters::default();
        let mut events = VecDeque::new();
        let mut cx = Context {
            now: Instant::from_nanos(1),
            me: self.id,
            epoch: 1,
            mtu: 1467,
            at: ncmesh_engine::At::ONLY,
            topology,
            rng: &mut self.rng,
            counters: &mut counters,
            events: &mut events,
            storage: &mut MemoryStorage::default(),
        };

        call(&mut self.engine, &mut cx)
    }

    /// Fills all frames that the node has to send now. Returns the data frames.
    fn drain(&mut self, topology: &Topology) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let mut out = Vec::new();
            match self.with(topology, |engine, cx| engine.fill(cx, &mut out)) {
                None => return frames,
                Some(filled) if filled.kind == DATA => frames.push(out),
                Some(_) => {}
            }
        }
    }
}

/// Returns the frames of a whole generation of each flow, in turn.
fn source_frames(topology: &Topology) -> Vec<(NodeId, Vec<u8>)> {
    let frames = [(1, 4), (2, 5)].map(|(source, destination)| {
        let mut node = Node::new(source, RelayMode::Core);
        for number in 0..PACKETS {
            let packet = vec![number as u8 + 1; BYTES];
            let to = NodeId(destination);
            node.with(topology, |engine, cx| engine.handle_packet(cx, to, &packet)).unwrap();
        }

        let mut frames = node.drain(topology);
        frames.truncate(PACKETS);
        frames.into_iter().map(move |frame| (NodeId(source), frame))
    });

    let [one, other] = frames;
    one.zip(other).flat_map(|(a, b)| [a, b]).collect()
}

fn relays(criterion: &mut Criterion) {
    let topology = cross();
    let frames = source_frames(&topology);
    let mut group = criterion.benchmark_group("relay, each packet received");
    group.throughput(Throughput::Elements(frames.len() as u64)).sample_size(20);
    for (name, relay) in [
        ("core", RelayMode::Core),
        ("recoding", RelayMode::Recoding),
        ("non_recoding", RelayMode::NonRecoding),
    ] {
        group.bench_function(name, |bencher| {
            let work = |mut node: Node| {
                let mut data = 0;
                for (sender, body) in &frames {
                    let frame =
                        Frame { sender: *sender, start: StartId(1), service: ID, kind: DATA, body };
                    node.with(&topology, |engine, cx| engine.handle_frame(cx, &frame));
                    data += node.drain(&topology).len();
                }

                assert!(data >= PACKETS, "{data} frames of a relay for {PACKETS} pairs");
                node
            };

            bencher.iter_batched(|| Node::new(RELAY, relay), work, BatchSize::SmallInput);
        });
    }

    group.finish();
}

criterion_group!(benches, relays);
criterion_main!(benches);
