//! From the file's shapes to a checked scenario.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use ncmesh_medium::{LossMatrix, MAX_FRAME_BYTES, MAX_RADIOS, MediumConfig, Phy, RadioId, Sense};
use ncmesh_proto::name::{MAX_NODE_NAME, harmless, is_node_name};
use ncmesh_proto::stack::MTUS;
use toml::Spanned;

use super::error::Place;
use super::file::{self, File, PhyName, SenseName};
use super::links::Topology;
use super::overrides::Source;
use super::{Content, Node, Position, Scenario, ScenarioError, Traffic, links, netjson};

/// The longest file read: the loss matrix of 2,000 nodes fits.
const LONGEST_FILE: u64 = 64 << 20;

/// The most random bytes sent: they are made in memory.
const LARGEST_RANDOM: u64 = 4_000_000_000;

/// The largest frame where nothing is said, bytes: what Linux lets Wi-Fi carry.
const DEFAULT_MTU: usize = 1500;

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, ScenarioError> {
    let name = || path.display().to_string();
    let failed = |source| ScenarioError::Read { path: name(), source };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LONGEST_FILE {
        return Err(ScenarioError::TooLong { path: name(), limit: LONGEST_FILE });
    }
    Ok(text)
}

/// Adds a node, its name checked.
pub(super) fn add_node(
    nodes: &mut Vec<Node>,
    node: Node,
    place: Place,
) -> Result<(), ScenarioError> {
    check_name(&node.name, "node name", &place)?;
    if nodes.len() == MAX_RADIOS {
        return Err(ScenarioError::value(place, format!("more than {MAX_RADIOS} nodes")));
    }
    nodes.push(node);
    Ok(())
}

fn check_name(name: &str, what: &str, place: &Place) -> Result<(), ScenarioError> {
    if is_node_name(name) {
        return Ok(());
    }
    let shown: String = harmless(name).chars().take(80).collect();
    let message = format!(
        "{what} `{shown}`: must be 1 to {MAX_NODE_NAME} of letters, digits, `.`, `_` and `-`"
    );
    Err(ScenarioError::value(place.clone(), message))
}

/// Reads and checks a whole scenario.
pub(super) fn scenario(
    text: &str,
    origin: &str,
    directory: &Path,
) -> Result<Scenario, ScenarioError> {
    let syntax = |error| ScenarioError::toml(origin, text, &error);
    let table = toml::from_str(text).map_err(syntax)?;
    let file: File = toml::from_str(text).map_err(syntax)?;
    let reader = Reader { text, origin, directory };
    check_name(file.name.as_ref(), "name", &reader.place(&file.name))?;
    let (nodes, loss) = reader.network(&file)?;
    let medium = reader.medium(&file.medium, loss, file.seed)?;
    let mtu = reader.mtu(file.medium.get_ref())?;
    let traffic =
        file.traffic.as_ref().map(|traffic| reader.traffic(traffic, &nodes)).transpose()?;
    Ok(Scenario {
        name: file.name.into_inner(),
        description: file.description,
        seed: file.seed,
        nodes,
        traffic,
        protocol: file.protocol,
        mtu,
        medium,
        source: Source { table, origin: origin.to_owned(), directory: directory.to_owned() },
    })
}

struct Reader<'a> {
    text: &'a str,
    origin: &'a str,
    directory: &'a Path,
}

