//! Nodes on machines that stall: after a pause, each finds its neighbours silent, and they find it
//! silent. In the end all know the same again.

// A helper outside the `#[test]` functions fails its test where it unwraps.
#![allow(clippy::unwrap_used)]

use ncmesh_engine::file::FileLimits;
use ncmesh_engine::registry::Registry;
use ncmesh_engine::rng::{stream, unit};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_wire::{Cipher, NodeId};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

/// Nodes of the line; each hears the ones beside it, and loses a tenth of their frames.
const NODES: usize = 3;
const LOSS: f64 = 0.1;
/// Time in which nodes stall, and the longest stall.
const TROUBLE: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(8);
/// Time in which all must know the mesh again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Airtime of a byte, and of a frame without its bytes.
const PER_BYTE: Duration = Duration::from_nanos(727);
const PREAMBLE: Duration = Duration::from_micros(200);
/// How often a node looks at its clock.
const TICK: Duration = Duration::from_millis(1);

struct Node {
    stack: Stack,
    storage: MemoryStorage,
    /// From when to when it stalls.
    stalls: Vec<(Instant, Instant)>,
    /// Frames that have come meanwhile.
    waiting: Vec<Vec<u8>>,
}

impl Node {
    fn new(id: u16, rng: &mut ChaCha8Rng) -> Self {
        let config = StackConfig {
            node: NodeId(id),
            name: format!("n{id}"),
            epoch: rng.next_u64() >> 8,
            seed: rng.next_u64(),
            mtu: 1500,
            cipher: Cipher::Null,
            link: LinkConfig { quick_hello_s: 0.05, ..LinkConfig::default() },
            route: RouteConfig::default(),
            engines: toml::Table::new(),
            file: FileLimits::default(),
        };
        let mut stall = || {
            let begin = Instant::default() + TROUBLE.mul_f64(unit(rng));
            (begin, begin + LONGEST.mul_f64(unit(rng) * unit(rng)))
        };
        let stalls = vec![stall(), stall(), stall()];
        let stack = Stack::new(config, Registry(&[]), Instant::default()).unwrap();
        Self { stack, storage: MemoryStorage::default(), stalls, waiting: Vec::new() }
    }

    fn is_stalled(&self, now: Instant) -> bool {
        self.stalls.iter().any(|(begin, end)| (*begin..*end).contains(&now))
    }

    /// Does what has fallen due, and then takes what has come.
    fn wake(&mut self, now: Instant) {
        if self.is_stalled(now) {
            return;
        }
        if self.stack.poll_timeout().is_some_and(|at| at <= now) {
            self.stack.at(now, &mut self.storage).handle_timeout();
        }
        for frame in self.waiting.drain(..) {
            self.stack.at(now, &mut self.storage).handle_datagram(&frame);
        }
    }

    /// Returns the frame that it sends now, if it has one.
    fn send(&mut self, now: Instant) -> Option<Vec<u8>> {
        let mut frame = Vec::new();
        let may_send = !self.is_stalled(now) && self.stack.offer(now).is_some();
        may_send.then(|| self.stack.at(now, &mut self.storage).fill(&mut frame))??;
        let airtime = PREAMBLE + PER_BYTE * frame.len() as u32;
        let report = TxReport { result: TxResult::Sent, airtime, heard_by: None };
        self.stack.at(now, &mut self.storage).handle_tx_report(report);
        Some(frame)
    }

    /// Returns the links of the mesh as it knows them.
    fn knows(&self) -> Vec<(NodeId, Vec<NodeId>)> {
        let states = self.stack.topology().states();
        states.map(|(node, state)| (node, state.hears.keys().copied().collect())).collect()
    }
}

/// The links of the line.
fn line() -> Vec<(NodeId, Vec<NodeId>)> {
    let node = |i: usize| NodeId(i as u16 + 1);
    let beside = |i: usize| (0..NODES).filter(move |j| j.abs_diff(i) == 1);
    (0..NODES).map(|i| (node(i), beside(i).map(node).collect())).collect()
}

/// Runs a line of nodes until all know it, after the last stall. Returns whether they do in time.
fn agree(seed: u64) -> bool {
    let mut rng = stream(seed, NodeId(0), "stalls", "test");
    let mut nodes: Vec<Node> = (1..=NODES as u16).map(|id| Node::new(id, &mut rng)).collect();
    let (mut now, calm) = (Instant::default(), Instant::default() + TROUBLE + LONGEST);
    while now < calm + PATIENCE {
        now = now + TICK;
        nodes.iter_mut().for_each(|node| node.wake(now));
        if now >= calm && nodes.iter().all(|node| node.knows() == line()) {
            return true;
        }
        // The channel takes one frame at a time, of whoever comes first.
        let first = rng.next_u32() as usize;
        let sent = (0..NODES).map(|i| (first + i) % NODES);
        let Some((sender, frame)) = sent.into_iter().find_map(|i| Some((i, nodes[i].send(now)?)))
        else {
            continue;
        };
        for (receiver, node) in nodes.iter_mut().enumerate() {
            if receiver.abs_diff(sender) == 1 && unit(&mut rng) >= LOSS {
                node.waiting.push(frame.clone());
            }
        }
    }
    false
}

#[test]
fn all_know_the_mesh_again() {
    for seed in 0..300 {
        assert!(agree(seed), "seed {seed}");
    }
}
