//! The mesh as the link state shows it: delivery of every link, and shortest-ETX paths.
//!
//! Each node tells the others its [`LinkState`]: which share of each neighbour's frames it
//! receives. [`Topology`] collects the states. Paths are shortest by ETX, the expected number of
//! transmissions (De Couto, Aguayo, Bicket, Morris, MobiCom 2003), in fixed-point numbers: sums of
//! floats would depend on the order of addition, and two machines could choose different paths.
//!
//! Nodes with several ports tell how long frames take on each. Then a transmission counts by its
//! airtime, in units of the pace that is usual in the mesh: a cable is shorter than a radio that
//! loses as little.
//!
//! Most nodes of a large mesh carry nothing most of the time, so nothing is computed before it is
//! asked for. The first question about links builds a graph of flat arrays, which each later state
//! changes in place until nobody asks any more. Paths are kept for whoever asks next, and are
//! computed anew only after a change that can move one of them.

mod graph;
mod paths;
mod ports;
mod profile;
mod shared;

use crate::settings::{Kind, Mismatch, Toml, Value, choice};
use graph::{Direction, Graph, OnPorts};
use litemap::LiteMap;
use ncmesh_wire::NodeId;
use paths::Cache;
pub use paths::Paths;
use ports::NO_CHANNEL;
pub use ports::{LONG_FRAME, Pace, ToldPort, ToldPorts};
pub use profile::{FARTHEST_M, LEAST_FRAME, MAX_PREFIXES, Position, Profile, USUAL_FRAME};
pub use shared::SharedStates;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// Transmissions that a path counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Broadcast without acknowledgment: 1/d_f for each hop.
    #[default]
    Broadcast,
    /// Unicast with the MAC's acknowledgment: 1/(d_f d_r) for each hop.
    Unicast,
    /// Frames whose answers can take another way: as unicast, but a link that brings little or
    /// nothing back counts as if [`LEAST_BACK`] came back. No setting of an engine.
    Answered,
}

/// Share of answers that a link counts for at least where they can take another way. It is the
/// least delivery of links that nodes use by default, so links of one direction come after all
/// others. There is another way: link state says that a node hears this one only if word of it
/// came back.
pub const LEAST_BACK: f64 = 0.05;

impl Value for Metric {
    const KINDS: &'static [Kind] = &[Kind::Text];
    const CHOICES: &'static [&'static str] = &["broadcast", "unicast"];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let name = choice(&value, Self::CHOICES)?;
        Ok(if name == "unicast" { Self::Unicast } else { Self::Broadcast })
    }

    fn to_toml(&self) -> Option<Toml> {
        match self {
            Self::Broadcast => Some("broadcast".into()),
            Self::Unicast => Some("unicast".into()),
            Self::Answered => None,
        }
    }
}

impl Metric {
    /// Returns the share of transmissions over a link that count as successful, from its deliveries
    /// there and `back`. Its inverse is what the link adds to a path.
    #[must_use]
    pub fn success(self, there: f64, back: f64) -> f64 {
        match self {
            Self::Broadcast => there,
            Self::Unicast => there * back,
            Self::Answered => there * back.max(LEAST_BACK),
        }
    }

    /// Returns whether the delivery back counts.
    fn counts_back(self) -> bool {
        self != Self::Broadcast
    }
}

/// Neighbours that a node hears, in ascending order, with the share of their frames that it
/// receives, 0 to 1.
pub type Links = LiteMap<NodeId, f64>;

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
    /// Further facts that it tells of itself.
    pub profile: Profile,
    /// The links to it.
    pub hears: Links,
}

impl LinkState {
    /// Returns what the node tells of itself besides its links.
    fn description(&self) -> (&str, &Profile) {
        (&self.name, &self.profile)
    }
}

/// Knowledge of a node.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Its latest state.
    state: Option<Arc<LinkState>>,
    /// How many states say that they hear it.
    hearers: u32,
}

impl Known {
    fn is_heard(&self) -> bool {
        self.hearers > 0
    }
}

