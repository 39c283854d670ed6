//! Waiting for a partner that was promised; not in the paper. Frames say whether their sender has another packet for the
//! same receiver. Where a relay has a packet that could be coded with one of a neighbour's, and that neighbour has
//! promised another, the relay lets its own wait: it need not guess whether one will come, as [`hold`](super::hold) must.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Transmissions that a relay waits for what was promised: others have their turns before.
const PATIENCE: u32 = 10;
/// Neighbours whose word is kept in mind.
const MAX_NEIGHBOURS: usize = 64;

/// What neighbours have promised.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// When each last said that it had more.
    more: BTreeMap<NodeId, Instant>,
}

impl Promises {
    /// A frame of `neighbour` to this node said whether it has more.
    pub(super) fn heard(&mut self, neighbour: NodeId, more: bool, now: Instant) {
        if !more {
            self.more.remove(&neighbour);
        } else if self.more.len() < MAX_NEIGHBOURS || self.more.contains_key(&neighbour) {
            self.more.insert(neighbour, now);
        }
    }

    /// How long to wait for what `neighbour` promised, if a transmission takes `service`; none where it promised
    /// nothing, or not lately.
    pub(super) fn patience(
        &self,
        neighbour: NodeId,
        service: Duration,
        now: Instant,
    ) -> Option<Duration> {
        let patience = service * PATIENCE;
        self.more.get(&neighbour).filter(|said| now < **said + patience).map(|_| patience)
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
    fn a_promise_is_believed_for_a_while() {
        let mut promises = Promises::default();
        assert_eq!(promises.patience(PEER, MS, at(0)), None);
        promises.heard(PEER, true, at(0));
        assert_eq!(promises.patience(PEER, MS, at(9)), Some(10 * MS));
        assert_eq!(promises.patience(PEER, MS, at(10)), None);
        promises.heard(PEER, true, at(11));
        promises.heard(PEER, false, at(12));
        assert_eq!(promises.patience(PEER, MS, at(12)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut promises = Promises::default();
        for other in 0..3000 {
            promises.heard(NodeId(other), true, at(0));
        }
        assert_eq!(promises.more.len(), MAX_NEIGHBOURS);
        promises.heard(NodeId(0), true, at(9));
        assert!(promises.patience(NodeId(0), MS, at(10)).is_some());
    }
}
