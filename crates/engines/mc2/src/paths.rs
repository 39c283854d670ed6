//! The nodes that carry a flow, with the next hops of each (MC2, 3.1, 4.1).
//!
//! A source joins the best k loop-free paths, found by Yen's algorithm, into one graph without
//! cycles. A path's quality is the product of its links' delivery probabilities. Every data frame
//! carries the graph, so that relays need no routing state and all count next hops alike.
//!
//! Coding over several paths gains nothing where their links conflict, and costs a little. So the
//! best path is used alone unless the link state promises that the graph carries more
//! (`prediction`).

use crate::hops::MAX_HOPS;
use crate::prediction::rate;
use ncmesh_engine::Malformed;
use ncmesh_engine::topology::{LEAST_BACK, Topology};
use ncmesh_wire::{NodeId, Reader, Writer};
use pathfinding::directed::yen::yen;

/// Most nodes that carry a flow. The next hops of each are bits of a word.
pub(crate) const MAX_NODES: usize = 16;

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
    pub paths: usize,
    /// Gain over the best path from which on further ones are used. 0 uses them always.
    pub least_gain: f64,
    /// Whether the MAC does not know who received a frame, so that next hops report it.
    pub needs_reports: bool,
}

/// The nodes of a flow with their next hops, DST(n, c).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathSet {
    /// The source, the destination, then the relays.
    nodes: Vec<NodeId>,
    /// Next hops of each node; bit i stands for `nodes[i]`.
    next: Vec<u16>,
}

impl PathSet {
    /// Joins the best paths from `source` to `destination`. Leaves out a path that together with
    /// better ones would make a cycle, or exceed [`MAX_NODES`] or [`MAX_HOPS`], and all but the
    /// best one if they do not promise the least gain. Returns `None` if there is no path.
    pub(crate) fn best(
        topology: &Topology,
        source: NodeId,
        destination: NodeId,
        choice: PathChoice,
    ) -> Option<Self> {
        let links = |from: &NodeId| -> Vec<(NodeId, u64)> {
            let quality = |to, delivery| {
                let is_silent = choice.needs_reports && topology.delivery(to, *from) == 0.0;
                if is_silent { UNANSWERED * delivery } else { delivery }
            };
            topology.links_from(*from).map(|(to, d)| (to, cost(quality(to, d)))).collect()
        };

        // Yen's algorithm lists loop-free paths by their cost. The best one always fits; each other
        // one is added if the graph stays acyclic and within its bounds.
        let paths = yen(&source, links, |node| *node == destination, choice.paths);
        let (best, _) = paths.first()?;
        let mut one = Self { nodes: vec![source, destination], next: vec![0; 2] };
        one.add(best)?;
        let mut set = one.clone();
        for (path, _) in paths.iter().skip(1) {
            let mut wider = set.clone();
            if wider.add(path).is_some() && wider.is_acyclic() {
                set = wider;
            }
        }

        let is_worth_it = || {
            let enough = (1.0 + choice.least_gain) * rate(&one, topology, f64::INFINITY);
            rate(&set, topology, enough) >= enough
        };
        if set != one && choice.least_gain > 0.0 && !is_worth_it() {
            set = one;
        }
        Some(set.ordered())
    }

    /// Returns the same graph with its relays in the order of their ids. Paths that only swap ranks
    /// give the same set then, and the flow need not be rerouted.
    fn ordered(&self) -> Self {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order[2..].sort_by_key(|at| self.nodes[*at]);
        let reordered = |bits: u16| {
            let is_in = |(_, at): &(usize, &usize)| bits >> **at & 1 == 1;
            order.iter().enumerate().filter(is_in).fold(0, |all, (i, _)| all | 1 << i)
        };

        // Both the nodes and the bits that stand for them move.
        let nodes = order.iter().map(|at| self.nodes[*at]).collect();
        let next = order.iter().map(|at| reordered(self.next[*at])).collect();
        Self { nodes, next }
    }

