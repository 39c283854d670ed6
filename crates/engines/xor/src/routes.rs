//! Source routes for the packets of this node: configured paths, or the shortest ones by ETX.

use ncmesh_engine::Context;
use ncmesh_engine::topology::Metric;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Routes from this node.
#[derive(Debug)]
pub(crate) struct Routes {
    /// Configured paths by their ends, each without its first node.
    fixed: BTreeMap<(NodeId, NodeId), Vec<NodeId>>,
    metric: Metric,
}

impl Routes {
    /// Returns routes that follow `paths`, each in both directions, and elsewhere the shortest
    /// paths by `metric`.
    pub(crate) fn new(metric: Metric, paths: Vec<Vec<NodeId>>) -> Self {
        let mut fixed = BTreeMap::new();
        for mut path in paths {
            for _ in 0..2 {
                if let [from, .., to] = path[..] {
                    fixed.insert((from, to), path[1..].to_vec());
                }
                path.reverse();
            }
        }

        Self { fixed, metric }
    }

    /// Returns the nodes from here (exclusive) to `to` (inclusive); empty if there is no path.
    pub(crate) fn path(&self, cx: &Context<'_>, to: NodeId) -> Vec<NodeId> {
        if let Some(path) = self.fixed.get(&(cx.me, to)) {
            return path.clone();
        }
        cx.topology.paths_from(cx.me, self.metric).path_to(to)
    }
}
