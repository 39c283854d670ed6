//! Queues of packets that wait until the scheme asks for more: one for each connection.
//!
//! Connections take turns packet by packet (stochastic fairness queueing, McKenney 1990). Turns
//! count packets and not bytes, since what a frame costs a wireless channel depends little on its
//! length. Those of real-time traffic go first. Each queue is kept short by [`Codel`].

use super::codel::Codel;
use super::ecn;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::precedence::Precedence;
use ncmesh_engine::tunnel::is_real_time;
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
    /// Queue of real-time traffic that had the last turn, and the last other one.
    last_urgent: QueueKey,
    last_other: QueueKey,
    precedence: Precedence,
    /// Packets dropped or marked since [`take_delayed`](Self::take_delayed).
    delayed: Delayed,
}

/// Packets that waited for too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delayed {
    pub(super) dropped: u64,
    /// Their transports slow down for a mark as they do for a loss.
    pub(super) marked: u64,
}

#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<(Instant, Vec<u8>)>,
    codel: Codel,
    /// Whether the newest packet is of real-time traffic. A connection stays in order when its
    /// class changes.
    is_real_time: bool,
}

impl Queue {
    /// Takes out the next packet that CoDel lets pass. Counts those that it would drop.
    fn pop(&mut self, delayed: &mut Delayed, now: Instant) -> Option<Vec<u8>> {
        while let Some((since, mut packet)) = self.packets.pop_front() {
            // CoDel drops packets that waited for too long. Connections that know ECN are told
            // without a loss.
            if !self.codel.handle_dequeue(now - since, self.packets.is_empty(), now) {
                return Some(packet);
            }
            if ecn::mark(&mut packet) {
                delayed.marked += 1;
                return Some(packet);
            }

            delayed.dropped += 1;
        }

        None
    }
}

impl Queues {
    pub(super) fn new(limit: usize) -> Self {
        let none = QueueKey { node: NodeId(0), connection: 0 };
        Self {
            limit,
            waiting: BTreeMap::new(),
            last_urgent: none,
            last_other: none,
            precedence: Precedence::default(),
            delayed: Delayed::default(),
        }
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

        let queue = self.waiting.entry(key).or_default();
        queue.is_real_time = is_real_time(&packet);
        queue.packets.push_back((now, packet));
        is_full
    }

    /// Takes out the next packet for a node that `is_wanted` accepts. Connections take turns, those
    /// of real-time traffic first.
    pub(super) fn pop(
        &mut self,
        is_wanted: impl Fn(NodeId) -> bool,
        now: Instant,
    ) -> Option<(NodeId, Vec<u8>)> {
        loop {
            // A queue whose packets CoDel all dropped loses its turn.
            let turn = self.take_turn(&is_wanted)?;
            let Entry::Occupied(mut queue) = self.waiting.entry(turn) else { return None };
            let packet = queue.get_mut().pop(&mut self.delayed, now);

            // Empty queues are removed at once, so their number is bounded by that of the packets.
            if queue.get().packets.is_empty() {
                queue.remove();
            }
            if let Some(packet) = packet {
                return Some((turn.node, packet));
            }
        }
    }

    /// Returns the queue whose turn it is, and notes that it has it.
    fn take_turn(&mut self, is_wanted: &impl Fn(NodeId) -> bool) -> Option<QueueKey> {
        // Two rounds, one of real-time traffic and one of the others. Precedence says which goes
        // on.
        let urgent = self.next_after(self.last_urgent, true, is_wanted);
        let other = self.next_after(self.last_other, false, is_wanted);
        let first = urgent.filter(|_| other.is_none() || self.precedence.is_given());
        self.precedence.note(first.is_some() && other.is_some());
        if let Some(urgent) = first {
            self.last_urgent = urgent;
            return first;
        }

        self.last_other = other?;
        other
    }

