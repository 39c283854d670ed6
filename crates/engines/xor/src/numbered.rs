//! Numbered packets over one hop: what is lost is asked for again, and handed on in order.
//!
//! A broadcast has no MAC acknowledgment, and TCP takes a late packet for a lost one. So a sender
//! numbers its packets for each neighbour and keeps the latest of them in a *retransmit queue*. A
//! receiver that finds a number missing asks for it, and holds later packets in a *reorder buffer*
//! until it comes or a timeout ends the wait.
//!
//! Numbers run from 1 to 65,535 and then from 1 again; 0 is a packet without a number.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{NodeId, StartId};
use std::collections::{BTreeMap, VecDeque};

/// Times of one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HopTiming {
    /// Time for which a receiver waits for what is missing.
    pub(crate) timeout: Duration,
    /// Time after which it asks again.
    pub(crate) ask_again: Duration,
    /// Least time between two answers to requests for the same packet.
    pub(crate) answer_again: Duration,
}

/// How far behind a packet may be and still be asked for, and how many a sender keeps for that.
pub(crate) const WINDOW: u16 = 64;
/// Most neighbours with whom packets are numbered.
const MAX_NEIGHBOURS: usize = 64;
/// How many numbers there are.
const NUMBERS: u16 = u16::MAX;

/// Returns how far `number` lies ahead of `from`; both are 1 or more.
fn ahead(number: u16, from: u16) -> u16 {
    if number >= from { number - from } else { NUMBERS - (from - number) }
}

/// Returns the number `n` after this one.
fn after(number: u16, n: u16) -> u16 {
    let sum = u32::from(number - 1) + u32::from(n);
    (sum % u32::from(NUMBERS)) as u16 + 1
}

/// Sending side of all hops of a node.
#[derive(Debug)]
pub(crate) struct HopSender<T> {
    timing: HopTiming,
    queues: BTreeMap<NodeId, RetransmitQueue<T>>,
}

/// Packets sent to one neighbour lately.
#[derive(Debug)]
struct RetransmitQueue<T> {
    next: u16,
    packets: VecDeque<SentPacket<T>>,
}

/// A packet over a hop: the neighbour that it went to, and its number there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    pub(crate) neighbour: NodeId,
    pub(crate) number: u16,
}

/// A packet that may be asked for.
#[derive(Debug)]
struct SentPacket<T> {
    number: u16,
    packet: T,
    /// When it was last retransmitted.
    repeated_at: Option<Instant>,
    /// The packet that it was coded with, if it was.
    partner: Option<Numbered>,
}

/// A packet that a neighbour gets again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retransmission<T> {
    /// The packet that was asked for.
    pub(crate) packet: T,
    /// The packet that was coded with it, with its number. A coded frame is usually lost or
    /// received as a whole by both neighbours, so both go again the first time that either is asked
    /// for.
    pub(crate) partner: Option<(T, u16)>,
}

impl<T: Clone> SentPacket<T> {
    /// Returns the packet, unless it was retransmitted a moment ago.
    fn repeat(&mut self, pause: Duration, now: Instant) -> Option<T> {
        if self.repeated_at.is_some_and(|at| now - at < pause) {
            return None;
        }
        self.repeated_at = Some(now);
        Some(self.packet.clone())
    }
}

impl<T: Clone> HopSender<T> {
    /// Returns a sender that has sent nothing.
    #[must_use]
    pub(crate) fn new(timing: HopTiming) -> Self {
        Self { timing, queues: BTreeMap::new() }
    }

    /// Numbers a packet that is sent to `neighbour` now. Returns 0 if there are too many
    /// neighbours.
    pub(crate) fn number(&mut self, neighbour: NodeId, packet: &T) -> u16 {
        // No real neighbourhood is that large. The packet goes out without a number, and is not
        // repeated.
        if self.queues.len() >= MAX_NEIGHBOURS && !self.queues.contains_key(&neighbour) {
            return 0;
        }
        let fresh = || RetransmitQueue { next: 1, packets: VecDeque::new() };
        let queue = self.queues.entry(neighbour).or_insert_with(fresh);
        let number = queue.next;
        queue.next = after(number, 1);

        // The oldest packet can no longer be asked for: an acknowledgment does not reach back so
        // far.
        if queue.packets.len() >= usize::from(WINDOW) {
            queue.packets.pop_front();
        }

        let packet = packet.clone();
        queue.packets.push_back(SentPacket { number, packet, repeated_at: None, partner: None });
        number
    }

