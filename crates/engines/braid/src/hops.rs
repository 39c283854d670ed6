//! Which way packets of a flow go, as heard: each frame names the node that is to send it on.

use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Nodes of a flow whose next hops are remembered, at most.
const MAX_NODES: usize = 32;

/// The next hops that nodes of a flow were last heard to have.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    next: BTreeMap<NodeId, NodeId>,
}

impl Hops {
    /// Notes that a node sends its packets to this next hop.
    pub(crate) fn note(&mut self, node: NodeId, next_hop: NodeId) {
        if self.next.len() < MAX_NODES || self.next.contains_key(&node) {
            self.next.insert(node, next_hop);
        }
    }

    /// Returns whether packets that node `from` sends on come to node `to` on their way to the
    /// destination; `None` if that is not known.
    pub(crate) fn lead(&self, from: NodeId, to: NodeId, destination: NodeId) -> Option<bool> {
        let way = std::iter::successors(Some(from), |at| self.next.get(at).copied());
        let mut way = way.take(MAX_NODES).skip_while(|at| *at != to && *at != destination);
        way.next().map(|end| end == to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESTINATION: NodeId = NodeId(9);

    fn lead(hops: &Hops, from: u16, to: u16) -> Option<bool> {
        hops.lead(NodeId(from), NodeId(to), DESTINATION)
    }

    #[test]
    fn a_way_is_known_as_far_as_its_nodes_were_heard() {
        let mut hops = Hops::default();
        hops.note(NodeId(1), NodeId(2));
        assert_eq!(lead(&hops, 1, 2), Some(true));
        assert_eq!(lead(&hops, 1, 3), None, "node 2 was not heard");
        hops.note(NodeId(2), NodeId(9));
        assert_eq!(lead(&hops, 1, 3), Some(false));
        hops.note(NodeId(2), NodeId(3));
        assert_eq!(lead(&hops, 1, 3), Some(true), "the newest counts");
    }

    #[test]
    fn a_way_in_a_circle_leads_nowhere() {
        let mut hops = Hops::default();
        hops.note(NodeId(1), NodeId(2));
        hops.note(NodeId(2), NodeId(1));
        assert_eq!(lead(&hops, 1, 3), None);
    }

    #[test]
    fn few_nodes_are_remembered_and_those_anew() {
        let mut hops = Hops::default();
        for node in 10..100 {
            hops.note(NodeId(node), NodeId(1));
        }
        assert_eq!(hops.next.len(), MAX_NODES);
        hops.note(NodeId(10), NodeId(9));
        assert_eq!(lead(&hops, 10, 1), Some(false));
    }
}
