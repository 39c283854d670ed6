//! In the end all nodes know the same mesh, however poor a link or slow a machine is.

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
use ncmesh_wire::{Cipher, NodeId, Salt, Versions};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

/// Time in which nodes stall, and the longest stall.
const TROUBLE: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(8);
/// Time after that in which all must know the mesh.
const PATIENCE: Duration = Duration::from_secs(120);
/// Airtime of a byte, and of a frame without its bytes.
const PER_BYTE: Duration = Duration::from_nanos(727);
const PREAMBLE: Duration = Duration::from_micros(200);
/// How often a node looks at its clock.
const TICK: Duration = Duration::from_millis(1);

/// Which nodes each node hears.
type Hears = Vec<(NodeId, Vec<NodeId>)>;

/// A clock of a node.
#[derive(Clone, Copy)]
struct Clock {
    /// State at the beginning of the test.
    origin: Instant,
    /// Its seconds in a second.
    rate: f64,
}

impl Clock {
    const RIGHT: Self = Self { origin: Instant::from_nanos(0), rate: 1.0 };

    /// Returns what it shows at `now`.
    fn at(self, now: Instant) -> Instant {
        self.origin + now.since(Instant::default()).mul_f64(self.rate)
    }
}

struct Node {
    stack: Stack,
    storage: MemoryStorage,
    clock: Clock,
    /// From when to when it stalls.
    stalls: Vec<(Instant, Instant)>,
    /// Frames that have come and were not looked at yet.
    waiting: Vec<Vec<u8>>,
}

impl Node {
    /// Returns a node that stalls `stalls` times.
    fn new(id: NodeId, clock: Clock, stalls: usize, rng: &mut ChaCha8Rng) -> Self {
        let config = StackConfig {
            node: id,
            name: format!("n{id}"),
            profile: Default::default(),
            salt: Salt(core::array::from_fn(|_| rng.next_u32() as u8)),
            epoch: rng.next_u64() >> 8,
            seed: rng.next_u64(),
            mtu: 1500,
            versions: Versions::OWN,
            cipher: Cipher::Null,
            trust: Default::default(),
            link: LinkConfig { quick_hello_s: 0.05, ..LinkConfig::default() },
            route: RouteConfig::default(),
            share: Default::default(),
            engines: toml::Table::new(),
            file: FileLimits::default(),
        };
        let stall = |_| {
            let begin = Instant::default() + TROUBLE.mul_f64(unit(rng));
            (begin, begin + LONGEST.mul_f64(unit(rng) * unit(rng)))
        };
        let stalls = (0..stalls).map(stall).collect();
        let stack = Stack::new(config, Registry(&[]), clock.origin).unwrap();
        Self { stack, storage: MemoryStorage::default(), clock, stalls, waiting: Vec::new() }
    }

    fn is_stalled(&self, now: Instant) -> bool {
        self.stalls.iter().any(|(begin, end)| (*begin..*end).contains(&now))
    }

    /// Does what has fallen due, and then takes what has come.
    fn wake(&mut self, now: Instant) {
        if self.is_stalled(now) {
            return;
        }
        let now = self.clock.at(now);
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
        let is_stalled = self.is_stalled(now);
        let now = self.clock.at(now);
        let may_send = !is_stalled && self.stack.offer(now).is_some();
        may_send.then(|| self.stack.at(now, &mut self.storage).fill(&mut frame))??;
        let airtime = PREAMBLE + PER_BYTE * frame.len() as u32;
        let report = TxReport { result: TxResult::Sent, airtime, heard_by: None };
        self.stack.at(now, &mut self.storage).handle_tx_report(report);
        Some(frame)
    }

    /// Returns the mesh as it knows it.
    fn knows(&self) -> Hears {
        let states = self.stack.topology().states();
        states.map(|(node, state)| (node, state.hears.keys().copied().collect())).collect()
    }
}

fn id(index: usize) -> NodeId {
    NodeId(index as u16 + 1)
}

/// A mesh in which `delivery[from][to]` is the share of frames that arrives.
struct Mesh<'a> {
    delivery: &'a [Vec<f64>],
    nodes: Vec<Node>,
    now: Instant,
    rng: ChaCha8Rng,
}

impl<'a> Mesh<'a> {
    fn new(
        delivery: &'a [Vec<f64>],
        clock: impl Fn(usize) -> Clock,
        stalls: usize,
        seed: u64,
    ) -> Self {
        let mut rng = stream(seed, NodeId(0), "agreement", "test");
        let node = |index| Node::new(id(index), clock(index), stalls, &mut rng);
        let nodes = (0..delivery.len()).map(node).collect();
        Self { delivery, nodes, now: Instant::default(), rng }
    }