    /// Returns the queue whose turn comes after the one of `last`, of those of real-time traffic or
    /// of the others.
    fn next_after(
        &self,
        last: QueueKey,
        is_real_time: bool,
        is_wanted: &impl Fn(NodeId) -> bool,
    ) -> Option<QueueKey> {
        // In the order of keys, and around its end.
        let later = self.waiting.range((Bound::Excluded(last), Bound::Unbounded));
        let mut turns = later.chain(self.waiting.range(..=last));
        let turn =
            turns.find(|(key, queue)| queue.is_real_time == is_real_time && is_wanted(key.node));
        turn.map(|(key, _)| *key)
    }

    /// Drops packets that waited for [`MAX_WAIT`].
    pub(super) fn expire(&mut self, now: Instant) {
        self.waiting.retain(|_, queue| {
            while queue.packets.front().is_some_and(|(since, _)| *since + MAX_WAIT <= now) {
                queue.packets.pop_front();
                self.delayed.dropped += 1;
            }
            !queue.packets.is_empty()
        });
    }

    /// Returns what was done to packets for their delay, and counts from zero again.
    pub(super) fn take_delayed(&mut self) -> Delayed {
        core::mem::take(&mut self.delayed)
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
        assert_eq!((queues.len(), queues.waiting.len(), queues.take_delayed().dropped), (0, 0, 0));
    }

    /// First bytes of packets of IPv4 with the class EF, and with none.
    const EXPEDITED: [u8; 2] = [0x45, 46 << 2];
    const BEST_EFFORT: [u8; 2] = [0x45, 0];

    #[test]
    fn real_time_traffic_goes_first_and_others_take_turns_behind_it() {
        let mut queues = Queues::new(99);
        for n in 0..4 {
            queues.push(key(A, 1), [&BEST_EFFORT[..], &[10 + n]].concat(), at(0));
            queues.push(key(A, 2), [&BEST_EFFORT[..], &[20 + n]].concat(), at(0));
            queues.push(key(B, 3), [&BEST_EFFORT[..], &[30 + n]].concat(), at(0));
        }
        for n in 0..6 {
            queues.push(key(A, 4), [&EXPEDITED[..], &[40 + n]].concat(), at(0));
        }
        let order: Vec<u8> = core::iter::from_fn(|| queues.pop(|_| true, at(1)))
            .map(|(_, packet)| packet[2])
            .collect();
        let urgent_first = [40, 41, 42, 10, 43, 44, 45, 20];
        let turns = [30, 11, 21, 31, 12, 22, 32, 13, 23, 33];
        assert_eq!(order, [&urgent_first[..], &turns].concat());
    }

    #[test]
    fn delayed_packets_of_capable_transports_are_marked_and_all_arrive() {
        let mut queues = Queues::new(200);
        let capable = |n: u8| {
            let mut packet = super::super::packets::udp_v4("10.0.0.1", "10.0.0.2", 9);
            let mut ip = smoltcp::wire::Ipv4Packet::new_unchecked(&mut packet);
            ip.set_ecn(2);
            ip.set_ident(n.into());
            ip.fill_checksum();
            packet
        };
        for n in 0..100 {
            queues.push(key(A, 1), capable(n), at(0));
        }
        let out = (1..=100).filter_map(|n| queues.pop(|_| true, at(10 * n)));
        let out: Vec<Vec<u8>> = out.map(|(_, packet)| packet).collect();
        let marked = out.iter().filter(|packet| packet[1] & 3 == 3).count() as u64;
        assert_eq!(out.len(), 100);
        assert!((3..10).contains(&marked), "{marked}");
        assert_eq!(queues.take_delayed(), Delayed { dropped: 0, marked });
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
        let late = queues.take_delayed().dropped as usize;
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
            gone += queues.take_delayed().dropped;
            prop_assert_eq!(out.len() as u64 + gone + queues.len() as u64, u64::from(pushed));
            for connection in 0..4 {
                let own = out.iter().filter(|(_, packet)| packet[0] == connection);
                let own: Vec<_> = own.collect();
                prop_assert!(own.is_sorted_by(|a, b| a.1 < b.1));
            }
        }
    }
}
