//! Next hops that link state promises and that nothing comes of, and the way around them.
//!
//! Link state measures with short frames. A node may say hello and pass nothing on, and an attacker
//! may pass on short frames between distant nodes. An engine that finds out takes another way for a
//! while. How it finds out is its own affair.

use crate::Context;
use crate::time::{Duration, Instant};
use crate::toolkit::bounded::make_room;
use crate::topology::{Metric, Paths};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Time for which a neighbour is avoided, if nothing else is said. Then it is tried again, so that
/// links which were bad for a while come back. That costs seconds if it still is bad.
const AVOIDED: Duration = Duration::from_secs(30);
/// Most neighbours that are kept. Of more, the one that was avoided first is tried again.
const MAX_AVOIDED: usize = 64;

/// Neighbours that are avoided as next hops, each for a while.
#[derive(Clone, Debug)]
pub struct Avoided {
    until: BTreeMap<NodeId, Instant>,
    lasting: Duration,
}

impl Default for Avoided {
    fn default() -> Self {
        Self::lasting(AVOIDED)
    }
}

impl Avoided {
    /// Returns an empty list, on which neighbours stay for so long.
    #[must_use]
    pub fn lasting(lasting: Duration) -> Self {
        Self { until: BTreeMap::new(), lasting }
    }

    /// Avoids a neighbour from now on.
    pub fn avoid(&mut self, node: NodeId, now: Instant) {
        make_room(&mut self.until, &node, MAX_AVOIDED, |until| *until);
        self.until.insert(node, now + self.lasting);
    }

    /// Avoids a neighbour no longer. Returns whether it was kept.
    pub fn forgive(&mut self, node: NodeId) -> bool {
        self.until.remove(&node).is_some()
    }

    /// Returns whether a neighbour is avoided.
    #[must_use]
    pub fn contains(&self, node: NodeId, now: Instant) -> bool {
        self.until.get(&node).is_some_and(|until| now < *until)
    }

    /// Returns whether any neighbour is avoided.
    #[must_use]
    pub fn has_any(&self, now: Instant) -> bool {
        self.until.values().any(|until| now < *until)
    }
}

/// Returns the neighbour with the shortest of these paths to their destination that does not lead
/// back over this node, of those that are not out.
pub fn around(
    cx: &Context<'_>,
    paths: &Paths,
    metric: Metric,
    is_out: impl Fn(NodeId) -> bool,
) -> Option<NodeId> {
    let neighbours = cx.topology.links_from(cx.me).map(|(node, _)| node);
    let usable = neighbours.filter(|node| !is_out(*node) && !paths.leads_over(*node, cx.me));
    let costs = usable.filter_map(|node| {
        let to = cx.topology.delivery(cx.me, node);
        let back = cx.topology.delivery(node, cx.me);
        let airtime = cx.topology.airtime(cx.me, node);
        Some((paths.etx(node)? + airtime / metric.success(to, back), node))
    });

    let finite = costs.filter(|(cost, _)| cost.is_finite());
    let best = finite.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    best.map(|(_, node)| node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    #[test]
    fn a_neighbour_is_avoided_for_a_while_or_until_it_is_forgiven() {
        let mut avoided = Avoided::default();
        avoided.avoid(NodeId(1), at(0));
        avoided.avoid(NodeId(2), at(0));
        assert!(avoided.contains(NodeId(1), at(29)) && !avoided.contains(NodeId(1), at(30)));
        assert!(avoided.forgive(NodeId(2)) && !avoided.contains(NodeId(2), at(1)));
        assert!(avoided.has_any(at(29)) && !avoided.has_any(at(30)));
    }

    #[test]
    fn of_too_many_the_first_are_tried_again() {
        let mut avoided = Avoided::default();
        for node in 0..=MAX_AVOIDED as u16 {
            avoided.avoid(NodeId(node), Instant::from_nanos(node.into()));
        }
        let now = at(1);
        assert!(!avoided.contains(NodeId(0), now) && avoided.contains(NodeId(1), now));
    }
}