    /// Notes that two packets went out in one coded frame.
    pub(crate) fn pair(&mut self, one: Numbered, other: Numbered) {
        for (packet, partner) in [(one, other), (other, one)] {
            if let Some(sent) = self.sent_mut(packet) {
                sent.partner = Some(partner);
            }
        }
    }

    /// Returns what `neighbour` gets for its request, if anything.
    pub(crate) fn retransmit(
        &mut self,
        neighbour: NodeId,
        number: u16,
        now: Instant,
    ) -> Option<Retransmission<T>> {
        let pause = self.timing.answer_again;
        let sent = self.sent_mut(Numbered { neighbour, number })?;
        let packet = sent.repeat(pause, now)?;
        let partner = sent.partner.take();
        let partner = partner.and_then(|partner| {
            let sent = self.sent_mut(partner)?;
            sent.partner = None;
            Some((sent.repeat(pause, now)?, partner.number))
        });

        Some(Retransmission { packet, partner })
    }

    fn sent_mut(&mut self, id: Numbered) -> Option<&mut SentPacket<T>> {
        let queue = self.queues.get_mut(&id.neighbour)?;
        queue.packets.iter_mut().find(|sent| sent.number == id.number)
    }
}

/// Receiving side of all hops of a node.
#[derive(Debug)]
pub(crate) struct HopReceiver<T> {
    timing: HopTiming,
    buffers: BTreeMap<NodeId, ReorderBuffer<T>>,
}

/// Packets from one neighbour that wait for earlier ones.
#[derive(Debug)]
struct ReorderBuffer<T> {
    start: StartId,
    /// Number that is next in order.
    expected: u16,
    /// Numbers before `expected` that were handed on; the last one in the lowest bit.
    delivered: u64,
    /// Packets by how far they lie ahead of `expected`; there is none at 0.
    waiting: BTreeMap<u16, T>,
    /// When the first missing number was found missing.
    missing_since: Option<Instant>,
    /// When it is next asked for.
    ask_at: Option<Instant>,
}

impl<T> HopReceiver<T> {
    /// Returns a receiver that has received nothing.
    #[must_use]
    pub(crate) fn new(timing: HopTiming) -> Self {
        Self { timing, buffers: BTreeMap::new() }
    }

    /// Takes a packet with its number, 1 or more, from a neighbour in its present start. Returns
    /// the packets that are in order now.
    pub(crate) fn receive(
        &mut self,
        neighbour: NodeId,
        start: StartId,
        number: u16,
        packet: T,
        now: Instant,
    ) -> Vec<T> {
        // Beyond the limit packets are handed on as they come: order is lost, nothing else.
        if self.buffers.len() >= MAX_NEIGHBOURS && !self.buffers.contains_key(&neighbour) {
            return vec![packet];
        }

        let fresh = || ReorderBuffer::new(start, number);
        let buffer = self.buffers.entry(neighbour).or_insert_with(fresh);
        let mut out = Vec::new();

        // A neighbour that restarted numbers anew; nothing from before will be repeated.
        if buffer.start != start {
            let old = core::mem::replace(buffer, ReorderBuffer::new(start, number));
            out.extend(old.waiting.into_values());
        }

        match ahead(number, buffer.expected) {
            0 => buffer.take(packet, now, &mut out),
            // Behind: handed on if it was given up before, dropped if it is a copy.
            far if far > NUMBERS / 2 => out.extend(buffer.mark_delivered(number).then_some(packet)),
            far if far <= WINDOW => {
                buffer.waiting.entry(far).or_insert(packet);
                buffer.note_missing(now);
            }

            // Beyond the window: the sender no longer has what is missing.
            _ => {
                out.extend(core::mem::take(&mut buffer.waiting).into_values());
                buffer.expected = number;
                buffer.delivered = 0;
                buffer.take(packet, now, &mut out);
            }
        }

        out
    }

