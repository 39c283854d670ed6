//! Receiving end of a connection: reassembly, and acknowledgments as Linux sends them.
//!
//! A segment that is out of order is acknowledged at once, with the ranges received (RFC 2018).
//! Every second segment in order is acknowledged at once, a single one after a delay (RFC 9293,
//! 3.8.6.3). The first segments of a connection are acknowledged one by one, so that the sender's
//! slow start is not slowed down.

use super::segment::{Endpoint, Segment, Timestamps, WINDOW_SHIFT, offset_of};
use super::{Behaviour, content};
use ncmesh_engine::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Default delay of an acknowledgment (Linux: `TCP_DELACK_MIN`).
const ACK_DELAY: Duration = Duration::from_millis(40);
/// Number of first segments that are acknowledged one by one (Linux: `TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;

/// Receiving end.
#[derive(Debug)]
pub(super) struct Receiver {
    behaviour: Behaviour,
    ends: [Endpoint; 2],
    /// Initial sequence number of this end.
    first: u32,
    /// Sequence number of the peer's first byte; `None` until its SYN arrives.
    peer_first: Option<u32>,
    /// Bytes received in order.
    pub received: u64,
    /// Bytes that differ from those that the sender sends.
    pub wrong: u64,
    /// Ranges received beyond `received`: the end of each by its begin.
    out_of_order: BTreeMap<u64, u64>,
    /// Begins of these ranges, the one that grew last first.
    newest: VecDeque<u64>,
    /// Segments that are still to be acknowledged one by one.
    quick_acks: u32,
    /// Segments received in order and not acknowledged yet.
    unacknowledged: u32,
    /// When a delayed acknowledgment is due.
    ack_due: Option<Instant>,
    /// Timestamp to echo (RFC 7323, 4.3).
    echo: u32,
    /// Packets to the peer, the oldest first.
    pub outgoing: VecDeque<Vec<u8>>,
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
            outgoing: VecDeque::new(),
        }
    }

    /// Returns when a delayed acknowledgment is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.ack_due
    }

    /// Sends the delayed acknowledgment if it is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.ack_due.is_some_and(|due| due <= now) {
            self.acknowledge(now);
        }
    }

    /// Handles a packet from the sender.
    pub(super) fn handle_packet(&mut self, packet: &[u8], now: Instant) {
        let Some(segment) = Segment::read(packet, WINDOW_SHIFT) else { return };

        // A SYN is answered each time: the sender repeats it until the answer arrives.
        if segment.syn {
            self.peer_first = Some(segment.sequence.wrapping_add(1));
            self.echo = segment.timestamps.value;
            return self.send(true, now);
        }

        // A segment without data needs no answer. Data is compared with what the sender must have
        // sent, since a wrong byte is what a test looks for.
        let Some(first) = self.peer_first.filter(|_| !segment.payload.is_empty()) else { return };
        let begin = offset_of(segment.sequence, first, self.received);
        let end = begin + segment.payload.len() as u64;
        let differs = |(i, byte): &(u64, &u8)| **byte != content(*i);
        self.wrong += (begin..).zip(&segment.payload).filter(differs).count() as u64;

        // Already received: an acknowledgment was lost, or the retransmission was spurious. The
        // sender must learn that at once (RFC 9293, 3.10.7.4).
        if end <= self.received {
            return self.acknowledge(now);
        }

        // Behind a gap: a duplicate acknowledgment with SACK, at once (RFC 5681, 4.2).
        if begin > self.received {
            self.store(begin, end);
            return self.acknowledge(now);
        }

        // In order. Ranges that are no longer behind a gap follow. Only a segment at the left edge
        // of the window updates the timestamp to echo (RFC 7323, 4.3), so that a round-trip time
        // includes the delay of the acknowledgment.
        let filled_gap = !self.out_of_order.is_empty();
        self.received = end;
        self.echo = segment.timestamps.value;
        while let Some(range) = self.out_of_order.first_entry()
            && *range.key() <= self.received
        {
            self.received = self.received.max(*range.get());
            self.newest.retain(|begin| begin != range.key());
            range.remove();
        }

        // Acknowledge at once if a gap was filled, at least in part (RFC 5681, 4.2), for every
        // second segment, and for each of the first ones. Otherwise wait for another segment.
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

    /// Adds a range that is out of order, and joins it with those that it touches.
    fn store(&mut self, mut begin: u64, mut end: u64) {
        let touches = |(b, e): &(&u64, &u64)| **b <= end && **e >= begin;
        let joined: Vec<u64> =
            self.out_of_order.iter().filter(touches).map(|(begin, _)| *begin).collect();

        // Joined ranges are taken out, also of the order of reports: one range stands for all.
        for other in joined {
            begin = begin.min(other);
            end = end.max(self.out_of_order.remove(&other).unwrap_or(end));
            self.newest.retain(|begin| *begin != other);
        }

        // The range with the latest segment is reported first (RFC 2018, 4).
        self.out_of_order.insert(begin, end);
        self.newest.push_front(begin);
    }

    /// Acknowledges everything received so far.
    fn acknowledge(&mut self, now: Instant) {
        self.unacknowledged = 0;
        self.ack_due = None;
        self.send(false, now);
    }

    /// Sends an acknowledgment, with `syn` as the answer to the peer's SYN.
    fn send(&mut self, syn: bool, now: Instant) {
        let Some(peer_first) = self.peer_first else { return };
        let number = |offset: u64| peer_first.wrapping_add(offset as u32);

        // Beside the timestamps option there is room for three ranges (RFC 2018, 3).
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
            timestamps: Timestamps { value: millis(now), echo: self.echo },
            sack,
            payload: Vec::new(),
        };

        let [own, peer] = self.ends;
        self.outgoing.push_back(segment.write(own, peer, self.behaviour.packet));
    }
}

/// Returns the clock of timestamps, ms.
pub(super) fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}
