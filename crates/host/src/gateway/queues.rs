//! Queues of packets that wait until the scheme asks for more: one for each connection.
//!
//! Connections take turns packet by packet (stochastic fairness queueing, McKenney 1990). Turns
//! count packets and not bytes, since what a frame costs a wireless channel depends little on its
//! length. Each queue is kept short by [`Codel`].

use super::codel::Codel;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// Time after which a packet that found no room is dropped.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Name of a queue: the node its packets go to, and a hash of their connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueKey {
    pub(super) node: NodeId,
    pub(super) connection: u16,
}

/// All queues of a gateway.
#[derive(Debug)]
pub(super) struct Queues {
    /// Packets that wait for one node, at most.
    limit: usize,
    waiting: BTreeMap<QueueKey, Queue>,
    /// Queue that had the last turn.
    last: QueueKey,
    /// Packets dropped for their delay since [`take_late`](Self::take_late).
    late: u64,
}

#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<(Instant, Vec<u8>)>,
    codel: Codel,
}

impl Queue {
    /// Takes out the next packet that CoDel lets pass, and the number of packets that it dropped
    /// before that one.
    fn pop(&mut self, now: Instant) -> (Option<Vec<u8>>, u64) {
        let mut dropped = 0;
        while let Some((since, packet)) = self.packets.pop_front() {
            if !self.codel.handle_dequeue(now - since, self.packets.is_empty(), now) {
                return (Some(packet), dropped);
            }
            dropped += 1;
        }
        (None, dropped)
    }
}

impl Queues {
    pub(super) fn new(limit: usize) -> Self {
        let last = QueueKey { node: NodeId(0), connection: 0 };
        Self { limit, waiting: BTreeMap::new(), last, late: 0 }
    }

