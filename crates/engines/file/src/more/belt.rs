//! One receiver's belt: the nodes between it and the source, and how much each of them sends (MORE,
//! SIGCOMM 2007; Pacifier, II-A).
//!
//! Nodes are ordered by their ETX distance to the receiver, here the *destination*. A packet makes
//! its way down that order: of all nodes that hear a transmission, the nearest to the destination
//! goes on. The expected transmissions of each node follow by one pass from the source down.

use ncmesh_engine::topology::{Metric, Paths, Topology};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The nodes nearer to a destination than the source, in order of increasing ETX to it: the
/// destination first, the source last.
#[derive(Clone, Debug)]
pub(super) struct Belt {
    to_destination: Arc<Paths>,
    order: Vec<NodeId>,
    /// `links[i]`: the nodes nearer to the destination that hear node `i`, by place in the order,
    /// and the delivery to each. The nearest comes first.
    links: Vec<Vec<(usize, f64)>>,
}

/// Transmissions of the nodes of a belt for one packet of the source, in the belt's order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    /// Expected transmissions (z).
    pub z: Vec<f64>,
    /// Expected packets that the destination gets: 1.
    pub delivered: f64,
}

impl Belt {
    /// Returns the belt of all nodes that are nearer to `destination` than `source` is. `None` if
    /// no path leads there.
    pub(super) fn new(
        topology: &Topology,
        source: NodeId,
        destination: NodeId,
        metric: Metric,
    ) -> Option<Self> {
        let to_destination = topology.paths_to(destination, metric);
        if source == destination || !to_destination.reaches(source) {
            return None;
        }

        // Nodes that are farther than the source would carry packets backwards.
        let limit = to_destination.distance(source);
        let is_nearer = |node: &NodeId| to_destination.distance(*node) < limit;
        let mut order: Vec<NodeId> = topology.nodes().filter(is_nearer).collect();
        order.sort_by_cached_key(|node| (to_destination.distance(*node), *node));
        order.push(source);
        let links = links(topology, &order);
        Some(Self { to_destination, order, links })
    }

    /// Returns its nodes, in its order.
    pub(super) fn nodes(&self) -> &[NodeId] {
        &self.order
    }

    /// Returns what orders nodes, in this belt or not, by how far they are from the destination. Of
    /// two equally far the one with the lower id counts as nearer.
    pub(super) fn rank(&self, node: NodeId) -> (u128, NodeId) {
        (self.to_destination.distance(node), node)
    }

    /// Computes how many packets each node is responsible for (L) and how many transmissions that
    /// takes (z).
    pub(super) fn load(&self) -> Load {
        let mut load = vec![0.0; self.order.len()];
        let mut z = vec![0.0; self.order.len()];
        if let Some(source) = load.last_mut() {
            *source = 1.0;
        }

        // From the source towards the destination, so that a node's load is known when its turn
        // comes.
        for (i, heard_by) in self.links.iter().enumerate().rev().filter(|(_, l)| !l.is_empty()) {
            // For each hearer the share of transmissions that it hears and no nearer node does.
            let mut unheard = 1.0;
            let nearest_share: Vec<(usize, f64)> = heard_by
                .iter()
                .map(|(j, delivery)| {
                    let share = unheard * delivery;
                    unheard *= 1.0 - delivery;
                    (*j, share)
                })
                .collect();

            // Node i sends until some nearer node hears. The nearest one takes the packet over.
            z[i] = load[i] / nearest_share.iter().map(|(_, share)| share).sum::<f64>();
            for (j, share) in nearest_share {
                load[j] += z[i] * share;
            }
        }

        Load { z, delivered: load.first().copied().unwrap_or(0.0) }
    }

    /// Returns the belt without the nodes that make less than `threshold` of all transmissions, and
    /// without those from which no path of remaining nodes leads to the destination. `None` if that
    /// cuts the source off.
    pub(super) fn pruned(self, threshold: f64) -> Option<Self> {
        let widths = self.widths();
        let keeps_source = widths.last() >= Some(&threshold);
        if !keeps_source {
            return None;
        }

        // Places change: links are kept between nodes that both remain.
        let kept: Vec<usize> = (0..self.order.len()).filter(|i| widths[*i] >= threshold).collect();
        let new_place = |i: usize| kept.binary_search(&i).ok();
        let links = |i: &usize| {
            let left = self.links[*i].iter().filter_map(|(j, d)| Some((new_place(*j)?, *d)));
            left.collect()
        };

        Some(Self {
            order: kept.iter().map(|i| self.order[*i]).collect(),
            links: kept.iter().map(links).collect(),
            to_destination: self.to_destination,
        })
    }

    /// Returns the largest threshold by which pruning does not cut the source off.
    pub(super) fn largest_threshold(&self) -> f64 {
        self.widths().last().copied().unwrap_or(0.0)
    }

    /// Returns for each node the largest threshold that leaves it in the belt, with a path of
    /// remaining nodes, each nearer than the one before, to the destination.
    ///
    /// This is the widest-path problem: the width of a node is its share of all transmissions, that
    /// of a path the least of its nodes. Source and destination are never pruned.
    fn widths(&self) -> Vec<f64> {
        let z = self.load().z;
        let total: f64 = z.iter().sum();
        let source = self.order.len() - 1;
        let mut widths = vec![0.0; self.order.len()];
        widths[0] = 1.0;

        // By nearness, so that the nodes that a path goes on to are known before.
        for i in 1..self.order.len() {
            let onward = self.links[i].iter().map(|(j, _)| widths[*j]).fold(0.0, f64::max);
            widths[i] = if i == source { onward } else { onward.min(z[i] / total) };
        }

        widths
    }
}

/// Returns, for each node of `order`, the nodes before it that hear it, with their delivery.
fn links(topology: &Topology, order: &[NodeId]) -> Vec<Vec<(usize, f64)>> {
    let places: BTreeMap<NodeId, usize> =
        order.iter().enumerate().map(|(place, node)| (*node, place)).collect();
    let heard_by = |(i, node): (usize, &NodeId)| {
        let hearers = topology.links_from(*node);
        let placed = hearers.filter_map(|(node, delivery)| Some((*places.get(&node)?, delivery)));
        let mut nearer: Vec<(usize, f64)> = placed.filter(|(j, d)| *j < i && *d > 0.0).collect();
        nearer.sort_by_key(|(j, _)| *j);
        nearer
    };

    order.iter().enumerate().map(heard_by).collect()
}
