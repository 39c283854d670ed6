//! What the nodes' own topologies say about paths, and how good those paths are.

use crate::graph::Graph;
use crate::statistics::{mean, percentile};
use ncmesh_engine::rng;
use ncmesh_engine::topology::{Metric, Paths};
use ncmesh_sim::{Simulation, node_id};
use ncmesh_wire::NodeId;
use serde_json::{Value, json};
use std::sync::Arc;

/// Pairs of nodes whose paths are judged.
const PAIRS: usize = 2_000;

/// Returns the paths that a node believes in; `None` if it is switched off.
pub(crate) fn paths(simulation: &Simulation, node: usize) -> Option<Arc<Paths>> {
    let stack = simulation.host(node).stack()?;
    Some(stack.topology().paths_from(node_id(node), Metric::Unicast))
}

/// Returns the nodes that run.
pub(crate) fn running(simulation: &Simulation) -> Vec<bool> {
    (0..simulation.len()).map(|node| simulation.host(node).stack().is_some()).collect()
}

/// Returns whether a node has a path to every node that runs.
pub(crate) fn is_complete(simulation: &Simulation, node: usize) -> bool {
    missing(simulation, node) == 0
}

/// Returns the share of ordered pairs of running nodes for which the first has a path to the other.
pub(crate) fn reach(simulation: &Simulation) -> f64 {
    let nodes: Vec<usize> =
        (0..simulation.len()).filter(|&node| simulation.host(node).stack().is_some()).collect();
    let missing: usize = nodes.iter().map(|&node| missing(simulation, node)).sum();
    1.0 - missing as f64 / (nodes.len() * (nodes.len() - 1)).max(1) as f64
}

fn missing(simulation: &Simulation, node: usize) -> usize {
    let Some(paths) = paths(simulation, node) else { return 0 };
    let others = (0..simulation.len()).filter(|&other| simulation.host(other).stack().is_some());
    others.filter(|&other| !paths.reaches(node_id(other))).count()
}

/// Judges the paths of random pairs of running nodes. Each hop is chosen by the topology of the
/// node where the packet is.
pub(crate) fn quality(simulation: &Simulation, graph: &Graph, seed: u64) -> Value {
    let next: Vec<_> = (0..simulation.len()).map(|node| next_hops(simulation, node)).collect();
    let nodes: Vec<usize> = (0..next.len()).filter(|&node| !next[node].is_empty()).collect();
    let trees: Vec<_> = (0..next.len()).map(|node| graph.tree(node)).collect();
    let mut rng = rng::stream(seed, NodeId(0), "control", "pairs");
    let mut pick = || nodes[(rng::unit(&mut rng) * nodes.len() as f64) as usize];

    let (mut stretch, mut unreachable, mut loops, mut broken) = (Vec::new(), 0, 0, 0);
    for _ in 0..PAIRS {
        let (from, to) = (pick(), pick());
        if from == to {
            continue;
        }
        match walk(&next, graph, from, to) {
            Walk::Arrived(etx) if etx.is_finite() => stretch.push(etx / trees[from].etx[to]),
            // It ends at a link over which nothing passes.
            Walk::Arrived(_) => broken += 1,
            Walk::Unreachable => unreachable += 1,
            Walk::Loop => loops += 1,
        }
    }
    json!({
        "pairs": stretch.len() + unreachable + loops + broken,
        "mean": mean(&stretch),
        "p99": percentile(&stretch, 0.99),
        "max": percentile(&stretch, 1.0),
        "unreachable": unreachable,
        "broken": broken,
        "loops": loops,
    })
}

/// Returns the next hop to every node, as a node believes; nothing if it is switched off.
fn next_hops(simulation: &Simulation, node: usize) -> Vec<Option<usize>> {
    let Some(paths) = paths(simulation, node) else { return Vec::new() };
    let hop = |to| paths.path_to(node_id(to)).first().map(|hop| usize::from(hop.0) - 1);
    (0..simulation.len()).map(hop).collect()
}

/// Where hop-by-hop forwarding leads.
enum Walk {
    /// With the true ETX of the path.
    Arrived(f64),
    Unreachable,
    Loop,
}

fn walk(next: &[Vec<Option<usize>>], graph: &Graph, from: usize, to: usize) -> Walk {
    let (mut at, mut etx) = (from, 0.0);
    // A path without a loop visits each node at most once.
    for _ in 0..next.len() {
        if at == to {
            return Walk::Arrived(etx);
        }
        let Some(hop) = next[at].get(to).copied().flatten() else { return Walk::Unreachable };
        etx += graph.cost(at, hop);
        at = hop;
    }
    Walk::Loop
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_medium::{LossMatrix, RadioId};

    #[test]
    fn loops_and_dead_ends_are_told_apart() {
        let mut loss = LossMatrix::new(3);
        for (a, b) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            loss.set(RadioId(a), RadioId(b), 0.0).unwrap();
        }
        let graph = Graph::new(&loss, &[true; 3]);
        let mut next = vec![
            vec![Some(0), Some(1), Some(1)],
            vec![Some(0), Some(1), Some(2)],
            vec![Some(1), Some(1), Some(2)],
        ];
        assert!(matches!(walk(&next, &graph, 0, 2), Walk::Arrived(2.0)));
        next[1][2] = Some(0);
        assert!(matches!(walk(&next, &graph, 0, 2), Walk::Loop));
        next[1][2] = None;
        assert!(matches!(walk(&next, &graph, 0, 2), Walk::Unreachable));
    }
}
