//! This node's part in a stream as its source.
//!
//! At most A_max packets may enter a stream in a slot (II). Otherwise queues would not be bounded.
//! Packets beyond A_max wait here and enter in later slots, the base layer first.

use crate::packet_queue::Packet;
use ncmesh_engine::stream::{LAYERS, Sending};
use std::collections::VecDeque;
use std::sync::Arc;

/// Most packets that wait at a source: a burst as large as a key frame.
const MAX_WAITING: usize = 1024;
/// Most hops that a packet goes.
const MAX_HOPS: u8 = 64;

/// A stream's source at this node.
#[derive(Debug, Default)]
pub(crate) struct LocalSource {
    /// Number of the next packet of each layer.
    next_seq: [u32; LAYERS],
    /// Packets that have entered in this slot.
    entered: u32,
    waiting: [VecDeque<Arc<[u8]>>; LAYERS],
    counters: Sending,
}

impl LocalSource {
    /// Queues a packet of the application. Returns whether there was room for it.
    pub(crate) fn push(&mut self, layer: usize, bytes: &[u8]) -> bool {
        let has_room = self.waiting() < MAX_WAITING;
        if has_room {
            self.waiting[layer].push_back(bytes.into());
            self.counters.packets[layer] += 1;
        } else {
            self.counters.refused += 1;
        }
        has_room
    }

    /// Takes the next packet that enters in this slot, the base first; `None` if `a_max` have
    /// entered or none waits.
    pub(crate) fn next(&mut self, a_max: u32) -> Option<Packet> {
        // The bounds of Lemmas 1 and 2 assume A(t) <= A_max in every slot.
        if self.entered >= a_max {
            return None;
        }

        // The strict priority of IV-F begins at the source: while the application sends too much,
        // enhancement layers wait and the base layer enters.
        let layer = self.waiting.iter().position(|queue| !queue.is_empty())?;
        let bytes = self.waiting[layer].pop_front()?;

        // A packet is numbered when it enters, not when the application hands it over. So the next
        // number of a layer is also the count of packets that announcements report.
        self.entered += 1;
        let seq = self.next_seq[layer];
        self.next_seq[layer] = seq.wrapping_add(1);
        Some(Packet { layer, seq, hops: MAX_HOPS, bytes })
    }

    /// Begins a slot.
    pub(crate) fn next_slot(&mut self) {
        self.entered = 0;
    }

    /// Returns the packets of each layer that have entered the stream, modulo 2^32.
    pub(crate) fn entered_total(&self) -> &[u32; LAYERS] {
        &self.next_seq
    }

    fn waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    /// Returns its state as the application sees it.
    pub(crate) fn status(&self) -> Sending {
        Sending { waiting: self.waiting() as u32, ..self.counters.clone() }
    }
}