    /// Adds a path. Returns `None` if that exceeds a bound; the set is of no use then.
    fn add(&mut self, path: &[NodeId]) -> Option<()> {
        for hop in path.windows(2) {
            let (from, to) = (self.index_or_add(hop[0])?, self.index_or_add(hop[1])?);
            self.next[from] |= 1 << to;
            if self.next[from].count_ones() as usize > MAX_HOPS {
                return None;
            }
        }
        Some(())
    }

    /// Returns whether no packet can come back to a node that it was at.
    fn is_acyclic(&self) -> bool {
        // Removes nodes that lead nowhere, until none is left or all that are left lead on.
        let mut left: u16 = u16::MAX >> (MAX_NODES - self.nodes.len());
        loop {
            let ends = |i: &usize| left >> i & 1 == 1 && self.next[*i] & left == 0;
            match (0..self.nodes.len()).find(ends) {
                Some(i) => left &= !(1 << i),
                None => return left == 0,
            }
        }
    }

    /// Returns the index of a node, which is added if there is room for it.
    fn index_or_add(&mut self, node: NodeId) -> Option<usize> {
        self.index(node).or_else(|| {
            (self.nodes.len() < MAX_NODES).then(|| {
                self.nodes.push(node);
                self.next.push(0);
                self.nodes.len() - 1
            })
        })
    }

    fn index(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|known| *known == node)
    }

    pub(crate) fn source(&self) -> NodeId {
        self.nodes[0]
    }

    pub(crate) fn destination(&self) -> NodeId {
        self.nodes[1]
    }

    /// Returns the nodes: the source, the destination, then the relays.
    pub(crate) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Returns the next hops of a node, in the order in which all nodes number them.
    pub(crate) fn next_hops(&self, node: NodeId) -> Vec<NodeId> {
        let next = self.index(node).map_or(0, |at| self.next[at]);
        self.members(next)
    }

    fn members(&self, bits: u16) -> Vec<NodeId> {
        let is_in = |i: &usize| bits >> i & 1 == 1;
        (0..self.nodes.len()).filter(is_in).map(|i| self.nodes[i]).collect()
    }

    /// Returns whether `to` is a next hop of `from`.
    pub(crate) fn leads(&self, from: NodeId, to: NodeId) -> bool {
        let (from, to) = (self.index(from), self.index(to));
        matches!((from, to), (Some(from), Some(to)) if self.next[from] >> to & 1 == 1)
    }

    /// Returns whether a node carries the flow.
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.index(node).is_some()
    }

    /// Appends it to a frame body.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).u8(self.nodes.len() as u8);
        for (node, next) in self.nodes.iter().zip(&self.next) {
            Writer::new(out).node(*node).u16(*next);
        }
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// [`Malformed`] if it exceeds a bound, repeats a node or has a cycle.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = usize::from(r.u8()?);
        if !(2..=MAX_NODES).contains(&len) {
            return Err(Malformed);
        }
        let mut set = Self { nodes: Vec::new(), next: Vec::new() };
        for at in 0..len {
            let (node, next) = (r.node()?, r.u16()?);
            // A next hop is another node of the set, and each node is listed once.
            let beyond = u32::from(next) >> len != 0;
            let itself = next >> at & 1 == 1;
            if beyond || itself || next.count_ones() as usize > MAX_HOPS || set.contains(node) {
                return Err(Malformed);
            }
            set.nodes.push(node);
            set.next.push(next);
        }
        // The destination has no next hops.
        if set.next[1] != 0 || !set.is_acyclic() { Err(Malformed) } else { Ok(set) }
    }
}

/// Returns the cost of a link: the sum over a path is lowest where the product of deliveries is
/// highest.
fn cost(delivery: f64) -> u64 {
    // One is added, so that among paths without loss the one with fewest hops is best.
    (-libm::log(delivery) * COST_UNIT).round() as u64 + 1
}