    /// Returns when a timeout ends, for which [`release`](Self::release) is to be called.
    #[must_use]
    pub(crate) fn release_at(&self) -> Option<Instant> {
        self.buffers.values().filter_map(|buffer| buffer.ends_at(self.timing)).min()
    }

    /// Returns the packets that are handed on because a timeout ended.
    pub(crate) fn release(&mut self, now: Instant) -> Vec<T> {
        let timing = self.timing;
        let mut out = Vec::new();
        for buffer in self.buffers.values_mut() {
            while buffer.ends_at(timing).is_some_and(|at| at <= now) {
                buffer.skip(now, &mut out);
            }
        }

        out
    }

    /// Returns when the next request is due.
    #[must_use]
    pub(crate) fn ask_at(&self) -> Option<Instant> {
        self.buffers.values().filter_map(|buffer| buffer.ask_at).min()
    }

    /// Returns a request that is due: the neighbour, and the numbers that are missing.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<(NodeId, Vec<u16>)> {
        let is_due = |buffer: &ReorderBuffer<T>| buffer.ask_at.is_some_and(|at| at <= now);
        let (neighbour, buffer) = self.buffers.iter_mut().find(|(_, buffer)| is_due(buffer))?;
        let last = buffer.waiting.last_key_value().map_or(0, |(far, _)| *far);
        let missing = (0..last).filter(|far| !buffer.waiting.contains_key(far));
        let numbers = missing.map(|far| after(buffer.expected, far)).collect();
        buffer.ask_at = Some(now + self.timing.ask_again);
        Some((*neighbour, numbers))
    }
}

impl<T> ReorderBuffer<T> {
    fn new(start: StartId, expected: u16) -> Self {
        let waiting = BTreeMap::new();
        Self { start, expected, delivered: 0, waiting, missing_since: None, ask_at: None }
    }

    fn ends_at(&self, timing: HopTiming) -> Option<Instant> {
        self.missing_since.map(|at| at + timing.timeout)
    }

    /// Records a number before the expected one. Returns whether it had been given up until now.
    fn mark_delivered(&mut self, number: u16) -> bool {
        let bit = 1_u64.checked_shl(u32::from(ahead(self.expected, number)) - 1).unwrap_or(0);
        let new = bit != 0 && self.delivered & bit == 0;
        self.delivered |= bit;
        new
    }

    fn note_missing(&mut self, now: Instant) {
        self.missing_since.get_or_insert(now);
        self.ask_at.get_or_insert(now);
    }

    /// Takes the expected packet, and hands on what follows it.
    fn take(&mut self, packet: T, now: Instant, out: &mut Vec<T>) {
        out.push(packet);
        self.advance(1);
        self.delivered |= 1;
        self.hand_on(now, out);
    }

    /// Gives up the numbers before the first packet that waits.
    fn skip(&mut self, now: Instant, out: &mut Vec<T>) {
        match self.waiting.first_key_value().map(|(far, _)| *far) {
            Some(far) => self.advance(far),
            None => self.missing_since = None,
        }
        self.hand_on(now, out);
    }

    /// Hands on the packets that are in order. The next gap is found missing only now.
    fn hand_on(&mut self, now: Instant, out: &mut Vec<T>) {
        while let Some(packet) = self.waiting.remove(&0) {
            out.push(packet);
            self.advance(1);
            self.delivered |= 1;
        }

        self.missing_since = None;
        self.ask_at = None;
        if !self.waiting.is_empty() {
            self.note_missing(now);
        }
    }

