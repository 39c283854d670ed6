//! Virtual slots, and the queue that each medium serves in them (eq. 19; MMU-W: V-B).
//!
//! Under MMU-W all wireless links of a node share its radio. The radio serves the pair of child and
//! stream with the largest product of rate and differential backlog. A wired link is a medium of
//! its own, and so is every link under the other policies. The MAC takes one frame at a time, so
//! media take turns.

use super::Multirate;
use crate::child::Child;
use crate::packet_queue::Packet;
use crate::scheduling::{Candidate, max_weight};
use ncmesh_engine::Context;
use ncmesh_engine::counters::DropReason;
use ncmesh_wire::{FlowId, NodeId};

/// Most slots that are run one after the other when a node was late. The rest are skipped, so that
/// a node that slept for a minute does not spend seconds on slots of the past.
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

            // First the end of the slot, at receivers and queues: congestion control, dropping and
            // discarding.
            for session in self.sessions.known.values_mut() {
                session.next_slot(&self.rules, &self.parameters, slot, idle, cx.now);
            }

            // Then arrivals, which (1) adds after drops: packets that wait at this node's sources.
            let sessions = self.sessions.known.iter();
            let own: Vec<FlowId> = sessions
                .filter(|(_, session)| session.part.source.is_some())
                .map(|(flow, _)| *flow)
                .collect();
            own.into_iter().for_each(|flow| self.admit_packets(cx, flow));
        }

        // Each medium chooses again in the new slot (19), with the rates that links have now.
        if slots > 0 {
            self.chosen.clear();
            for (to, link) in &mut self.links {
                link.set_probed_delivery(cx.topology.delivery(cx.me, *to));
            }
        }
    }

    /// Lets waiting packets enter this node's own stream, up to A_max in a slot.
    pub(super) fn admit_packets(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        loop {
            let source =
                self.sessions.known.get_mut(&flow).and_then(|session| session.part.source.as_mut());
            let Some(packet) = source.and_then(|source| source.next(self.parameters.a_max)) else {
                return;
            };
            self.replicate(cx, flow, &packet);
        }
    }

    /// Puts a packet into the queue of each child.
    pub(super) fn replicate(&mut self, cx: &mut Context<'_>, flow: FlowId, packet: &Packet) {
        let limits = self.queue_limits();
        let Some(session) = self.sessions.known.get_mut(&flow) else { return };
        for _ in 0..session.replicate(packet, &self.rules, limits, cx.now) {
            cx.counters.drop(DropReason::Full);
        }
    }

    // ---- choice of queues

    /// Returns the queue to serve next and its medium; `None` if no queue has packets and a
    /// positive differential backlog.
    pub(super) fn next_queue(&self) -> Option<(Medium, QueueKey)> {
        // Media take turns: the next in order after the one served last.
        let media = self.servable_queues().map(|(medium, ..)| medium);
        let medium = media.min_by_key(|medium| (*medium <= self.last_served, *medium))?;

        // A medium keeps the queue that it chose in this slot, while that has packets. Otherwise it
        // chooses the largest product of rate and differential backlog (19; V-B).
        let queues = || self.servable_queues().filter(|(its, ..)| *its == medium);
        let kept = queues().map(|(_, key, _)| key).find(|key| self.is_chosen(medium, *key));
        let key = kept.or_else(|| {
            max_weight(queues().map(|(_, key, child)| Candidate {
                key,
                rate: self.rate(key.child),
                weight: child.weight(),
            }))
        });

        key.map(|key| (medium, key))
    }

    /// Returns the packets per slot that the link to `to` carries (mu).
    pub(super) fn rate(&self, to: NodeId) -> f64 {
        self.links.get(&to).map_or(1.0, |link| link.per_slot(self.config.slot()))
    }

    /// Lists the queues that have packets, and either a positive differential backlog or the medium
    /// for this slot.
    fn servable_queues(&self) -> impl Iterator<Item = (Medium, QueueKey, &Child)> {
        let all = self.sessions.known.iter().flat_map(|(flow, session)| {
            let children = session.part.children.iter();
            children.map(|(child, state)| (QueueKey { child: *child, flow: *flow }, state))
        });

        all.filter(|(_, child)| child.backlog() > 0).filter_map(|(key, child)| {
            // A chosen queue stays even if its weight sinks below 0 within the slot, as in (19).
            let medium = self.medium(key.child, child);
            let is_served = child.weight() > 0.0 || self.is_chosen(medium, key);
            is_served.then_some((medium, key, child))
        })
    }

    /// Returns the medium that carries packets to a child.
    fn medium(&self, to: NodeId, child: &Child) -> Medium {
        if self.config.policy.has_radios() && !child.is_wired {
            Medium::Radio
        } else {
            Medium::Link(to)
        }
    }

    /// Returns whether `medium` serves the queue `key` in this slot.
    fn is_chosen(&self, medium: Medium, key: QueueKey) -> bool {
        self.chosen.get(&medium) == Some(&key)
    }
}
