//! A transmission queue with the packets in it (II-A), and its slots.

use super::{Dropping, Due, Packets, Queues};
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::time::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

/// A packet on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub layer: usize,
    pub seq: u32,
    pub hops: u8,
    pub bytes: Arc<[u8]>,
}

/// A queue towards one next hop.
#[derive(Debug)]
pub(super) struct Backlog {
    packets: [VecDeque<Packet>; LAYERS],
    queues: Queues,
    /// Decided when the slot began.
    due: Due,
    /// Sent in this slot.
    sent_in_slot: u32,
    /// When the latest packet came.
    pub fed_at: Instant,
}

impl Backlog {
    pub(super) fn new(rules: &Dropping, now: Instant) -> Self {
        let queues = Queues::new(rules);
        let packets = std::array::from_fn(|_| VecDeque::new());
        Self { packets, due: queues.due(rules, 0.0), queues, sent_in_slot: 0, fed_at: now }
    }

    /// Packets held.
    pub(super) fn len(&self) -> u32 {
        self.queues.backlog()
    }

    pub(super) fn queues(&self) -> &Queues {
        &self.queues
    }

    pub(super) fn push(&mut self, packet: Packet, now: Instant) {
        self.fed_at = now;
        self.queues.receive(one(packet.layer));
        self.packets[packet.layer].push_back(packet);
    }

    /// The next to be sent: the lowest layer first (IV-F).
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.iter_mut().find_map(VecDeque::pop_front)?;
        self.queues.serve(one(packet.layer));
        self.sent_in_slot += 1;
        Some(packet)
    }

    /// Drops one packet of the highest layer, the oldest. Says of which layer.
    pub(super) fn shed(&mut self) -> Option<usize> {
        let layer = self.packets.iter().rposition(|queue| !queue.is_empty())?;
        self.packets[layer].pop_front();
        self.queues.serve(one(layer));
        Some(layer)
    }

    /// A slot ends and the next begins, in which `place_holders` stand before the packets: what was dropped, the highest
    /// layer and of it the oldest first.
    pub(super) fn next_slot(&mut self, rules: &Dropping, place_holders: f64) -> Packets {
        let dropped = self.queues.end_slot(self.due, self.sent_in_slot, rules);
        for (queue, packets) in self.packets.iter_mut().zip(dropped.0) {
            queue.drain(..(packets as usize).min(queue.len()));
        }
        self.sent_in_slot = 0;
        self.due = self.queues.due(rules, place_holders);
        dropped
    }
}

fn one(layer: usize) -> Packets {
    let mut packets = Packets::default();
    packets.0[layer] = 1;
    packets
}