    fn advance(&mut self, by: u16) {
        self.expected = after(self.expected, by);
        self.delivered = self.delivered.checked_shl(u32::from(by)).unwrap_or(0);
        let waiting = core::mem::take(&mut self.waiting);
        let nearer = |(far, packet): (u16, T)| Some((far.checked_sub(by)?, packet));
        self.waiting = waiting.into_iter().filter_map(nearer).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const PEER: NodeId = NodeId(2);
    const TIMING: HopTiming = HopTiming {
        timeout: Duration::from_millis(60),
        ask_again: Duration::from_millis(25),
        answer_again: Duration::from_millis(10),
    };

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn arrive(receiver: &mut HopReceiver<u16>, number: u16, ms: u64) -> Vec<u16> {
        receiver.receive(PEER, StartId(1), number, number, at(ms))
    }

    fn again<T>(packet: T, partner: Option<(T, u16)>) -> Option<Retransmission<T>> {
        Some(Retransmission { packet, partner })
    }

    #[test]
    fn a_missing_packet_is_asked_for_and_put_in_its_place() {
        let mut receiver = HopReceiver::new(TIMING);
        assert_eq!(arrive(&mut receiver, 65_534, 0), [65_534]);
        assert_eq!(arrive(&mut receiver, 2, 1), []);
        assert_eq!(receiver.ask(at(1)), Some((PEER, vec![65_535, 1])));
        assert_eq!((receiver.ask(at(25)), receiver.ask_at()), (None, Some(at(26))));
        assert_eq!(arrive(&mut receiver, 65_535, 10), [65_535]);
        // Asks again for the packet that is still missing.
        assert_eq!(receiver.ask(at(10)), Some((PEER, vec![1])));
        assert_eq!(arrive(&mut receiver, 1, 20), [1, 2]);
        assert_eq!((receiver.ask_at(), receiver.release_at()), (None, None));
        // Copies are dropped.
        let copies = (arrive(&mut receiver, 1, 21), arrive(&mut receiver, 65_534, 21));
        assert_eq!(copies, (vec![], vec![]));
    }

    #[test]
    fn a_timeout_a_restart_or_a_long_gap_ends_the_wait() {
        let mut receiver = HopReceiver::new(TIMING);
        arrive(&mut receiver, 10, 0);
        assert_eq!(arrive(&mut receiver, 12, 5), []);
        assert_eq!(arrive(&mut receiver, 14, 6), []);
        assert_eq!((receiver.release_at(), receiver.release(at(64))), (Some(at(65)), vec![]));
        assert_eq!((receiver.release(at(65)), receiver.release_at()), (vec![12], Some(at(125))));
        // A packet that was given up may still come, once.
        let late = (arrive(&mut receiver, 11, 66), arrive(&mut receiver, 11, 67));
        assert_eq!(late, (vec![11], vec![]));
        assert_eq!(receiver.release(at(125)), [14]);
        assert_eq!((receiver.release_at(), receiver.ask_at()), (None, None));
        assert_eq!(arrive(&mut receiver, 16, 130), []);
        assert_eq!(arrive(&mut receiver, 16 + 2 * WINDOW, 131), [16, 16 + 2 * WINDOW]);
        assert_eq!(arrive(&mut receiver, 146, 132), []);
        assert_eq!(receiver.receive(PEER, StartId(2), 1, 1, at(133)), [146, 1]);
    }

    #[test]
    fn a_sender_repeats_what_it_has_but_not_twice_at_once() {
        let mut sender = HopSender::new(TIMING);
        for packet in 0..100_u32 {
            assert_eq!(u32::from(sender.number(PEER, &packet)), packet + 1);
        }
        assert_eq!(sender.retransmit(PEER, 36, at(0)), None);
        assert_eq!(sender.retransmit(PEER, 37, at(0)), again(36, None));
        assert_eq!(sender.retransmit(PEER, 37, at(5)), None);
        assert_eq!(sender.retransmit(PEER, 37, at(10)), again(36, None));
        assert_eq!(sender.retransmit(NodeId(3), 37, at(0)), None);
        for other in 10..200 {
            sender.number(NodeId(other), &0);
        }
        assert_eq!((sender.queues.len(), sender.number(NodeId(500), &0)), (MAX_NEIGHBOURS, 0));
    }

    #[test]
    fn packets_coded_together_are_repeated_together_once() {
        let mut sender = HopSender::new(TIMING);
        let other = NodeId(3);
        let one = sender.number(PEER, &10);
        let two = sender.number(other, &20);
        let one_sent = Numbered { neighbour: PEER, number: one };
        let other_sent = Numbered { neighbour: other, number: two };
        sender.pair(one_sent, other_sent);
        assert_eq!(sender.retransmit(PEER, one, at(0)), again(10, Some((20, two))));
        assert_eq!(sender.retransmit(other, two, at(5)), None);
        assert_eq!(sender.retransmit(PEER, one, at(25)), again(10, None));
        assert_eq!(sender.retransmit(other, two, at(25)), again(20, None));
    }

    proptest! {
        /// Numbers in any order and any number of copies: the buffer is bounded and empties, and
        /// each packet comes out at most once.
        #[test]
        fn no_packet_is_kept_for_good_or_delivered_twice(
            start in 1..=u16::MAX,
            steps in prop::collection::vec((0..200_u16, 0..40_u64), 1..200),
        ) {
            let mut receiver = HopReceiver::new(TIMING);
            let mut now = 0;
            let mut arrivals = 0;
            let mut out = 0;
            for (step, wait) in &steps {
                now += wait;
                out += receiver.release(at(now)).len();
                arrivals += 1;
                out += receiver.receive(PEER, StartId(1), after(start, *step), (), at(now)).len();
                let kept: usize = receiver.buffers.values().map(|b| b.waiting.len()).sum();
                prop_assert!(kept <= usize::from(WINDOW));
                prop_assert_eq!(receiver.release_at().is_some(), kept > 0);
            }
            while let Some(due) = receiver.release_at() {
                out += receiver.release(due).len();
            }
            prop_assert!(out <= arrivals);
            prop_assert!(receiver.buffers[&PEER].waiting.is_empty());
        }

        /// Packets that arrive once each, displaced by less than the window: all come out, and
        /// those that arrive before the timeout come out in order.
        #[test]
        fn all_packets_come_out_in_order(
            start in 1..=u16::MAX,
            displacements in prop::collection::vec(0..30_usize, 1..150),
        ) {
            let mut order: Vec<u16> = (0..displacements.len() as u16).collect();
            // Each is late by its displacement at most; the first one comes first.
            order.sort_by_key(|step| match *step {
                0 => 0,
                step => usize::from(step) + displacements[usize::from(step)],
            });
            let mut receiver = HopReceiver::new(TIMING);
            let mut out = Vec::new();
            for step in &order {
                out.extend(receiver.receive(PEER, StartId(1), after(start, *step), *step, at(0)));
            }
            prop_assert_eq!(out, (0..order.len() as u16).collect::<Vec<_>>());
        }

        /// With losses, everything that arrives comes out exactly once, late or not.
        #[test]
        fn everything_that_arrives_comes_out_once(
            start in 1..=u16::MAX,
            arrives in prop::collection::vec(any::<bool>(), 1..300),
        ) {
            let mut receiver = HopReceiver::new(TIMING);
            let mut out = BTreeSet::new();
            let sent: Vec<u16> =
                (0..arrives.len() as u16).filter(|i| arrives[usize::from(*i)]).collect();
            for (i, step) in sent.iter().enumerate() {
                let now = at(10 * i as u64);
                for packet in receiver.release(now) {
                    prop_assert!(out.insert(packet));
                }
                let number = after(start, *step);
                for packet in receiver.receive(PEER, StartId(1), number, *step, now) {
                    prop_assert!(out.insert(packet));
                }
            }
            while let Some(due) = receiver.release_at() {
                for packet in receiver.release(due) {
                    prop_assert!(out.insert(packet));
                }
            }
            prop_assert_eq!(out.into_iter().collect::<Vec<_>>(), sent);
        }
    }
}
