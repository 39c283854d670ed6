//! Belts merged: who forwards to several destinations, and with which credit (MORE, SIGCOMM 2007; Pacifier,
//! II-A).

use super::belt::Belt;
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The forwarders between a source and its receivers, with what each sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Belts {
    /// In order of increasing ETX from the source.
    pub forwarders: Vec<NodeId>,
    /// Expected transmissions per packet of the source and each forwarder: the most that any of its belts
    /// needs (z).
    pub z: BTreeMap<NodeId, f64>,
    /// Transmissions per packet received from upstream, of each forwarder (TX_credit).
    pub tx_credit: BTreeMap<NodeId, f64>,
    /// For each forwarder those upstream of it, the source included: farther than it from a destination in whose
    /// belt it sends.
    pub upstream: BTreeMap<NodeId, BTreeSet<NodeId>>,
    /// Receivers there is no path to.
    pub unreachable: Vec<NodeId>,
    /// Receivers that pruning cuts off; nothing is planned for them.
    pub disconnected: Vec<NodeId>,
}

/// A belt and the nodes in it that send, each with its z.
struct Sending {
    belt: Belt,
    z: BTreeMap<NodeId, f64>,
}

impl Sending {
    fn new(belt: Belt) -> Self {
        let z = belt.nodes().iter().copied().zip(belt.load().z);
        Self { z: z.filter(|(_, z)| *z > 0.0).collect(), belt }
    }
}

impl Belts {
    /// Plans for `receivers`, without the nodes that make less than `prune` (0 to 1) of the transmissions of
    /// a belt. ETX by `metric` says which of two nodes is nearer to a destination.
    #[must_use]
    pub fn new(
        topology: &Topology,
        source: NodeId,
        receivers: &[NodeId],
        prune: f64,
        metric: Metric,
    ) -> Self {
        let mut merged = Self::default();
        let mut belts = Vec::new();
        for receiver in receivers.iter().filter(|r| **r != source) {
            match Belt::new(topology, source, *receiver, metric) {
                None => merged.unreachable.push(*receiver),
                Some(belt) => match belt.pruned(prune) {
                    None => merged.disconnected.push(*receiver),
                    Some(belt) => belts.push(Sending::new(belt)),
                },
            }
        }
        merged.add_up(&belts);
        let from_source = topology.paths_from(source, metric);
        merged.forwarders = merged.z.keys().copied().filter(|node| *node != source).collect();
        merged.forwarders.sort_by_key(|node| (from_source.distance(*node), *node));
        merged.find_upstream(source, &belts);
        merged.assign_credits(topology);
        merged
    }

    fn add_up(&mut self, belts: &[Sending]) {
        for (node, z) in belts.iter().flat_map(|belt| &belt.z) {
            let most = self.z.entry(*node).or_default();
            *most = most.max(*z);
        }
    }

    fn find_upstream(&mut self, source: NodeId, belts: &[Sending]) {
        for node in &self.forwarders {
            let mut upstream = BTreeSet::from([source]);
            for Sending { belt, .. } in belts.iter().filter(|b| b.z.contains_key(node)) {
                upstream.extend(self.forwarders.iter().filter(|j| belt.is_farther(**j, *node)));
            }
            self.upstream.insert(*node, upstream);
        }
    }

    fn assign_credits(&mut self, topology: &Topology) {
        for (node, upstream) in &self.upstream {
            let received: f64 =
                upstream.iter().map(|j| self.z[j] * topology.delivery(*j, *node)).sum();
            self.tx_credit.insert(*node, self.z[node] / received);
        }
    }
}

/// The largest threshold by which pruning cuts off none of the `receivers` that `source` reaches; 1 where it
/// cannot cut off any (Pacifier, IV-B.1). Exact: a belt's threshold is the widest of its ways, the width of a
/// way the least share of the belt's transmissions that a node on it makes.
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
