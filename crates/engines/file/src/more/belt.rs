//! One destination's belt: who lies between it and the source, and how much each sends (MORE, SIGCOMM 2007;
//! Pacifier, II-A).

use ncmesh_engine::topology::{Metric, Paths, Topology};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// The nodes nearer to a destination than the source, in order of increasing ETX to it: the destination
/// first, the source last.
#[derive(Clone, Debug)]
pub(super) struct Belt {
    to_destination: Paths,
    order: Vec<NodeId>,
    /// `links[i]`: place and delivery of the nodes of lower places that hear `i`, from the destination upward.
    links: Vec<Vec<(usize, f64)>>,
}

/// What the nodes of a belt send for one packet of the source, in the belt's order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Load {
    /// Expected transmissions (z).
    pub z: Vec<f64>,
    /// Expected packets the destination gets: 1.
    pub delivered: f64,
}

impl Belt {
    /// Every node that is nearer to `destination` than `source` is. `None` where there is no way.
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
        let distance = |node: &NodeId| to_destination.distance(*node);
        let is_nearer = |node: &NodeId| distance(node) < distance(&source);
        let mut order: Vec<NodeId> = topology.nodes().filter(is_nearer).collect();
        order.sort_by_key(|node| (distance(node), *node));
        order.push(source);
        let links = links(topology, &order);
        Some(Self { to_destination, order, links })
    }

    /// Its nodes, in its order.
    pub(super) fn nodes(&self) -> &[NodeId] {
        &self.order
    }

    /// Whether `other`, in this belt or not, is farther from the destination than `node`. Of nodes equally
    /// far the one with the lower id counts as nearer.
    pub(super) fn is_farther(&self, other: NodeId, node: NodeId) -> bool {
        let rank = |node| (self.to_destination.distance(node), node);
        rank(other) > rank(node)
    }

    /// L and z of every node: from the source on, what the nodes hear that nobody nearer to the destination
    /// has heard is theirs to send until somebody nearer has it.
    pub(super) fn load(&self) -> Load {
        let mut load = vec![0.0; self.order.len()];
        let mut z = vec![0.0; self.order.len()];
        if let Some(source) = load.last_mut() {
            *source = 1.0;
        }
        for (i, heard_by) in self.links.iter().enumerate().rev().filter(|(_, l)| !l.is_empty()) {
            // The share of its transmissions of which each node is the nearest hearer.
            let mut unheard = 1.0;
            let first_at: Vec<(usize, f64)> = heard_by
                .iter()
                .map(|(j, delivery)| {
                    let share = unheard * delivery;
                    unheard *= 1.0 - delivery;
                    (*j, share)
                })
                .collect();
            z[i] = load[i] / first_at.iter().map(|(_, share)| share).sum::<f64>();
            for (j, share) in first_at {
                load[j] += z[i] * share;
            }
        }
        Load { z, delivered: load.first().copied().unwrap_or(0.0) }
    }

    /// The belt without the nodes that send less than `threshold` of all transmissions, and without those
    /// from which what is left leads nowhere. `None` where that cuts the destination off.
    pub(super) fn pruned(self, threshold: f64) -> Option<Self> {
        let widths = self.widths();
        let kept: Vec<usize> = (0..self.order.len()).filter(|i| widths[*i] >= threshold).collect();
        (widths.last() >= Some(&threshold)).then(|| self.only(&kept))
    }

    /// The largest threshold that does not cut the destination off.
    pub(super) fn largest_threshold(&self) -> f64 {
        self.widths().last().copied().unwrap_or(0.0)
    }

    /// For each node the largest threshold at which it is left, with a way of nodes that are left, each
    /// nearer than the one before, to the destination: the widest path by share of all transmissions. Source
    /// and destination are never pruned.
    fn widths(&self) -> Vec<f64> {
        let z = self.load().z;
        let total: f64 = z.iter().sum();
        let source = self.order.len() - 1;
        let mut widths = vec![0.0; self.order.len()];
        widths[0] = 1.0;
        for i in 1..self.order.len() {
            let onward = self.links[i].iter().map(|(j, _)| widths[*j]).fold(0.0, f64::max);
            widths[i] = if i == source { onward } else { onward.min(z[i] / total) };
        }
        widths
    }

    fn only(self, kept: &[usize]) -> Self {
        let place = |i: usize| kept.binary_search(&i).ok();
        let links = |i: &usize| {
            let left = self.links[*i].iter().filter_map(|(j, d)| Some((place(*j)?, *d)));
            left.collect()
        };
        Self {
            order: kept.iter().map(|i| self.order[*i]).collect(),
            links: kept.iter().map(links).collect(),
            to_destination: self.to_destination,
        }
    }
}

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
