//! What is lost between two nodes is asked for again, and handed on in the order in which it was sent. Not in the
//! paper: a coded packet is a broadcast that no MAC repeats, and TCP takes a late packet for a lost one.
//!
//! A sender numbers its packets for each neighbour from 1 to 65,535 and then from 1 again; 0 is a packet without a
//! number. A receiver that finds a number missing asks for it, and keeps what came after it until it comes or
//! patience ends.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// How long a receiver waits for what is missing: a request and an answer through a busy channel.
const PATIENCE: Duration = Duration::from_millis(60);
/// After which time it asks again.
const AGAIN: Duration = Duration::from_millis(25);
/// The least time between two answers to requests for the same packet.
const ANSWERED: Duration = Duration::from_millis(10);
/// How far behind a packet may be and still be asked for, and how many a sender keeps for that.
pub(super) const WINDOW: u16 = 64;
/// Neighbours with whom packets are numbered.
const MAX_NEIGHBOURS: usize = 64;
/// Numbers there are.
const NUMBERS: u16 = u16::MAX;

/// How far `number` lies ahead of `from`, both 1 or more.
fn ahead(number: u16, from: u16) -> u16 {
    if number >= from { number - from } else { NUMBERS - (from - number) }
}

/// The number `n` after this one.
fn after(number: u16, n: u16) -> u16 {
    let sum = u32::from(number - 1) + u32::from(n);
    (sum % u32::from(NUMBERS)) as u16 + 1
}

/// What a node sent to its neighbours lately.
#[derive(Debug)]
pub(super) struct Sent<T> {
    neighbours: BTreeMap<NodeId, Outbox<T>>,
}

#[derive(Debug)]
struct Outbox<T> {
    next: u16,
    packets: VecDeque<Kept<T>>,
}

/// A packet that may be asked for.
#[derive(Debug)]
struct Kept<T> {
    number: u16,
    packet: T,
    /// When it was last asked for.
    asked: Option<Instant>,
    /// For whom and under which number the other one was, where it was coded.
    partner: Option<(NodeId, u16)>,
}

impl<T: Clone> Kept<T> {
    /// The packet, unless it was sent again a moment ago.
    fn again(&mut self, now: Instant) -> Option<T> {
        if self.asked.is_some_and(|at| now - at < ANSWERED) {
            return None;
        }
        self.asked = Some(now);
        Some(self.packet.clone())
    }
}

impl<T: Clone> Sent<T> {
    pub(super) fn new() -> Self {
        Self { neighbours: BTreeMap::new() }
    }

    /// Numbers a packet that is sent to `neighbour` now; 0 if too many neighbours are kept already.
    pub(super) fn number(&mut self, neighbour: NodeId, packet: &T) -> u16 {
        if self.neighbours.len() >= MAX_NEIGHBOURS && !self.neighbours.contains_key(&neighbour) {
            return 0;
        }
        let fresh = || Outbox { next: 1, packets: VecDeque::new() };
        let outbox = self.neighbours.entry(neighbour).or_insert_with(fresh);
        let number = outbox.next;
        outbox.next = after(number, 1);
        if outbox.packets.len() >= usize::from(WINDOW) {
            outbox.packets.pop_front();
        }
        let (packet, asked, partner) = (packet.clone(), None, None);
        outbox.packets.push_back(Kept { number, packet, asked, partner });
        number
    }

    /// Two packets went out in one frame.
    pub(super) fn pair(&mut self, one: (NodeId, u16), other: (NodeId, u16)) {
        for (packet, partner) in [(one, other), (other, one)] {
            if let Some(kept) = self.kept(packet) {
                kept.partner = Some(partner);
            }
        }
    }

    /// The packet of that number, if `neighbour` may have it again; and the one that it was coded with, with its
    /// number, the first time that either of them is asked for: what befell the frame befell both, as a rule.
    pub(super) fn again(
        &mut self,
        neighbour: NodeId,
        number: u16,
        now: Instant,
    ) -> Option<(T, Option<(T, u16)>)> {
        let kept = self.kept((neighbour, number))?;
        let (packet, partner) = (kept.again(now)?, kept.partner.take());
        let other = partner.and_then(|partner| {
            let kept = self.kept(partner)?;
            kept.partner = None;
            Some((kept.again(now)?, partner.1))
        });
        Some((packet, other))
    }

    fn kept(&mut self, (neighbour, number): (NodeId, u16)) -> Option<&mut Kept<T>> {
        let outbox = self.neighbours.get_mut(&neighbour)?;
        outbox.packets.iter_mut().find(|kept| kept.number == number)
    }
}

/// What a node heard of its neighbours, put in order.
#[derive(Debug)]
pub(super) struct Order<T> {
    neighbours: BTreeMap<NodeId, Inbox<T>>,
}

#[derive(Debug)]
struct Inbox<T> {
    epoch: u64,
    /// The number that is next in order.
    expected: u16,
    /// Which of the numbers before that were handed on, the last one in the lowest bit.
    had: u64,
    /// By how far they lie ahead of `expected`: nothing is at 0.
    waiting: BTreeMap<u16, T>,
    /// When the first of what is missing was missed.
    missed: Option<Instant>,
    /// When it is next asked for.
    ask: Option<Instant>,
}

