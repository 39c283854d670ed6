//! Nodes nearby that send frames of another version of the wire format.
//!
//! Only the first byte and the sender of such a frame can be read, and neither is authenticated. So
//! this is told to people, and nothing is decided by it.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Most nodes that are kept: anybody can invent some.
const MAX_STRANGERS: usize = 32;
/// Silence after which a node is forgotten.
const KEPT: Duration = Duration::from_secs(60);

/// Senders of frames of other versions, with the version and the time of the last frame.
#[derive(Debug, Default)]
pub(crate) struct Strangers(BTreeMap<NodeId, (u8, Instant)>);

impl Strangers {
    /// Notes a frame of another version.
    pub(crate) fn note(&mut self, sender: NodeId, version: u8, now: Instant) {
        make_room(&mut self.0, &sender, MAX_STRANGERS, |(_, at)| *at);
        self.0.insert(sender, (version, now));
    }

    /// Returns the nodes heard lately, with the version of their last frame.
    pub(crate) fn heard(&self, now: Instant) -> impl Iterator<Item = (NodeId, u8)> + '_ {
        let lately = self.0.iter().filter(move |(_, (_, at))| now.since(*at) < KEPT);
        lately.map(|(node, (version, _))| (*node, *version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_told_for_a_while_and_never_too_many() {
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let mut strangers = Strangers::default();
        strangers.note(NodeId(7), 3, at(0));
        strangers.note(NodeId(8), 1, at(50));
        let heard = |strangers: &Strangers, s| strangers.heard(at(s)).collect::<Vec<_>>();
        assert_eq!(heard(&strangers, 59), [(NodeId(7), 3), (NodeId(8), 1)]);
        assert_eq!(heard(&strangers, 60), [(NodeId(8), 1)]);
        for node in 100..10_000 {
            strangers.note(NodeId(node), 3, at(70));
        }
        assert_eq!(strangers.0.len(), MAX_STRANGERS);
        // Nodes that are heard go on to be told; the silent ones make room.
        strangers.note(NodeId(8), 2, at(70));
        assert!(strangers.heard(at(70)).any(|known| known == (NodeId(8), 2)));
        strangers.note(NodeId(9), 3, at(200));
        assert_eq!(heard(&strangers, 200), [(NodeId(9), 3)]);
    }
}
