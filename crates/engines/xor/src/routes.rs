//! Which way packets of this node go: a path given by hand, or the shortest one.

use ncmesh_engine::Context;
use ncmesh_engine::topology::{Metric, NextHops};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Source routes.
#[derive(Debug)]
pub(super) struct Routes {
    /// Paths by their ends, each without its first node.
    fixed: BTreeMap<(NodeId, NodeId), Vec<NodeId>>,
    shortest: NextHops,
}

impl Routes {
    /// `paths` are used in both directions.
    pub(super) fn new(metric: Metric, paths: Vec<Vec<NodeId>>) -> Self {
        let mut fixed = BTreeMap::new();
        for mut path in paths {
            for _ in 0..2 {
                if let [from, .., to] = path[..] {
                    fixed.insert((from, to), path[1..].to_vec());
                }
                path.reverse();
            }
        }
        Self { fixed, shortest: NextHops::new(metric) }
    }

    /// The nodes from here to `to`, itself included; empty if there is no way.
    pub(super) fn path(&mut self, cx: &Context<'_>, to: NodeId) -> Vec<NodeId> {
        if let Some(path) = self.fixed.get(&(cx.me, to)) {
            return path.clone();
        }
        self.shortest.paths(cx.topology, cx.me).path_to(to)
    }
}
