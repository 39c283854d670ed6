//! Which packets of two flows go in one frame.

use super::next::Next;
use super::{Braid, Ends};
use ncmesh_engine::time::Instant;
use ncmesh_engine::{At, Context};
use ncmesh_wire::NodeId;

/// Packets of a pair, of two, that should be separated at least. Fewer make pairs in vain, more
/// make none over poor links: with 1.2 two flows that cross over links of 0.7 carried 0.97 of this.
const LEAST_SEPARATED: f64 = 1.1;
/// Packet times from one frame until the next where a pair may come up. More wait for partners that
/// do not come.
pub(crate) const HOLD: f64 = 1.5;
/// Delivery above which a node hears another one.
const HEARD: f64 = 0.3;

/// Returns whether a node hears another one.
pub(crate) fn hears(cx: &Context<'_>, node: NodeId, other: NodeId) -> bool {
    cx.topology.delivery(other, node) > HEARD
}

/// Returns whether neither of two nodes hears the other.
pub(crate) fn are_hidden(cx: &Context<'_>, one: NodeId, other: NodeId) -> bool {
    one != other && !hears(cx, one, other) && !hears(cx, other, one)
}

impl Braid {
    /// Returns a second flow whose packet can go in one frame with that of the first, if each next
    /// hop should have the packet that is not for it; and the chances of that, the first flow's
    /// next hop first.
    pub(crate) fn partner(
        &self,
        cx: &Context<'_>,
        ends: Ends,
        next: Next,
    ) -> Option<(Ends, Next, [f64; 2])> {
        let Next::Plain(packet) = next else { return None };
        let flow = self.flows.get(&ends)?;
        let child = flow.child.as_ref().filter(|child| !cx.at.prefers_unicast(child.node))?;

        // Each next hop takes its own packet out of the sum, so it needs the other one.
        let here = self.flows.iter().filter(|(_, flow)| flow.goes_by(cx.at));
        let others = here.filter(|(other, _)| **other != ends);
        let others = others.filter_map(|(ends, other)| {
            let next = other.next(self.config.backlog, self.packet_time(cx.at.port), cx.now)?;
            let Next::Plain(theirs) = next else { return None };
            let their_child = other.child.as_ref();
            let their_child = their_child.filter(|child| !cx.at.prefers_unicast(child.node))?;
            let mine = child.separates(other.chance_at(cx, child.node, theirs), cx.now);
            let their = flow.chance_at(cx, their_child.node, packet);
            let their = their_child.separates(their, cx.now);
            Some((*ends, next, [mine, their], other.sent_at))
        });

        // If chances are equal, the flow that was served longest ago.
        let sum = |chances: &[f64; 2]| chances.iter().sum::<f64>();
        let worth = others.filter(|(_, _, chances, _)| sum(chances) >= LEAST_SEPARATED);
        let best = worth
            .min_by(|(.., a, a_at), (.., b, b_at)| sum(b).total_cmp(&sum(a)).then(a_at.cmp(b_at)));
        best.map(|(ends, next, chances, _)| (ends, next, chances))
    }

    /// Returns whether a node that does not hear `node` sends packets to this one.
    pub(crate) fn is_fed_by_hidden(&self, cx: &Context<'_>, node: NodeId) -> bool {
        let mut parents =
            self.flows.values().filter_map(|flow| flow.upstream.present_parent(cx.now));
        let here = |parent: NodeId| cx.at.reaches(parent);
        parents.any(|parent| parent != node && here(parent) && !hears(cx, parent, node))
    }

    /// Returns whether packets of two nodes, or its own, can be sent on by a port.
    pub(crate) fn has_two(&self, now: Instant, at: At<'_>) -> bool {
        let mut parents = self.ready(now, at).map(|(_, flow, _)| flow.upstream.parent);
        let first = parents.next();
        parents.any(|parent| Some(parent) != first)
    }

    /// Returns whether it is worth to wait for a packet to pair, after a packet of the flow `ends`:
    /// another node has packets for this one, and does not hear the one that this flow comes from.
    pub(crate) fn awaits_another(&self, cx: &Context<'_>, ends: Ends) -> bool {
        let Some(from) = self.flows.get(&ends).and_then(|flow| flow.upstream.parent) else {
            return false;
        };
        let mut waiting = self.flows.values().filter_map(|flow| flow.waiting_parent(cx.now));
        waiting.any(|node| are_hidden(cx, node, from))
    }
}
