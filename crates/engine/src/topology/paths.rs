//! Shortest paths, and the cache that shares them between services.
//!
//! Where nodes tell their ports, hops that follow each other on different channels count less than
//! their sum: the relay between them sends while it receives. Half of the shorter hop is taken off
//! (a channel switching cost, turned round: Yang, Wang, Kravets, WiMesh 2005). So three hops on two
//! channels count as much as the two hops on the more crowded channel. The saving depends on the
//! hop before, so a search keeps the best way to each node by each of its channels. A hop adds at
//! least half of itself: each node of a path is nearer to the root than the one behind it, and no
//! packet turns in a circle.

use super::Metric;
use super::graph::{Change, Direction, ETX_UNIT, Graph, Slot, Step};
use super::ports::NO_CHANNEL;
use ncmesh_wire::NodeId;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Arc, Mutex, PoisonError};

/// Most roots whose paths are kept.
const MAX_ROOTS: usize = 1024;

/// Shortest paths from one root, or to it.
///
/// They form a tree: each node has a parent on the side of the root.
#[derive(Clone, Debug)]
pub struct Paths {
    root: NodeId,
    /// Each node except the root with its parent and distance, in ascending order of nodes.
    hops: Vec<(NodeId, NodeId, u128)>,
}

impl Paths {
    fn new(graph: &Graph, (root, metric, direction): Key) -> Self {
        let start = graph.slot(root);
        let reached = start.map(|start| reach(graph, start, direction, metric)).unwrap_or_default();
        let mut hops: Vec<_> = (0..)
            .zip(reached)
            // The root is no hop on the way to itself.
            .filter(|(slot, _)| start != Some(*slot))
            .filter_map(|(slot, reached)| {
                let Reached { parent, distance } = reached?;
                Some((graph.node(slot), graph.node(parent), distance))
            })
            .collect();

        // Ordered by node, so that a hop is found by binary search.
        hops.sort_unstable();
        Self { root, hops }
    }

    /// Returns whether there is a path between the root and `node`.
    #[must_use]
    pub fn reaches(&self, node: NodeId) -> bool {
        node == self.root || self.hop(node).is_some()
    }

    /// Returns the neighbour of `node` on its path, on the side of the root.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.hop(node).map(|(parent, _)| parent)
    }

    /// Returns the length of the path between the root and `node` in fixed-point units: 0 for the
    /// root, the maximum if there is no path.
    #[must_use]
    pub fn distance(&self, node: NodeId) -> u128 {
        if node == self.root {
            return 0;
        }
        self.hop(node).map_or(u128::MAX, |(_, distance)| distance)
    }

    /// Returns the length of the path between the root and `node`, expected transmissions at the
    /// usual pace of the mesh; `None` if there is no path.
    #[must_use]
    pub fn etx(&self, node: NodeId) -> Option<f64> {
        self.reaches(node).then(|| self.distance(node) as f64 / ETX_UNIT)
    }

    /// Returns the nodes of the path from the root (exclusive) to `node` (inclusive); empty if
    /// there is no path.
    #[must_use]
    pub fn path_to(&self, node: NodeId) -> Vec<NodeId> {
        let mut path: Vec<NodeId> = self.up_from(node).collect();
        path.reverse();
        path
    }

    /// Returns whether the path between the root and `node` leads over another node.
    #[must_use]
    pub fn leads_over(&self, node: NodeId, other: NodeId) -> bool {
        std::iter::successors(self.parent(node), |at| self.parent(*at)).any(|at| at == other)
    }

    /// Returns the first node behind the root on the path to `node`; `None` if there is no path.
    #[must_use]
    pub fn first_hop(&self, node: NodeId) -> Option<NodeId> {
        self.up_from(node).last()
    }

    /// Returns `node` and the nodes between it and the root; none if there is no path.
    fn up_from(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let known = Some(node).filter(|node| self.parent(*node).is_some());
        std::iter::successors(known, |at| self.parent(*at).filter(|parent| *parent != self.root))
    }

    fn hop(&self, node: NodeId) -> Option<(NodeId, u128)> {
        let at = self.hops.binary_search_by_key(&node, |(node, ..)| *node).ok()?;
        let (_, parent, distance) = self.hops[at];
        Some((parent, distance))
    }

    /// Returns whether these paths may not be the shortest any more after a change. A link that is
    /// on none of them, and that offers no node a shorter way, moves no path.
    fn may_move(&self, graph: &Graph, change: Change, (_, metric, direction): Key) -> bool {
        // With several channels the shortest path to a node may lead over a longer one to a relay.
        if graph.channels() > 1 {
            return true;
        }

        let passes = |from: NodeId, to: NodeId| {
            // A link moves paths if it is the last hop to its far end, or if it would be a shorter
            // one.
            let (near, far) = match direction {
                Direction::From => (from, to),
                Direction::To => (to, from),
            };

            if self.parent(far) == Some(near) {
                return true;
            }
            let cost = graph.cost(from, to, metric).filter(|_| self.reaches(near));
            cost.is_some_and(|cost| self.distance(near) + cost < self.distance(far))
        };

        let Change { from, to, .. } = change;
        passes(from, to) || (metric.counts_back() && passes(to, from))
    }
}

