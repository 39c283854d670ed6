//! A source's choice of the paths of its flows (MC2, 4.1).
//!
//! A source joins the best k loop-free paths, found by Yen's algorithm, into one graph without
//! cycles. A path's quality is the product of its links' delivery probabilities.
//!
//! Coding over several paths gains nothing where their links conflict, and costs a little. So the
//! best path is used alone unless the link state promises that the graph carries more
//! (`prediction`).

use crate::paths::PathSet;
use crate::prediction::rate;
use ncmesh_engine::topology::{LEAST_BACK, Topology};
use ncmesh_wire::NodeId;
use pathfinding::directed::yen::yen;

/// Factor on the quality of a link that brings nothing back. A node learns from its next hops what
/// arrived, so such a link is the last resort.
const UNANSWERED: f64 = LEAST_BACK;

/// Units of cost for each factor e of delivery. Costs are integers, so that every machine compares
/// paths alike.
const COST_UNIT: f64 = (1u64 << 32) as f64;

/// How a source chooses the paths of its flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathChoice {
    /// Most paths.
    pub most: usize,
    /// Gain over the best path from which on further ones are used. 0 uses them always.
    pub least_gain: f64,
    /// Whether the MAC does not know who received a frame, so that next hops report it.
    pub needs_reports: bool,
}

impl PathChoice {
    /// Joins the best paths from `source` to `destination`. Leaves out a path that does not fit
    /// into one graph with better ones, and all but the best one if they do not promise the least
    /// gain. Returns `None` if there is no path.
    pub(crate) fn paths(
        self,
        topology: &Topology,
        source: NodeId,
        destination: NodeId,
    ) -> Option<PathSet> {
        let links = |from: &NodeId| -> Vec<(NodeId, u64)> {
            let quality = |to, delivery| {
                let is_silent = self.needs_reports && topology.delivery(to, *from) == 0.0;
                if is_silent { UNANSWERED * delivery } else { delivery }
            };

            topology.links_from(*from).map(|(to, d)| (to, cost(quality(to, d)))).collect()
        };

        // Yen's algorithm lists loop-free paths by their cost. The best one always fits; each other
        // one is added if the graph stays acyclic and within its bounds.
        let paths = yen(&source, links, |node| *node == destination, self.most);
        let (best, _) = paths.first()?;
        let one = PathSet::between(source, destination).with(best)?;
        let joined = paths.iter().skip(1).fold(one.clone(), |set, (path, _)| {
            let wider = set.with(path);
            wider.unwrap_or(set)
        });

        let chosen = if self.is_worth_it(&one, &joined, topology) { joined } else { one };
        Some(chosen.ordered())
    }

    /// Returns whether the link state promises the least gain from more paths than one. One path is
    /// enough if that takes too long to find out.
    fn is_worth_it(self, one: &PathSet, joined: &PathSet, topology: &Topology) -> bool {
        if self.least_gain == 0.0 || one == joined {
            return true;
        }
        rate(one, topology, f64::INFINITY).is_some_and(|alone| {
            let enough = (1.0 + self.least_gain) * alone;
            rate(joined, topology, enough).is_some_and(|rate| rate >= enough)
        })
    }
}

/// Returns the cost of a link: the sum over a path is lowest where the product of deliveries is
/// highest.
fn cost(delivery: f64) -> u64 {
    // One is added, so that among paths without loss the one with fewest hops is best.
    (-libm::log(delivery) * COST_UNIT).round() as u64 + 1
}
