//! The multicast tree and its credits (Pacifier, III-A and III-C).

use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// A shortest-ETX multicast tree with what each node in it sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Parent of each node of the tree; the source has none.
    pub parent: BTreeMap<NodeId, NodeId>,
    /// Inner nodes but the source, in order of increasing ETX from it.
    pub forwarders: Vec<NodeId>,
    /// Expected transmissions per packet of the source and each forwarder (z, eq. 3).
    pub z: BTreeMap<NodeId, f64>,
    /// Transmissions per packet received from upstream, of each forwarder (TX_credit, eq. 4).
    pub tx_credit: BTreeMap<NodeId, f64>,
    /// Receivers that no path leads to.
    pub unreachable: Vec<NodeId>,
}

impl Tree {
    /// Builds the union of the shortest-ETX paths from `source` to `receivers` and computes the
    /// credits of its inner nodes with `knob` (III-C.2).
    #[must_use]
    pub fn new(
        topology: &Topology,
        source: NodeId,
        receivers: &[NodeId],
        knob: f64,
        metric: Metric,
    ) -> Self {
        let paths = topology.paths_from(source, metric);
        let mut tree = Self::default();
        for receiver in receivers.iter().copied().filter(|r| *r != source) {
            // A receiver without a path must not stop the transfer to the others.
            if !paths.reaches(receiver) {
                tree.unreachable.push(receiver);
                continue;
            }

            // The path is followed to the source. Parts that several receivers share are added
            // once.
            let mut node = receiver;
            while let Some(parent) = paths.parent(node) {
                tree.parent.insert(node, parent);
                node = parent;
            }
        }

        // Inner nodes forward. Their order by distance defines who is upstream of whom (A(j)).
        let inner: BTreeSet<NodeId> = tree.parent.values().copied().collect();
        tree.forwarders = inner.into_iter().filter(|node| *node != source).collect();
        tree.forwarders.sort_by_key(|node| (paths.distance(*node), *node));
        tree.assign_credits(topology, source, knob);
        tree
    }

    /// Returns the children of `node`.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.parent.iter().filter(move |(_, parent)| **parent == node).map(|(child, _)| *child)
    }

    /// Computes equations 1 to 4, from the source outward: what a node must send depends on what
    /// the nodes upstream of it send.
    fn assign_credits(&mut self, topology: &Topology, source: NodeId, knob: f64) {
        // The source owes each of its children a whole packet (L_sk = 1).
        let for_children = self.children(source).map(|k| 1.0 / topology.delivery(source, k));
        let z_source = combine(for_children, knob);
        self.z.insert(source, z_source);

        let mut upstream = vec![(source, z_source)];
        for j in self.forwarders.clone() {
            // Packets that a node hears from the nodes upstream of j, per packet of the source.
            let heard_by = |node: NodeId| -> f64 {
                upstream.iter().map(|(i, z)| z * topology.delivery(*i, node)).sum()
            };
            let received = heard_by(j);

            // Eq. 1: j brings each child k up to one packet, unless j has less than one itself. A
            // child that overheard enough needs nothing. Eq. 2: over the link, that takes L / d
            // transmissions.
            let for_children = self.children(j).filter_map(|k| {
                let missing = received.min(1.0) - heard_by(k);
                (missing > 0.0).then(|| missing / topology.delivery(j, k))
            });

            // Eq. 3 and 4.
            let z = combine(for_children, knob);
            self.z.insert(j, z);
            self.tx_credit.insert(j, if received > 0.0 { z / received } else { 0.0 });
            upstream.push((j, z));
        }
    }
}

/// Returns the transmissions of a node whose children need `z` each, by equation 3 with the knob of
/// III-C.2: `min + knob (max - min)`. Returns 0 if no child needs anything.
fn combine(z: impl Iterator<Item = f64>, knob: f64) -> f64 {
    let (min, max) = z.fold((f64::INFINITY, 0.0_f64), |(min, max), z| (min.min(z), max.max(z)));
    if min.is_finite() { min + knob * (max - min) } else { 0.0 }
}