impl Reader<'_> {
    fn place<T>(&self, value: &Spanned<T>) -> Place {
        Place::span(self.origin, self.text, Some(value.span()))
    }

    fn network(&self, file: &File) -> Result<(Vec<Node>, LossMatrix), ScenarioError> {
        let topology = self.topology(&file.topology)?;
        let listed = self.listed_nodes(file)?;
        let nodes = if listed.is_empty() { topology.nodes.clone() } else { listed };
        if nodes.is_empty() {
            let message = "no nodes: give `nodes`, `[[node]]` or a file in `[topology]`";
            return Err(ScenarioError::value(Place::file(self.origin), message));
        }
        let index = index_by_name(&nodes, self.origin)?;
        let mut loss = LossMatrix::new(nodes.len());
        let find = |name: &str, place: &Place| find(&index, name, place);
        let place = self.topology_place(&file.topology);
        let places: Result<Vec<_>, _> =
            topology.nodes.iter().map(|node| find(&node.name, &place)).collect();
        let places = places?;
        for &(from, to, p) in &topology.links {
            set(&mut loss, places[from], places[to], p, &place)?;
        }
        for link in &file.link {
            let (place, link) = (self.place(link), link.as_ref());
            let (from, to) = (find(&link.from, &place)?, find(&link.to, &place)?);
            set(&mut loss, from, to, link.loss, &place)?;
            set(&mut loss, to, from, link.loss_back.unwrap_or(link.loss), &place)?;
        }
        Ok((nodes, loss))
    }

    fn listed_nodes(&self, file: &File) -> Result<Vec<Node>, ScenarioError> {
        let mut nodes = Vec::new();
        if let (Some(_), Some(second)) = (file.nodes.first(), file.node.first()) {
            let message = "give `nodes` or `[[node]]`, not both";
            return Err(ScenarioError::value(self.place(&second.name), message));
        }
        for name in &file.nodes {
            let node = Node { name: name.as_ref().clone(), position: None };
            add_node(&mut nodes, node, self.place(name))?;
        }
        for node in &file.node {
            let place = self.place(&node.name);
            let position = position(node, &place)?;
            add_node(&mut nodes, Node { name: node.name.as_ref().clone(), position }, place)?;
        }
        Ok(nodes)
    }

    fn topology_place(&self, topology: &file::Topology) -> Place {
        let first =
            [&topology.matrix, &topology.links, &topology.netjson].into_iter().flatten().next();
        first.map_or(Place::file(self.origin), |name| self.place(name))
    }

    fn topology(&self, topology: &file::Topology) -> Result<Topology, ScenarioError> {
        match (&topology.matrix, &topology.links, &topology.netjson) {
            (None, None, None) => Ok(Topology::default()),
            (Some(name), None, None) => self.topology_file(name, links::matrix),
            (None, Some(name), None) => self.topology_file(name, links::list),
            (None, None, Some(name)) => self.topology_file(name, netjson::read),
            _ => {
                let message = "give one of `matrix`, `links` and `netjson`, not several";
                Err(ScenarioError::value(self.topology_place(topology), message))
            }
        }
    }

    fn topology_file(
        &self,
        name: &Spanned<String>,
        parse: impl Fn(&str, &str) -> Result<Topology, ScenarioError>,
    ) -> Result<Topology, ScenarioError> {
        let path = self.directory.join(name.as_ref());
        parse(&text(&path)?, &path.display().to_string())
    }

    fn medium(
        &self,
        spanned: &Spanned<file::Medium>,
        loss: LossMatrix,
        seed: u64,
    ) -> Result<MediumConfig, ScenarioError> {
        let medium = spanned.as_ref();
        let mut phy = match medium.phy {
            PhyName::Dot11b => Phy::DOT11B,
            PhyName::Dot11a => Phy::DOT11A,
        };
        phy.cw_min = medium.cw_min.unwrap_or(phy.cw_min);
        phy.cw_max = medium.cw_max.unwrap_or(phy.cw_max);
        let mut config = MediumConfig::with_phy(phy, loss, medium.bit_rate.0);
        config.sense = match medium.sense {
            SenseName::Audible => Sense::Audible,
            SenseName::Everyone => Sense::Everyone,
        };
        config.retry_limit = medium.retry_limit.unwrap_or(config.retry_limit);
        config.mac_overhead_bytes = medium.mac_overhead_bytes.unwrap_or(config.mac_overhead_bytes);
        config.overhear_unicast = medium.overhear_unicast;
        config.seed = seed;
        let checked = config.validate();
        checked.map_err(|error| ScenarioError::value(self.place(spanned), error.to_string()))?;
        Ok(config)
    }

    /// What the engines can work with and the medium carries.
    fn mtu(&self, medium: &file::Medium) -> Result<usize, ScenarioError> {
        let Some(mtu) = &medium.mtu else { return Ok(DEFAULT_MTU) };
        let (min, max) = (*MTUS.start(), MAX_FRAME_BYTES);
        if !(min..=max).contains(mtu.get_ref()) {
            let message = format!("mtu {}: must be {min} to {max} bytes", mtu.get_ref());
            return Err(ScenarioError::value(self.place(mtu), message));
        }
        Ok(*mtu.get_ref())
    }

    fn traffic(&self, traffic: &file::Traffic, nodes: &[Node]) -> Result<Traffic, ScenarioError> {
        let index = index_by_name(nodes, self.origin)?;
        let fail = |place, message: &str| Err(ScenarioError::value(place, message));
        let from = find(&index, traffic.from.as_ref(), &self.place(&traffic.from))?;
        let mut to = Vec::new();
        for name in traffic.to.as_ref() {
            let receiver = find(&index, name.as_ref(), &self.place(name))?;
            if receiver == from || to.contains(&receiver) {
                return fail(
                    self.place(name),
                    "a receiver must not be the source, nor listed twice",
                );
            }
            to.push(receiver);
        }
        if to.is_empty() {
            return fail(self.place(&traffic.to), "`to` must name at least one node");
        }
        let content = match (&traffic.size, &traffic.file) {
            (Some(size), None) if size.get_ref().0.0 > LARGEST_RANDOM => {
                let message = "size: allowed is up to 4 GB; for more give a `file`";
                return fail(self.place(size), message);
            }
            (Some(size), None) if size.get_ref().0.0 > 0 => {
                Content::Random { bytes: size.get_ref().0.0 }
            }
            (None, Some(file)) => Content::File(self.directory.join(file)),
            _ => {
                return fail(
                    self.place(&traffic.from),
                    "give `size` (above 0) or `file`, one of them",
                );
            }
        };
        Ok(Traffic { from, to, content })
    }
}

fn position(node: &file::Node, place: &Place) -> Result<Option<Position>, ScenarioError> {
    match (node.x, node.y) {
        (None, None) => Ok(None),
        (Some(x), Some(y)) if (x + y + node.z).is_finite() => {
            Ok(Some(Position { x, y, z: node.z }))
        }
        _ => Err(ScenarioError::value(place.clone(), "give both `x` and `y`, as finite numbers")),
    }
}

type Index<'a> = BTreeMap<&'a str, usize>;

fn index_by_name<'a>(nodes: &'a [Node], origin: &str) -> Result<Index<'a>, ScenarioError> {
    let mut index = Index::new();
    for (at, node) in nodes.iter().enumerate() {
        if index.insert(&node.name, at).is_some() {
            let message = format!("two nodes are named `{}`: names must be unique", node.name);
            return Err(ScenarioError::value(Place::file(origin), message));
        }
    }
    Ok(index)
}

fn find(index: &Index<'_>, name: &str, place: &Place) -> Result<usize, ScenarioError> {
    index.get(name).copied().ok_or_else(|| {
        check_name(name, "node name", place).err().unwrap_or_else(|| {
            let some: Vec<_> = index.keys().take(8).copied().collect();
            let more = if index.len() > some.len() { ", ..." } else { "" };
            let message = format!("no node `{name}`: there are {}{more}", some.join(", "));
            ScenarioError::value(place.clone(), message)
        })
    })
}

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
