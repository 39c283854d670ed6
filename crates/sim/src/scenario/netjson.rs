//! NetJSON NetworkGraph, the exchange format of mesh routing daemons and map services.
//!
//! A scenario can read its topology from such a file, and its network can be written as one. The
//! format: <https://netjson.org/rfc.html>, NetworkGraph.
//!
//! # From cost to loss
//! Only the metric ETX is supported. ETX is 1 / (d_f d_r), where d_f and d_r are the delivery
//! probabilities of the two directions. The file gives only their product, so both are taken to be
//! equal: `loss = 1 - 1 / sqrt(cost)`.
//!
//! A link listed in both directions has a loss for each. A link listed once has the same loss in
//! both directions. A cost of 4096 or more means a dead link, as OLSR writes it. A cost below 1 is
//! an error.
//!
//! A number `delivery` among the `properties` of a link is the delivery probability of that
//! direction, and the cost is ignored. The files written here have it.
//!
//! Programs differ: `metric` may be empty or absent, `properties` null, `cost` a text or named
//! `weight`, the graph the only one of a `NetworkCollection`. All of that is read. Of several links
//! with the same ends, such as those of a second radio, the better one counts, and a note says so.
//!
//! # Names
//! A node's name is its `id`. Links may also name one of its `local_addresses`. Characters that a
//! scenario does not allow become `-`.
//!
//! # Positions
//! `x`, `y` and `z` among the properties of a node are metres. `latitude` and `longitude`, degrees,
//! become metres from the first node that has them, on the plane that touches the Earth there.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::earth::{Degrees, Plane};
use super::error::Place;
use super::links::Topology;
use super::reader::add_node;
use super::{DirectedLink, Node, Position, Scenario, ScenarioError};

/// Cost at or above which a link is dead.
const DEAD_COST: f64 = 4096.0;

/// A graph, as it is written and as programs write it: daemons leave out what they do not know, or
/// give an empty text or null.
#[derive(Deserialize, Serialize)]
struct Graph {
    r#type: String,
    #[serde(default)]
    protocol: Value,
    #[serde(default)]
    version: Value,
    #[serde(default)]
    metric: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    nodes: Vec<GraphNode>,
    links: Vec<GraphLink>,
}

#[derive(Deserialize, Serialize)]
struct GraphNode {
    #[serde(deserialize_with = "id")]
    id: String,
    #[serde(default, deserialize_with = "or_default", skip_serializing)]
    local_addresses: Vec<Value>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Map::is_empty")]
    properties: Map<String, Value>,
}

#[derive(Deserialize, Serialize)]
struct GraphLink {
    #[serde(deserialize_with = "id")]
    source: String,
    #[serde(deserialize_with = "id")]
    target: String,
    /// A number; some programs write it as text, or the text `INFINITE`.
    #[serde(default, alias = "weight")]
    cost: Value,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Map::is_empty")]
    properties: Map<String, Value>,
}

/// A collection of graphs, such as one for IPv4 and one for IPv6.
#[derive(Deserialize)]
struct Collection {
    collection: Vec<Value>,
}

/// Reads a value that may be null.
fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads an id, which may be a number.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(D::Error::custom(format!("{other} is no id: it must be text"))),
    }
}

/// Returns the one graph of a file, which may be in a collection.
fn graph(text: &str, file: &str) -> Result<Graph, ScenarioError> {
    let syntax = |error: serde_json::Error| ScenarioError::Syntax {
        place: Place::line(file, error.line()),
        message: error.to_string(),
    };

    // Only a collection is read twice, so that errors in a graph keep their lines.
    let Ok(Collection { collection }) = serde_json::from_str(text) else {
        return serde_json::from_str(text).map_err(syntax);
    };

    let mut graphs = collection.into_iter().filter(|it| it["type"] == "NetworkGraph");
    match (graphs.next(), graphs.next()) {
        (Some(graph), None) => serde_json::from_value(graph).map_err(syntax),
        (first, _) => {
            let number = if first.is_some() { "several" } else { "no" };
            let message = format!("{number} NetworkGraph in the collection: must be one");
            Err(ScenarioError::value(Place::file(file), message))
        }
    }
}

