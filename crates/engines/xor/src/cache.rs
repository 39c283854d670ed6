//! NC cache (IV-C): the packets that this node sent and received lately, for decoding.
//!
//! First in, first out. The paper gives no size; here it is a setting.

use super::packet::PacketId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bounded set of packets by name.
#[derive(Debug)]
pub(crate) struct Cache {
    capacity: usize,
    packets: BTreeMap<PacketId, Arc<[u8]>>,
    /// Names in order of arrival.
    arrivals: VecDeque<PacketId>,
}

impl Cache {
    /// Returns an empty cache for up to `capacity` packets.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, packets: BTreeMap::new(), arrivals: VecDeque::new() }
    }

    /// Keeps a packet, and drops the oldest one if the cache is full. Returns whether the packet
    /// was new; a known one keeps its place and its bytes.
    pub(crate) fn insert(&mut self, id: PacketId, packet: Arc<[u8]>) -> bool {
        if self.packets.contains_key(&id) {
            return false;
        }
        if self.arrivals.len() >= self.capacity
            && let Some(oldest) = self.arrivals.pop_front()
        {
            self.packets.remove(&oldest);
        }
        self.packets.insert(id, packet);
        self.arrivals.push_back(id);
        true
    }

    /// Returns the bytes of a packet, if they are still here.
    pub(crate) fn packet(&self, id: PacketId) -> Option<&[u8]> {
        self.packets.get(&id).map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::NodeId;

    #[test]
    fn a_full_cache_drops_its_oldest_packet() {
        let mut cache = Cache::new(3);
        let id = |number| PacketId { source: NodeId(1), number };
        for number in 0..5 {
            assert!(cache.insert(id(number), Arc::from([number as u8])));
            assert!(!cache.insert(id(number), Arc::from([9])));
        }
        let kept: Vec<_> = (0..5).map(|number| cache.packet(id(number))).collect();
        assert_eq!(kept, [None, None, Some(&[2][..]), Some(&[3][..]), Some(&[4][..])]);
        assert_eq!((cache.packets.len(), cache.arrivals.len()), (3, 3));
    }
}
