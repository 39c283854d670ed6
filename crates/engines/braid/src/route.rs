//! Which node is the next hop of a flow.

use super::METRIC;
use super::child::Child;
use ncmesh_engine::Context;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::toolkit::hop::{Avoided, Choice, ChoicePolicy, Ways, around};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// When another next hop takes the place of the present one, and the same while that gets packets:
/// the flow's own load makes the present way seem long, and would come along to the other.
const CHOICE: ChoicePolicy = ChoicePolicy { better: 1.3, lasting: Duration::from_secs(1) };
const UNDER_WAY: ChoicePolicy = ChoicePolicy { better: 2.0, ..CHOICE };
/// Share of its delivery that a link to a silent next hop counts for. Lower, flows turn away
/// sooner. If every way is as bad, it is asked on.
const SILENT: f64 = 0.1;
/// Delivery of a poor link below which next to nothing arrives.
const NOTHING: f64 = 0.05;
/// Time for which a poor link that was left counts as poor.
const REMEMBERED: Duration = Duration::from_secs(30);

/// Memory of the choice of the next hop.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// Deliveries of links that are far below what link state tells, and for how long that counts.
    poor: BTreeMap<NodeId, (f64, Instant)>,
    /// Next hops that never answered for this flow, that hardly any packet reached, or that packets
    /// brought nothing.
    avoided: Avoided,
    choice: Choice,
}

impl Route {
    /// Returns the next hop: the next node on the shortest way. Another one takes the place of
    /// `child` if the way over that is clearly shorter for a while, for estimates waver. The link
    /// to `child` counts by what it carries if link state tells less: short frames of control are
    /// lost where a node is busy, and a way around it is no better. So does one that carries far
    /// less than was promised; one whose other end is silent counts for less, also for a while
    /// after it was left.
    pub(crate) fn choose(
        &mut self,
        cx: &Context<'_>,
        destination: NodeId,
        child: Option<&Child>,
    ) -> Option<NodeId> {
        self.poor.retain(|_, (_, until)| cx.now < *until);
        let now = child.map(|child| child.node);
        let poor = child.and_then(|child| {
            let silent = child.is_given_up(cx.now).then(|| SILENT * child.delivery());
            Some((child.node, silent.or_else(|| child.poor_delivery())?))
        });

        if let Some((node, delivery)) = poor {
            self.poor.insert(node, (delivery, cx.now + REMEMBERED));
        }
        let brings_nothing = |child: &&Child| {
            let is_mute = child.is_given_up(cx.now) && child.is_unheard();
            let is_poor = child.poor_delivery().is_some_and(|delivery| delivery < NOTHING);
            is_mute || is_poor || child.is_in_vain()
        };

        if let Some(child) = child.filter(brings_nothing) {
            self.avoided.avoid(child.node, cx.now);
        }

        let paths = cx.topology.paths_to(destination, METRIC);
        let own = paths.distance(cx.me);
        let cost = |node: NodeId| {
            let told = cx.topology.delivery(cx.me, node);
            let back = cx.topology.delivery(node, cx.me);
            let present = child.filter(|child| child.node == node);
            let carried = present.and_then(|c| c.carries(cx.now));
            let (carries, brings) = carried.unwrap_or_default();

            // One that was poor and is the next hop again counts by what it carries now.
            let has_recovered = carried.is_some() && poor.is_none();
            let remembered = self.poor.get(&node).filter(|_| !has_recovered);
            let delivery = remembered.map_or(told.max(carries), |(poor, _)| told.min(*poor));
            let etx = paths.etx(node).filter(|_| paths.distance(node) < own);
            let link =
                cx.topology.airtime(cx.me, node) / METRIC.success(delivery, back.max(brings));
            etx.map_or(f64::INFINITY, |etx| etx + link)
        };

        let shortest = paths.parent(cx.me);
        let best = match shortest.filter(|node| self.poor.contains_key(node)) {
            None => shortest,
            Some(_) => {
                let neighbours = cx.topology.links_from(cx.me).map(|(node, _)| node);
                let best = neighbours.chain(shortest).min_by(|a, b| cost(*a).total_cmp(&cost(*b)));

                // Nothing comes of the only way that link state shows. It measures with short
                // frames, and somebody may pass on those alone.
                let is_out = |node| self.avoided.contains(node, cx.now);
                if best.is_some_and(is_out)
                    && let Some(node) = around(cx, &paths, METRIC, is_out)
                {
                    self.choice.reset();
                    return Some(node);
                }

                best
            }
        };

        let (Some(old), Some(new)) = (now, best) else {
            self.choice.reset();
            return best;
        };

        let is_under_way = child.is_some_and(|child| child.gains(cx.now));
        let policy = if is_under_way { &UNDER_WAY } else { &CHOICE };
        let ways = Ways { present: cost(old), best: cost(new) };
        let leaves = self.choice.leaves(ways, false, policy, cx.now);
        if leaves { best } else { now }
    }
}

/// Returns whether a node is nearer to the destination of a flow than this one, which gets its
/// packets from `parent`. What the source has, or the parent, has yet to go this way, even if link
/// state's shortest way from here leads back over them.
pub(crate) fn is_nearer(
    cx: &Context<'_>,
    flow: FlowInstance,
    parent: Option<NodeId>,
    node: NodeId,
) -> bool {
    if node == flow.source || parent == Some(node) {
        return false;
    }
    let paths = cx.topology.paths_to(flow.destination, METRIC);
    node == flow.destination || paths.etx(node).zip(paths.etx(cx.me)).is_some_and(|(a, b)| a < b)
}