/// Reads a NetworkGraph. Errors call the file `file`.
///
/// # Errors
/// [`ScenarioError`], with the file and, where known, the line.
pub fn read(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    let graph = graph(text, file)?;

    // Other metrics, such as hop counts, say nothing about loss.
    let fail = |message: String| Err(ScenarioError::value(Place::file(file), message));
    if graph.r#type != "NetworkGraph" {
        return fail(format!("NetJSON type `{}`: must be NetworkGraph", graph.r#type));
    }
    let stated = graph.metric.as_deref().filter(|metric| !metric.is_empty());
    if let Some(metric) = stated.filter(|metric| !metric.eq_ignore_ascii_case("etx")) {
        return fail(format!("NetJSON metric `{metric}`: only ETX can be read as loss"));
    }

    // Two ids can become one name, which the scenario's own check finds. Two equal ids are found
    // here, because links refer to ids.
    let mut topology = Topology::default();
    let mut index = BTreeMap::new();
    let mut plane = Plane::default();
    for node in &graph.nodes {
        let position = position(&node.properties, &mut plane).map_err(|message| {
            ScenarioError::value(Place::file(file), format!("node `{}`: {message}", node.id))
        })?;
        add_node(&mut topology.nodes, Node { name: name(&node.id), position }, Place::file(file))?;
        if index.insert(node.id.as_str(), topology.nodes.len() - 1).is_some() {
            return fail(format!("two nodes have the id `{}`", node.id));
        }
    }

    let ends = Ends { index, addresses: addresses(&graph.nodes) };
    match directed(&graph.links, &ends) {
        Ok(Directed { links, parallel }) => {
            topology.links = links;
            if parallel > 0 {
                topology.notes.push(format!(
                    "{file}: {parallel} links have the ends of another, such as a second radio: \
                     the better one counts"
                ));
            }
        }
        Err(message) => return fail(message),
    }
    Ok(topology)
}

/// Returns the node name for an id.
pub(super) fn name(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    id.chars().map(|c| if allowed(c) { c } else { '-' }).collect()
}

/// Returns the position among a node's properties, if there is one.
fn position(
    properties: &Map<String, Value>,
    plane: &mut Plane,
) -> Result<Option<Position>, String> {
    let number = |key| properties.get(key).and_then(Value::as_f64);
    if let (Some(x), Some(y)) = (number("x"), number("y")) {
        return Ok(Some(Position { x, y, z: number("z").unwrap_or(0.0) }));
    }
    let (Some(latitude), Some(longitude)) = (number("latitude"), number("longitude")) else {
        return Ok(None);
    };
    let [x, y] = plane.metres(Degrees { latitude, longitude })?;
    Ok(Some(Position { x, y, z: 0.0 }))
}

/// Names of the nodes that links may join.
struct Ends<'a> {
    /// Nodes by their ids.
    index: BTreeMap<&'a str, usize>,
    /// Nodes by the addresses of their interfaces; `None` if several nodes have that address.
    addresses: BTreeMap<&'a str, Option<usize>>,
}

impl Ends<'_> {
    fn find(&self, name: &str) -> Result<usize, String> {
        match (self.index.get(name), self.addresses.get(name)) {
            (Some(node), _) | (None, Some(Some(node))) => Ok(*node),
            (None, Some(None)) => {
                Err(format!("a link names `{name}`, a local address of several nodes"))
            }
            (None, None) => Err(format!("a link names `{name}`, which is no node")),
        }
    }
}

/// Returns the nodes by their local addresses, which are texts or objects with an `address`.
fn addresses(nodes: &[GraphNode]) -> BTreeMap<&str, Option<usize>> {
    let mut all = BTreeMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for address in &node.local_addresses {
            let Some(address) = address.as_str().or_else(|| address["address"].as_str()) else {
                continue;
            };
            let owner = all.entry(address).or_insert(Some(i));
            *owner = owner.filter(|first| *first == i);
        }
    }
    all
}

/// Links of a graph.
struct Directed {
    /// From, to and loss, sorted.
    links: Vec<(usize, usize, f64)>,
    /// Entries whose ends another entry has, too.
    parallel: usize,
}

