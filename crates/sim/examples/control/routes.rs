//! Paths by the nodes' own topologies, and how good they are.

use crate::graph::Graph;
use crate::statistics::{mean, percentile};
use ncmesh_engine::rng;
use ncmesh_engine::topology::{Metric, Paths, Topology};
use ncmesh_sim::{Simulation, node_id};
use ncmesh_wire::NodeId;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Random nodes to which paths are judged, and random nodes from which, for each: 2,000 pairs.
const DESTINATIONS: usize = 50;
const SOURCES: usize = 40;
/// Nodes asked for the nodes they know. In larger meshes they stand for the others.
pub(crate) const MOST_ASKED: usize = 1_000;

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

/// Returns the first node from `from` on, and then from 0 on, that has no path to some node that
/// runs.
pub(crate) fn incomplete(simulation: &Simulation, from: usize) -> Option<usize> {
    let mut asked = asked(simulation);
    let start = asked.partition_point(|&node| node < from);
    asked.rotate_left(start);
    asked.into_iter().find(|&node| !is_complete(simulation, node))
}

/// Returns the share of ordered pairs of running nodes for which the first has a path to the other.
pub(crate) fn reach(simulation: &Simulation) -> f64 {
    let asked = asked(simulation);
    let missing: usize = asked.iter().map(|&node| missing(simulation, node)).sum();
    let others = running_nodes(simulation).len() - 1;
    1.0 - missing as f64 / (asked.len() * others).max(1) as f64
}

/// Returns how many nodes that run a node has no path to.
fn missing(simulation: &Simulation, node: usize) -> usize {
    let Some(stack) = simulation.host(node).stack() else { return 0 };
    let reached = reached(stack.topology(), node_id(node));
    let others = running_nodes(simulation).into_iter();
    others.filter(|&other| !reached.contains(&node_id(other))).count()
}

/// Returns the nodes to which paths of unicast lead, without asking for the paths: a node keeps a
/// graph of the mesh up to date once it was asked, which nodes at rest do not.
fn reached(topology: &Topology, root: NodeId) -> BTreeSet<NodeId> {
    let mut reached = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(at) = open.pop() {
        let heard = topology.state(at).into_iter().flat_map(|state| state.hears.keys());
        let passes = |next: &NodeId| {
            topology.delivery(at, *next) > 0.0 && topology.delivery(*next, at) > 0.0
        };
        open.extend(heard.filter(|next| passes(next) && reached.insert(**next)));
    }
    reached
}

fn running_nodes(simulation: &Simulation) -> Vec<usize> {
    let runs = |node: &usize| simulation.host(*node).stack().is_some();
    (0..simulation.len()).filter(runs).collect()
}

/// Returns running nodes, evenly spaced.
fn asked(simulation: &Simulation) -> Vec<usize> {
    let nodes = running_nodes(simulation);
    let step = nodes.len().div_ceil(MOST_ASKED).max(1);
    nodes.into_iter().step_by(step).collect()
}

/// Judges the paths of random pairs of running nodes. Each hop is chosen by the topology of the
/// node where the packet is.
pub(crate) fn quality(simulation: &Simulation, graph: &Graph, seed: u64) -> Value {
    let nodes = running_nodes(simulation);
    let mut rng = rng::stream(seed, NodeId(0), "control", "pairs");
    let mut pick = || nodes[(rng::unit(&mut rng) * nodes.len() as f64) as usize];
    let destinations: Vec<usize> = (0..DESTINATIONS).map(|_| pick()).collect();
    let next = next_hops(simulation, &destinations);

    let mut stretch = Vec::new();
    let mut unreachable = 0;
    let mut loops = 0;
    let mut broken = 0;
    for (&to, next) in destinations.iter().zip(&next) {
        // A link costs the same in both directions, so that paths from a node are those to it.
        let best = graph.tree(to).etx;
        for from in (0..SOURCES).map(|_| pick()).filter(|&from| from != to) {
            match walk(next, graph, from, to) {
                Walk::Arrived(etx) if etx.is_finite() => stretch.push(etx / best[from]),
                // It leads over a link that nothing passes.
                Walk::Arrived(_) => broken += 1,
                Walk::Unreachable => unreachable += 1,
                Walk::Loop => loops += 1,
            }
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

/// Returns, for each destination, the next hop that each node believes in.
fn next_hops(simulation: &Simulation, destinations: &[usize]) -> Vec<Vec<Option<usize>>> {
    let mut next = vec![vec![None; simulation.len()]; destinations.len()];
    for node in running_nodes(simulation) {
        let Some(paths) = paths(simulation, node) else { continue };
        for (&to, next) in destinations.iter().zip(&mut next) {
            let hop = paths.path_to(node_id(to)).first().copied();
            next[node] = hop.map(|hop| usize::from(hop.0) - 1);
        }
    }
    next
}

/// Where hop-by-hop forwarding leads.
enum Walk {
    /// With the true ETX of the path.
    Arrived(f64),
    Unreachable,
    Loop,
}

/// Follows the next hops to one destination.
fn walk(next: &[Option<usize>], graph: &Graph, from: usize, to: usize) -> Walk {
    let mut at = from;
    let mut etx = 0.0;
    // A path without a loop visits each node at most once.
    for _ in 0..next.len() {
        if at == to {
            return Walk::Arrived(etx);
        }
        let Some(hop) = next[at] else { return Walk::Unreachable };
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
        let mut next = [Some(1), Some(2), None];
        assert!(matches!(walk(&next, &graph, 0, 2), Walk::Arrived(2.0)));
        next[1] = Some(0);
        assert!(matches!(walk(&next, &graph, 0, 2), Walk::Loop));
        next[1] = None;
        assert!(matches!(walk(&next, &graph, 0, 2), Walk::Unreachable));
    }
}
