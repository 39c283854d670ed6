//! The nodes that carry a flow, with the next hops of each (MC2, 3.1, 4.1).
//!
//! They are a graph without cycles. Every data frame carries it, so that relays need no routing
//! state and all count next hops alike.

use crate::hops::MAX_HOPS;
use ncmesh_engine::Malformed;
use ncmesh_wire::layout::{Check, Count, Part};
use ncmesh_wire::record::{Group, Named, field, group};
use ncmesh_wire::{NodeId, Reader, Record, Writer, record};

/// Most nodes that carry a flow. The next hops of each are bits of a word.
pub(crate) const MAX_NODES: usize = 16;
/// Length of one of them in a frame, bytes.
pub(crate) const NODE_LEN: usize = Listed::LEN;

/// The nodes of a flow with their next hops, DST(n, c).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathSet {
    /// The source, the destination, then the relays.
    nodes: Vec<NodeId>,
    /// Next hops of each node; bit i stands for `nodes[i]`.
    next: Vec<u16>,
}

impl PathSet {
    /// Returns the ends without any path between them.
    pub(crate) fn between(source: NodeId, destination: NodeId) -> Self {
        Self { nodes: vec![source, destination], next: vec![0; 2] }
    }

    /// Returns the same graph with its relays in the order of their ids. Paths that only swap ranks
    /// give the same set then, and the flow need not be rerouted.
    pub(crate) fn ordered(&self) -> Self {
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

    /// Returns the graph with another path. Returns `None` if that makes a cycle, or exceeds
    /// [`MAX_NODES`] or [`MAX_HOPS`].
    pub(crate) fn with(&self, path: &[NodeId]) -> Option<Self> {
        let mut wider = self.clone();
        for hop in path.windows(2) {
            let from = wider.index_or_add(hop[0])?;
            let to = wider.index_or_add(hop[1])?;
            wider.next[from] |= 1 << to;
            if wider.next[from].count_ones() as usize > MAX_HOPS {
                return None;
            }
        }

        wider.is_acyclic().then_some(wider)
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
        let from = self.index(from);
        let to = self.index(to);
        matches!((from, to), (Some(from), Some(to)) if self.next[from] >> to & 1 == 1)
    }

    /// Returns whether a node carries the flow.
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.index(node).is_some()
    }
}

record! {
    /// A node of the flow, with its next hops.
    struct Listed {
        node: NodeId = field("mc2.node", "Node"),
        /// bit i is the i-th node
        next: u16 = field("mc2.next_hops", "Next hops, a bit each").hex(),
    }
}

impl PathSet {
    const LISTED: Named = field("mc2.nodes", "Nodes of the flow").within(2, MAX_NODES as u64);
    const NODE: Group = group("mc2.path", "Node of the flow", "Node {mc2.node}");
}

impl<'a> Record<'a> for PathSet {
    const PARTS: &'static [Part] = &[
        Self::LISTED.part::<u8>("the source first, the destination second"),
        Part::Repeat(Count::Field(Self::LISTED.name), &[Self::NODE.part::<Listed>("")]),
        Part::Check(Check::Distinct(&["mc2.node"])),
        Part::Check(Check::Acyclic("mc2.next_hops", MAX_HOPS as u32)),
    ];

    fn read(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        let len: u8 = Self::LISTED.read(r)?;
        let mut set = Self { nodes: Vec::new(), next: Vec::new() };
        for at in 0..len {
            let Listed { node, next } = Listed::read(r)?;

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

    fn put(&self, w: &mut Writer<'_>) {
        w.u8(self.nodes.len() as u8);
        for (node, next) in self.nodes.iter().zip(&self.next) {
            Listed { node: *node, next: *next }.put(w);
        }
    }
}
