//! The NC cache (IV-C): packets sent and received lately, first in, first out, for decoding.

use super::frame::PacketId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Packets by name, a bounded number of them.
#[derive(Debug)]
pub(super) struct Cache {
    capacity: usize,
    packets: BTreeMap<PacketId, Arc<[u8]>>,
    order: VecDeque<PacketId>,
}

impl Cache {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, packets: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Keeps a packet, and lets the oldest go if there are too many. Says whether it is new.
    pub(super) fn keep(&mut self, id: PacketId, packet: Arc<[u8]>) -> bool {
        if self.packets.contains_key(&id) {
            return false;
        }
        if self.order.len() >= self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.packets.remove(&oldest);
        }
        self.packets.insert(id, packet);
        self.order.push_back(id);
        true
    }

    pub(super) fn packet(&self, id: PacketId) -> Option<&[u8]> {
        self.packets.get(&id).map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::NodeId;

    #[test]
    fn the_oldest_goes_first() {
        let mut cache = Cache::new(3);
        let id = |number| PacketId { source: NodeId(1), number };
        for number in 0..5 {
            assert!(cache.keep(id(number), Arc::from([number as u8])));
            assert!(!cache.keep(id(number), Arc::from([9])));
        }
        let kept: Vec<_> = (0..5).map(|number| cache.packet(id(number))).collect();
        assert_eq!(kept, [None, None, Some(&[2][..]), Some(&[3][..]), Some(&[4][..])]);
        assert_eq!((cache.packets.len(), cache.order.len()), (3, 3));
    }
}
