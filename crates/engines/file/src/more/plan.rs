//! Merged belts: the forwarders for several receivers, with one credit each (MORE, SIGCOMM 2007;
//! Pacifier, II-A).

use super::belt::Belt;
use super::{PRUNE, Prune};
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

impl Belts {
    /// Plans for `receivers`, without the nodes that make too little of the transmissions of a
    /// belt. ETX by `metric` says which of two nodes is nearer to a receiver.
    #[must_use]
    pub fn new(
        topology: &Topology,
        source: NodeId,
        receivers: &[NodeId],
        prune: Prune,
        metric: Metric,
    ) -> Self {
        let mut merged = Self::default();
        let mut whole = Vec::new();
        for receiver in receivers.iter().filter(|r| **r != source) {
            match Belt::new(topology, source, *receiver, metric) {
                None => merged.unreachable.push(*receiver),
                Some(belt) => whole.push((*receiver, belt)),
            }
        }

        // `Connected` lowers the threshold until no belt is cut.
        let threshold = match prune {
            Prune::Below(share) => share,
            Prune::Connected => {
                whole.iter().map(|(_, belt)| belt.largest_threshold()).fold(PRUNE, f64::min)
            }
        };

        // The transmissions are computed anew after pruning: what the pruned nodes would have
        // carried is carried by others. Nodes with none are in no belt any more.
        let mut belts: Vec<(Belt, BTreeMap<NodeId, f64>)> = Vec::new();
        for (receiver, belt) in whole {
            let Some(belt) = belt.pruned(threshold) else {
                merged.disconnected.push(receiver);
                continue;
            };

            let sent = belt.nodes().iter().copied().zip(belt.load().z);
            let z = sent.filter(|(_, z)| *z > 0.0).collect();
            belts.push((belt, z));
        }

        // A broadcast serves all belts at once, so a node sends what its neediest belt takes.
        for (node, z) in belts.iter().flat_map(|(_, z)| z) {
            let most = merged.z.entry(*node).or_default();
            *most = most.max(*z);
        }

        let from_source = topology.paths_from(source, metric);
        merged.forwarders = merged.z.keys().copied().filter(|node| *node != source).collect();
        merged.forwarders.sort_by_cached_key(|node| (from_source.distance(*node), *node));

        // Upstream is whoever is farther away in some belt in which the node sends. Two nodes may
        // be upstream of each other, in different belts. Places are those of the list of
        // forwarders.
        let count = merged.forwarders.len();
        let mut is_upstream = vec![vec![false; count]; count];
        for (belt, z) in &belts {
            let ranks: Vec<_> = merged.forwarders.iter().map(|node| belt.rank(*node)).collect();
            let sends = |place: &usize| z.contains_key(&merged.forwarders[*place]);
            for place in (0..count).filter(sends) {
                for (other, rank) in ranks.iter().enumerate() {
                    is_upstream[place][other] |= *rank > ranks[place];
                }
            }
        }

        for (node, is_upstream) in merged.forwarders.iter().zip(is_upstream) {
            let marked =
                merged.forwarders.iter().zip(is_upstream).filter(|(_, upstream)| *upstream);
            let upstream: BTreeSet<NodeId> =
                marked.map(|(other, _)| *other).chain([source]).collect();

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