/// A slot that a search has reached.
#[derive(Clone, Copy)]
struct Reached {
    parent: Slot,
    distance: u128,
}

/// A slot whose steps a search has yet to take, and the hop by which it came there. The nearest is
/// the greatest, for a heap gives its greatest first.
struct Open {
    slot: Slot,
    /// Channel of the last hop at this slot, and what that hop costs alone.
    channel: u8,
    last: u128,
    distance: u128,
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.cmp(&self.distance)
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Open {}

/// Returns the shortest paths between `start` and each slot (Dijkstra 1959); `None` for those that
/// it does not reach.
fn reach(graph: &Graph, start: Slot, direction: Direction, metric: Metric) -> Vec<Option<Reached>> {
    // One entry for each slot and each channel at it; nodes that tell no ports have one.
    let channels = graph.channels();
    let entry = |slot: Slot, channel: u8| usize::from(slot) * channels + usize::from(channel);
    let mut reached = vec![None; graph.len() * channels];
    reached[entry(start, NO_CHANNEL)] = Some(Reached { parent: start, distance: 0 });
    let mut open =
        BinaryHeap::from([Open { slot: start, channel: NO_CHANNEL, last: 0, distance: 0 }]);

    while let Some(Open { slot, channel, last, distance }) = open.pop() {
        // A shorter way was found since, and its steps were taken.
        let known: Option<Reached> = reached[entry(slot, channel)];
        if known.is_some_and(|known| known.distance < distance) {
            continue;
        }

        for Step { to, cost, near, far } in graph.steps(slot, direction, metric) {
            // A relay with two channels sends on one while it receives on the other.
            let switches = near != channel && near != NO_CHANNEL && channel != NO_CHANNEL;
            let overlap = if switches { last.min(cost) / 2 } else { 0 };
            let distance = distance + cost - overlap;
            let known = &mut reached[entry(to, far)];
            if known.is_none_or(|known| distance < known.distance) {
                *known = Some(Reached { parent: slot, distance });
                open.push(Open { slot: to, channel: far, last: cost, distance });
            }
        }
    }

    let shortest =
        |ways: &[Option<Reached>]| ways.iter().flatten().min_by_key(|way| way.distance).copied();
    reached.chunks(channels).map(shortest).collect()
}

/// Root of paths, what they count, and where they lead.
pub(super) type Key = (NodeId, Metric, Direction);

/// Paths that somebody has asked for, with the version of the topology for which they hold.
#[derive(Debug, Default)]
pub(super) struct Cache {
    paths: Mutex<BTreeMap<Key, (u64, Arc<Paths>)>>,
}

impl Cache {
    /// Returns the paths in a graph, which is that of `version` of the topology.
    pub(super) fn get(&self, graph: &Graph, version: u64, key: Key) -> Arc<Paths> {
        let mut cache = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, paths)) = cache.get_mut(&key) {
            // Most changes move no path. Looking at each change is much cheaper than computing all
            // paths anew.
            let still = *known == version
                || graph.changes_after(*known).is_some_and(|mut changes| {
                    changes.all(|change| !paths.may_move(graph, change, key))
                });
            if still {
                *known = version;
                return Arc::clone(paths);
            }
        }

        // A caller that needs so many roots in turn would evict each before it comes back to it, so
        // that evicting one at a time would keep nothing of use.
        if cache.len() >= MAX_ROOTS && !cache.contains_key(&key) {
            cache.clear();
        }

        let paths = Arc::new(Paths::new(graph, key));
        cache.insert(key, (version, Arc::clone(&paths)));
        paths
    }
}
