//! The mesh as the link state shows it: who hears whom how well, and shortest-ETX paths over it.

use crate::time::Instant;
use ncmesh_wire::NodeId;
use pathfinding::directed::dijkstra::dijkstra_all;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Which transmissions a path is measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Broadcast without acknowledgment: 1/d_f per hop.
    #[default]
    Broadcast,
    /// Unicast with the MAC's acknowledgment: 1/(d_f d_r) per hop.
    Unicast,
}

/// One node's link state: what it hears of its neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkState {
    /// Orders the states of one node: its epoch, then a number within it.
    pub version: (u64, u32),
    /// The node's name.
    pub name: String,
    /// Share of each neighbour's probes that arrives at this node.
    pub hears: BTreeMap<NodeId, f64>,
}

/// The link-state database.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    states: BTreeMap<NodeId, (LinkState, Instant)>,
    /// `out[i]`: the usable links from i, with their delivery.
    out: BTreeMap<NodeId, BTreeMap<NodeId, f64>>,
    min_delivery: f64,
    version: u64,
}

/// ETX is counted in these units, so that paths are compared alike on every machine.
const ETX_UNIT: f64 = (1u64 << 40) as f64;

/// What a link costs at most, so that no path through 2^16 nodes overflows.
const WORST_LINK: u128 = u128::MAX >> 16;

impl Topology {
    /// An empty mesh, in which links below `min_delivery` are not used.
    #[must_use]
    pub fn new(min_delivery: f64) -> Self {
        Self { min_delivery, ..Self::default() }
    }

    /// A mesh known from elsewhere: `hears[i]` is what node `i + 1` hears. Every link that delivers anything is
    /// used, whether or not somebody hears its receiver.
    #[must_use]
    pub fn known(hears: Vec<BTreeMap<NodeId, f64>>) -> Self {
        let mut topology = Self { version: 1, ..Self::default() };
        for (node, hears) in (1..=u16::MAX).map(NodeId).zip(hears) {
            for (from, delivery) in hears.iter().filter(|(_, delivery)| **delivery > 0.0) {
                topology.out.entry(*from).or_default().insert(node, *delivery);
            }
            let state = LinkState { version: (0, 1), name: format!("n{node}"), hears };
            topology.states.insert(node, (state, Instant::default()));
        }
        topology
    }

    /// Changes whenever anything here does.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Takes in a node's state if it is newer than what is known. Says whether it was.
    pub fn learn(&mut self, node: NodeId, state: LinkState, now: Instant) -> bool {
        if self.states.get(&node).is_some_and(|(known, _)| known.version >= state.version) {
            return false;
        }
        let same_links = self.states.get(&node).is_some_and(|(k, _)| k.hears == state.hears);
        self.states.insert(node, (state, now));
        if !same_links {
            self.rebuild();
        }
        true
    }

    /// Forgets states learned before `oldest`.
    pub fn age(&mut self, oldest: Instant) {
        let before = self.states.len();
        self.states.retain(|_, (_, learned)| *learned >= oldest);
        if self.states.len() != before {
            self.rebuild();
        }
    }

