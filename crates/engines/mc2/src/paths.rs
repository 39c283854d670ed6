//! Which nodes carry a flow, and to whom each may hand packets (MC2, 3.1, 4.1).

use ncmesh_engine::Malformed;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::{NodeId, Reader, Writer};
use pathfinding::directed::yen::yen;

/// The most nodes that carry a flow: their next hops are bits of a word.
pub(super) const MAX_NODES: usize = 16;
/// The most next hops of a node: it keeps transmission credits for each set of them.
pub(super) const MAX_HOPS: usize = 6;

/// Costs are counted in these units, so that paths are compared alike on every machine.
const UNIT: f64 = (1u64 << 32) as f64;

/// The nodes of a flow with their next hops, DST(n, c). The source stands first, the destination second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathSet {
    nodes: Vec<NodeId>,
    /// By node, its next hops: bit i stands for `nodes[i]`.
    next: Vec<u16>,
}

impl PathSet {
    /// The best `k` paths from `source` to `destination` by the product of delivery probabilities, but for those that with
    /// better ones would lead in circles or be too many nodes. `None` if there is no path.
    pub(super) fn best(
        topology: &Topology,
        source: NodeId,
        destination: NodeId,
        k: usize,
    ) -> Option<Self> {
        let steps = |from: &NodeId| -> Vec<(NodeId, u64)> {
            topology.links_from(*from).map(|(to, delivery)| (to, cost(delivery))).collect()
        };
        let paths = yen(&source, steps, |node| *node == destination, k);
        let (best, _) = paths.first()?;
        let mut set = Self { nodes: vec![source, destination], next: vec![0; 2] };
        set.add(best)?;
        for (path, _) in paths.iter().skip(1) {
            let mut wider = set.clone();
            if wider.add(path).is_some() && wider.is_acyclic() {
                set = wider;
            }
        }
        Some(set.ordered())
    }

    /// The same with its relays in the order of their ids: of paths that only change places nobody need be told.
    fn ordered(&self) -> Self {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order[2..].sort_by_key(|at| self.nodes[*at]);
        let renamed = |bits: u16| {
            let is_in = |(_, at): &(usize, &usize)| bits >> **at & 1 == 1;
            order.iter().enumerate().filter(is_in).fold(0, |all, (i, _)| all | 1 << i)
        };
        let nodes = order.iter().map(|at| self.nodes[*at]).collect();
        let next = order.iter().map(|at| renamed(self.next[*at])).collect();
        Self { nodes, next }
    }

    /// Adds a path; `None` if it does not fit.
    fn add(&mut self, path: &[NodeId]) -> Option<()> {
        for hop in path.windows(2) {
            let (from, to) = (self.place(hop[0])?, self.place(hop[1])?);
            self.next[from] |= 1 << to;
            if self.next[from].count_ones() as usize > MAX_HOPS {
                return None;
            }
        }
        Some(())
    }

    /// Whether no packet can come back to where it was.
    fn is_acyclic(&self) -> bool {
        // Nodes whose next hops are all gone go, until none is left.
        let mut left: u16 = u16::MAX >> (MAX_NODES - self.nodes.len());
        loop {
            let ends = |i: &usize| left >> i & 1 == 1 && self.next[*i] & left == 0;
            match (0..self.nodes.len()).find(ends) {
                Some(i) => left &= !(1 << i),
                None => return left == 0,
            }
        }
    }

    fn place(&mut self, node: NodeId) -> Option<usize> {
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

    pub(super) fn source(&self) -> NodeId {
        self.nodes[0]
    }

    pub(super) fn destination(&self) -> NodeId {
        self.nodes[1]
    }

    /// The next hops of a node, in the order in which all count them.
    pub(super) fn next_hops(&self, node: NodeId) -> Vec<NodeId> {
        let next = self.index(node).map_or(0, |at| self.next[at]);
        self.members(next)
    }

    fn members(&self, bits: u16) -> Vec<NodeId> {
        let is_in = |i: &usize| bits >> i & 1 == 1;
        (0..self.nodes.len()).filter(is_in).map(|i| self.nodes[i]).collect()
    }

    /// Whether `from` may hand packets to `to`.
    pub(super) fn leads(&self, from: NodeId, to: NodeId) -> bool {
        let (from, to) = (self.index(from), self.index(to));
        matches!((from, to), (Some(from), Some(to)) if self.next[from] >> to & 1 == 1)
    }

    /// Whether a node carries the flow.
    pub(super) fn contains(&self, node: NodeId) -> bool {
        self.index(node).is_some()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        Writer::new(out).u8(self.nodes.len() as u8);
        for (node, next) in self.nodes.iter().zip(&self.next) {
            Writer::new(out).node(*node).u16(*next);
        }
    }

    pub(super) fn parse(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = usize::from(r.u8()?);
        if !(2..=MAX_NODES).contains(&len) {
            return Err(Malformed);
        }
        let mut set = Self { nodes: Vec::new(), next: Vec::new() };
        for at in 0..len {
            let (node, next) = (r.node()?, r.u16()?);
            let beyond = u32::from(next) >> len != 0;
            let itself = next >> at & 1 == 1;
            if beyond || itself || next.count_ones() as usize > MAX_HOPS || set.contains(node) {
                return Err(Malformed);
            }
            set.nodes.push(node);
            set.next.push(next);
        }
        // The destination hands nothing on.
        if set.next[1] != 0 || !set.is_acyclic() { Err(Malformed) } else { Ok(set) }
    }
}

fn cost(delivery: f64) -> u64 {
    // One more, so that of paths without loss the one of fewer hops is better.
    (-libm::log(delivery) * UNIT).round() as u64 + 1
}
