//! Traffic during a measurement.

use crate::graph::Graph;
use ncmesh_engine::rng;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_sim::scenario::Content;
use ncmesh_sim::{Observation, Simulation, contents};
use ncmesh_stack::Stack;
use ncmesh_wire::{FlowId, NodeId};
use serde_json::{Value, json};

/// Traffic begins when the nodes had this time to find each other.
const START: Duration = Duration::from_secs(10);
/// Size of a file, bytes, and the scheme that carries it.
const FILE_BYTES: u64 = 3_000_000;
const FILE_SCHEME: &str = "cascade";
/// Number of flows, the scheme that carries them, and their packets: 80 kbit/s for each flow.
const FLOWS: usize = 8;
const FLOW_SCHEME: &str = "braid";
const PACKET_BYTES: usize = 1_000;
const PACKET_INTERVAL: Duration = Duration::from_millis(100);

/// Traffic of a mesh.
pub(crate) enum Load {
    Idle,
    File(FileLoad),
    Flows(FlowLoad),
}

/// A file to the node that is farthest away, again and again.
pub(crate) struct FileLoad {
    from: usize,
    to: usize,
    /// Length of the best path.
    hops: Option<usize>,
    contents: Vec<u8>,
    /// Transfer under way.
    flow: Option<FlowId>,
    /// Number of observations of the simulation that were read.
    seen: usize,
    delivered: u64,
}

/// Packets between random pairs at a constant rate.
pub(crate) struct FlowLoad {
    pairs: Vec<(usize, usize)>,
    due: Instant,
    sent: usize,
    refused: u64,
    delivered: u64,
}

impl Load {
    /// Returns the file load from a peripheral node to the one that is farthest from it.
    pub(crate) fn file(graph: &Graph, running: &[bool], seed: u64) -> Self {
        let farthest = |from: usize| {
            let etx = graph.tree(from).etx;
            let reached = (0..etx.len()).filter(|&node| running[node] && etx[node].is_finite());
            reached.max_by(|&a, &b| etx[a].total_cmp(&etx[b])).unwrap_or(from)
        };
        let from = farthest(running.iter().position(|&runs| runs).unwrap_or(0));
        let random = Content::Random { bytes: FILE_BYTES };
        let contents = contents(&random, seed, 0).unwrap_or_default();
        let to = farthest(from);
        let hops = graph.tree(from).hops(to);
        Self::File(FileLoad { from, to, hops, contents, flow: None, seen: 0, delivered: 0 })
    }

    /// Returns the load of flows between random pairs.
    pub(crate) fn flows(running: &[bool], seed: u64) -> Self {
        let nodes: Vec<usize> = (0..running.len()).filter(|&node| running[node]).collect();
        let mut rng = rng::stream(seed, NodeId(0), "control", "flows");
        let mut pick = || nodes[(rng::unit(&mut rng) * nodes.len() as f64) as usize];
        let mut pairs = Vec::new();
        while pairs.len() < FLOWS {
            let pair = (pick(), pick());
            if pair.0 != pair.1 {
                pairs.push(pair);
            }
        }
        let due = Instant::default() + START;
        Self::Flows(FlowLoad { pairs, due, sent: 0, refused: 0, delivered: 0 })
    }

    /// Runs the simulation until `until`, with this traffic.
    pub(crate) fn run_until(&mut self, simulation: &mut Simulation, until: Instant) {
        match self {
            Self::Idle => {}
            Self::File(file) => file.begin(simulation),
            Self::Flows(flows) => flows.send_until(simulation, until),
        }
        simulation.run_until(until, |_| false);
    }

    /// Returns what came of the traffic.
    pub(crate) fn report(&self, simulation: &Simulation) -> Value {
        match self {
            Self::Idle => json!({ "kind": "idle" }),
            Self::File(file) => json!({
                "kind": "file",
                "scheme": FILE_SCHEME,
                "file_bytes": FILE_BYTES,
                "hops": file.hops,
                "bytes_received": file.received(simulation),
            }),
            Self::Flows(flows) => json!({
                "kind": "flows",
                "scheme": FLOW_SCHEME,
                "flows": FLOWS,
                "packet_bytes": PACKET_BYTES,
                "packets_offered": flows.sent,
                "packets_refused": flows.refused,
                "packets_delivered": flows.delivered,
            }),
        }
    }
}

impl FileLoad {
    /// Returns the bytes of all files, and of the one under way, that the receiver has.
    fn received(&self, simulation: &Simulation) -> u64 {
        let transfers = simulation.host(self.to).stack().map(Stack::transfers).unwrap_or_default();
        let under_way = transfers.iter().filter(|transfer| transfer.finished.is_none());
        self.delivered * FILE_BYTES + under_way.map(|transfer| transfer.bytes).sum::<u64>()
    }

    /// Begins a transfer unless one is under way.
    fn begin(&mut self, simulation: &mut Simulation) {
        for seen in &simulation.observations()[self.seen..] {
            match seen.observation {
                Observation::Delivered(_) => self.delivered += 1,
                Observation::SendEnded(flow) | Observation::SendFailed(flow)
                    if self.flow == Some(flow) =>
                {
                    self.flow = None;
                }
                _ => {}
            }
        }
        self.seen = simulation.observations().len();
        if self.flow.is_none() && simulation.now() >= Instant::default() + START {
            let to = [self.to];
            let contents = self.contents.clone();
            // A source that was switched off, or knows no path yet, tries again later.
            self.flow = simulation.send_file(FILE_SCHEME, self.from, Some(&to), contents).ok();
        }
    }
}

impl FlowLoad {
    /// Sends the packets that fall due before `until`. The flows take turns.
    fn send_until(&mut self, simulation: &mut Simulation, until: Instant) {
        while self.due < until {
            simulation.run_until(self.due, |_| false);
            let (from, to) = self.pairs[self.sent % FLOWS];
            let packet = [0; PACKET_BYTES];
            let refused = simulation.send_packet(FLOW_SCHEME, from, to, &packet).is_err();
            self.refused += u64::from(refused);
            self.sent += 1;
            self.due = self.due + PACKET_INTERVAL / FLOWS as u32;
            self.delivered += simulation.take_packets().len() as u64;
        }
    }
}
