//! Cost of relaying in braid, for each packet that the relay receives.
//!
//! One flow of packets of 1,200 bytes passes a relay between lossy links. The relay hears them as
//! they are, or as combinations of the last ones, and sends what the next hop lacks: packets as
//! they are, and combinations of what may be lost. The time runs from the first frame heard to the
//! last one filled; frames are not sealed.

#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::{Links, Topology};
use ncmesh_engine::tunnel::DATA;
use ncmesh_engine::{Context, Engine, Frame, TunnelEngine, TxReport, TxResult};
use ncmesh_engine_braid::{Braid, BraidConfig, ID};
use ncmesh_wire::{NodeId, StartId};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

const BYTES: usize = 1200;
const FRAMES: usize = 512;
/// Time for which a frame is on the air.
const AIRTIME: Duration = Duration::from_millis(1);

/// A node of the line 1, 2, 3.
struct Node {
    id: NodeId,
    engine: Braid,
    rng: ChaCha8Rng,
}

/// Links, and the time.
#[derive(Clone, Copy)]
struct At<'a> {
    topology: &'a Topology,
    now: Instant,
}

/// A frame on the air.
#[derive(Clone)]
struct Sent {
    sender: NodeId,
    kind: u8,
    body: Vec<u8>,
}

impl Node {
    fn new(id: u16) -> Self {
        let id = NodeId(id);
        let engine = Braid::new(BraidConfig::default());
        Self { id, engine, rng: rng::stream(1, id, "braid", "bench") }
    }

    fn with<R>(&mut self, at: At<'_>, call: impl FnOnce(&mut Braid, &mut Context<'_>) -> R) -> R {
        let mut counters = Counters::default();
        let mut events = VecDeque::new();
        let mut cx = Context {
            now: at.now,
            me: self.id,
            epoch: 1,
            mtu: 1467,
            at: ncmesh_engine::At::ONLY,
            topology: at.topology,
            rng: &mut self.rng,
            counters: &mut counters,
            events: &mut events,
            storage: &mut MemoryStorage::default(),
        };

        call(&mut self.engine, &mut cx)
    }

    /// Hears a frame.
    fn hear(&mut self, at: At<'_>, sent: &Sent) {
        let Sent { sender, kind, ref body } = *sent;
        let frame = Frame { sender, start: StartId(1), service: ID, kind, body };
        self.with(at, |engine, cx| engine.handle_frame(cx, &frame));
    }

    /// Fills a frame, if there is one to send, and learns that it was sent.
    fn fill(&mut self, at: At<'_>) -> Option<Sent> {
        self.engine.offer(at.now)?;
        let mut body = Vec::new();
        let filled = self.with(at, |engine, cx| engine.fill(cx, &mut body))?;
        let report = TxReport { result: TxResult::Sent, airtime: AIRTIME, heard_by: None };
        self.with(at, |engine, cx| engine.handle_tx_report(cx, report));
        Some(Sent { sender: self.id, kind: filled.kind, body })
    }
}

/// Frames that the relay hears, and when.
type Heard = Vec<(Instant, Sent)>;

/// Returns what a relay heard in a run of source, relay and destination, whose links lose every
/// third frame, until it has heard [`FRAMES`] packets.
fn heard(topology: &Topology) -> Heard {
    let [mut source, mut relay, mut destination] = [1, 2, 3].map(Node::new);
    let mut now = Instant::default();
    let mut frames = Heard::new();
    let mut packets = 0;
    for step in 0.. {
        now = now + AIRTIME;
        let at = At { topology, now };
        while source.engine.below_low_watermark(NodeId(3)) {
            let packet = vec![step as u8; BYTES];
            source.with(at, |engine, cx| engine.handle_packet(cx, NodeId(3), &packet)).unwrap();
        }

        // The three take turns, as far as they have something to send.
        let order = [step, step + 1, step + 2].map(|i| i % 3);
        let nodes = [&mut source, &mut relay, &mut destination];
        let mut nodes: Vec<(usize, &mut Node)> = nodes.into_iter().enumerate().collect();
        let sent = order.iter().find_map(|of| Some((*of, nodes[*of].1.fill(at)?)));
        let Some((of, frame)) = sent else { continue };
        for (to, node) in nodes.iter_mut().filter(|(to, _)| to.abs_diff(of) == 1) {
            if (step + 5 * *to) % 7 % 3 == 0 {
                continue;
            }
            node.hear(at, &frame);
            if *to == 1 {
                packets += usize::from(frame.kind == DATA);
                frames.push((now, frame.clone()));
            }
        }

        if packets == FRAMES {
            break;
        }
    }

    frames
}

fn relays(criterion: &mut Criterion) {
    let hears = |from: &[u16]| from.iter().map(|id| (NodeId(*id), 0.6)).collect::<Links>();
    let topology = Topology::known(vec![hears(&[2]), hears(&[1, 3]), hears(&[2])]);
    let frames = heard(&topology);
    let mut group = criterion.benchmark_group("relay, each packet received");
    group.throughput(Throughput::Elements(FRAMES as u64)).sample_size(20);
    group.bench_function("braid", |bencher| {
        let work = |mut node: Node| {
            let mut sent = 0;
            for (now, frame) in &frames {
                let at = At { topology: &topology, now: *now };
                node.hear(at, frame);
                sent += usize::from(node.fill(at).is_some());
            }

            let status = node.engine.coding(frames[frames.len() - 1].0).unwrap();
            let combines = !status.why_not.iter().any(|why| why.starts_with("no combinations"));
            assert!(sent > FRAMES / 2 && combines, "{sent} frames of a relay, {status:?}");
            node
        };

        bencher.iter_batched(|| Node::new(2), work, BatchSize::SmallInput);
    });

    group.finish();
}

criterion_group!(benches, relays);
criterion_main!(benches);