    /// Runs for a tick.
    fn step(&mut self) {
        self.now = self.now + TICK;
        let now = self.now;
        self.nodes.iter_mut().for_each(|node| node.wake(now));
        // The channel takes one frame at a time, of whoever comes first.
        let first = self.rng.next_u32() as usize;
        let mut order = (0..self.nodes.len()).map(|i| (first + i) % self.delivery.len());
        let sent = order.find_map(|i| Some((i, self.nodes[i].send(now)?)));
        let Some((sender, frame)) = sent else { return };
        for (to, node) in self.nodes.iter_mut().enumerate() {
            if unit(&mut self.rng) < self.delivery[sender][to] {
                node.waiting.push(frame.clone());
            }
        }
    }

    /// Runs until all nodes know the mesh as they should, from `calm` on. Returns whether they do
    /// in time.
    fn agrees(&mut self, calm: Instant, is_right: impl Fn(&Hears) -> bool) -> bool {
        while self.now < calm + PATIENCE {
            self.step();
            if self.now >= calm && self.nodes.iter().all(|node| is_right(&node.knows())) {
                return true;
            }
        }
        false
    }
}

/// Returns whether all nodes of a mesh know it as they should in time after the last stall.
fn agree(
    delivery: &[Vec<f64>],
    stalls: usize,
    seed: u64,
    is_right: impl Fn(&Hears) -> bool,
) -> bool {
    let trouble = if stalls > 0 { TROUBLE + LONGEST } else { Duration::ZERO };
    let mut mesh = Mesh::new(delivery, |_| Clock::RIGHT, stalls, seed);
    mesh.agrees(Instant::default() + trouble, is_right)
}

/// A line of three nodes whose links deliver a share `d`, and what each of them should know.
fn line(d: f64) -> ([Vec<f64>; 3], Hears) {
    let delivery = [[0.0, d, 0.0], [d, 0.0, d], [0.0, d, 0.0]].map(Vec::from);
    let hears = [(0, vec![1]), (1, vec![0, 2]), (2, vec![1])];
    let hears = hears.map(|(node, hears)| (id(node), hears.into_iter().map(id).collect()));
    (delivery, hears.into())
}

#[test]
fn nodes_that_stall_know_the_mesh_again() {
    let (line, mesh) = line(0.9);
    for seed in 0..300 {
        assert!(agree(&line, 3, seed, |knows| *knows == mesh), "seed {seed}");
    }
}

/// Clocks show times that are years apart, and one is a twentieth faster than another.
#[test]
fn nodes_whose_clocks_disagree_know_the_mesh_and_go_on_knowing_it() {
    // A link that loses frames may be taken for gone by chance, whatever clocks show.
    let (line, hears) = line(1.0);
    let clocks = [(0, 1.0), (10 * 365 * 86_400, 1.03), (3, 0.98)];
    let clock = |index: usize| {
        let (seconds, rate) = clocks[index];
        Clock { origin: Instant::from_nanos(seconds * 1_000_000_000), rate }
    };
    for seed in 0..20 {
        let mut mesh = Mesh::new(&line, clock, 0, seed);
        assert!(mesh.agrees(Instant::default(), |knows| *knows == hears), "seed {seed}");
        let end = mesh.now + PATIENCE;
        while mesh.now < end {
            mesh.step();
            let lost = mesh.nodes.iter().find(|node| node.knows() != hears);
            assert!(lost.is_none(), "seed {seed} at {:?}: {:?}", mesh.now, lost.map(Node::knows));
        }
    }
}

#[test]
fn a_node_behind_a_poor_link_learns_of_all_others() {
    const NODES: usize = 66;
    // The first node hears the second, and is heard by it, seldom.
    let link = |from: usize, to: usize| match (from, to) {
        (0, 1) => 0.32,
        (1, 0) => 0.16,
        (0, _) | (_, 0) => 0.0,
        _ => f64::from(u8::from(from.abs_diff(to) <= 3 && from != to)) * 0.95,
    };
    let row = |from| (0..NODES).map(|to| link(from, to)).collect();
    let mesh: Vec<Vec<f64>> = (0..NODES).map(row).collect();
    for seed in 0..12 {
        assert!(agree(&mesh, 0, seed, |knows| knows.len() == NODES), "seed {seed}");
    }
}
