//! Queue of packets towards one next hop (II-A).
//!
//! [`Queues`] has the paper's arithmetic. This queue holds the packets that it counts. The backlog
//! at a slot's beginning decides how many packets are dropped at its end.

use crate::dropping::{Dropping, Due, Queues};
use crate::queue::Packets;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::time::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

/// A packet of a stream on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub layer: usize,
    pub seq: u32,
    /// Hops that it may still go.
    pub hops: u8,
    pub bytes: Arc<[u8]>,
}

/// Queue of a stream's packets towards one next hop.
#[derive(Debug)]
pub(crate) struct PacketQueue {
    packets: [VecDeque<Packet>; LAYERS],
    queues: Queues,
    /// Packets that are due by the end of this slot.
    due: Due,
    /// Packets sent in this slot.
    sent_in_slot: u32,
    /// When the latest packet came.
    pub fed_at: Instant,
}

impl PacketQueue {
    /// Returns an empty queue.
    pub(crate) fn new(rules: &Dropping, now: Instant) -> Self {
        let queues = Queues::new(rules);
        let packets = std::array::from_fn(|_| VecDeque::new());
        Self { packets, due: queues.due(rules, 0.0), queues, sent_in_slot: 0, fed_at: now }
    }

    /// Returns the number of packets held.
    pub(crate) fn len(&self) -> u32 {
        self.queues.backlog()
    }

    /// Returns the backlogs of the transmission queue and its drop queue.
    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Appends a packet.
    pub(crate) fn push(&mut self, packet: Packet, now: Instant) {
        self.fed_at = now;
        self.queues.receive(one_packet(packet.layer));
        self.packets[packet.layer].push_back(packet);
    }

    /// Takes the packet to send next: the lowest layer first (IV-F).
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.iter_mut().find_map(VecDeque::pop_front)?;
        self.queues.serve(one_packet(packet.layer));
        self.sent_in_slot += 1;
        Some(packet)
    }

    /// Drops the oldest packet of the highest layer. Returns its layer.
    pub(crate) fn drop_one(&mut self) -> Option<usize> {
        let layer = self.packets.iter().rposition(|queue| !queue.is_empty())?;
        self.packets[layer].pop_front();
        self.queues.serve(one_packet(layer));
        Some(layer)
    }

    /// Ends a slot and begins the next, in which the backlog counts `place_holders` besides the
    /// packets. Returns the packets dropped, from the highest layer down.
    pub(crate) fn next_slot(&mut self, rules: &Dropping, place_holders: f64) -> Packets {
        // Within a layer the oldest packets go first: in a live stream they are worth least.
        let dropped = self.queues.end_slot(self.due, self.sent_in_slot, rules);
        for (queue, packets) in self.packets.iter_mut().zip(dropped.0) {
            queue.drain(..(packets as usize).min(queue.len()));
        }

        // The decisions of the next slot use the backlog at its beginning (17), (18).
        self.sent_in_slot = 0;
        self.due = self.queues.due(rules, place_holders);
        dropped
    }
}

fn one_packet(layer: usize) -> Packets {
    let mut packets = Packets::default();
    packets.0[layer] = 1;
    packets
}