    /// Returns the number of packets that wait for any node.
    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(|queue| queue.packets.len()).sum()
    }

    /// Returns the number of packets of a connection that wait.
    pub(super) fn len_of(&self, connection: u16) -> usize {
        let own = self.waiting.iter().filter(|(key, _)| key.connection == connection);
        own.map(|(_, queue)| queue.packets.len()).sum()
    }

    /// Changes the limit for one node. Packets that wait already stay.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Adds a packet. Where the limit for its node is reached, drops the oldest packet of that
    /// node's longest queue. Returns whether it dropped one.
    pub(super) fn push(&mut self, key: QueueKey, packet: Vec<u8>, now: Instant) -> bool {
        // Keys are sorted by node first, so the queues of a node are one range.
        let of_node = |connection| QueueKey { connection, ..key };
        let same_node = of_node(u16::MIN)..=of_node(u16::MAX);
        let queues = self.waiting.range(same_node.clone());
        let count: usize = queues.map(|(_, queue)| queue.packets.len()).sum();

        let is_full = count >= self.limit;
        if is_full {
            // The longest queue belongs to whoever sends most. Its oldest packet has waited
            // longest, and its loss is noticed soonest.
            let queues = self.waiting.range_mut(same_node);
            let longest = queues.max_by_key(|(_, queue)| queue.packets.len());
            longest.map(|(_, queue)| queue.packets.pop_front());
        }
        self.waiting.entry(key).or_default().packets.push_back((now, packet));
        is_full
    }

    /// Takes out the next packet for a node that `is_wanted` accepts. Connections take turns.
    pub(super) fn pop(
        &mut self,
        is_wanted: impl Fn(NodeId) -> bool,
        now: Instant,
    ) -> Option<(NodeId, Vec<u8>)> {
        loop {
            // The turn after the last one, in the order of keys and around its end.
            let later = self.waiting.range((Bound::Excluded(self.last), Bound::Unbounded));
            let mut turns = later.chain(self.waiting.range(..=self.last)).map(|(key, _)| *key);
            self.last = turns.find(|key| is_wanted(key.node))?;

            let Entry::Occupied(mut queue) = self.waiting.entry(self.last) else { return None };
            let (packet, late) = queue.get_mut().pop(now);
            if queue.get().packets.is_empty() {
                queue.remove();
            }
            self.late += late;
            if let Some(packet) = packet {
                return Some((self.last.node, packet));
            }
        }
    }

    /// Drops packets that waited for [`MAX_WAIT`].
    pub(super) fn expire(&mut self, now: Instant) {
        self.waiting.retain(|_, queue| {
            while queue.packets.front().is_some_and(|(since, _)| *since + MAX_WAIT <= now) {
                queue.packets.pop_front();
                self.late += 1;
            }
            !queue.packets.is_empty()
        });
    }

    /// Returns the number of packets dropped for their delay, and begins to count anew.
    pub(super) fn take_late(&mut self) -> u64 {
        core::mem::take(&mut self.late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    fn key(node: NodeId, connection: u16) -> QueueKey {
        QueueKey { node, connection }
    }

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    fn popped(queues: &mut Queues, ms: u64) -> Vec<u8> {
        core::iter::from_fn(|| queues.pop(|_| true, at(ms))).map(|(_, packet)| packet[0]).collect()
    }

    #[test]
    fn connections_take_turns_in_order_each() {
        let mut queues = Queues::new(9);
        for n in 0..3 {
            queues.push(key(A, 7), vec![n], at(0));
        }
        for n in 10..12 {
            queues.push(key(A, 9), vec![n], at(0));
            queues.push(key(B, 7), vec![n + 10], at(0));
        }
        assert_eq!(queues.pop(|to| to == B, at(1)), Some((B, vec![20])));
        assert_eq!(popped(&mut queues, 1), [0, 10, 21, 1, 11, 2]);
        assert_eq!((queues.len(), queues.waiting.len(), queues.take_late()), (0, 0, 0));
    }

    #[test]
    fn the_longest_queue_of_a_full_node_makes_room() {
        let mut queues = Queues::new(4);
        assert!(!queues.push(key(B, 1), vec![90], at(0)));
        for n in 0..3 {
            assert!(!queues.push(key(A, 1), vec![n], at(0)));
        }
        assert!(!queues.push(key(A, 2), vec![50], at(0)));
        assert!(queues.push(key(A, 3), vec![60], at(0)) && queues.push(key(A, 1), vec![3], at(0)));
        assert_eq!(popped(&mut queues, 1), [2, 50, 60, 90, 3]);
    }

    #[test]
    fn a_connection_that_fills_its_queue_is_slowed_down_and_what_never_finds_room_goes() {
        let mut queues = Queues::new(100);
        for n in 0..100 {
            queues.push(key(A, 1), vec![n], at(0));
        }
        let mut left = 0;
        for ms in (10..1000).step_by(10) {
            left += usize::from(queues.pop(|_| true, at(ms)).is_some());
        }
        let late = queues.take_late() as usize;
        assert!((3..10).contains(&late) && left + late + queues.len() == 100, "{late}");
        for n in 0..10 {
            queues.push(key(B, n), vec![0], at(1000));
        }
        queues.expire(at(2999));
        assert_eq!(queues.len(), 10);
        queues.expire(at(3000));
        assert_eq!((queues.len(), queues.pop(|_| true, at(3000))), (0, None));
    }

    proptest! {
        /// Every packet is sent, dropped or still queued, and a connection's packets stay in order.
        #[test]
        fn order_is_kept(steps in prop::collection::vec((0_u16..4, 0_u8..3, 0_u64..400), 0..200)) {
            let mut queues = Queues::new(5);
            let mut now = 0;
            let mut pushed = 0_u32;
            let mut out = Vec::new();
            let mut gone = 0;
            for (connection, what, later) in steps {
                now += later;
                match what {
                    0 => out.extend(queues.pop(|to| to != A, at(now))),
                    1 => queues.expire(at(now)),
                    _ => {
                        let key = key(NodeId(connection / 2 + 1), connection);
                        let packet = [&[connection as u8][..], &pushed.to_be_bytes()].concat();
                        gone += u64::from(queues.push(key, packet, at(now)));
                        pushed += 1;
                    }
                }
            }
            prop_assert!(out.iter().all(|(to, packet)| *to == B && packet[0] / 2 == 1));
            gone += queues.take_late();
            prop_assert_eq!(out.len() as u64 + gone + queues.len() as u64, u64::from(pushed));
            for connection in 0..4 {
                let own = out.iter().filter(|(_, packet)| packet[0] == connection);
                let own: Vec<_> = own.collect();
                prop_assert!(own.is_sorted_by(|a, b| a.1 < b.1));
            }
        }
    }
}
