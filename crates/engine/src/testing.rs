//! Meshes for tests, described in one line.

use crate::topology::{LinkState, Topology};
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

/// Returns a topology of directed links: from, to, delivery.
pub fn directed(links: &[(u16, u16, f64)]) -> Topology {
    let mut t = Topology::new(0.01);
    let nodes: BTreeSet<u16> = links.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
    for node in nodes {
        let heard = links.iter().filter(|(_, to, _)| *to == node);
        let hears = heard.map(|(from, _, d)| (NodeId(*from), *d)).collect();
        let state = LinkState {
            version: (1, 1),
            base: 1,
            name: format!("n{node}"),
            hears,
            ..Default::default()
        };

        t.learn(NodeId(node), state);
    }

    t
}

/// Returns a topology of links that deliver alike in both directions.
pub fn symmetric(links: &[(u16, u16, f64)]) -> Topology {
    let back = links.iter().map(|(a, b, d)| (*b, *a, *d));
    directed(&links.iter().copied().chain(back).collect::<Vec<_>>())
}
