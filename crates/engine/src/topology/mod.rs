//! The mesh as the link state shows it: delivery of every link, and shortest-ETX paths.
//!
//! Each node tells the others its [`LinkState`]: which share of each neighbour's frames it
//! receives. [`Topology`] collects the states. Paths are shortest by ETX, the expected number of
//! transmissions (De Couto, Aguayo, Bicket, Morris, MobiCom 2003), in fixed-point numbers: sums of
//! floats would depend on the order of addition, and two machines could choose different paths.
//!
//! Most nodes of a large mesh carry nothing most of the time, so nothing is computed before it is
//! asked for. The first question about links builds a graph of flat arrays, which each later state
//! changes in place. Paths are kept for whoever asks next, and are computed anew only after a
//! change that can move one of them.

mod graph;
mod paths;

use graph::{Direction, Graph};
use ncmesh_wire::NodeId;
use paths::Cache;
pub use paths::Paths;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// Transmissions that a path counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Broadcast without acknowledgment: 1/d_f for each hop.
    #[default]
    Broadcast,
    /// Unicast with the MAC's acknowledgment: 1/(d_f d_r) for each hop.
    Unicast,
}

/// Link state of one node: how well it hears its neighbours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkState {
    /// Version of the state: the node's epoch, and a number that grows within it.
    pub version: (u64, u32),
    /// Number of the latest version that the whole mesh was told. Those after it go to nodes
    /// nearby only.
    pub base: u32,
    /// Name of the node.
    pub name: String,
    /// Share of each neighbour's frames that this node receives, 0 to 1.
    pub hears: BTreeMap<NodeId, f64>,
}

