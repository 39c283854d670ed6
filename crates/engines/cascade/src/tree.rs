//! The tree that a transfer begins with. Its paths are about the shortest. Where several parents of
//! a node are about as good, it takes one that serves others too.

use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Data go down a link and reports go up, if need be by another way.
pub(super) const METRIC: Metric = Metric::Answered;
/// A path by a shared parent may be longer than the shortest by this share of the ETX of that one's
/// last hop. A longer one shares more packets, and makes paths longer: half 1.00, twice 0.99.
const DETOUR: f64 = 0.25;

/// Returns the parent of each node on the paths from `source` to `receivers`.
///
/// Nodes are taken from the farthest to the nearest. Of the neighbours by which its path is hardly
/// longer than the shortest, a node takes the one that most nodes of the tree could take, so that
/// few nodes send.
pub(super) fn parents(
    topology: &Topology,
    source: NodeId,
    receivers: impl Iterator<Item = NodeId>,
) -> BTreeMap<NodeId, NodeId> {
    let paths = topology.paths_from(source, METRIC);

    // Parents that a node may take, each with the length of the path by it.
    let parents_of = |node: NodeId| -> Vec<(NodeId, f64)> {
        let shortest = paths.parent(node).zip(paths.etx(node));
        let (Some((first, own)), Some(state)) = (shortest, topology.state(node)) else {
            return Vec::new();
        };
        let longest = own + DETOUR * (own - paths.etx(first).unwrap_or(0.0));
        let by = |(parent, there): (NodeId, f64)| {
            let nearer = paths.etx(parent).filter(|etx| *etx < own)?;
            let success = METRIC.success(there, topology.delivery(node, parent));
            let etx = nearer + topology.airtime(parent, node) / success;
            (etx <= longest).then_some((parent, etx))
        };

        let others = state.hears.iter().filter(|(n, _)| **n != first);
        let others = others.filter_map(|(n, there)| by((*n, *there)));
        others.chain([(first, own)]).collect()
    };

    // How many of the nodes that have no parent yet could take each one.
    let mut takers: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut open = BTreeMap::new();
    let add = |node: NodeId, open: &mut BTreeMap<_, _>, takers: &mut BTreeMap<_, usize>| {
        open.entry((paths.distance(node), node)).or_insert_with(|| {
            let parents = parents_of(node);
            parents.iter().for_each(|(parent, _)| *takers.entry(*parent).or_default() += 1);
            parents
        });
    };

    for node in receivers.filter(|node| *node != source && paths.reaches(*node)) {
        add(node, &mut open, &mut takers);
    }

    let mut chosen = BTreeMap::new();
    let mut feeds = BTreeSet::from([source]);
    while let Some(((_, node), parents)) = open.pop_last() {
        let shared = |parent| (feeds.contains(&parent), takers.get(&parent).copied().unwrap_or(0));
        let best = parents.iter().max_by(|(a, by_a), (b, by_b)| {
            shared(*a).cmp(&shared(*b)).then(by_b.total_cmp(by_a)).then(b.cmp(a))
        });
        let Some((parent, _)) = best.copied() else { continue };
        for (parent, _) in &parents {
            *takers.entry(*parent).or_default() -= 1;
        }
        chosen.insert(node, parent);
        feeds.insert(parent);
        if parent != source {
            add(parent, &mut open, &mut takers);
        }
    }

    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::testing::symmetric;
    use proptest::prelude::*;

    fn tree(links: &[(u16, u16, f64)], receivers: &[u16]) -> Vec<(u16, u16)> {
        let receivers = receivers.iter().map(|n| NodeId(*n));
        let parents = parents(&symmetric(links), NodeId(1), receivers);
        parents.iter().map(|(node, parent)| (node.0, parent.0)).collect()
    }

    #[test]
    fn receivers_take_a_parent_that_serves_others_too_if_it_is_about_as_good() {
        // Nodes 5 to 7 hear two or three of the relays 2 to 4; each hears another one best.
        let links = [
            [(1, 2, 0.98), (1, 3, 0.98), (1, 4, 0.98)].as_slice(),
            &[(2, 5, 0.99), (3, 5, 0.97), (3, 6, 0.97), (4, 6, 0.99), (3, 7, 0.97), (4, 7, 0.96)],
        ]
        .concat();
        assert_eq!(tree(&links, &[5, 6, 7]), [(3, 1), (5, 3), (6, 3), (7, 3)]);
        // One receiver alone takes the best.
        assert_eq!(tree(&links, &[5]), [(2, 1), (5, 2)]);
        // Nodes that hear the source well take it, though one could feed the other.
        assert_eq!(tree(&[(1, 2, 0.9), (1, 3, 0.9), (2, 3, 1.0)], &[2, 3]), [(2, 1), (3, 1)]);
    }

    #[test]
    fn a_parent_that_is_much_worse_is_not_shared() {
        let links = [(1, 2, 0.9), (1, 3, 0.9), (2, 4, 0.9), (3, 4, 0.6), (3, 5, 0.9)];
        assert_eq!(tree(&links, &[4, 5]), [(2, 1), (3, 1), (4, 2), (5, 3)]);
        assert_eq!(tree(&links, &[6, 1]), []);
    }

    proptest! {
        #[test]
        fn each_receiver_is_reached_by_hops_that_lead_nearer(
            links in prop::collection::vec((1..12u16, 1..12u16, 0.05..1.0f64), 1..60),
            receivers in prop::collection::btree_set(1..12u16, 1..6),
        ) {
            let links: Vec<_> = links.into_iter().filter(|(a, b, _)| a != b).collect();
            let topology = symmetric(&links);
            let paths = topology.paths_from(NodeId(1), METRIC);
            let nodes = receivers.iter().map(|n| NodeId(*n));
            let parents = parents(&topology, NodeId(1), nodes.clone());
            for mut node in nodes.filter(|n| *n != NodeId(1) && paths.reaches(*n)) {
                while node != NodeId(1) {
                    let parent = parents[&node];
                    prop_assert!(paths.distance(parent) < paths.distance(node));
                    node = parent;
                }
            }
        }
    }
}
