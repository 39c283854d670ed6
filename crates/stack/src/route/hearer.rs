//! How the neighbours hear a node, and which of them depend on it for news of the mesh.

use super::repair::ASKING_HELPS;
use ncmesh_engine::topology::{Links, Topology};
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

/// Delivery of a link that nobody has measured yet.
const UNMEASURED: f64 = 0.5;
/// Share of the delivery over a third node below which a neighbour is left to that.
const POOR: f64 = 0.5;
/// Links of a node whose state is not known.
pub(super) static NO_LINKS: Links = Links::new();

/// A neighbour that may hear this node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hearer {
    pub node: NodeId,
    /// Share of our frames that it receives, or probably does.
    pub delivery: f64,
    /// How much it depends on us, from 0 to 1: the delivery as a part of the best that we, or a
    /// neighbour of both, can give; 0 if that gives far more.
    pub weight: f64,
    /// Share of frames that pass both ways, or probably do.
    pub quality: f64,
    /// Whether no neighbour of both has far better links with us and with it. It may be a part of
    /// the mesh to which we are the bridge, however good its other links are.
    pub relies: bool,
}

impl Hearer {
    /// Returns whether this node has to find out what the neighbour lacks, and tell it: over a poor
    /// link only if the neighbour relies on that.
    pub(super) fn is_ours_to_repair(&self) -> bool {
        self.relies || (self.weight > 0.0 && self.quality >= ASKING_HELPS)
    }
}

/// A neighbour over which another may be reached.
struct Via {
    /// Share of our frames that it receives, by its own word.
    reached: f64,
    /// Share of frames that pass both ways; 0 if it is not measured.
    both: f64,
}

/// Returns how the neighbours hear this node, by their own word; or, if they have not told us
/// yet, probably as we hear them.
pub(super) fn all(
    topology: &Topology,
    me: NodeId,
    neighbours: &BTreeSet<NodeId>,
    inbound: &Links,
) -> Vec<Hearer> {
    // A neighbour measures our frames, so its own word counts before our measurement of it.
    let hears = |node: &NodeId| topology.state(*node).map_or(&NO_LINKS, |state| &state.hears);
    let reached = neighbours.iter().filter_map(|n| Some((*n, *hears(n).get(&me)?)));
    let measured = |(node, reached): (NodeId, f64)| {
        let both = inbound.get(&node).map_or(0.0, |heard| reached * heard);
        (node, Via { reached, both })
    };

    // In ascending order, as neighbours are.
    let vias: Vec<(NodeId, Via)> = reached.map(measured).collect();
    let via = |node: &NodeId| {
        let at = vias.binary_search_by_key(node, |(node, _)| *node).ok()?;
        Some(&vias[at].1)
    };

    let hearer = |node: &NodeId| {
        let heard = inbound.get(node).copied().unwrap_or(UNMEASURED);
        let told = via(node).map(|via| via.reached);
        let delivery = told.unwrap_or(heard);

        // The best delivery over a neighbour of both, and of any link to the node; and the best
        // quality over a neighbour of both.
        let mut over = delivery;
        let mut any = delivery;
        let mut other = 0.0f64;
        for (between, last) in hears(node) {
            any = any.max(*last);
            let Some(via) = via(between) else { continue };
            over = over.max(last.min(via.reached));
            if via.both > other {
                other = other.max(via.both.min(last * topology.delivery(*node, *between)));
            }
        }

        // Another neighbour of both passes on what it hears from us. If there is a good one,
        // whoever reaches the node best will have the news. If there is none, the node may
        // depend on us, however well it hears those behind it.
        let best = if over >= POOR * any { any } else { over };
        let is_served = told.is_some() && delivery > POOR * best;
        let weight = if is_served { delivery / best } else { 0.0 };

        // Only who also hears the node well knows what it lacks.
        let quality = delivery * heard;
        let relies = quality > POOR * other;
        Hearer { node: *node, delivery, weight, quality, relies }
    };

    neighbours.iter().map(hearer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::topology::LinkState;

    const ME: NodeId = NodeId(1);

    /// View of node 1 of a mesh with these links, the same in both directions.
    fn hearers(links: &[(u16, u16, f64)]) -> Vec<Hearer> {
        let mut topology = Topology::new(0.05);
        let ends = |node: u16| {
            let other = move |(a, b, d): &(u16, u16, f64)| match node {
                _ if *a == node => Some((NodeId(*b), *d)),
                _ if *b == node => Some((NodeId(*a), *d)),
                _ => None,
            };
            links.iter().filter_map(other)
        };
        for node in 1..=9 {
            let version = (1, 1);
            let hears = ends(node).collect();
            topology.learn(NodeId(node), LinkState { version, hears, ..LinkState::default() });
        }
        let inbound: Links = ends(ME.0).collect();
        all(&topology, ME, &inbound.keys().copied().collect(), &inbound)
    }

    #[test]
    fn a_neighbour_that_another_reaches_well_is_left_to_that() {
        let seen = hearers(&[(1, 2, 0.9), (2, 3, 0.9), (1, 3, 0.3)]);
        assert_eq!((seen[0].node, seen[0].weight, seen[0].relies), (NodeId(2), 1.0, true));
        assert_eq!((seen[1].node, seen[1].weight, seen[1].relies), (NodeId(3), 0.0, false));
        assert!(seen[0].is_ours_to_repair() && !seen[1].is_ours_to_repair());
    }

    #[test]
    fn the_other_end_of_a_bridge_relies_on_it_however_well_it_hears_those_behind() {
        // Nodes 3 and 4 are the other part; 2 and 4 are a worse bridge.
        let links = [(1, 2, 0.9), (3, 4, 0.9), (1, 3, 0.3), (2, 4, 0.2)];
        let seen = hearers(&links);
        assert_eq!((seen[1].node, seen[1].weight, seen[1].relies), (NodeId(3), 1.0, true));
    }

    #[test]
    fn one_that_has_not_told_whether_it_hears_us_gets_no_weight() {
        let inbound = Links::from_iter([(NodeId(2), 0.8)]);
        let seen = all(&Topology::new(0.05), ME, &BTreeSet::from([NodeId(2)]), &inbound);
        assert_eq!((seen[0].delivery, seen[0].weight, seen[0].relies), (0.8, 0.0, true));
    }
}
