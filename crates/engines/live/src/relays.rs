//! Multipoint relays (RFC 6621, appendix B; RFC 7181, appendix B): the neighbours of a node that
//! together reach all nodes two hops away. A node sends on what it first hears from a neighbour
//! that chose it.
//!
//! Every node knows the links of the whole mesh, so it finds out by itself which neighbours choose
//! it. A real SMF is told so in hellos; the choice is the same.

use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Share of frames that a link must deliver in both directions to count as one. Lower, floods go
/// over links that lose most of them; higher, they end where links are poor.
const LINK: f64 = 0.4;

/// Neighbours that chose this node as a relay, as far as they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Selectors {
    /// Version of the topology that the choices are from.
    version: u64,
    chose: BTreeMap<NodeId, bool>,
}

impl Selectors {
    /// Returns whether `neighbour` chose `me` as a relay.
    pub(crate) fn contains(&mut self, topology: &Topology, neighbour: NodeId, me: NodeId) -> bool {
        if self.version != topology.version() {
            self.version = topology.version();
            self.chose.clear();
        }

        // A neighbour that link state does not know chooses none; it is not kept.
        if topology.state(neighbour).is_none() {
            return false;
        }

        let choice = || relays(topology, neighbour).contains(&me);
        *self.chose.entry(neighbour).or_insert_with(choice)
    }
}

/// Returns the relays that `node` chooses.
pub(crate) fn relays(topology: &Topology, node: NodeId) -> BTreeSet<NodeId> {
    // Multipoint relays: neighbours that together reach all nodes two hops away.
    let near = neighbours(topology, node);
    // A relay is worth the nodes that `node` does not reach itself.
    let reaches = |relay: NodeId| {
        let mut far = neighbours(topology, relay);
        far.retain(|other| *other != node && !near.contains(other));
        far
    };

    let reached: BTreeMap<NodeId, BTreeSet<NodeId>> =
        near.iter().map(|relay| (*relay, reaches(*relay))).collect();
    let mut open: BTreeSet<NodeId> = reached.values().flatten().copied().collect();
    let mut chosen = BTreeSet::new();

    // The neighbour that reaches most of what is left, until nothing is. The only way to a node is
    // chosen in time, so the first step of the RFC saves relays seldom and is left out.
    while !open.is_empty() {
        let gain = |relay: &NodeId| reached[relay].intersection(&open).count();
        let best = near.iter().max_by_key(|relay| (gain(relay), std::cmp::Reverse(**relay)));
        let Some(best) = best else { break };
        open.retain(|far| !reached[best].contains(far));
        chosen.insert(*best);
    }

    chosen
}

fn neighbours(topology: &Topology, node: NodeId) -> BTreeSet<NodeId> {
    let links = topology.links_from(node);
    let good =
        links.filter(|(to, delivery)| *delivery >= LINK && topology.delivery(*to, node) >= LINK);
    good.map(|(to, _)| to).collect()
}