/// Link-state database.
#[derive(Debug, Default)]
pub struct Topology {
    /// Nodes that told their state, or that others say they hear.
    nodes: LiteMap<NodeId, Known>,
    /// How many told their state.
    told: usize,
    min_delivery: f64,
    /// Whether links to a node count that no other node hears.
    unheard_count: bool,
    version: u64,
    /// Grows whenever a node tells another name or profile.
    self_descriptions: u64,
    /// Median of the paces that are told of ports.
    usual: Pace,
    /// The node whose longest frame is the shortest, and its length; `None` where no node tells.
    shortest: Option<(NodeId, u16)>,
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
    pub fn known(hears: Vec<Links>) -> Self {
        let mut topology = Self { unheard_count: true, ..Self::default() };
        for (node, hears) in (1..=u16::MAX).map(NodeId).zip(hears) {
            let name = format!("n{node}");
            topology.learn(
                node,
                LinkState { version: (0, 1), base: 1, name, hears, ..Default::default() },
            );
        }

        topology
    }

    /// Returns a number that grows whenever a link or its delivery changes.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns a number that grows whenever a node tells another name or profile, or tells nothing
    /// any more.
    #[must_use]
    pub fn self_descriptions(&self) -> u64 {
        self.self_descriptions
    }

    /// Stores the state of a node if it is newer than the one known. Returns whether it was.
    pub fn learn(&mut self, node: NodeId, state: impl Into<Arc<LinkState>>) -> bool {
        let state = state.into();
        // States travel by many ways, so an old one may arrive after a newer one.
        let newer = self.state(node).is_none_or(|known| known.version < state.version);
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

        // States are shared among nodes of a simulation, so a change is made in a copy.
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
        self.entry(node)?.state.as_deref()
    }

    /// Returns every node whose state is known, with it, in ascending order.
    pub fn states(&self) -> impl Iterator<Item = (NodeId, &LinkState)> {
        with_state(self.nodes.as_slice())
    }

    /// Returns the nodes from `first` to `last` whose state is known, with it.
    pub fn states_between(
        &self,
        first: NodeId,
        last: NodeId,
    ) -> impl Iterator<Item = (NodeId, &LinkState)> {
        let nodes = self.nodes.as_slice();
        let start = nodes.partition_point(|(node, _)| *node < first);
        let end = nodes.partition_point(|(node, _)| *node <= last);
        // A range that ends before it begins is empty.
        with_state(&nodes[start.min(end)..end])
    }

