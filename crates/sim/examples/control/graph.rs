//! The mesh as it really is: expected loss of every link, and the best paths over it.
//!
//! It is computed from the medium's settings and shares no code with the nodes' routing, so that it
//! can judge it.

use ncmesh_medium::{LossMatrix, LossyLink};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Least delivery, in both directions, of the links that hold a mesh together.
pub(crate) const GOOD_DELIVERY: f64 = 0.5;

/// Links with their unicast ETX, 1/(d_f d_r).
#[derive(Clone)]
pub(crate) struct Graph {
    /// By sender: receiver and ETX, sorted by receiver.
    costs: Vec<Vec<(usize, f64)>>,
}

/// Best paths from one node. Unreachable nodes are at infinity and have no parent.
pub(crate) struct Tree {
    /// ETX of the path to each node.
    pub(crate) etx: Vec<f64>,
    /// Node before each node on its path.
    pub(crate) parent: Vec<Option<usize>>,
}

impl Graph {
    /// Returns the links among the nodes that are `running`.
    pub(crate) fn new(loss: &LossMatrix, running: &[bool]) -> Self {
        let mut costs = vec![Vec::new(); loss.radios()];
        let is_there = |link: &LossyLink| running[link.from.0] && running[link.to.0];
        for LossyLink { from, to, loss: p } in loss.links().filter(is_there) {
            let delivery = (1.0 - p) * (1.0 - loss.loss(to, from));
            if delivery > 0.0 {
                costs[from.0].push((to.0, 1.0 / delivery));
            }
        }
        Self { costs }
    }

    /// Returns the ETX of a link; infinity if there is none.
    pub(crate) fn cost(&self, from: usize, to: usize) -> f64 {
        let row = &self.costs[from];
        row.binary_search_by_key(&to, |link| link.0).map_or(f64::INFINITY, |at| row[at].1)
    }

    /// Returns the best paths from a node (Dijkstra).
    pub(crate) fn tree(&self, from: usize) -> Tree {
        let mut tree = Tree {
            etx: vec![f64::INFINITY; self.costs.len()],
            parent: vec![None; self.costs.len()],
        };
        tree.etx[from] = 0.0;
        // Numbers above zero are ordered like their bits.
        let mut open = BinaryHeap::from([Reverse((0_u64, from))]);
        while let Some(Reverse((bits, node))) = open.pop() {
            let etx = f64::from_bits(bits);
            if etx > tree.etx[node] {
                continue;
            }
            for &(next, cost) in &self.costs[node] {
                if etx + cost < tree.etx[next] {
                    tree.etx[next] = etx + cost;
                    tree.parent[next] = Some(node);
                    open.push(Reverse(((etx + cost).to_bits(), next)));
                }
            }
        }
        tree
    }

    /// Returns which nodes a node reaches over good links, without passing through `without`.
    pub(crate) fn component(&self, from: usize, without: Option<usize>) -> Vec<bool> {
        // Good in both directions: the ETX of a link is at most that of two worst directions.
        let worst = 1.0 / (GOOD_DELIVERY * GOOD_DELIVERY);
        let mut reached = vec![false; self.costs.len()];
        let mut edge = vec![from];
        while let Some(node) = edge.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                let good = self.costs[node].iter().filter(|link| link.1 <= worst);
                edge.extend(good.map(|link| link.0).filter(|&node| Some(node) != without));
            }
        }
        reached
    }

    /// Returns whether the other `running` nodes stay connected by good links without `node`.
    pub(crate) fn is_spare(&self, node: usize, running: &[bool]) -> bool {
        let others: Vec<usize> =
            (0..running.len()).filter(|&other| running[other] && other != node).collect();
        let Some(&first) = others.first() else { return false };
        let reached = self.component(first, Some(node));
        others.iter().all(|&other| reached[other])
    }
}

impl Tree {
    /// Returns the number of hops to a node; `None` if it is unreachable.
    pub(crate) fn hops(&self, to: usize) -> Option<usize> {
        self.etx[to]
            .is_finite()
            .then(|| std::iter::successors(self.parent[to], |&node| self.parent[node]).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_medium::RadioId;

    #[test]
    fn paths_are_shortest_and_cut_nodes_are_found() {
        // A line 0 - 1 - 2, with a poor shortcut from 0 to 2.
        let mut loss = LossMatrix::new(3);
        for (a, b, p) in [(0, 1, 0.0), (1, 2, 0.0), (0, 2, 0.5)] {
            loss.set(RadioId(a), RadioId(b), p).unwrap();
            loss.set(RadioId(b), RadioId(a), p).unwrap();
        }
        let all = [true; 3];
        let graph = Graph::new(&loss, &all);
        let tree = graph.tree(0);
        assert_eq!(tree.etx, [0.0, 1.0, 2.0]);
        assert_eq!((tree.hops(2), graph.cost(0, 2)), (Some(2), 4.0));
        assert!(graph.is_spare(1, &all));

        loss.set(RadioId(0), RadioId(2), 0.9).unwrap();
        let graph = Graph::new(&loss, &all);
        assert!(!graph.is_spare(1, &all) && graph.is_spare(0, &all));
        let graph = Graph::new(&loss, &[true, false, true]);
        assert_eq!(graph.tree(0).hops(1), None);
    }
}