/// Returns the directed links. Of those that join the same nodes in the same direction, the better
/// one counts.
fn directed(links: &[GraphLink], nodes: &Ends<'_>) -> Result<Directed, String> {
    let mut parallel = 0;

    // Losses that the file states. An entry with its own delivery speaks for one direction only.
    let mut stated = BTreeMap::new();
    let mut one_way = BTreeSet::new();
    for link in links {
        let ends = (nodes.find(&link.source)?, nodes.find(&link.target)?);

        if ends.0 == ends.1 && link.source != link.target {
            // Two interfaces of one node.
            continue;
        }
        if ends.0 == ends.1 {
            return Err(format!("a link joins `{}` to itself", link.source));
        }

        if link.properties.contains_key("delivery") {
            one_way.insert(ends);
        }

        let loss = loss(link)?;
        let best = stated.entry(ends).and_modify(|_| parallel += 1).or_insert(loss);
        *best = best.min(loss);
    }

    // The other entries speak for both directions, unless the file states the opposite one too.
    let mut all = stated.clone();
    for (&(from, to), &loss) in stated.iter().filter(|(ends, _)| !one_way.contains(ends)) {
        all.entry((to, from)).or_insert(loss);
    }
    let links = all.into_iter().map(|((from, to), loss)| (from, to, loss)).collect();
    Ok(Directed { links, parallel })
}

/// Returns the loss of a link in the direction of its entry.
fn loss(link: &GraphLink) -> Result<f64, String> {
    // The delivery that this program writes is exact and directed, so it takes precedence.
    let ends = || format!("link `{}` to `{}`", link.source, link.target);
    if let Some(delivery) = link.properties.get("delivery") {
        let delivery = delivery.as_f64().filter(|delivery| (0.0..=1.0).contains(delivery));
        return delivery
            .map(|delivery| 1.0 - delivery)
            .ok_or_else(|| format!("{}: delivery must be from 0 to 1", ends()));
    }

    // From cost to loss, as the module describes.
    let cost = match &link.cost {
        Value::String(text) if text.eq_ignore_ascii_case("infinite") => Some(DEAD_COST),
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    let Some(cost) = cost.filter(|cost| *cost >= 1.0) else {
        return Err(format!("{}: cost {} is no ETX, which is at least 1", ends(), link.cost));
    };
    Ok(if cost >= DEAD_COST { 1.0 } else { 1.0 - 1.0 / cost.sqrt() })
}

/// Writes a NetworkGraph as indented JSON. Links of which an end is not among `nodes` are
/// omitted. The cost of a link is its
/// ETX, 1 / (d_f d_r), or 4096 if the opposite direction delivers nothing. Its delivery is among
/// its properties.
pub fn write(label: &str, nodes: &[Node], links: impl IntoIterator<Item = DirectedLink>) -> String {
    // The cost needs both directions. Without the opposite one the quotient is infinite, and the
    // cost becomes that of a dead link.
    let by_ends = |link: DirectedLink| ((link.from, link.to), link.delivery);
    let delivery: BTreeMap<_, _> = links.into_iter().map(by_ends).collect();
    let link = |(&(from, to), &forward): (&(usize, usize), &f64)| {
        let back = delivery.get(&(to, from)).copied().unwrap_or(0.0);
        Some(GraphLink {
            source: nodes.get(from)?.name.clone(),
            target: nodes.get(to)?.name.clone(),
            cost: json!((1.0 / (forward * back)).min(DEAD_COST)),
            properties: Map::from_iter([("delivery".to_owned(), json!(forward))]),
        })
    };

    let graph = Graph {
        r#type: "NetworkGraph".into(),
        protocol: json!("ncmesh"),
        version: json!(env!("CARGO_PKG_VERSION")),
        metric: Some("ETX".into()),
        label: Some(label.to_owned()),
        nodes: nodes.iter().map(graph_node).collect(),
        links: delivery.iter().filter_map(link).collect(),
    };
    serde_json::to_string_pretty(&graph).unwrap_or_default()
}

/// Returns the entry of a node.
fn graph_node(node: &Node) -> GraphNode {
    let place = |p: Position| {
        [("x", p.x), ("y", p.y), ("z", p.z)].map(|(key, value)| (key.to_owned(), json!(value)))
    };
    GraphNode {
        id: node.name.clone(),
        local_addresses: Vec::new(),
        properties: node.position.map(place).into_iter().flatten().collect(),
    }
}

/// Writes the network of a scenario as a NetworkGraph.
pub fn write_scenario(scenario: &Scenario) -> String {
    write(&scenario.name, &scenario.nodes, scenario.deliveries())
}
