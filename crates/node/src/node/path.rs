//! The path from this node to another, hop by hop, as the link state shows it.

use super::names::name_of;
use crate::api::answers::{Hop, Path};
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;

/// Returns the best path by ETX of unicast to a node.
pub(super) fn path_to(stack: &Stack, to: NodeId) -> Path {
    let hops = hops(stack.topology(), stack.node(), to, |node| name_of(stack, node));
    let etx = hops.iter().map(|hop| hop.etx).sum();
    Path { id: to.0, name: name_of(stack, to), etx, hops }
}

fn hops(
    topology: &Topology,
    from: NodeId,
    to: NodeId,
    name_of: impl Fn(NodeId) -> String,
) -> Vec<Hop> {
    let path = topology.paths_from(from, Metric::Unicast).path_to(to);
    let before = std::iter::once(from).chain(path.iter().copied());
    before
        .zip(&path)
        .map(|(from, to)| {
            // A hop has two directions, and a unicast needs both: data there, its acknowledgment
            // back.
            let (delivery, delivery_back) =
                (topology.delivery(from, *to), topology.delivery(*to, from));
            let etx = 1.0 / Metric::Unicast.success(delivery, delivery_back);
            let name = name_of(*to);
            Hop { id: to.0, name, delivery, delivery_back, etx, rtt_s: None, port: None }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hop_has_its_own_links_both_ways() {
        let hears = |all: &[(u16, f64)]| all.iter().map(|(node, d)| (NodeId(*node), *d)).collect();
        // 1 hears 3 too, but so badly that the way over 2 is better.
        let topology = Topology::known(vec![
            hears(&[(2, 0.5), (3, 0.1)]),
            hears(&[(1, 0.8), (3, 1.0)]),
            hears(&[(1, 0.1), (2, 0.25)]),
        ]);
        let hops = hops(&topology, NodeId(1), NodeId(3), |node| format!("node {node}"));
        let hop = |id: u16, delivery, delivery_back, etx| Hop {
            id,
            name: format!("node {id}"),
            delivery,
            delivery_back,
            etx,
            rtt_s: None,
            port: None,
        };
        assert_eq!(hops, [hop(2, 0.8, 0.5, 2.5), hop(3, 0.25, 1.0, 4.0)]);
    }
}
