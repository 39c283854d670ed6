//! Addresses of neighbours, as learned from their frames.

use ncmesh_wire::NodeId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Silence of an address after which its node may have another one.
const KEPT: Duration = Duration::from_secs(10);

/// Addresses of neighbours. There is one for each node that has proved that it is there, so their
/// number is bounded by the number of ids.
#[derive(Debug)]
pub(super) struct Addresses<A>(BTreeMap<NodeId, Neighbor<A>>);

#[derive(Clone, Copy, Debug)]
struct Neighbor<A> {
    address: A,
    /// When a frame came from there last.
    heard_at: Instant,
}

impl<A: Copy + PartialEq> Addresses<A> {
    /// Returns a table without neighbours.
    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Notes a frame of `node` that came from `address`. Anybody can send on a frame that he has
    /// heard. He does not become its sender's address while frames come from there.
    pub(super) fn learn(&mut self, node: NodeId, address: A, now: Instant) {
        let new = Neighbor { address, heard_at: now };
        let known = self.0.entry(node).or_insert(new);
        if known.address == address || now.duration_since(known.heard_at) >= KEPT {
            *known = new;
        }
    }

    /// Returns the address of a node.
    pub(super) fn get(&self, node: NodeId) -> Option<A> {
        self.0.get(&node).map(|neighbor| neighbor.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_a_frame_on_does_not_become_its_senders_address() {
        let (node, start) = (NodeId(7), Instant::now());
        let at = |s| start + Duration::from_secs(s);
        let mut addresses = Addresses::new();
        assert_eq!(addresses.get(node), None);
        addresses.learn(node, "its own", at(0));
        for s in 0..30 {
            addresses.learn(node, "another's", at(s));
            assert_eq!(addresses.get(node), Some("its own"), "after {s} s");
            addresses.learn(node, "its own", at(s));
        }
        // It has moved, or got another address.
        addresses.learn(node, "new", at(38));
        assert_eq!(addresses.get(node), Some("its own"));
        addresses.learn(node, "new", at(39));
        assert_eq!(addresses.get(node), Some("new"));
    }
}
