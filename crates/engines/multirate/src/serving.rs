//! Whom this node serves (19; MMU-W: V-B): one pair of next hop and stream for each medium and slot.
//!
//! Wireless links share the radio under MMU-W; a wired link, and every link under the other policies, is served for
//! itself, in turn with the others.

use super::engine::Multirate;
use super::most_pressing;
use super::session::Child;
use ncmesh_engine::Context;
use ncmesh_wire::{FlowId, NodeId};

/// What serves one queue at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Medium {
    /// The radio.
    Radio,
    /// The link to a neighbour.
    Link(NodeId),
}

impl Multirate {
    /// A slot begins: whom it serves is open, and links are what probes say by now.
    pub(super) fn choose(&mut self, cx: &Context<'_>) {
        self.chosen.clear();
        for (to, link) in &mut self.links {
            link.measured(cx.topology.delivery(cx.me, *to));
        }
    }

    /// The queue to be served next, if any presses. What a medium serves in a slot stays while it lasts.
    pub(super) fn pick(&self) -> Option<(Medium, NodeId, FlowId)> {
        let media = self.servable().map(|(medium, ..)| medium);
        let medium = media.min_by_key(|medium| (*medium <= self.turn, *medium))?;
        let of_medium = || self.servable().filter(|(its, ..)| *its == medium);
        let kept = of_medium().find(|(_, to, flow, _)| self.is_chosen(medium, *to, *flow));
        let pair = kept.map(|(_, to, flow, _)| (to, flow)).or_else(|| {
            most_pressing(
                of_medium().map(|(_, to, flow, child)| ((to, flow), self.rate(to), child.weight())),
            )
        });
        pair.map(|(to, flow)| (medium, to, flow))
    }

    /// Packets per slot that the link to `to` is thought to carry (mu).
    pub(super) fn rate(&self, to: NodeId) -> f64 {
        self.links.get(&to).map_or(1.0, |link| link.per_slot(self.config.slot()))
    }

    /// Queues with packets that press, or are being served.
    fn servable(&self) -> impl Iterator<Item = (Medium, NodeId, FlowId, &Child)> {
        let all = self.sessions.iter().flat_map(|(flow, session)| {
            session.children.iter().map(|(to, child)| (*flow, *to, child))
        });
        all.filter(|(.., child)| child.backlog() > 0).filter_map(|(flow, to, child)| {
            let medium = self.medium(to, child);
            let serves = child.weight() > 0.0 || self.is_chosen(medium, to, flow);
            serves.then_some((medium, to, flow, child))
        })
    }

    fn medium(&self, to: NodeId, child: &Child) -> Medium {
        if self.config.policy.has_radios() && !child.wired {
            Medium::Radio
        } else {
            Medium::Link(to)
        }
    }

    fn is_chosen(&self, medium: Medium, to: NodeId, flow: FlowId) -> bool {
        self.chosen.get(&medium) == Some(&(to, flow))
    }
}