/// Link-state database.
#[derive(Debug, Default)]
pub struct Topology {
    /// Latest state of each node.
    states: BTreeMap<NodeId, Arc<LinkState>>,
    /// How many states say that they hear a node.
    hearers: BTreeMap<NodeId, u32>,
    min_delivery: f64,
    /// Whether links to a node count that no other node hears.
    unheard_count: bool,
    version: u64,
    /// Usable links, once somebody has asked for them.
    graph: OnceLock<Graph>,
    paths: Cache,
}

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
        let mut topology = Self { unheard_count: true, ..Self::default() };
        for (node, hears) in (1..=u16::MAX).map(NodeId).zip(hears) {
            let name = format!("n{node}");
            topology.learn(node, LinkState { version: (0, 1), base: 1, name, hears });
        }
        topology
    }

    /// Returns a number that grows whenever a link or its delivery changes.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Stores the state of a node if it is newer than the one known. Returns whether it was.
    pub fn learn(&mut self, node: NodeId, state: impl Into<Arc<LinkState>>) -> bool {
        let state = state.into();
        let newer = self.states.get(&node).is_none_or(|known| known.version < state.version);
        if newer {
            self.replace(node, Some(&state));
        }
        newer
    }

    /// Removes the state of a node.
    pub fn forget(&mut self, node: NodeId) {
        self.replace(node, None);
    }

    /// Changes the link from one node to another, or removes it, until the receiver tells its links
    /// anew. Returns its delivery before. Does nothing if the receiver's state is not known.
    pub fn set_link(&mut self, from: NodeId, to: NodeId, delivery: Option<f64>) -> Option<f64> {
        let known = self.state(to)?;
        let before = known.hears.get(&from).copied();
        if before != delivery {
            let mut state = known.clone();
            match delivery {
                Some(delivery) => drop(state.hears.insert(from, delivery)),
                None => drop(state.hears.remove(&from)),
            }
            self.replace(to, Some(&Arc::new(state)));
        }
        before
    }

    /// Returns the state of a node.
    #[must_use]
    pub fn state(&self, node: NodeId) -> Option<&LinkState> {
        self.states.get(&node).map(Arc::as_ref)
    }

    /// Returns every node whose state is known, with it, in ascending order.
    pub fn states(&self) -> impl Iterator<Item = (NodeId, &LinkState)> {
        self.states.iter().map(|(node, state)| (*node, state.as_ref()))
    }

    /// Returns the nodes from `first` to `last` whose state is known, with it.
    pub fn states_between(
        &self,
        first: NodeId,
        last: NodeId,
    ) -> impl Iterator<Item = (NodeId, &LinkState)> {
        // A range that ends before it begins is empty.
        let range = (first <= last).then(|| self.states.range(first..=last));
        range.into_iter().flatten().map(|(node, state)| (*node, state.as_ref()))
    }

    /// Returns the nodes whose state is known, in ascending order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.states.keys().copied()
    }

    /// Returns the number of nodes whose state is known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns whether no state is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the nodes of this name. There are several if operators gave two nodes the same name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        self.states().filter(move |(_, state)| state.name == name).map(|(node, _)| node)
    }

    /// Returns whether some state says that it hears `node`.
    #[must_use]
    pub fn is_heard(&self, node: NodeId) -> bool {
        self.unheard_count || self.hearers.contains_key(&node)
    }

    /// Returns the nodes that `root` hears, those that they hear, and so on, with `root`.
    #[must_use]
    pub fn around(&self, root: NodeId) -> BTreeSet<NodeId> {
        let mut reached = BTreeSet::from([root]);
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            let heard = self.state(node).into_iter().flat_map(|state| state.hears.keys());
            open.extend(heard.filter(|node| reached.insert(**node)));
        }
        reached
    }

    /// Returns the share of broadcasts of `from` that `to` receives; 0 if there is no usable link.
    #[must_use]
    pub fn delivery(&self, from: NodeId, to: NodeId) -> f64 {
        let heard = self.states.get(&to).and_then(|state| state.hears.get(&from));
        heard.filter(|d| self.is_usable(**d) && self.is_heard(to)).copied().unwrap_or(0.0)
    }

    /// Returns the usable links from a node: neighbour and delivery.
    pub fn links_from(&self, from: NodeId) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        let graph = self.graph();
        graph.slot(from).into_iter().flat_map(move |slot| graph.links_from(slot))
    }

    /// Returns the shortest paths from `root` to every node that it reaches.
    #[must_use]
    pub fn paths_from(&self, root: NodeId, metric: Metric) -> Arc<Paths> {
        self.paths.get(self.graph(), self.version, (root, metric, Direction::From))
    }

    /// Returns the shortest paths to `root` from every node that reaches it.
    #[must_use]
    pub fn paths_to(&self, root: NodeId, metric: Metric) -> Arc<Paths> {
        self.paths.get(self.graph(), self.version, (root, metric, Direction::To))
    }

    /// Returns the neighbour of `me` on the shortest path to `to`; `None` if there is no path.
    #[must_use]
    pub fn next_hop(&self, me: NodeId, to: NodeId, metric: Metric) -> Option<NodeId> {
        self.paths_from(me, metric).first_hop(to)
    }

    fn is_usable(&self, delivery: f64) -> bool {
        delivery > 0.0 && delivery >= self.min_delivery
    }

    /// Returns the graph of usable links; builds it if this is the first question.
    fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| {
            let mut graph = Graph::new(self.version);
            for (to, state) in self.states().filter(|(to, _)| self.is_heard(*to)) {
                for (from, delivery) in state.hears.iter().filter(|(_, d)| self.is_usable(**d)) {
                    graph.set(*from, to, Some(*delivery), self.version);
                }
            }
            graph
        })
    }

    /// Stores or removes the state of a node, and changes the graph accordingly.
    fn replace(&mut self, node: NodeId, state: Option<&Arc<LinkState>>) {
        let old = match state {
            Some(state) => self.states.insert(node, Arc::clone(state)),
            None => self.states.remove(&node),
        };
        let none = BTreeMap::new();
        let before = old.as_ref().map_or(&none, |old| &old.hears);
        let after = state.map_or(&none, |state| &state.hears);
        if before == after {
            return;
        }

        // A link is used only while some node hears its receiver: the state of a node that died
        // stays here for a while. So each neighbour that appears or vanishes in this state may make
        // its own links usable, or unusable.
        let mut turned = Vec::new();
        for heard in after.keys().filter(|n| !before.contains_key(n)) {
            let count = self.hearers.entry(*heard).or_default();
            *count += 1;
            if *count == 1 {
                turned.push(*heard);
            }
        }
        for heard in before.keys().filter(|n| !after.contains_key(n)) {
            if let Some(count) = self.hearers.get_mut(heard) {
                *count -= 1;
                if *count == 0 {
                    self.hearers.remove(heard);
                    turned.push(*heard);
                }
            }
        }

        // Without a graph nobody has asked about links, and every change counts as one of a link.
        let version = self.version + 1;
        let Some(mut graph) = self.graph.take() else {
            self.version = version;
            return;
        };
        for from in before.keys().filter(|n| !after.contains_key(n)) {
            graph.set(*from, node, None, version);
        }
        let changed = after.iter().filter(|(from, delivery)| before.get(from) != Some(delivery));
        let turned = turned.iter().filter_map(|to| Some((*to, &self.states.get(to)?.hears)));
        let turned = turned.flat_map(|(to, hears)| hears.iter().map(move |link| (to, link)));
        for (to, (from, delivery)) in changed.map(|link| (node, link)).chain(turned) {
            let usable = self.is_usable(*delivery) && self.is_heard(to);
            graph.set(*from, to, usable.then_some(*delivery), version);
        }
        if graph.changed_at() == Some(version) {
            self.version = version;
        }
        self.graph = OnceLock::from(graph);
    }
}

impl Clone for Topology {
    /// Returns the same mesh; graph and paths are computed anew when they are asked for.
    fn clone(&self) -> Self {
        Self {
            states: self.states.clone(),
            hearers: self.hearers.clone(),
            min_delivery: self.min_delivery,
            unheard_count: self.unheard_count,
            version: self.version,
            graph: OnceLock::new(),
            paths: Cache::default(),
        }
    }
}

#[cfg(test)]
mod tests;
