//! The mesh as the link state shows it: delivery of every link, and shortest-ETX paths.
//!
//! Each node floods a [`LinkState`]: which share of each neighbour's probes it receives.
//! [`Topology`] collects them into a graph. Paths are shortest by ETX, the expected number of
//! transmissions (De Couto, Aguayo, Bicket, Morris, MobiCom 2003), in fixed-point numbers: sums of
//! floats would depend on the order of addition, and two machines could choose different paths.

use crate::time::Instant;
use ncmesh_wire::NodeId;
use pathfinding::directed::dijkstra::dijkstra_all;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Transmissions that a path counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Broadcast without acknowledgment: 1/d_f for each hop.
    #[default]
    Broadcast,
    /// Unicast with the MAC's acknowledgment: 1/(d_f d_r) for each hop.
    Unicast,
}

/// Link state of one node: how well it hears its neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkState {
    /// Version of the state: the node's epoch, and a number that grows within it.
    pub version: (u64, u32),
    /// Name of the node.
    pub name: String,
    /// Share of each neighbour's probes that this node receives, 0 to 1.
    pub hears: BTreeMap<NodeId, f64>,
}

/// Link-state database.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Latest state of each node, and when it was learned.
    states: BTreeMap<NodeId, (LinkState, Instant)>,
    /// Usable links from each node, with their delivery.
    out: BTreeMap<NodeId, BTreeMap<NodeId, f64>>,
    min_delivery: f64,
    version: u64,
}

/// Fixed-point units of ETX, so that every machine compares paths alike.
const ETX_UNIT: f64 = (1u64 << 40) as f64;

/// Highest cost of a link. A path through 2^16 such links does not overflow.
const WORST_LINK: u128 = u128::MAX >> 16;

impl Topology {
    /// Returns an empty mesh, in which links with a delivery below `min_delivery` are not used.
    #[must_use]
    pub fn new(min_delivery: f64) -> Self {
        Self { min_delivery, ..Self::default() }
    }

    /// Returns a mesh that is known without link state: `hears[i]` says what node `i + 1` hears.
    /// Every link with a delivery above 0 is used, even if no node hears its receiver.
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

    /// Returns a number that grows whenever a link or its delivery changes.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Stores the state of a node if it is newer than the one known. Returns whether it was.
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

    /// Removes states that were learned before `oldest`.
    pub fn age(&mut self, oldest: Instant) {
        let before = self.states.len();
        self.states.retain(|_, (_, learned)| *learned >= oldest);
        if self.states.len() != before {
            self.rebuild();
        }
    }

    /// Returns when the oldest state was learned.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        self.states.values().map(|(_, learned)| *learned).min()
    }

    /// Returns the state of a node.
    #[must_use]
    pub fn state(&self, node: NodeId) -> Option<&LinkState> {
        self.states.get(&node).map(|(state, _)| state)
    }

    /// Returns the nodes whose state is known, in ascending order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.states.keys().copied()
    }

    /// Returns the nodes of this name. There are several if operators gave two nodes the same name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        self.states.iter().filter(move |(_, (state, _))| state.name == name).map(|(node, _)| *node)
    }

    /// Returns the share of broadcasts of `from` that `to` receives; 0 if there is no usable link.
    #[must_use]
    pub fn delivery(&self, from: NodeId, to: NodeId) -> f64 {
        self.out.get(&from).and_then(|links| links.get(&to)).copied().unwrap_or(0.0)
    }

    /// Returns the usable links from a node: neighbour and delivery.
    pub fn links_from(&self, from: NodeId) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        self.out.get(&from).into_iter().flatten().map(|(to, d)| (*to, *d))
    }

    /// Returns the shortest paths from `root` to every node that it reaches.
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

    /// Returns the shortest paths to `root` from every node that reaches it.
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

    /// Returns the usable links to a node: neighbour and delivery.
    fn links_to(&self, to: NodeId) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        let heard = self.states.get(&to).into_iter().flat_map(|(state, _)| state.hears.keys());
        heard.map(move |from| (*from, self.delivery(*from, to))).filter(|(_, d)| *d > 0.0)
    }

    /// Returns the cost of a link, in units of [`ETX_UNIT`]; `None` if nothing can pass it.
    fn cost(&self, from: NodeId, to: NodeId, forward: f64, metric: Metric) -> Option<u128> {
        let delivery = match metric {
            Metric::Broadcast => forward,
            Metric::Unicast => forward * self.delivery(to, from),
        };
        (delivery > 0.0).then(|| WORST_LINK.min((ETX_UNIT / delivery).round() as u128))
    }

    /// Computes the usable links anew. A link is used only while some node hears its receiver: the
    /// state of a node that died stays in the database for a while.
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
///
/// They form a tree: each node has a parent on the side of the root.
#[derive(Clone, Debug)]
pub struct Paths {
    root: NodeId,
    /// Parent and distance of each node except the root.
    hops: BTreeMap<NodeId, (NodeId, u128)>,
}

impl Paths {
    /// Returns whether there is a path between the root and `node`.
    #[must_use]
    pub fn reaches(&self, node: NodeId) -> bool {
        node == self.root || self.hops.contains_key(&node)
    }

    /// Returns the neighbour of `node` on its path, on the side of the root.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.hops.get(&node).map(|(parent, _)| *parent)
    }

    /// Returns the ETX between the root and `node` in fixed-point units: 0 for the root, the
    /// maximum if there is no path.
    #[must_use]
    pub fn distance(&self, node: NodeId) -> u128 {
        if node == self.root {
            return 0;
        }
        self.hops.get(&node).map_or(u128::MAX, |(_, cost)| *cost)
    }

    /// Returns the ETX between the root and `node`, expected transmissions; `None` if there is no
    /// path.
    #[must_use]
    pub fn etx(&self, node: NodeId) -> Option<f64> {
        self.reaches(node).then(|| self.distance(node) as f64 / ETX_UNIT)
    }

    /// Returns the nodes of the path from the root (exclusive) to `node` (inclusive); empty if
    /// there is no path.
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

/// Cache of the shortest paths from one node. It is computed anew when the mesh has changed.
#[derive(Clone, Debug, Default)]
pub struct NextHops {
    metric: Metric,
    /// Version of the mesh, and the paths in it.
    paths: Option<(u64, Paths)>,
}

impl NextHops {
    /// Returns an empty cache for paths by this metric.
    pub fn new(metric: Metric) -> Self {
        Self { metric, paths: None }
    }

    /// Returns the shortest paths from `me`.
    pub fn paths(&mut self, topology: &Topology, me: NodeId) -> &Paths {
        let known = self.paths.take().filter(|(version, _)| *version == topology.version());
        let fresh = || (topology.version(), topology.paths_from(me, self.metric));
        &self.paths.insert(known.unwrap_or_else(fresh)).1
    }

    /// Returns the neighbour of `me` on the shortest path to `to`; `None` if there is no path.
    pub fn towards(&mut self, topology: &Topology, me: NodeId, to: NodeId) -> Option<NodeId> {
        self.paths(topology, me).path_to(to).first().copied()
    }
}
