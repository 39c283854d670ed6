//! The way around next hops that link state promises, and that nothing comes of.
//!
//! Link state measures with short frames. A node may say hello and pass nothing on, and somebody
//! may pass on short frames between distant nodes. An engine that finds out takes another way for a
//! while.

use crate::Context;
use crate::topology::{Metric, Paths};
use ncmesh_wire::NodeId;

/// Returns the neighbour with the shortest of these paths to their destination that does not lead
/// back over this node, of those that are not out.
pub fn around(
    cx: &Context<'_>,
    paths: &Paths,
    metric: Metric,
    is_out: impl Fn(NodeId) -> bool,
) -> Option<NodeId> {
    let neighbors = cx.topology.links_from(cx.me).map(|(node, _)| node);
    let usable = neighbors.filter(|node| !is_out(*node) && !paths.leads_over(*node, cx.me));
    let costs = usable.filter_map(|node| {
        let to = cx.topology.delivery(cx.me, node);
        let back = cx.topology.delivery(node, cx.me);
        Some((paths.etx(node)? + 1.0 / metric.success(to, back), node))
    });
    let finite = costs.filter(|(cost, _)| cost.is_finite());
    let best = finite.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    best.map(|(_, node)| node)
}
