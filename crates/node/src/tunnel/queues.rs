//! Packets that wait until the scheme has room, a queue for each node they go to.

use ncmesh_proto::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// How long one full queue keeps packets to others waiting: after that its own are dropped.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);
/// How long a packet waits at most.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(2);

/// The queues. There are no more than nodes that routes lead to.
#[derive(Debug)]
pub(super) struct Queues {
    /// Packets in one queue.
    limit: usize,
    waiting: BTreeMap<NodeId, Queue>,
    /// Whose turn it was last.
    last: NodeId,
}

#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<(Instant, Vec<u8>)>,
    full_since: Option<Instant>,
}

impl Queues {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, waiting: BTreeMap::new(), last: NodeId(0) }
    }

    /// Packets that wait for any node.
    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(|queue| queue.packets.len()).sum()
    }

    /// Whether another packet is wanted: no queue is full, or those that are have been for too long.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.full_since().all(|since| since + PATIENCE <= now)
    }

    /// When patience with a full queue runs out next.
    pub(super) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.full_since().map(|since| since + PATIENCE).filter(|at| *at > now).min()
    }

    fn full_since(&self) -> impl Iterator<Item = Instant> + '_ {
        self.waiting.values().filter_map(|queue| queue.full_since)
    }

    /// Says whether there was a place for the packet.
    pub(super) fn push(&mut self, to: NodeId, packet: Vec<u8>, now: Instant) -> bool {
        let queue = self.waiting.entry(to).or_default();
        if queue.packets.len() >= self.limit {
            return false;
        }
        queue.packets.push_back((now, packet));
        if queue.packets.len() == self.limit {
            queue.full_since = Some(now);
        }
        true
    }

    /// The next packet of which `has_room` says its destination has; nodes take turns.
    pub(super) fn pop(&mut self, has_room: impl Fn(NodeId) -> bool) -> Option<(NodeId, Vec<u8>)> {
        let later = self.waiting.range((Bound::Excluded(self.last), Bound::Unbounded));
        let turns = later.chain(self.waiting.range(..=self.last));
        let to = turns.map(|(to, _)| *to).find(|to| has_room(*to))?;
        let queue = self.waiting.get_mut(&to)?;
        let (_, packet) = queue.packets.pop_front()?;
        queue.full_since = None;
        self.last = to;
        if queue.packets.is_empty() {
            self.waiting.remove(&to);
        }
        Some((to, packet))
    }

    /// Drops what has waited too long, and says how many packets that were.
    pub(super) fn expire(&mut self, now: Instant) -> u64 {
        let mut expired = 0;
        self.waiting.retain(|_, queue| {
            let before = queue.packets.len();
            while queue.packets.front().is_some_and(|(since, _)| *since + MAX_WAIT <= now) {
                queue.packets.pop_front();
                queue.full_since = None;
            }
            expired += (before - queue.packets.len()) as u64;
            !queue.packets.is_empty()
        });
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    #[test]
    fn a_full_queue_holds_up_others_for_a_bounded_time() {
        let mut queues = Queues::new(2);
        assert!(queues.push(A, vec![1], at(0)));
        assert!(queues.is_open(at(0)));
        assert!(queues.push(A, vec![2], at(5)));
        assert!(!queues.is_open(at(5)));
        assert_eq!(queues.poll_timeout(at(5)), Some(at(25)));
        assert!(queues.is_open(at(25)));
        assert_eq!(queues.poll_timeout(at(25)), None);
        assert!(!queues.push(A, vec![3], at(25)), "its own are dropped now");
        assert!(queues.push(B, vec![4], at(25)));
        assert_eq!(queues.pop(|to| to == A), Some((A, vec![1])));
        assert!(queues.push(A, vec![5], at(30)));
        assert!(!queues.is_open(at(30)), "patience begins anew");
    }

    #[test]
    fn nodes_take_turns_and_old_packets_go() {
        let mut queues = Queues::new(9);
        for n in 0..3 {
            queues.push(A, vec![n], at(0));
            queues.push(B, vec![n + 10], at(0));
        }
        queues.push(B, vec![99], at(1500));
        let turns: Vec<u8> = (0..4).map(|_| queues.pop(|_| true).unwrap().1[0]).collect();
        assert_eq!(turns, [0, 10, 1, 11]);
        assert_eq!(queues.pop(|_| false), None);
        assert_eq!(queues.expire(at(1999)), 0);
        assert_eq!(queues.expire(at(2000)), 2);
        assert_eq!(queues.len(), 1);
        assert_eq!(queues.pop(|_| true), Some((B, vec![99])));
        assert_eq!(queues.pop(|_| true), None);
    }

    proptest! {
        /// Each node's packets come out in order, none twice, and what was refused or has expired not at all.
        #[test]
        fn order_is_kept(steps in prop::collection::vec((0_u16..4, 0_u8..3, 0_u64..400), 0..200)) {
            let mut queues = Queues::new(5);
            let (mut now, mut pushed, mut out, mut gone) = (0, 0_u32, Vec::new(), 0);
            for (node, what, later) in steps {
                now += later;
                match what {
                    0 => if let Some((to, packet)) = queues.pop(|to| to.0 != node) {
                        prop_assert_ne!(to.0, node);
                        out.push((to, packet));
                    },
                    1 => gone += queues.expire(at(now)),
                    _ => {
                        let taken = queues.push(NodeId(node), pushed.to_be_bytes().into(), at(now));
                        gone += u64::from(!taken);
                        pushed += 1;
                    }
                }
            }
            prop_assert_eq!(out.len() as u64 + gone + queues.len() as u64, u64::from(pushed));
            for node in 0..4 {
                let own: Vec<_> = out.iter().filter(|(to, _)| to.0 == node).map(|(_, p)| p).collect();
                prop_assert!(own.is_sorted_by(|a, b| a < b));
            }
        }
    }
}