    /// Returns the nodes whose state is known, in ascending order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.states().map(|(node, _)| node)
    }

    /// Returns the number of nodes whose state is known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.told
    }

    /// Returns whether no state is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.told == 0
    }

    /// Returns the nodes of this name. There are several if operators gave two nodes the same name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = NodeId> + 'a {
        self.states().filter(move |(_, state)| state.name == name).map(|(node, _)| node)
    }

    /// Returns whether some state says that it hears `node`.
    #[must_use]
    pub fn is_heard(&self, node: NodeId) -> bool {
        self.unheard_count || self.entry(node).is_some_and(Known::is_heard)
    }

    /// Returns the nodes that `root` hears, those that they hear, and so on, with `root`.
    #[must_use]
    pub fn around(&self, root: NodeId) -> BTreeSet<NodeId> {
        let mut reached = BTreeSet::from([root]);
        let mut open = vec![root];
        // A node is opened once: `insert` is false for those that were reached before.
        while let Some(node) = open.pop() {
            let heard = self.state(node).into_iter().flat_map(|state| state.hears.keys());
            open.extend(heard.filter(|node| reached.insert(**node)));
        }
        reached
    }

    /// Returns the share of broadcasts of `from` that `to` receives; 0 if there is no usable link.
    #[must_use]
    pub fn delivery(&self, from: NodeId, to: NodeId) -> f64 {
        let receiver = self.entry(to).filter(|known| self.unheard_count || known.is_heard());
        let heard = receiver.and_then(|known| known.state.as_ref()?.hears.get(&from).copied());
        heard.filter(|delivery| self.is_usable(*delivery)).unwrap_or(0.0)
    }

    /// Returns how long a frame takes from a node to a neighbour, in units of what is usual in the
    /// mesh; 1 if neither tells.
    #[must_use]
    pub fn airtime(&self, from: NodeId, to: NodeId) -> f64 {
        self.on_ports(from, to).pace.over(self.usual)
    }

    /// Returns whether any node tells its ports.
    #[must_use]
    pub fn tells_ports(&self) -> bool {
        self.usual != Pace::UNKNOWN
    }

    /// Returns the node whose longest frame is the shortest, and its length; `None` where no node
    /// tells the length of its frames: then all have the same.
    #[must_use]
    pub fn shortest_frame(&self) -> Option<(NodeId, u16)> {
        self.shortest
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
        // One tree to the destination shows all nodes of the way the same, also where the length of
        // a hop depends on the one before. Trees from here serve all destinations.
        if self.tells_ports() {
            return self.paths_to(to, metric).parent(me);
        }
        self.paths_from(me, metric).first_hop(to)
    }

    /// Returns what is known of a node. Where ids were given one after the other it is found at
    /// once.
    fn entry(&self, node: NodeId) -> Option<&Known> {
        let nodes = self.nodes.as_slice();
        let (first, _) = nodes.first()?;
        match nodes.get(usize::from(node.0.checked_sub(first.0)?)) {
            Some((found, known)) if *found == node => Some(known),
            _ => self.nodes.get(&node),
        }
    }

    fn is_usable(&self, delivery: f64) -> bool {
        delivery > 0.0 && delivery >= self.min_delivery
    }

    /// Returns the graph of usable links; builds it if this is the first question.
    fn graph(&self) -> &Graph {
        // The graph is made when it is first asked for, and kept up to date from then on.
        let graph = self.graph.get_or_init(|| {
            let mut graph = Graph::new(self.version, self.usual);
            for (to, state) in self.states().filter(|(to, _)| self.is_heard(*to)) {
                for (from, delivery) in state.hears.iter().filter(|(_, d)| self.is_usable(**d)) {
                    let on = self.on_ports(*from, to);
                    graph.set(*from, to, Some(*delivery), on, self.version);
                }
            }

            graph
        });

        graph.note_question();
        graph
    }

    /// Returns the ports of a link. The sender's word on the pace comes first: it is its radio that
    /// sends.
    fn on_ports(&self, from: NodeId, to: NodeId) -> OnPorts {
        if !self.tells_ports() {
            return OnPorts::default();
        }
        let port = |at: NodeId, other| self.state(at)?.profile.ports.to(other);
        let sender = port(from, to);
        let receiver = port(to, from);
        let mut told = [sender, receiver].into_iter().flatten().map(|port| port.pace);
        OnPorts {
            sender: sender.map_or(NO_CHANNEL, |port| port.channel),
            receiver: receiver.map_or(NO_CHANNEL, |port| port.channel),
            pace: told.find(|pace| *pace != Pace::UNKNOWN).unwrap_or_default(),
        }
    }

    /// Returns the median of the paces that are told.
    fn usual_pace(&self) -> Pace {
        let ports = self.states().flat_map(|(_, state)| &state.profile.ports.ports);
        let mut paces: Vec<Pace> = ports.map(|port| port.pace).collect();
        paces.retain(|pace| *pace != Pace::UNKNOWN);
        paces.sort_unstable();
        paces.get(paces.len() / 2).copied().unwrap_or(Pace::UNKNOWN)
    }

    /// Returns the node whose longest frame is the shortest, if any node tells its own.
    fn shortest_told(&self) -> Option<(NodeId, u16)> {
        let told = || self.states().map(|(node, state)| (node, state.profile.longest_frame));
        let is_told = told().any(|(_, longest)| longest.is_some());
        let all = told().map(|(node, longest)| (node, longest.unwrap_or(USUAL_FRAME)));
        all.min_by_key(|(_, longest)| *longest).filter(|_| is_told)
    }

    /// Stores or removes the state of a node, and changes the graph accordingly.
    fn replace(&mut self, node: NodeId, state: Option<&Arc<LinkState>>) {
        let known = self.nodes.entry(node).or_default();
        let old = core::mem::replace(&mut known.state, state.cloned());

        self.told = self.told + usize::from(state.is_some()) - usize::from(old.is_some());
        if old.as_deref().map(LinkState::description) != state.map(|new| new.description()) {
            self.self_descriptions += 1;

            // Where no node tells its frames, as in most meshes, nothing is searched.
            let tells = |state: &Arc<LinkState>| state.profile.longest_frame.is_some();
            if self.shortest.is_some() || old.iter().chain(state).any(tells) {
                self.shortest = self.shortest_told();
            }
        }

        // Ports may change the cost of any link: the next question builds another graph.
        let ports = |state: Option<&Arc<LinkState>>| {
            state.map(|state| state.profile.ports.clone()).filter(|ports| !ports.is_empty())
        };
        if ports(old.as_ref()) != ports(state) {
            self.usual = self.usual_pace();
            self.graph.take();
            self.version += 1;
        }

        let none = Links::new();
        let before = old.as_ref().map_or(&none, |old| &old.hears);
        let after = state.map_or(&none, |state| &state.hears);

        // A link is used only while some node hears its receiver: the state of a node that died
        // stays here for a while. So each neighbour that appears or vanishes in this state may make
        // its own links usable, or unusable.
        let mut changed = Vec::new();
        let mut turned = Vec::new();
        for SideBySide { node: from, before: old, after: new } in side_by_side(before, after) {
            if old == new {
                continue;
            }
            changed.push((from, new));
            if old.is_some() && new.is_some() {
                continue;
            }
            let hearers = &mut self.nodes.entry(from).or_default().hearers;
            // Only the first hearer that appears, or the last that vanishes, turns a node.
            *hearers = if new.is_some() { *hearers + 1 } else { *hearers - 1 };
            if *hearers == u32::from(new.is_some()) {
                turned.push(from);
            }
        }

        // Nodes that told nothing and that no node hears take no room.
        let is_unknown = |known: &Known| known.state.is_none() && !known.is_heard();
        for node in turned.iter().chain([&node]) {
            if self.nodes.get(node).is_some_and(is_unknown) {
                self.nodes.remove(node);
            }
        }

        if changed.is_empty() {
            return;
        }

        // Without a graph nobody has asked about links, and every change counts as one of a link.
        let version = self.version + 1;
        let Some(mut graph) = self.graph.take().filter(Graph::is_of_use) else {
            self.version = version;
            return;
        };

        // All links of a node that turned are looked at again, with those that this state changed.
        let turned = turned.iter().filter_map(|to| Some((*to, &self.state(*to)?.hears)));
        let turned = turned.flat_map(|(to, hears)| hears.iter().map(move |(n, d)| (to, *n, *d)));
        for (from, _) in changed.iter().filter(|(_, delivery)| delivery.is_none()) {
            graph.set(*from, node, None, OnPorts::default(), version);
        }

        let kept = changed.iter().filter_map(|(from, delivery)| Some((node, *from, (*delivery)?)));
        for (to, from, delivery) in kept.chain(turned) {
            let usable = self.is_usable(delivery) && self.is_heard(to);
            graph.set(from, to, usable.then_some(delivery), self.on_ports(from, to), version);
        }

        // Paths hold unless the graph changed, so only then is there a new version.
        if graph.changed_at() == Some(version) {
            self.version = version;
        }
        self.graph = OnceLock::from(graph);
    }
}

