//! Nodes of a scenario, their positions and the links between them.
//!
//! `[topology]` gives nodes and links from a file, or nodes placed by a rule. `nodes` or `[[node]]`
//! list the nodes explicitly; the topology then may only name listed nodes. `[[link]]` adds links
//! or replaces those of the topology.

use std::collections::BTreeMap;

use ncmesh_engine::path::expand;
use ncmesh_engine::time::Duration;
use ncmesh_medium::{LinkKind, LossMatrix, RadioId};
use toml::Spanned;

use super::error::Place;
use super::file::{self, File};
use super::links::Topology;
use super::mobility;
use super::path::Mobility;
use super::reader::{Reader, add_node, find, index_by_name, text};
use super::value::Nested;
use super::{Node, Position, ScenarioError, links, netjson, placement};

/// Nodes of a scenario, the loss of each link over the air, and how they move.
pub(super) struct Mesh {
    pub(super) nodes: Vec<Node>,
    pub(super) loss: LossMatrix,
    pub(super) mobility: Option<Mobility>,
    pub(super) notes: Vec<String>,
}

/// Default time between two moves of the nodes, s. A car in town goes 7 m meanwhile.
const DEFAULT_STEP_S: f64 = 0.5;

impl Reader<'_> {
    /// Returns the nodes of `file`, the loss of its links and how they move.
    pub(super) fn network(&self, file: &File) -> Result<Mesh, ScenarioError> {
        self.check_losses_against_propagation(file)?;

        // Listed nodes take precedence, because they fix the order of the indices.
        let topology = self.topology(file.topology.table(), file.seed)?;
        let listed = self.listed_nodes(file)?;
        let mobility = self.mobility(file, &topology, !listed.is_empty())?;
        let nodes = if listed.is_empty() { topology.nodes.clone() } else { listed };
        if nodes.is_empty() {
            let message = "no nodes: give `nodes`, `[[node]]` or `[topology]`";
            return Err(ScenarioError::value(Place::file(self.origin), message));
        }

        // The topology has indices of its own, which are translated by name.
        let index = index_by_name(&nodes, self.origin)?;
        let mut loss = LossMatrix::new(nodes.len());
        let find = |name: &str, place: &Place| find(&index, name, place);
        let place = self.topology_place(file.topology.table());
        let indices: Result<Vec<_>, _> =
            topology.nodes.iter().map(|node| find(&node.name, &place)).collect();
        let indices = indices?;
        for &(from, to, p) in &topology.links {
            set(&mut loss, indices[from], indices[to], p, &place)?;
        }

        // Links of the scenario come last, so that they replace those of the topology. Each states
        // both directions, so a pair of nodes has one of them.
        self.set_links(file, None, &nodes, &mut loss)?;
        Ok(Mesh { nodes, loss, mobility, notes: topology.notes })
    }

    /// Sets the losses of the links of a `[[channel]]`, or of those that are on none.
    pub(super) fn set_links(
        &self,
        file: &File,
        channel: Option<&str>,
        nodes: &[Node],
        loss: &mut LossMatrix,
    ) -> Result<(), ScenarioError> {
        let index = index_by_name(nodes, self.origin)?;
        let mut given = BTreeMap::new();
        for link in links_on(file, channel) {
            let place = self.place(link);
            let link = link.as_ref();
            let end = |name: &Spanned<String>| find(&index, name.as_ref(), &self.place(name));
            let from = end(&link.from)?;
            let to = end(&link.to)?;
            if let Some(first) = given.insert((from.min(to), from.max(to)), place.clone()) {
                let message = format!(
                    "the link between `{}` and `{}` is given twice, first at {first}: `loss_back` \
                     is the loss of the other direction",
                    nodes[from].name, nodes[to].name
                );
                return Err(ScenarioError::value(place, message));
            }

            let p = link_loss(link, &place)?;
            set(loss, from, to, p, &place)?;
            set(loss, to, from, link.loss_back.unwrap_or(p), &place)?;
        }

        Ok(())
    }

    /// Returns how the nodes of a topology move, if they do.
    fn mobility(
        &self,
        file: &File,
        topology: &Topology,
        are_listed: bool,
    ) -> Result<Option<Mobility>, ScenarioError> {
        let fail = |place, message: &str| Err(ScenarioError::value(place, message));
        let place = self.topology_place(file.topology.table());
        let step_s = &file.topology.table().step_s;

        // A step belongs to movement. Without paths it is a mistake, not a setting to pass over.
        if topology.paths.is_empty() {
            return match step_s {
                None => Ok(None),
                Some(step) => fail(
                    self.place(step),
                    "`step_s` belongs to nodes that move: `bonnmotion`, `fcd` or `ns2`",
                ),
            };
        }

        if file.medium.table().propagation.is_none() {
            let message = "nodes that move need [medium.propagation]: it says how far they reach";
            return fail(place, message);
        }

        if are_listed {
            return fail(place, "the nodes are those of this file: give no `nodes` or `[[node]]`");
        }

        let seconds = step_s.as_ref().map_or(DEFAULT_STEP_S, |step| *step.get_ref());
        let step = Duration::from_nanos((seconds * 1e9) as u64);
        Ok(Some(Mobility { step, paths: topology.paths.clone() }))
    }

    /// Returns the links that differ from the rest of the medium: cables, and links with a rate of
    /// their own. Each has both directions.
    pub(super) fn link_kinds(
        &self,
        file: &File,
        channel: Option<&str>,
        nodes: &[Node],
    ) -> Result<BTreeMap<(RadioId, RadioId), LinkKind>, ScenarioError> {
        // A link without `wired` and `rate` is an ordinary one of the medium.
        let index = index_by_name(nodes, self.origin)?;
        let mut kinds = BTreeMap::new();
        for link in links_on(file, channel) {
            let link = link.as_ref();
            let rate = link.rate.map(|rate| rate.0);
            let kind = match (link.wired, rate) {
                (false, None) => continue,
                (false, Some(bit_rate_bps)) => LinkKind::Air { bit_rate_bps },
                (true, rate) => LinkKind::Wire { bit_rate_bps: rate.unwrap_or(WIRE_BPS) },
            };
            let end = |name: &Spanned<String>| find(&index, name.as_ref(), &self.place(name));
            let from = end(&link.from)?;
            let to = end(&link.to)?;
            for pair in [(from, to), (to, from)] {
                kinds.insert((RadioId(pair.0), RadioId(pair.1)), kind);
            }
        }

        Ok(kinds)
    }

    /// Returns the nodes of `nodes` or `[[node]]`.
    fn listed_nodes(&self, file: &File) -> Result<Vec<Node>, ScenarioError> {
        let mut nodes = Vec::new();

        // Either list fixes the order of the indices, so there can be only one.
        if let (Some(_), Some(second)) = (file.nodes.0.first(), file.node.0.first()) {
            let message = "give `nodes` or `[[node]]`, not both";
            return Err(ScenarioError::value(self.place(&second.name), message));
        }

        let mut named: BTreeMap<&str, Place> = BTreeMap::new();
        let names = file.nodes.0.iter().chain(file.node.0.iter().map(|node| &node.name));
        for name in names {
            let place = self.place(name);
            if let Some(first) = named.insert(name.as_ref(), place.clone()) {
                let message =
                    format!("two nodes are named `{}`, the first at {first}", name.as_ref());
                return Err(ScenarioError::value(place, message));
            }
        }

        for name in &file.nodes.0 {
            let node = Node { name: name.as_ref().clone(), position: None };
            add_node(&mut nodes, node, self.place(name))?;
        }

        for node in &file.node.0 {
            let place = self.place(&node.name);
            let position = position(node, &place)?;
            add_node(&mut nodes, Node { name: node.name.as_ref().clone(), position }, place)?;
        }

        Ok(nodes)
    }

    /// Refuses explicit losses where `[medium.propagation]` computes them.
    fn check_losses_against_propagation(&self, file: &File) -> Result<(), ScenarioError> {
        let topology = file.topology.table();
        let propagation = &file.medium.table().propagation;
        let losses =
            topology.matrix.is_some() || topology.links.is_some() || !file.link.0.is_empty();
        match propagation {
            Some(Nested(propagation)) if losses => {
                let message =
                    "[medium.propagation] decides who hears whom: give positions, not losses";
                Err(ScenarioError::value(self.place(propagation), message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the place of every key that `[topology]` has.
    fn topology_places(&self, topology: &file::Topology) -> Vec<Place> {
        let file::Topology { matrix, links, netjson, positions, uniform, grid, .. } = topology;
        let file::Topology { bonnmotion, fcd, ns2, .. } = topology;
        let names = [matrix, links, netjson, positions, bonnmotion, fcd, ns2];
        let names = names.into_iter().flatten();
        let mut places: Vec<_> = names.map(|name| self.place(name)).collect();
        places.extend(uniform.iter().map(|uniform| self.place(&uniform.0)));
        places.extend(grid.iter().map(|grid| self.place(&grid.0)));
        places
    }

    /// Returns the place of the first key of `[topology]`, or else the whole file.
    fn topology_place(&self, topology: &file::Topology) -> Place {
        self.topology_places(topology).into_iter().next().unwrap_or(Place::file(self.origin))
    }

    /// Reads the topology by the one key that `[topology]` has; empty if it has none.
    fn topology(&self, topology: &file::Topology, seed: u64) -> Result<Topology, ScenarioError> {
        let place = self.topology_place(topology);
        if self.topology_places(topology).len() > 1 {
            let message = "give one of `matrix`, `links`, `netjson`, `positions`, `bonnmotion`, \
                           `fcd`, `ns2`, `uniform` and `grid`";
            return Err(ScenarioError::value(place, message));
        }

        let file::Topology { matrix, links, netjson, positions, uniform, grid, .. } = topology;
        if let Some(name) = matrix {
            self.topology_file(name, links::matrix)
        } else if let Some(name) = links {
            self.topology_file(name, links::list)
        } else if let Some(name) = netjson {
            self.topology_file(name, netjson::read)
        } else if let Some(name) = positions {
            self.topology_file(name, placement::positions)
        } else if let Some(name) = &topology.bonnmotion {
            self.topology_file(name, mobility::bonnmotion)
        } else if let Some(name) = &topology.fcd {
            self.topology_file(name, mobility::fcd)
        } else if let Some(name) = &topology.ns2 {
            self.topology_file(name, mobility::ns2)
        } else if let Some(uniform) = uniform {
            Ok(placement::uniform(uniform.table(), seed))
        } else if let Some(grid) = grid {
            placement::grid(grid.table(), place)
        } else {
            Ok(Topology::default())
        }
    }

    /// Reads a topology file, whose name is relative to the scenario, with `parse`.
    fn topology_file(
        &self,
        name: &Spanned<String>,
        parse: impl Fn(&str, &str) -> Result<Topology, ScenarioError>,
    ) -> Result<Topology, ScenarioError> {
        let named = expand(name.as_ref());
        let named = named.map_err(|problem| ScenarioError::value(self.place(name), problem))?;
        let path = self.directory.join(named);
        parse(&text(&path)?, &path.display().to_string())
    }
}

/// Returns the links of a `[[channel]]`, or those that are on none.
fn links_on<'a>(
    file: &'a File,
    channel: Option<&'a str>,
) -> impl Iterator<Item = &'a Spanned<file::Link>> {
    let named = |link: &'a Spanned<file::Link>| link.as_ref().channel.as_ref();
    file.link.0.iter().filter(move |link| named(link).map(|name| name.as_ref().as_str()) == channel)
}

/// Returns the position of a listed node, if it has one.
fn position(node: &file::Node, place: &Place) -> Result<Option<Position>, ScenarioError> {
    match (node.x, node.y) {
        // A sum is finite only if all its parts are.
        (None, None) => Ok(None),
        (Some(x), Some(y)) if (x + y + node.z).is_finite() => {
            Ok(Some(Position { x, y, z: node.z }))
        }
        _ => Err(ScenarioError::value(place.clone(), "give both `x` and `y`, as finite numbers")),
    }
}

/// Default rate of a cable: gigabit Ethernet.
const WIRE_BPS: u64 = 1_000_000_000;

/// Returns the loss of a link over the air. A cable is not part of the channel, so its loss there
/// is 1.
fn link_loss(link: &file::Link, place: &Place) -> Result<f64, ScenarioError> {
    match (link.wired, link.loss) {
        (false, Some(loss)) => Ok(loss),
        (true, None) if link.loss_back.is_none() => Ok(1.0),
        (false, None) => Err(ScenarioError::value(place.clone(), "a link needs `loss`, 0 to 1")),
        (true, _) => Err(ScenarioError::value(place.clone(), "a `wired` link has no `loss`")),
    }
}

/// Sets the loss of a directed link.
fn set(
    loss: &mut LossMatrix,
    from: usize,
    to: usize,
    p: f64,
    place: &Place,
) -> Result<(), ScenarioError> {
    let result = loss.set(RadioId(from), RadioId(to), p);
    result.map_err(|_| {
        let message = format!("loss {p}: must be from 0 to 1, between two different nodes");
        ScenarioError::value(place.clone(), message)
    })
}