impl<T> Order<T> {
    pub(super) fn new() -> Self {
        Self { neighbours: BTreeMap::new() }
    }

    /// A packet came with its number, 1 or more, from a neighbour in this epoch of its. Gives what is in order
    /// now.
    pub(super) fn arrived(
        &mut self,
        (neighbour, epoch): (NodeId, u64),
        number: u16,
        packet: T,
        now: Instant,
    ) -> Vec<T> {
        if self.neighbours.len() >= MAX_NEIGHBOURS && !self.neighbours.contains_key(&neighbour) {
            return vec![packet];
        }
        let fresh = || Inbox::new(epoch, number);
        let inbox = self.neighbours.entry(neighbour).or_insert_with(fresh);
        let mut out = Vec::new();
        if inbox.epoch != epoch {
            // It has started anew, and numbers anew.
            out.extend(core::mem::replace(inbox, Inbox::new(epoch, number)).waiting.into_values());
        }
        match ahead(number, inbox.expected) {
            0 => inbox.take(packet, now, &mut out),
            far if far > NUMBERS / 2 => out.extend(inbox.is_late(number).then_some(packet)),
            far if far <= WINDOW => {
                inbox.waiting.entry(far).or_insert(packet);
                inbox.note_missing(now);
            }
            _ => {
                // So much was lost that it cannot be had again.
                out.extend(core::mem::take(&mut inbox.waiting).into_values());
                (inbox.expected, inbox.had) = (number, 0);
                inbox.take(packet, now, &mut out);
            }
        }
        out
    }

    /// When something falls due: patience ends, or it is time to ask.
    pub(super) fn due(&self) -> Option<Instant> {
        self.neighbours.values().filter_map(Inbox::ends).min()
    }

    /// What is handed on because patience ended.
    pub(super) fn release(&mut self, now: Instant) -> Vec<T> {
        let mut out = Vec::new();
        for inbox in self.neighbours.values_mut() {
            while inbox.ends().is_some_and(|at| at <= now) {
                inbox.skip(now, &mut out);
            }
        }
        out
    }

    /// When the next request is due.
    pub(super) fn ask_due(&self) -> Option<Instant> {
        self.neighbours.values().filter_map(|inbox| inbox.ask).min()
    }

    /// A request that is due: of whom, and which numbers.
    pub(super) fn ask(&mut self, now: Instant) -> Option<(NodeId, Vec<u16>)> {
        let is_due = |inbox: &Inbox<T>| inbox.ask.is_some_and(|at| at <= now);
        let (neighbour, inbox) = self.neighbours.iter_mut().find(|(_, inbox)| is_due(inbox))?;
        let last = inbox.waiting.last_key_value().map_or(0, |(far, _)| *far);
        let missing = (0..last).filter(|far| !inbox.waiting.contains_key(far));
        let numbers = missing.map(|far| after(inbox.expected, far)).collect();
        inbox.ask = Some(now + AGAIN);
        Some((*neighbour, numbers))
    }
}

impl<T> Inbox<T> {
    fn new(epoch: u64, expected: u16) -> Self {
        Self { epoch, expected, had: 0, waiting: BTreeMap::new(), missed: None, ask: None }
    }

    fn ends(&self) -> Option<Instant> {
        self.missed.map(|at| at + PATIENCE)
    }

    /// Whether a number before the expected one was given up until now, and so is news.
    fn is_late(&mut self, number: u16) -> bool {
        let bit = 1_u64.checked_shl(u32::from(ahead(self.expected, number)) - 1).unwrap_or(0);
        let late = bit != 0 && self.had & bit == 0;
        self.had |= bit;
        late
    }

    fn note_missing(&mut self, now: Instant) {
        self.missed.get_or_insert(now);
        self.ask.get_or_insert(now);
    }

    /// Takes the packet that was expected, and what follows it.
    fn take(&mut self, packet: T, now: Instant, out: &mut Vec<T>) {
        out.push(packet);
        self.advance(1);
        self.had |= 1;
        self.follow(now, out);
    }

    /// Gives up what is missing before the first that waits.
    fn skip(&mut self, now: Instant, out: &mut Vec<T>) {
        match self.waiting.first_key_value().map(|(far, _)| *far) {
            Some(far) => self.advance(far),
            None => self.missed = None,
        }
        self.follow(now, out);
    }

    /// Hands on what is in order; what is missing then was missed now.
    fn follow(&mut self, now: Instant, out: &mut Vec<T>) {
        while let Some(packet) = self.waiting.remove(&0) {
            out.push(packet);
            self.advance(1);
            self.had |= 1;
        }
        (self.missed, self.ask) = (None, None);
        if !self.waiting.is_empty() {
            self.note_missing(now);
        }
    }