/// Returns the nodes among these whose state is known, with it.
fn with_state(nodes: &[(NodeId, Known)]) -> impl Iterator<Item = (NodeId, &LinkState)> {
    nodes.iter().filter_map(|(node, known)| Some((*node, known.state.as_deref()?)))
}

/// A link in two lists, with its delivery in each that has it.
#[derive(Clone, Copy, Debug)]
pub struct SideBySide {
    /// Node at the other end.
    pub node: NodeId,
    /// Delivery in the first list.
    pub before: Option<f64>,
    /// Delivery in the second list.
    pub after: Option<f64>,
}

/// Returns the links of two lists, in ascending order of their nodes.
pub fn side_by_side(before: &Links, after: &Links) -> impl Iterator<Item = SideBySide> {
    let mut a = before.as_slice().iter().peekable();
    let mut b = after.as_slice().iter().peekable();
    core::iter::from_fn(move || {
        let node = match (a.peek(), b.peek()) {
            (Some((a, _)), Some((b, _))) => *a.min(b),
            (Some((node, _)), None) | (None, Some((node, _))) => *node,
            (None, None) => return None,
        };

        let here = |(other, _): &&(NodeId, f64)| *other == node;
        let delivery = |link: &(NodeId, f64)| link.1;
        let before = a.next_if(here).map(delivery);
        let after = b.next_if(here).map(delivery);
        Some(SideBySide { node, before, after })
    })
}

impl Clone for Topology {
    /// Returns the same mesh; graph and paths are computed anew when they are asked for.
    fn clone(&self) -> Self {
        Self {
            nodes: self.nodes.clone(),
            told: self.told,
            min_delivery: self.min_delivery,
            unheard_count: self.unheard_count,
            version: self.version,
            self_descriptions: self.self_descriptions,
            usual: self.usual,
            shortest: self.shortest,
            graph: OnceLock::new(),
            paths: Cache::default(),
        }
    }
}

#[cfg(test)]
mod tests;