    /// When the oldest state was learned.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        self.states.values().map(|(_, learned)| *learned).min()
    }

    /// A node's state.
    #[must_use]
    pub fn state(&self, node: NodeId) -> Option<&LinkState> {
        self.states.get(&node).map(|(state, _)| state)
    }

    /// Every node whose state is known, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.states.keys().copied()
    }

    /// The nodes of a name: one, unless two were given the same.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        self.states.iter().filter(move |(_, (state, _))| state.name == name).map(|(node, _)| *node)
    }

    /// Share of `from`'s broadcasts that `to` receives; 0 where there is no usable link.
    #[must_use]
    pub fn delivery(&self, from: NodeId, to: NodeId) -> f64 {
        self.out.get(&from).and_then(|links| links.get(&to)).copied().unwrap_or(0.0)
    }

    /// The usable links from a node: neighbour and delivery.
    pub fn links_from(&self, from: NodeId) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        self.out.get(&from).into_iter().flatten().map(|(to, d)| (*to, *d))
    }

    /// Shortest-ETX paths from `root` to all it reaches.
    #[must_use]
    pub fn paths_from(&self, root: NodeId, metric: Metric) -> Paths {
        let steps = |from: &NodeId| {
            let from = *from;
            self.links_from(from)
                .filter_map(move |(to, d)| Some((to, self.cost(from, to, d, metric)?)))
                .collect::<Vec<_>>()
        };
        let reached = dijkstra_all(&root, steps);
        Paths { root, hops: reached.into_iter().collect() }
    }

    /// Shortest-ETX paths to `root` from all that reach it.
    #[must_use]
    pub fn paths_to(&self, root: NodeId, metric: Metric) -> Paths {
        let steps = |to: &NodeId| {
            let to = *to;
            self.links_to(to)
                .filter_map(move |(from, d)| Some((from, self.cost(from, to, d, metric)?)))
                .collect::<Vec<_>>()
        };
        let reached = dijkstra_all(&root, steps);
        Paths { root, hops: reached.into_iter().collect() }
    }

    /// The usable links to a node: neighbour and delivery.
    fn links_to(&self, to: NodeId) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        let heard = self.states.get(&to).into_iter().flat_map(|(state, _)| state.hears.keys());
        heard.map(move |from| (*from, self.delivery(*from, to))).filter(|(_, d)| *d > 0.0)
    }

    fn cost(&self, from: NodeId, to: NodeId, forward: f64, metric: Metric) -> Option<u128> {
        let delivery = match metric {
            Metric::Broadcast => forward,
            Metric::Unicast => forward * self.delivery(to, from),
        };
        (delivery > 0.0).then(|| WORST_LINK.min((ETX_UNIT / delivery).round() as u128))
    }

    /// A link is used while its receiver is alive: while somebody hears the receiver.
    fn rebuild(&mut self) {
        self.version += 1;
        let heard: BTreeSet<NodeId> =
            self.states.values().flat_map(|(state, _)| state.hears.keys().copied()).collect();
        self.out.clear();
        for (to, (state, _)) in self.states.iter().filter(|(to, _)| heard.contains(to)) {
            for (from, d) in state.hears.iter().filter(|(_, d)| **d >= self.min_delivery) {
                self.out.entry(*from).or_default().insert(*to, *d);
            }
        }
    }
}

/// Shortest paths from one root, or to it.
#[derive(Clone, Debug)]
pub struct Paths {
    root: NodeId,
    hops: BTreeMap<NodeId, (NodeId, u128)>,
}

impl Paths {
    /// Whether there is a path between the root and `node`.
    #[must_use]
    pub fn reaches(&self, node: NodeId) -> bool {
        node == self.root || self.hops.contains_key(&node)
    }

    /// The node beside `node` on its path, on the root's side.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.hops.get(&node).map(|(parent, _)| *parent)
    }

    /// ETX between the root and `node`, in fixed-point units; 0 for the root, the maximum if unreachable.
    #[must_use]
    pub fn distance(&self, node: NodeId) -> u128 {
        if node == self.root {
            return 0;
        }
        self.hops.get(&node).map_or(u128::MAX, |(_, cost)| *cost)
    }

    /// ETX between the root and `node`, expected transmissions.
    #[must_use]
    pub fn etx(&self, node: NodeId) -> Option<f64> {
        self.reaches(node).then(|| self.distance(node) as f64 / ETX_UNIT)
    }

    /// The nodes of the path between the root (exclusive) and `node` (inclusive), beginning at the root.
    #[must_use]
    pub fn path_to(&self, node: NodeId) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut at = node;
        while let Some(parent) = self.parent(at) {
            path.push(at);
            at = parent;
        }
        path.reverse();
        path
    }
}

/// By which neighbour each node is reached by unicast, worked out anew when the mesh has changed.
#[derive(Clone, Debug, Default)]
pub struct NextHops {
    metric: Metric,
    /// Of this version of the mesh.
    paths: Option<(u64, Paths)>,
}

impl NextHops {
    /// None known yet.
    pub fn new(metric: Metric) -> Self {
        Self { metric, paths: None }
    }

    /// The shortest paths from `me`.
    pub fn paths(&mut self, topology: &Topology, me: NodeId) -> &Paths {
        let known = self.paths.take().filter(|(version, _)| *version == topology.version());
        let fresh = || (topology.version(), topology.paths_from(me, self.metric));
        &self.paths.insert(known.unwrap_or_else(fresh)).1
    }

    /// The neighbour of `me` on the shortest path to `to`.
    pub fn towards(&mut self, topology: &Topology, me: NodeId, to: NodeId) -> Option<NodeId> {
        self.paths(topology, me).path_to(to).first().copied()
    }
}