    fn advance(&mut self, by: u16) {
        self.expected = after(self.expected, by);
        self.had = self.had.checked_shl(u32::from(by)).unwrap_or(0);
        let waiting = core::mem::take(&mut self.waiting);
        // What was expected is no longer: nothing of it waits.
        let nearer = |(far, packet): (u16, T)| Some((far.checked_sub(by)?, packet));
        self.waiting = waiting.into_iter().filter_map(nearer).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PEER: NodeId = NodeId(2);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn arrive(order: &mut Order<u16>, number: u16, ms: u64) -> Vec<u16> {
        order.arrived((PEER, 1), number, number, at(ms))
    }

    #[test]
    fn what_is_missing_is_asked_for_and_put_in_its_place() {
        let mut order = Order::new();
        assert_eq!(arrive(&mut order, 65_534, 0), [65_534]);
        assert_eq!(arrive(&mut order, 2, 1), []);
        assert_eq!(order.ask(at(1)), Some((PEER, vec![65_535, 1])));
        assert_eq!((order.ask(at(25)), order.ask_due()), (None, Some(at(26))));
        assert_eq!(arrive(&mut order, 65_535, 10), [65_535]);
        // Of the rest it is reminded.
        assert_eq!(order.ask(at(10)), Some((PEER, vec![1])));
        assert_eq!(arrive(&mut order, 1, 20), [1, 2]);
        assert_eq!((order.ask_due(), order.due()), (None, None));
        // A copy is none of it.
        assert_eq!((arrive(&mut order, 1, 21), arrive(&mut order, 65_534, 21)), (vec![], vec![]));
    }

    #[test]
    fn patience_ends_and_a_new_start_or_a_long_gap_begins_anew() {
        let mut order = Order::new();
        arrive(&mut order, 10, 0);
        assert_eq!(arrive(&mut order, 12, 5), []);
        assert_eq!(arrive(&mut order, 14, 6), []);
        assert_eq!((order.due(), order.release(at(64))), (Some(at(65)), vec![]));
        assert_eq!((order.release(at(65)), order.due()), (vec![12], Some(at(125))));
        // What was given up may still come, once.
        assert_eq!((arrive(&mut order, 11, 66), arrive(&mut order, 11, 67)), (vec![11], vec![]));
        assert_eq!(order.release(at(125)), [14]);
        assert_eq!((order.due(), order.ask_due()), (None, None));
        assert_eq!(arrive(&mut order, 16, 130), []);
        assert_eq!(arrive(&mut order, 16 + 2 * WINDOW, 131), [16, 16 + 2 * WINDOW]);
        assert_eq!(arrive(&mut order, 146, 132), []);
        assert_eq!(order.arrived((PEER, 2), 1, 1, at(133)), [146, 1]);
    }

    #[test]
    fn a_sender_repeats_what_it_has_but_not_at_once_again() {
        let mut sent = Sent::new();
        for packet in 0..100_u32 {
            assert_eq!(u32::from(sent.number(PEER, &packet)), packet + 1);
        }
        assert_eq!(sent.again(PEER, 36, at(0)), None);
        assert_eq!(sent.again(PEER, 37, at(0)), Some((36, None)));
        assert_eq!(sent.again(PEER, 37, at(5)), None);
        assert_eq!(sent.again(PEER, 37, at(10)), Some((36, None)));
        assert_eq!(sent.again(NodeId(3), 37, at(0)), None);
        for other in 10..200 {
            sent.number(NodeId(other), &0);
        }
        assert_eq!((sent.neighbours.len(), sent.number(NodeId(500), &0)), (MAX_NEIGHBOURS, 0));
    }

    #[test]
    fn what_was_coded_together_is_had_again_together_once() {
        let (mut sent, other) = (Sent::new(), NodeId(3));
        let (one, two) = (sent.number(PEER, &10), sent.number(other, &20));
        sent.pair((PEER, one), (other, two));
        assert_eq!(sent.again(PEER, one, at(0)), Some((10, Some((20, two)))));
        assert_eq!(sent.again(other, two, at(5)), None);
        assert_eq!(sent.again(PEER, one, at(25)), Some((10, None)));
        assert_eq!(sent.again(other, two, at(25)), Some((20, None)));
    }

    proptest! {
        /// Numbers in any order and any number of copies: all come out, in order as far as patience lasts.
        #[test]
        fn nothing_is_kept_for_good(
            start in 1..=u16::MAX,
            steps in prop::collection::vec((0..200_u16, 0..40_u64), 1..200),
        ) {
            let (mut order, mut now, mut out) = (Order::new(), 0, 0);
            for (step, wait) in &steps {
                now += wait;
                out += order.release(at(now)).len();
                out += order.arrived((PEER, 1), after(start, *step), (), at(now)).len();
                let kept: usize = order.neighbours.values().map(|inbox| inbox.waiting.len()).sum();
                prop_assert!(kept <= usize::from(WINDOW));
                prop_assert_eq!(order.due().is_some(), kept > 0);
            }
            while let Some(due) = order.due() {
                out += order.release(due).len();
            }
            prop_assert!(out <= steps.len());
            prop_assert!(order.neighbours[&PEER].waiting.is_empty());
        }
    }
}
