//! The order in which nodes are updated.

use super::order::Node;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Size of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Batch {
    /// Number of nodes.
    Nodes(usize),
    /// Share of all nodes that are updated, percent.
    Percent(u8),
}

impl Batch {
    /// Returns whether it has a node, and no more than all.
    #[must_use]
    pub fn is_possible(self) -> bool {
        match self {
            Self::Nodes(nodes) => nodes > 0,
            Self::Percent(share) => (1..=100).contains(&share),
        }
    }
}

/// Link of the topology, as link state tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Its two ends.
    pub ends: [Node; 2],
    /// Its cost, such as the transmissions that a packet takes.
    pub cost: f64,
}

/// Returns the batches in which nodes are updated, leaves first: a node comes after all nodes that
/// the operator's node reaches through it, so none is cut off by the update of another before its
/// own is done.
///
/// Nodes named in `canaries` are the first batch. Nodes that no link reaches depend on none, and
/// come once there is room beside deeper ones. The operator's own node is last.
#[must_use]
pub fn batches(
    operator: Node,
    links: &[Link],
    nodes: &BTreeSet<Node>,
    canaries: &BTreeSet<Node>,
    size: Batch,
) -> Vec<Vec<Node>> {
    let canaries: Vec<Node> = nodes.intersection(canaries).copied().collect();
    let mut left: BTreeSet<Node> = nodes.iter().copied().collect();
    left.retain(|node| !canaries.contains(node));

    // At least one node at a time, or small meshes would never be done.
    let most = match size {
        Batch::Nodes(count) => count,
        Batch::Percent(share) => nodes.len() * usize::from(share) / 100,
    }
    .max(1);

    let tree = tree(operator, links);

    let mut all: Vec<Vec<Node>> = Some(canaries).filter(|c| !c.is_empty()).into_iter().collect();
    while !left.is_empty() {
        // Free are nodes through which no other open node is reached. The deepest are first, so
        // that long branches do not remain for the end.
        let blocked: BTreeSet<Node> = left.iter().flat_map(|node| tree.above(*node)).collect();
        let is_last = |node: &&Node| **node == operator && left.len() > 1;
        let mut free: Vec<Node> =
            left.iter().filter(|n| !blocked.contains(n) && !is_last(n)).copied().collect();
        free.sort_by_key(|node| core::cmp::Reverse(tree.above(*node).count()));

        free.truncate(most);
        left.retain(|node| !free.contains(node));
        all.push(free);
    }
    all
}

/// The cheapest paths from the operator's node.
struct Tree {
    parent: BTreeMap<Node, Node>,
}

impl Tree {
    /// Returns the nodes on the path to a node, without it and from the nearest on.
    fn above(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        let next = |node: &Node| self.parent.get(node).copied();
        core::iter::successors(next(&node), move |node| next(node))
    }
}

/// Computes the tree by Dijkstra's algorithm. If two paths have one cost, the one through the
/// lower id is taken. Costs that are no positive numbers make no link.
fn tree(root: Node, links: &[Link]) -> Tree {
    let mut neighbours: BTreeMap<Node, Vec<(Node, f64)>> = BTreeMap::new();
    for Link { ends: [a, b], cost } in links.iter().filter(|l| l.cost > 0.0 && l.cost.is_finite()) {
        neighbours.entry(*a).or_default().push((*b, *cost));
        neighbours.entry(*b).or_default().push((*a, *cost));
    }

    // A linear search for the nearest node is enough: a plan is made once for each roll-out.
    let mut parent = BTreeMap::new();
    let mut cost = BTreeMap::from([(root, 0.0_f64)]);
    let mut open = BTreeSet::from([root]);
    let mut closed = BTreeSet::new();
    while let Some(nearest) = open.iter().copied().min_by(|a, b| cost[a].total_cmp(&cost[b])) {
        open.remove(&nearest);
        closed.insert(nearest);
        for (next, step) in neighbours.get(&nearest).into_iter().flatten() {
            let through = cost[&nearest] + step;
            let is_better = cost.get(next).is_none_or(|known| through < *known);
            if !closed.contains(next) && is_better {
                cost.insert(*next, through);
                parent.insert(*next, nearest);
                open.insert(*next);
            }
        }
    }
    Tree { parent }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[u16]) -> BTreeSet<Node> {
        ids.iter().copied().map(Node).collect()
    }

    fn links(ends: &[(u16, u16)]) -> Vec<Link> {
        ends.iter().map(|(a, b)| Link { ends: [Node(*a), Node(*b)], cost: 1.0 }).collect()
    }

    fn plan(links: &[Link], nodes: &[u16], canaries: &[u16], size: Batch) -> Vec<Vec<u16>> {
        let all = batches(Node(1), links, &ids(nodes), &ids(canaries), size);
        all.iter().map(|batch| batch.iter().map(|node| node.0).collect()).collect()
    }

    #[test]
    fn leaves_are_first_and_the_operator_last() {
        // 1 - 2 - 3 - 4, and 5 at 2.
        let links = links(&[(1, 2), (2, 3), (3, 4), (2, 5)]);
        let all = [1, 2, 3, 4, 5];
        let one = plan(&links, &all, &[], Batch::Nodes(1));
        assert_eq!(one, [[4], [3], [5], [2], [1]]);
        let many = plan(&links, &all, &[], Batch::Percent(100));
        assert_eq!(many, [vec![4, 5], vec![3], vec![2], vec![1]]);
        let canary = plan(&links, &all, &[2], Batch::Percent(100));
        assert_eq!(canary, [vec![2], vec![4, 5], vec![3], vec![1]]);
    }

    #[test]
    fn nodes_without_links_are_in_it() {
        assert_eq!(plan(&[], &[1, 7, 9], &[], Batch::Percent(10)), [[7], [9], [1]]);
        assert!(plan(&[], &[], &[3], Batch::Nodes(0)).is_empty());
        let broken = [Link { ends: [Node(1), Node(2)], cost: f64::NAN }];
        assert_eq!(plan(&broken, &[1, 2], &[], Batch::Nodes(9)), [[2], [1]]);
    }
}
