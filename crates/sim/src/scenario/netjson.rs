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
//! # Names
//! A node's name is its `id`. Characters that a scenario does not allow become `-`.
//!
//! # Positions
//! `x`, `y` and `z` among the properties of a node are metres. `latitude` and `longitude`, degrees,
//! become metres from the first node that has them, on the plane that touches the Earth there.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::Place;
use super::links::Topology;
use super::reader::add_node;
use super::{Node, Position, Scenario, ScenarioError};

/// Cost at or above which a link is dead.
const DEAD_COST: f64 = 4096.0;

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
    id: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    properties: Map<String, Value>,
}

#[derive(Deserialize, Serialize)]
struct GraphLink {
    source: String,
    target: String,
    cost: f64,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    properties: Map<String, Value>,
}

/// Reads a NetworkGraph. Errors call the file `file`.
///
/// # Errors
/// [`ScenarioError`], with the file and, where known, the line.
pub fn read(text: &str, file: &str) -> Result<Topology, ScenarioError> {
    let graph: Graph = serde_json::from_str(text).map_err(|error| ScenarioError::Syntax {
        place: Place::line(file, error.line()),
        message: error.to_string(),
    })?;

    // Other metrics, such as hop counts, say nothing about loss.
    let fail = |message: String| Err(ScenarioError::value(Place::file(file), message));
    if graph.r#type != "NetworkGraph" {
        return fail(format!("NetJSON type `{}`: must be NetworkGraph", graph.r#type));
    }
    if let Some(metric) = graph.metric.as_ref().filter(|metric| !metric.eq_ignore_ascii_case("etx"))
    {
        return fail(format!("NetJSON metric `{metric}`: only ETX can be read as loss"));
    }

    // Two ids can become one name, which the scenario's own check finds. Two equal ids are found
    // here, because links refer to ids.
    let mut topology = Topology::default();
    let mut index = BTreeMap::new();
    let mut origin = None;
    for node in &graph.nodes {
        let position = position(&node.properties, &mut origin).map_err(|message| {
            ScenarioError::value(Place::file(file), format!("node `{}`: {message}", node.id))
        })?;
        add_node(&mut topology.nodes, Node { name: name(&node.id), position }, Place::file(file))?;
        if index.insert(node.id.as_str(), topology.nodes.len() - 1).is_some() {
            return fail(format!("two nodes have the id `{}`", node.id));
        }
    }

    match directed(&graph.links, &index) {
        Ok(links) => topology.links = links,
        Err(message) => return fail(message),
    }
    Ok(topology)
}

/// Returns the node name for an id.
pub(super) fn name(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    id.chars().map(|c| if allowed(c) { c } else { '-' }).collect()
}

/// Mean radius of the Earth, m (IUGG).
const EARTH_M: f64 = 6_371_008.8;

/// Returns the position among a node's properties, if there is one. `origin` is the latitude and
/// longitude of the first node that has them.
fn position(
    properties: &Map<String, Value>,
    origin: &mut Option<(f64, f64)>,
) -> Result<Option<Position>, String> {
    let number = |key| properties.get(key).and_then(Value::as_f64);
    if let (Some(x), Some(y)) = (number("x"), number("y")) {
        return Ok(Some(Position { x, y, z: number("z").unwrap_or(0.0) }));
    }
    let (Some(latitude), Some(longitude)) = (number("latitude"), number("longitude")) else {
        return Ok(None);
    };
    if latitude.abs() > 90.0 || longitude.abs() > 180.0 {
        return Err("latitude must be -90 to 90, longitude -180 to 180".into());
    }
    let (south, west) = *origin.get_or_insert((latitude, longitude));
    // The shorter way round the Earth, for meshes at 180 degrees.
    let east = (longitude - west + 540.0).rem_euclid(360.0) - 180.0;
    let x = EARTH_M * east.to_radians() * libm::cos(south.to_radians());
    Ok(Some(Position { x, y: EARTH_M * (latitude - south).to_radians(), z: 0.0 }))
}

/// Returns the directed links (from, to, loss), sorted.
fn directed(
    links: &[GraphLink],
    index: &BTreeMap<&str, usize>,
) -> Result<Vec<(usize, usize, f64)>, String> {
    let find = |id: &str| {
        index.get(id).copied().ok_or_else(|| format!("a link names `{id}`, which is no node"))
    };

    // Losses that the file states. An entry with its own delivery speaks for one direction only.
    let mut stated = BTreeMap::new();
    let mut one_way = BTreeSet::new();
    for link in links {
        let ends = (find(&link.source)?, find(&link.target)?);
        if ends.0 == ends.1 {
            return Err(format!("a link joins `{}` to itself", link.source));
        }
        if link.properties.contains_key("delivery") {
            one_way.insert(ends);
        }
        stated.insert(ends, loss(link)?);
    }

    // The other entries speak for both directions, unless the file states the opposite one too.
    let mut all = stated.clone();
    for (&(from, to), &loss) in stated.iter().filter(|(ends, _)| !one_way.contains(ends)) {
        all.entry((to, from)).or_insert(loss);
    }
    Ok(all.into_iter().map(|((from, to), loss)| (from, to, loss)).collect())
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
    if link.cost.is_nan() || link.cost < 1.0 {
        return Err(format!("{}: cost {} is no ETX, which is at least 1", ends(), link.cost));
    }
    Ok(if link.cost >= DEAD_COST { 1.0 } else { 1.0 - 1.0 / link.cost.sqrt() })
}

/// Writes a NetworkGraph as indented JSON. `links` are directed: (from, to, delivery 0 to 1), with
/// indices into `nodes`; links with an index out of range are omitted. The cost of a link is its
/// ETX, 1 / (d_f d_r), or 4096 if the opposite direction delivers nothing. Its delivery is among
/// its properties.
pub fn write(
    label: &str,
    nodes: &[Node],
    links: impl IntoIterator<Item = (usize, usize, f64)>,
) -> String {
    // The cost needs both directions. Without the opposite one the quotient is infinite, and the
    // cost becomes that of a dead link.
    let delivery: BTreeMap<_, _> = links.into_iter().map(|(from, to, p)| ((from, to), p)).collect();
    let link = |(&(from, to), &forward): (&(usize, usize), &f64)| {
        let back = delivery.get(&(to, from)).copied().unwrap_or(0.0);
        Some(GraphLink {
            source: nodes.get(from)?.name.clone(),
            target: nodes.get(to)?.name.clone(),
            cost: (1.0 / (forward * back)).min(DEAD_COST),
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
        properties: node.position.map(place).into_iter().flatten().collect(),
    }
}

/// Writes the network of a scenario as a NetworkGraph.
pub fn write_scenario(scenario: &Scenario) -> String {
    write(&scenario.name, &scenario.nodes, scenario.deliveries())
}
