//! The mesh as a NetJSON NetworkGraph (draft-interop-netjson).

use crate::api::types::PeerPort;
use ncmesh_engine::name::is_node_name;
use ncmesh_engine::topology::{Position, Topology};
use ncmesh_wire::NodeId;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The cost of a link on which nothing comes back, so that no unicast gets through.
const DEAD_COST: f64 = 4096.0;

/// The graph as `router` knows it. A link's cost is its ETX, 1 / (d_f d_r) (De Couto et al.,
/// MobiCom 2003), its own delivery stands among its properties.
///
/// Nodes are called by their names, so that a reader finds them under what people call them. One
/// whose name another has too, or that is none, is called `#` and its number.
///
/// `label` is what `router` calls itself, instead of its name. `ways` has the ports of `router` by
/// which it hears each neighbour; it is empty if there is one port only.
pub(super) fn network_graph(
    topology: &Topology,
    router: NodeId,
    label: Option<&str>,
    ways: &BTreeMap<NodeId, Vec<PeerPort>>,
) -> Value {
    // Names are counted first: one that several nodes have would make two nodes one.
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, state) in topology.states() {
        *named.entry(&state.name).or_default() += 1;
    }
    let id = |node: NodeId| {
        let name = topology.state(node).map(|state| state.name.as_str());
        let unique = name.filter(|name| is_node_name(name) && named.get(name) == Some(&1));
        unique.map_or_else(|| format!("#{node}"), str::to_owned)
    };

    let nodes = topology.states().map(|(node, state)| {
        // Attributes that a node does not tell are left out.
        let mut properties = Map::from_iter([("node".to_owned(), json!(node.0))]);
        let position = state.profile.position;
        let metres =
            position.and_then(Position::metres).map(|m| ["x", "y", "z"].into_iter().zip(m));
        properties.extend(metres.into_iter().flatten().map(|(key, m)| (key.into(), json!(m))));
        if let Some([latitude, longitude]) = position.and_then(Position::degrees) {
            properties.insert("latitude".into(), json!(latitude));
            properties.insert("longitude".into(), json!(longitude));
        }

        let label = label.filter(|_| node == router).unwrap_or(&state.name);
        json!({"id": id(node), "label": label, "properties": properties})
    });

    let id = &id;
    let links = topology.nodes().flat_map(|from| {
        topology.links_from(from).map(move |(to, delivery)| {
            // Where nothing comes back the cost is infinite, which JSON cannot say; so it is
            // bounded.
            let etx = 1.0 / (delivery * topology.delivery(to, from));
            let mut properties = Map::from_iter([("delivery".to_owned(), json!(delivery))]);
            // A node knows its own ports: those on which it hears, and that by which it sends.
            if let Some(heard) = ways.get(&from).filter(|_| to == router) {
                let ports: Vec<&str> = heard.iter().map(|way| way.port.as_str()).collect();
                properties.insert("ports".into(), json!(ports));
            }
            let mut sent = ways.get(&to).into_iter().flatten().filter(|way| way.way);
            if let Some(way) = sent.next().filter(|_| from == router) {
                properties.insert("port".into(), json!(way.port));
            }

            json!({
                "source": id(from),
                "target": id(to),
                "cost": etx.min(DEAD_COST),
                "properties": properties,
            })
        })
    });

    json!({
        "type": "NetworkGraph",
        "protocol": "ncmesh",
        "version": env!("CARGO_PKG_VERSION"),
        "metric": "ETX",
        "router_id": id(router),
        "nodes": nodes.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::topology::{LinkState, Profile};
    use std::path::Path;

    fn topology(names: [&str; 4]) -> Topology {
        let mut topology = Topology::new(0.05);
        let hears: [&[(u16, f64)]; 4] = [&[(2, 0.5)], &[(1, 0.8), (3, 0.5)], &[], &[(1, 1.0)]];
        let positions = [
            Position::plan([0.0, 0.0, 0.0]),
            Position::plan([120.5, -40.0, 3.0]),
            None,
            Position::plan([60.0, 0.0, 0.0]),
        ];
        for (i, (name, position)) in names.into_iter().zip(positions).enumerate() {
            let hears = hears[i].iter().map(|(node, d)| (NodeId(*node), *d)).collect();
            let name = name.into();
            let profile = Profile { position, ..Profile::default() };
            let state = LinkState { version: (1, 1), base: 1, name, profile, hears };
            topology.learn(NodeId(i as u16 + 1), state);
        }
        topology
    }

    fn no_ways() -> BTreeMap<NodeId, Vec<PeerPort>> {
        BTreeMap::new()
    }

    #[test]
    fn the_ports_of_the_router_are_those_of_its_own_links() {
        let way = |port: &str, way| PeerPort { port: port.into(), delivery_from: 0.9, way };
        let ways = BTreeMap::from([(NodeId(2), vec![way("wlan0", false), way("roof", true)])]);
        let graph = network_graph(&topology(["a", "b", "c", "d"]), NodeId(1), None, &ways);
        let of = |source: &str, target: &str| {
            let links = graph["links"].as_array().unwrap().iter();
            let mut found = links.filter(|l| l["source"] == source && l["target"] == target);
            found.next().unwrap()["properties"].clone()
        };
        assert_eq!(of("b", "a"), json!({"delivery": 0.5, "ports": ["wlan0", "roof"]}));
        assert_eq!(of("a", "b"), json!({"delivery": 0.8, "port": "roof"}));
        assert_eq!(of("c", "b"), json!({"delivery": 0.5}));
    }

    #[test]
    fn costs_are_etx_of_both_directions() {
        let graph = network_graph(&topology(["a", "b", "c", "d"]), NodeId(1), None, &no_ways());
        let link = |link: &Value| {
            let cost = link["cost"].as_f64().unwrap();
            let delivery = link["properties"]["delivery"].as_f64().unwrap();
            (link["source"].as_str().unwrap().to_owned(), cost, delivery)
        };
        let links: Vec<_> = graph["links"].as_array().unwrap().iter().map(link).collect();
        let expected = [("a", 2.5, 0.8), ("b", 2.5, 0.5), ("c", 4096.0, 0.5)];
        assert_eq!(links, expected.map(|(from, cost, d)| (from.to_owned(), cost, d)));
    }

    /// The simulator reads the recorded graph back by name, in its own tests.
    #[test]
    fn the_graph_is_the_one_that_the_simulator_reads() {
        let topology = topology(["roof-east", "barn", "n7", "shop"]);
        let graph = network_graph(&topology, NodeId(2), None, &no_ways());
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/tests/data/daemon.json");
        let recorded: Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        // The version of the program differs from release to release.
        let without_version = |mut graph: Value| {
            graph["version"] = Value::Null;
            graph
        };
        assert_eq!(without_version(graph.clone()), without_version(recorded), "{graph:#}");
    }

    #[test]
    fn nodes_that_cannot_be_told_by_name_are_called_by_number() {
        let twins = topology(["twin", "twin", "#4", "d"]);
        let graph = network_graph(&twins, NodeId(1), None, &no_ways());
        let ids: Vec<_> = (0..4).map(|node| graph["nodes"][node]["id"].clone()).collect();
        assert_eq!(ids, ["#1", "#2", "#3", "d"]);
        assert_eq!(
            (&graph["router_id"], &graph["links"][0]["target"]),
            (&json!("#1"), &json!("#2"))
        );
        let mut earth = LinkState { version: (1, 1), name: "e".into(), ..Default::default() };
        earth.profile.position = Position::earth(52.5, 13.4);
        let mut topology = Topology::new(0.05);
        topology.learn(NodeId(9), earth);
        let place =
            &network_graph(&topology, NodeId(9), None, &no_ways())["nodes"][0]["properties"];
        assert_eq!(*place, json!({"node": 9, "latitude": 52.5, "longitude": 13.4}));
    }
}
