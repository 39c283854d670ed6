//! Announced backlogs: which neighbours have said that they have more packets for this node.
//!
//! Not in the paper. Each data frame says whether its sender has another packet for the same
//! receiver. A relay that has a packet for such a neighbour knows that one of the opposite
//! direction is going to come, and waits for it. It does not have to guess, as
//! [`hold`](super::hold) must.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Time for which a relay waits for an announced packet, in transmissions of its own. Other nodes
/// use the channel in between.
const TIMEOUT_TRANSMISSIONS: u32 = 10;
/// Most neighbours whose announcements are kept.
const MAX_NEIGHBOURS: usize = 64;

/// Announcements of neighbours that have more packets for this node.
#[derive(Debug, Default)]
pub(crate) struct Backlogs {
    /// When each neighbour last announced another packet.
    announced: BTreeMap<NodeId, Instant>,
}

impl Backlogs {
    /// Notes that a frame of `neighbour` said whether it has `more` packets for this node.
    pub(crate) fn note(&mut self, neighbour: NodeId, more: bool, now: Instant) {
        if !more {
            self.announced.remove(&neighbour);
        } else if self.announced.len() < MAX_NEIGHBOURS || self.announced.contains_key(&neighbour) {
            self.announced.insert(neighbour, now);
        }
    }

    /// Returns how long to wait for a packet that `neighbour` announced, where a transmission takes
    /// `service_time`. Returns `None` if it announced none, or so long ago that the wait is over.
    pub(crate) fn partner_timeout(
        &self,
        neighbour: NodeId,
        service_time: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let timeout = service_time * TIMEOUT_TRANSMISSIONS;
        self.announced.get(&neighbour).filter(|at| now < **at + timeout).map(|_| timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId(2);
    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_announcement_holds_until_its_timeout_or_until_it_is_withdrawn() {
        let mut backlogs = Backlogs::default();
        assert_eq!(backlogs.partner_timeout(PEER, MS, at(0)), None);
        backlogs.note(PEER, true, at(0));
        assert_eq!(backlogs.partner_timeout(PEER, MS, at(9)), Some(10 * MS));
        assert_eq!(backlogs.partner_timeout(PEER, MS, at(10)), None);
        backlogs.note(PEER, true, at(11));
        backlogs.note(PEER, false, at(12));
        assert_eq!(backlogs.partner_timeout(PEER, MS, at(12)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut backlogs = Backlogs::default();
        for other in 0..3000 {
            backlogs.note(NodeId(other), true, at(0));
        }
        assert_eq!(backlogs.announced.len(), MAX_NEIGHBOURS);
        backlogs.note(NodeId(0), true, at(9));
        assert!(backlogs.partner_timeout(NodeId(0), MS, at(10)).is_some());
    }
}
