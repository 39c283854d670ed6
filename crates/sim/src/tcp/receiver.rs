//! Receiving end of a connection: reassembly, and acknowledgments as Linux sends them.
//!
//! Segments that are out of order are acknowledged at once, with the ranges received (RFC 2018). In
//! order, every second segment is acknowledged, or one that stays alone after a delay (RFC 9293,
//! 3.8.6.3); the first ones each, so that the sender's slow start is not slowed down.

use super::segment::{Endpoint, Segment, WINDOW_SHIFT, offset_of};
use super::{Behaviour, content};
use ncmesh_engine::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Delay of an acknowledgment where the behaviour does not say (Linux: `TCP_DELACK_MIN`).
const ACK_DELAY: Duration = Duration::from_millis(40);
/// Segments at the start that are acknowledged each (Linux: `TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;

/// Receiving end.
#[derive(Debug)]
pub(super) struct Receiver {
    behaviour: Behaviour,
    ends: [Endpoint; 2],
    first: u32,
    /// Sequence number of the peer's first byte, once its SYN came.
    peer_first: Option<u32>,
    /// Bytes received in order.
    pub received: u64,
    /// Bytes that differ from those that the sender sends.
    pub wrong: u64,
    /// Ranges received beyond those: by begin, the end.
    out_of_order: BTreeMap<u64, u64>,
    /// Begins of these ranges, the one that grew last first.
    newest: VecDeque<u64>,
    quick_acks: u32,
    /// Segments in order not acknowledged yet.
    unacknowledged: u32,
    ack_due: Option<Instant>,
    /// Timestamp to echo (RFC 7323, 4.3).
    echo: u32,
    pub sent: VecDeque<Vec<u8>>,
}

impl Receiver {
    pub(super) fn new(ends: [Endpoint; 2], behaviour: Behaviour) -> Self {
        Self {
            behaviour,
            ends,
            first: (behaviour.seed >> 32) as u32,
            peer_first: None,
            received: 0,
            wrong: 0,
            out_of_order: BTreeMap::new(),
            newest: VecDeque::new(),
            quick_acks: QUICK_ACKS,
            unacknowledged: 0,
            ack_due: None,
            echo: 0,
            sent: VecDeque::new(),
        }
    }

    /// When an acknowledgment is due that was held back.
    pub(super) fn due(&self) -> Option<Instant> {
        self.ack_due
    }

    /// Sends an acknowledgment that is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.ack_due.is_some_and(|due| due <= now) {
            self.acknowledge(now);
        }
    }

    /// Takes a packet from the sender.
    pub(super) fn handle_packet(&mut self, packet: &[u8], now: Instant) {
        let Some(segment) = Segment::read(packet, WINDOW_SHIFT) else { return };
        if segment.syn {
            self.peer_first = Some(segment.sequence.wrapping_add(1));
            self.echo = segment.timestamps.0;
            return self.send(true, now);
        }
        let Some(first) = self.peer_first.filter(|_| !segment.payload.is_empty()) else { return };
        let begin = offset_of(segment.sequence, first, self.received);
        let end = begin + segment.payload.len() as u64;
        let differs = |(i, byte): &(u64, &u8)| **byte != content(*i);
        self.wrong += (begin..).zip(&segment.payload).filter(differs).count() as u64;

        // Already received: the sender lost an acknowledgment.
        if end <= self.received {
            return self.acknowledge(now);
        }
        // A gap: say at once what came.
        if begin > self.received {
            self.store(begin, end);
            return self.acknowledge(now);
        }

        let filled_gap = !self.out_of_order.is_empty();
        self.received = end;
        self.echo = segment.timestamps.0;
        while let Some(range) = self.out_of_order.first_entry()
            && *range.key() <= self.received
        {
            self.received = self.received.max(*range.get());
            self.newest.retain(|begin| begin != range.key());
            range.remove();
        }
        self.unacknowledged += 1;
        let is_quick = self.quick_acks > 0;
        self.quick_acks = self.quick_acks.saturating_sub(1);
        let delay = self.behaviour.ack_delay.unwrap_or(ACK_DELAY);
        if filled_gap || is_quick || self.unacknowledged >= 2 || delay.is_zero() {
            self.acknowledge(now);
        } else {
            self.ack_due = Some(now + delay);
        }
    }

    /// Adds a range that is out of order, joined with those it touches.
    fn store(&mut self, mut begin: u64, mut end: u64) {
        let touches = |(b, e): &(&u64, &u64)| **b <= end && **e >= begin;
        let joined: Vec<u64> =
            self.out_of_order.iter().filter(touches).map(|(begin, _)| *begin).collect();
        for other in joined {
            begin = begin.min(other);
            end = end.max(self.out_of_order.remove(&other).unwrap_or(end));
            self.newest.retain(|begin| *begin != other);
        }
        self.out_of_order.insert(begin, end);
        self.newest.push_front(begin);
    }

    fn acknowledge(&mut self, now: Instant) {
        self.unacknowledged = 0;
        self.ack_due = None;
        self.send(false, now);
    }

    fn send(&mut self, syn: bool, now: Instant) {
        let Some(peer_first) = self.peer_first else { return };
        let number = |offset: u64| peer_first.wrapping_add(offset as u32);
        let mut sack = [None; 3];
        for (place, begin) in sack.iter_mut().zip(&self.newest) {
            let end = self.out_of_order.get(begin);
            *place = end.map(|end| (number(*begin), number(*end)));
        }
        let segment = Segment {
            sequence: if syn { self.first } else { self.first.wrapping_add(1) },
            acknowledged: Some(number(self.received)),
            syn,
            window: self.behaviour.window,
            timestamps: (millis(now), self.echo),
            sack,
            payload: Vec::new(),
        };
        let [own, peer] = self.ends;
        self.sent.push_back(segment.write(own, peer, self.behaviour.packet));
    }
}

/// Clock of timestamps, ms.
pub(super) fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}
