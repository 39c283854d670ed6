//! Virtual slots, and the queue that each medium serves in them (eq. 19; MMU-W: V-B).
//!
//! Under MMU-W all wireless links of a node share its radio, which serves the pair of child and
//! stream with the largest product of rate and differential backlog. A wired link, and every link
//! under the other policies, is a medium of its own. The MAC takes one frame at a time, so media
//! take turns.

use super::Multirate;
use crate::child::Child;
use crate::packet_queue::Packet;
use crate::scheduling::most_pressing;
use ncmesh_engine::Context;
use ncmesh_engine::counters::DropReason;
use ncmesh_wire::{FlowId, NodeId};

/// Slots that are run one by one when a node was late. After that they count as if they had not
/// been.
const MAX_CATCH_UP: u32 = 20;

/// A link or a radio, which serves one queue at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Medium {
    /// The radio.
    Radio,
    /// The link to a neighbour.
    Link(NodeId),
}

/// A queue: packets of a stream for a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueKey {
    pub child: NodeId,
    pub flow: FlowId,
}

impl Multirate {
    // ---- slots

    /// Runs the slots that have ended.
    pub(super) fn run_slots(&mut self, cx: &mut Context<'_>) {
        let slot = self.config.slot();
        let idle = self.config.idle();
        let mut slots = 0;
        while let Some(at) = self.next_slot.filter(|at| *at <= cx.now) {
            self.next_slot = Some(if slots < MAX_CATCH_UP { at + slot } else { cx.now + slot });
            slots += 1;
            for session in self.sessions.values_mut() {
                session.next_slot(&self.rules, &self.parameters, slot, idle, cx.now);
            }
            let sessions = self.sessions.iter();
            let own: Vec<FlowId> = sessions
                .filter(|(_, session)| session.source.is_some())
                .map(|(flow, _)| *flow)
                .collect();
            own.into_iter().for_each(|flow| self.admit_packets(cx, flow));
        }

        // The choice of queues is open again, by links as they are now.
        if slots > 0 {
            self.chosen.clear();
            for (to, link) in &mut self.links {
                link.set_probed_delivery(cx.topology.delivery(cx.me, *to));
            }
        }
    }

    /// Lets packets of this node's own stream enter it, as many as may in this slot.
    pub(super) fn admit_packets(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        loop {
            let source = self.sessions.get_mut(&flow).and_then(|session| session.source.as_mut());
            let Some(packet) = source.and_then(|source| source.next(self.parameters.a_max)) else {
                return;
            };
            self.replicate(cx, flow, &packet);
        }
    }

    /// Puts a packet into the queue of each child.
    pub(super) fn replicate(&mut self, cx: &mut Context<'_>, flow: FlowId, packet: &Packet) {
        let limits = self.queue_limits();
        let Some(session) = self.sessions.get_mut(&flow) else { return };
        for _ in 0..session.replicate(packet, &self.rules, limits, cx.now) {
            cx.counters.drop(DropReason::Full);
        }
    }

    // ---- choice of queues

    /// Returns the queue to serve next, and by which medium; `None` if no packet presses.
    pub(super) fn next_queue(&self) -> Option<(Medium, QueueKey)> {
        // Media take turns: the next in order after the one served last.
        let media = self.servable_queues().map(|(medium, ..)| medium);
        let medium = media.min_by_key(|medium| (*medium <= self.last_served, *medium))?;

        // What a medium chose in this slot it serves as long as there are packets.
        let queues = || self.servable_queues().filter(|(its, ..)| *its == medium);
        let kept = queues().map(|(_, key, _)| key).find(|key| self.is_chosen(medium, *key));
        let key = kept.or_else(|| {
            most_pressing(
                queues().map(|(_, key, child)| (key, self.rate(key.child), child.weight())),
            )
        });
        key.map(|key| (medium, key))
    }

    /// Returns the packets per slot that the link to `to` carries (mu).
    pub(super) fn rate(&self, to: NodeId) -> f64 {
        self.links.get(&to).map_or(1.0, |link| link.per_slot(self.config.slot()))
    }

    /// Lists the queues with packets that press or are being served.
    fn servable_queues(&self) -> impl Iterator<Item = (Medium, QueueKey, &Child)> {
        let all = self.sessions.iter().flat_map(|(flow, session)| {
            let children = session.children.iter();
            children.map(|(child, state)| (QueueKey { child: *child, flow: *flow }, state))
        });
        all.filter(|(_, child)| child.backlog() > 0).filter_map(|(key, child)| {
            let medium = self.medium(key.child, child);
            let is_served = child.weight() > 0.0 || self.is_chosen(medium, key);
            is_served.then_some((medium, key, child))
        })
    }

    fn medium(&self, to: NodeId, child: &Child) -> Medium {
        if self.config.policy.has_radios() && !child.is_wired {
            Medium::Radio
        } else {
            Medium::Link(to)
        }
    }

    fn is_chosen(&self, medium: Medium, key: QueueKey) -> bool {
        self.chosen.get(&medium) == Some(&key)
    }
}
