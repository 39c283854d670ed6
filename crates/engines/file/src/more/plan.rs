//! Merged belts: the forwarders for several receivers, with one credit each (MORE, SIGCOMM 2007;
//! Pacifier, II-A).

use super::belt::Belt;
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The forwarders between a source and its receivers, with what each sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Belts {
    /// In order of increasing ETX from the source.
    pub forwarders: Vec<NodeId>,
    /// Expected transmissions per packet of the source and each forwarder: the most that any of its
    /// belts needs (z).
    pub z: BTreeMap<NodeId, f64>,
    /// Transmissions per packet received from upstream, of each forwarder (TX_credit).
    pub tx_credit: BTreeMap<NodeId, f64>,
    /// For each forwarder the nodes upstream of it, the source included: those farther from a
    /// receiver in whose belt the forwarder sends.
    pub upstream: BTreeMap<NodeId, BTreeSet<NodeId>>,
    /// Receivers that no path leads to.
    pub unreachable: Vec<NodeId>,
    /// Receivers that pruning cuts off. Nothing is planned for them.
    pub disconnected: Vec<NodeId>,
}

/// A belt and the nodes in it that send, each with its z.
struct LoadedBelt {
    belt: Belt,
    z: BTreeMap<NodeId, f64>,
}

impl LoadedBelt {
    fn new(belt: Belt) -> Self {
        let z = belt.nodes().iter().copied().zip(belt.load().z);
        Self { z: z.filter(|(_, z)| *z > 0.0).collect(), belt }
    }
}

impl Belts {
    /// Plans for `receivers`, without the nodes that make less than `prune` (0 to 1) of the
    /// transmissions of a belt. ETX by `metric` says which of two nodes is nearer to a receiver.
    #[must_use]
    pub fn new(
        topology: &Topology,
        source: NodeId,
        receivers: &[NodeId],
        prune: f64,
        metric: Metric,
    ) -> Self {
        let mut merged = Self::default();

        // One belt for each receiver. The transmissions are computed anew after pruning: what the
        // pruned nodes would have carried is carried by others.
        let mut belts = Vec::new();
        for receiver in receivers.iter().filter(|r| **r != source) {
            match Belt::new(topology, source, *receiver, metric) {
                None => merged.unreachable.push(*receiver),
                Some(belt) => match belt.pruned(prune) {
                    None => merged.disconnected.push(*receiver),
                    Some(belt) => belts.push(LoadedBelt::new(belt)),
                },
            }
        }

        // A broadcast serves all belts at once, so a node sends what its neediest belt takes.
        for (node, z) in belts.iter().flat_map(|belt| &belt.z) {
            let most = merged.z.entry(*node).or_default();
            *most = most.max(*z);
        }
        let from_source = topology.paths_from(source, metric);
        merged.forwarders = merged.z.keys().copied().filter(|node| *node != source).collect();
        merged.forwarders.sort_by_key(|node| (from_source.distance(*node), *node));

        for node in &merged.forwarders {
            // Upstream is whoever is farther away in some belt in which the node sends. Two nodes
            // may be upstream of each other, in different belts.
            let mut upstream = BTreeSet::from([source]);
            for LoadedBelt { belt, .. } in belts.iter().filter(|b| b.z.contains_key(node)) {
                upstream.extend(merged.forwarders.iter().filter(|j| belt.is_farther(**j, *node)));
            }

            // The credit spreads the node's transmissions over all packets that it hears from
            // upstream.
            let received: f64 =
                upstream.iter().map(|j| merged.z[j] * topology.delivery(*j, *node)).sum();
            merged.tx_credit.insert(*node, merged.z[node] / received);
            merged.upstream.insert(*node, upstream);
        }
        merged
    }
}

/// Returns the largest threshold by which pruning cuts off none of the `receivers` that `source`
/// reaches; 1 if it cannot cut off any (Pacifier, IV-B.1). The paper searches it in steps of 0.01;
/// this is exact.
#[must_use]
pub fn largest_threshold(
    topology: &Topology,
    source: NodeId,
    receivers: &[NodeId],
    metric: Metric,
) -> f64 {
    let belts = receivers.iter().filter_map(|r| Belt::new(topology, source, *r, metric));
    belts.map(|belt| belt.largest_threshold()).fold(1.0, f64::min)
}
