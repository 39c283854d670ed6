//! The mesh as a NetJSON NetworkGraph (draft-interop-netjson).

use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use serde_json::{Value, json};

/// The cost of a link on which nothing comes back, so that no unicast gets through.
const DEAD_COST: f64 = 4096.0;

/// The graph as `router` knows it. A link's cost is its ETX, 1 / (d_f d_r) (De Couto et al.,
/// MobiCom 2003), its own delivery stands among its properties.
pub(super) fn network_graph(
    topology: &Topology,
    router: NodeId,
    name_of: impl Fn(NodeId) -> String,
) -> Value {
    let nodes =
        topology.nodes().map(|node| json!({"id": node.to_string(), "label": name_of(node)}));
    let links = topology.nodes().flat_map(|from| {
        topology.links_from(from).map(move |(to, delivery)| {
            let etx = 1.0 / (delivery * topology.delivery(to, from));
            json!({
                "source": from.to_string(),
                "target": to.to_string(),
                "cost": etx.min(DEAD_COST),
                "properties": {"delivery": delivery},
            })
        })
    });
    json!({
        "type": "NetworkGraph",
        "protocol": "ncmesh",
        "version": env!("CARGO_PKG_VERSION"),
        "metric": "ETX",
        "router_id": router.to_string(),
        "nodes": nodes.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::topology::LinkState;

    #[test]
    fn costs_are_etx_of_both_directions() {
        let mut topology = Topology::new(0.05);
        for (node, hears) in [(1, vec![(2, 0.5)]), (2, vec![(1, 0.8), (3, 0.5)]), (3, vec![])] {
            let hears = hears.into_iter().map(|(node, d)| (NodeId(node), d)).collect();
            let state = LinkState { version: (1, 1), name: format!("n{node}"), hears };
            topology.learn(NodeId(node), state);
        }
        let graph = network_graph(&topology, NodeId(1), |node| format!("n{node}"));
        let link = |link: &Value| {
            let cost = link["cost"].as_f64().unwrap();
            let delivery = link["properties"]["delivery"].as_f64().unwrap();
            (link["source"] == "3", cost, delivery)
        };
        let links: Vec<_> = graph["links"].as_array().unwrap().iter().map(link).collect();
        assert_eq!(links, [(false, 2.5, 0.8), (false, 2.5, 0.5), (true, 4096.0, 0.5)]);
        assert_eq!(graph["nodes"][0], json!({"id": "1", "label": "n1"}));
    }
}
