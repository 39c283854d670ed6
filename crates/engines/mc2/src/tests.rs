//! Tests of the parts and of the engine at one node. Whole meshes are in the workspace's `tests`.

mod config;
mod credits;
mod egress;
mod engine;
mod feedback;
mod frames;
mod paths;
mod prediction;
mod share;

use crate::choice::PathChoice;
use crate::frame::{Acknowledgment, FlowState, GenerationCredits, GenerationHeader};
use crate::paths::PathSet;
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;

/// Returns the mesh of figure 1: node 1 reaches node 4 over node 2 or node 3.
fn diamond(p: f64, q: f64) -> Topology {
    symmetric(&[(1, 2, p), (1, 3, p), (2, 4, q), (3, 4, q)])
}

fn best_paths(topology: &Topology, from: u16, to: u16, k: usize) -> Option<PathSet> {
    let choice = PathChoice { most: k, least_gain: 0.0, needs_reports: true };
    choice.paths(topology, NodeId(from), NodeId(to))
}

/// Returns the paths from node 2 to its neighbour node 4.
fn one_hop() -> PathSet {
    best_paths(&diamond(0.5, 0.8), 2, 4, 1).unwrap()
}

fn credits_of(generation: u32, by_hop: &[u16]) -> GenerationCredits {
    GenerationCredits { generation, by_hop: by_hop.to_vec() }
}

fn header(paths: PathSet) -> GenerationHeader {
    GenerationHeader {
        incarnation: 0x0001_0001,
        paths,
        revision: 2,
        serial: 0x0304,
        wants_ack: true,
        waits_for_ack: true,
        state: FlowState {
            credits: 5,
            done: 0,
            acks: vec![Acknowledgment { of: NodeId(1), latest: 9, before: 0b11 }],
        },
        announced: vec![credits_of(6, &[7])],
        generation: 6,
        generation_size: 2,
        packets: 0,
        packets_before: 2,
        symbol_size: 3,
    }
}
