//! Sending end of a connection, as Linux's TCP does it.
//!
//! Losses are found by time (RACK, RFC 8985): a segment is lost when one that was sent later
//! arrived and the reordering window has passed. A tail loss probe asks for an acknowledgment
//! before the retransmission timer would run out. During fast recovery the window shrinks with what
//! is delivered (PRR, RFC 6937). A reaction to a loss that timestamps prove to be none is taken
//! back (Eifel, RFC 3522). Without these a long queue, many losses in one window or a late packet
//! cost far more than they do the kernel.

use super::congestion::{Ack, Window};
use super::receiver::millis;
use super::round_trips::{MIN_VARIATION, RoundTrips};
use super::segment::{Endpoint, HEADERS, Segment, WINDOW_SHIFT, offset_of};
use super::{Behaviour, content};
use ncmesh_engine::time::{Duration, Instant};
use std::collections::VecDeque;

/// Retransmission timeout before there is a round-trip time (RFC 6298).
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// Longest retransmission timeout.
const RTO_MAX: Duration = Duration::from_secs(120);
/// Packets received behind a gap for which no reordering is assumed any more (RFC 5681).
const DUPLICATES: usize = 3;

/// State of a segment that is not acknowledged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Sent, once or again, and neither known to have arrived nor to be lost.
    Outstanding,
    /// Received out of order.
    Received,
    /// Lost and not sent again since.
    Lost,
}

/// A segment that is not acknowledged yet.
#[derive(Debug)]
struct Sent {
    begin: u64,
    end: u64,
    sent_at: Instant,
    /// Number of the transmission. Tells apart what was sent at the same instant.
    transmission: u64,
    fate: Fate,
    is_repeated: bool,
}

/// What the sender does about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before the peer answered the SYN.
    Opening,
    /// No loss is known.
    Open,
    /// Fast recovery, until everything below `end` is acknowledged.
    FastRecovery { end: u64, delivered: u32, sent: u32 },
    /// After a retransmission timeout, until everything below `end` is acknowledged.
    Timeout { end: u64 },
}

/// Window and threshold before a reaction to a loss, to return to if there was no loss.
#[derive(Clone, Copy, Debug)]
struct Undo {
    packets: u32,
    threshold: u32,
    /// Timestamp of the first retransmission, ms.
    repeated_at: Option<u32>,
}

/// Sending end.
#[derive(Debug)]
pub(super) struct Sender {
    behaviour: Behaviour,
    ends: [Endpoint; 2],
    /// Sequence number of the first byte.
    first: u32,
    /// Sequence number of the peer, for acknowledgments.
    peer_next: u32,
    /// Bytes to be sent in all.
    size: u64,
    una: u64,
    next: u64,
    segments: VecDeque<Sent>,
    peer_window: usize,
    phase: Phase,
    window: Window,
    /// The window, and nothing else, kept it from sending more.
    is_window_limited: bool,
    undo: Option<Undo>,
    trips: RoundTrips,
    /// Number and round-trip time of the latest transmission that was delivered (RFC 8985).
    rack: u64,
    rack_rtt: Duration,
    /// Number of transmissions.
    transmissions: u64,
    /// End of the highest segment delivered.
    highest: u64,
    saw_reordering: bool,
    /// Timeouts one after the other without an acknowledgment between.
    backoff: u32,
    rto_at: Option<Instant>,
    probe_at: Option<Instant>,
    /// End of what was sent when a tail loss probe went out.
    probed: Option<u64>,
    reorder_at: Option<Instant>,
    /// Timestamp to echo.
    echo: u32,
    pub sent: VecDeque<Vec<u8>>,
}

impl Sender {
    pub(super) fn new(ends: [Endpoint; 2], behaviour: Behaviour, size: Option<u64>) -> Self {
        Self {
            behaviour,
            ends,
            first: behaviour.seed as u32,
            peer_next: 0,
            size: size.unwrap_or(u64::MAX),
            una: 0,
            next: 0,
            segments: VecDeque::new(),
            peer_window: 0,
            phase: Phase::Opening,
            window: Window::new(behaviour.congestion),
            is_window_limited: false,
            undo: None,
            trips: RoundTrips::new(),
            rack: 0,
            rack_rtt: Duration::ZERO,
            transmissions: 0,
            highest: 0,
            saw_reordering: false,
            backoff: 0,
            rto_at: None,
            probe_at: None,
            probed: None,
            reorder_at: None,
            echo: 0,
            sent: VecDeque::new(),
        }
    }

    /// Asks the peer for a connection.
    pub(super) fn open(&mut self, now: Instant) {
        let syn = Segment {
            sequence: self.first.wrapping_sub(1),
            syn: true,
            window: self.behaviour.window.min(usize::from(u16::MAX)),
            timestamps: (millis(now), 0),
            ..Segment::default()
        };
        self.write(&syn);
        self.rto_at = Some(now + self.timeout());
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called next.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.rto_at, self.probe_at, self.reorder_at].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.reorder_at) {
            let lost = self.detect_losses(now);
            self.react_to_losses();
            self.reduce(0, lost, false);
            self.transmit(now);
        }
        if is_due(self.rto_at) {
            self.handle_rto(now);
        } else if is_due(self.probe_at) {
            self.probe(now);
        }
    }

    /// Takes a packet from the receiver.
    pub(super) fn handle_packet(&mut self, packet: &[u8], now: Instant) {
        let Some(segment) = Segment::read(packet, WINDOW_SHIFT) else { return };
        let Some(number) = segment.acknowledged else { return };
        let acknowledged = offset_of(number, self.first, self.una);
        if acknowledged < self.una || acknowledged > self.next {
            return;
        }
        self.peer_window = segment.window;
        self.echo = segment.timestamps.0;
        if segment.syn {
            if self.phase == Phase::Opening {
                (self.phase, self.backoff, self.rto_at) = (Phase::Open, 0, None);
                let sent_at = u64::from(segment.timestamps.1) * 1_000_000;
                self.trips.add(now - Instant::from_nanos(sent_at), 0, 0);
            }
            self.peer_next = segment.sequence.wrapping_add(1);
            self.write(&self.segment(now, self.next, Vec::new()));
            return self.transmit(now);
        }
        if self.phase != Phase::Opening {
            self.handle_acknowledgment(acknowledged, &segment, now);
        }
    }

    fn handle_acknowledgment(&mut self, acknowledged: u64, segment: &Segment, now: Instant) {
        let advances = acknowledged > self.una;
        let mut delivered = Delivered::default();

        // What is acknowledged in order leaves; what came out of order is marked.
        while self.segments.front().is_some_and(|sent| sent.end <= acknowledged) {
            let Some(sent) = self.segments.pop_front() else { break };
            if sent.fate != Fate::Received {
                self.note_delivered(&sent, &mut delivered, now);
            }
        }
        self.una = acknowledged;
        for (begin, end) in segment.sack.into_iter().flatten() {
            let range = [begin, end].map(|number| offset_of(number, self.first, self.una));
            let mut segments = core::mem::take(&mut self.segments);
            let is_in = |sent: &&mut Sent| range[0] <= sent.begin && sent.end <= range[1];
            for sent in segments.iter_mut().filter(is_in) {
                if sent.fate != Fate::Received {
                    self.note_delivered(sent, &mut delivered, now);
                    sent.fate = Fate::Received;
                }
            }
            self.segments = segments;
        }
        if let Some(rtt) = delivered.oldest_rtt {
            self.trips.add(rtt, self.una, self.next);
        }
        if advances {
            self.backoff = 0;
        }
        if self.probed.is_some_and(|probed| self.una >= probed) {
            self.probed = None;
        }

        // Losses, and whether what was taken for one was none.
        if advances {
            self.undo_if_spurious(segment.timestamps.1);
        }
        let lost = if delivered.packets > 0 { self.detect_losses(now) } else { 0 };
        let end = match self.phase {
            Phase::FastRecovery { end, .. } | Phase::Timeout { end } => end,
            _ => u64::MAX,
        };
        if self.una >= end {
            if matches!(self.phase, Phase::FastRecovery { .. }) {
                self.window.packets = self.window.threshold;
            }
            (self.phase, self.undo) = (Phase::Open, None);
        }
        self.react_to_losses();

        // The window: smaller during fast recovery, otherwise larger if it was made use of.
        let ack = Ack {
            delivered: delivered.packets,
            rtt: delivered.newest_rtt,
            una: self.una,
            next: self.next,
        };
        self.window.note_rtt(ack, now);
        if matches!(self.phase, Phase::FastRecovery { .. }) {
            self.reduce(delivered.packets, lost, advances);
        } else if self.is_window_limited && advances {
            self.window.grow(ack, now);
        }

        if advances {
            self.rto_at = Some(now + self.timeout()).filter(|_| !self.segments.is_empty());
            self.arm_probe(now);
        }
        self.transmit(now);
    }

    /// Updates what is known of times by a segment that was delivered.
    fn note_delivered(&mut self, sent: &Sent, delivered: &mut Delivered, now: Instant) {
        delivered.packets += 1;
        let rtt = now - sent.sent_at;
        if !sent.is_repeated {
            self.saw_reordering |= sent.end < self.highest;
            delivered.oldest_rtt.get_or_insert(rtt);
            delivered.newest_rtt = Some(rtt);
        }
        self.highest = self.highest.max(sent.end);

        // A repetition that is answered too soon was not what the answer is about (RFC 8985, 6.2).
        let is_ambiguous = sent.is_repeated && self.trips.least.is_some_and(|least| rtt < least);
        if !is_ambiguous && sent.transmission > self.rack {
            self.rack = sent.transmission;
            self.rack_rtt = rtt;
        }
    }

    /// Marks segments as lost that were sent before one that was delivered, and are late by more
    /// than the reordering window. Returns how many.
    fn detect_losses(&mut self, now: Instant) -> u32 {
        let reordering = self.reordering_window();
        let (rack, deadline) = (self.rack, self.rack_rtt + reordering);
        let (mut lost, mut latest) = (0, None);
        for sent in self.segments.iter_mut().filter(|sent| sent.fate == Fate::Outstanding) {
            if sent.transmission >= rack {
                continue;
            }
            let at = sent.sent_at + deadline;
            if at <= now {
                sent.fate = Fate::Lost;
                lost += 1;
            } else {
                latest = latest.max(Some(at));
            }
        }
        self.reorder_at = latest;
        lost
    }

    fn reordering_window(&self) -> Duration {
        let received = self.segments.iter().filter(|sent| sent.fate == Fate::Received).count();
        let is_recovering =
            matches!(self.phase, Phase::FastRecovery { .. } | Phase::Timeout { .. });
        if !self.saw_reordering && (is_recovering || received >= DUPLICATES) {
            return Duration::ZERO;
        }
        let least = self.trips.least.unwrap_or_default();
        (least / 4).min(self.trips.smoothed.unwrap_or_default() / 8)
    }

    /// Begins fast recovery if there are losses and it is not under way.
    fn react_to_losses(&mut self) {
        let has_lost = self.segments.iter().any(|sent| sent.fate == Fate::Lost);
        if self.phase == Phase::Open && has_lost {
            self.remember_window();
            self.window.threshold = self.window.threshold_after_loss();
            self.phase = Phase::FastRecovery { end: self.next, delivered: 0, sent: 0 };
            self.probe_at = None;
        }
    }

    fn remember_window(&mut self) {
        let Window { packets, threshold, .. } = self.window;
        self.undo = Some(Undo { packets, threshold, repeated_at: None });
    }

    /// Proportional rate reduction (RFC 6937, 3), as Linux has it.
    fn reduce(&mut self, newly_delivered: u32, lost: u32, advances: bool) {
        let in_flight = self.in_flight();
        let prior = self.undo.map_or(1, |undo| undo.packets).max(1);
        let threshold = self.window.threshold;
        let Phase::FastRecovery { delivered, sent, .. } = &mut self.phase else { return };
        *delivered += newly_delivered;
        let (delivered, sent) = (i64::from(*delivered), i64::from(*sent));
        let room = i64::from(threshold) - i64::from(in_flight);
        let count = if room < 0 {
            let share = (u64::from(threshold) * delivered as u64).div_ceil(u64::from(prior));
            share as i64 - sent
        } else {
            let slow_start = i64::from(advances && lost == 0);
            room.min((delivered - sent).max(i64::from(newly_delivered)) + slow_start)
        };
        // The first retransmission always goes.
        let count = count.max(i64::from(sent == 0)).max(0);
        self.window.packets = (in_flight + count as u32).max(1);
    }

    /// Takes back the last reaction to a loss if the timestamp that came back is older than the
    /// first retransmission: the original had arrived.
    fn undo_if_spurious(&mut self, echoed: u32) {
        let Some(Undo { packets, threshold, repeated_at: Some(at) }) = self.undo else { return };
        if (echoed.wrapping_sub(at) as i32) >= 0 {
            return;
        }
        self.window.packets = self.window.packets.max(packets);
        self.window.threshold = self.window.threshold.max(threshold);
        for sent in self.segments.iter_mut().filter(|sent| sent.fate == Fate::Lost) {
            sent.fate = Fate::Outstanding;
        }
        (self.phase, self.undo) = (Phase::Open, None);
    }

    /// The retransmission timer ran out: everything that is not known to have arrived is lost.
    fn handle_rto(&mut self, now: Instant) {
        self.backoff = (self.backoff + 1).min(16);
        (self.probe_at, self.reorder_at) = (None, None);
        if self.phase == Phase::Opening {
            return self.open(now);
        }
        if !matches!(self.phase, Phase::Timeout { .. }) {
            self.remember_window();
            self.window.threshold = self.window.threshold_after_loss();
        }
        self.window.restart();
        self.phase = Phase::Timeout { end: self.next };
        for sent in self.segments.iter_mut().filter(|sent| sent.fate != Fate::Received) {
            sent.fate = Fate::Lost;
        }
        self.rto_at = Some(now + self.timeout());
        self.transmit(now);
    }

    /// Tail loss probe (RFC 8985, 7): new data if there is, else the last segment again.
    fn probe(&mut self, now: Instant) {
        self.probe_at = None;
        self.probed = Some(self.next);
        if self.new_segment().is_some() {
            self.send_new(now);
        } else if let Some(last) = self.segments.len().checked_sub(1) {
            self.send_again(last, now);
        }
        self.rto_at = Some(now + self.timeout());
    }

    /// Arms the tail loss probe, while no loss is known and none is under way.
    fn arm_probe(&mut self, now: Instant) {
        let has_gap = self.segments.iter().any(|sent| sent.fate == Fate::Received);
        let may = self.phase == Phase::Open && !has_gap && self.probed.is_none();
        let smoothed = self.trips.smoothed.filter(|_| may && !self.segments.is_empty());
        // The acknowledgment of a lone segment may be delayed.
        let alone = if self.segments.len() == 1 { MIN_VARIATION } else { Duration::ZERO };
        let at = smoothed.map(|smoothed| now + smoothed * 2 + alone);
        self.probe_at = at.filter(|at| self.rto_at.is_none_or(|rto| *at < rto));
    }

    /// Sends what the window allows: lost segments first, then new ones.
    fn transmit(&mut self, now: Instant) {
        let mut in_flight = self.in_flight();
        let mut lost = self.segments.iter().position(|sent| sent.fate == Fate::Lost);
        let mut sent_new = false;
        loop {
            self.is_window_limited = in_flight >= self.window.packets;
            if self.is_window_limited {
                break;
            }
            if let Some(index) = lost {
                self.send_again(index, now);
                let mut rest = self.segments.iter().skip(index + 1);
                lost = rest.position(|sent| sent.fate == Fate::Lost).map(|i| index + 1 + i);
            } else if self.new_segment().is_some() {
                self.send_new(now);
                sent_new = true;
            } else {
                break;
            }
            if let Phase::FastRecovery { sent, .. } = &mut self.phase {
                *sent += 1;
            }
            in_flight += 1;
        }
        if !self.segments.is_empty() && self.rto_at.is_none() {
            self.rto_at = Some(now + self.timeout());
        }
        if sent_new {
            self.arm_probe(now);
        }
    }

    /// Returns the length of the next new segment that the receiver's window and the send buffer
    /// have room for.
    fn new_segment(&self) -> Option<usize> {
        let full = self.behaviour.packet - HEADERS;
        let left = usize::try_from(self.size - self.next).unwrap_or(usize::MAX);
        let limit = self.peer_window.min(self.behaviour.window) as u64;
        let room = (self.una + limit).saturating_sub(self.next) as usize;
        let length = full.min(left).min(room);
        // No small segment while a full one may soon be possible (RFC 9293, 3.8.6.2.1).
        let is_silly = length < full.min(left) && !self.segments.is_empty();
        (length > 0 && !is_silly).then_some(length)
    }

    fn send_new(&mut self, now: Instant) {
        let Some(length) = self.new_segment() else { return };
        let (begin, end) = (self.next, self.next + length as u64);
        self.next = end;
        self.transmissions += 1;
        self.segments.push_back(Sent {
            begin,
            end,
            sent_at: now,
            transmission: self.transmissions,
            fate: Fate::Outstanding,
            is_repeated: false,
        });
        self.write(&self.segment(now, begin, (begin..end).map(content).collect()));
    }

    fn send_again(&mut self, index: usize, now: Instant) {
        self.transmissions += 1;
        let sent = &mut self.segments[index];
        sent.transmission = self.transmissions;
        (sent.sent_at, sent.fate, sent.is_repeated) = (now, Fate::Outstanding, true);
        let (begin, end) = (sent.begin, sent.end);
        if index == 0 {
            self.rto_at = Some(now + self.timeout());
        }
        if let Some(undo) = &mut self.undo {
            undo.repeated_at.get_or_insert(millis(now));
        }
        self.write(&self.segment(now, begin, (begin..end).map(content).collect()));
    }

    fn in_flight(&self) -> u32 {
        let out = self.segments.iter().filter(|sent| sent.fate == Fate::Outstanding);
        out.count() as u32
    }

    fn timeout(&self) -> Duration {
        let base =
            self.trips.smoothed.map_or(RTO_INITIAL, |smoothed| smoothed + self.trips.variation);
        (base * (1 << self.backoff)).min(RTO_MAX)
    }

    fn segment(&self, now: Instant, offset: u64, payload: Vec<u8>) -> Segment {
        Segment {
            sequence: self.first.wrapping_add(offset as u32),
            acknowledged: Some(self.peer_next),
            window: self.behaviour.window,
            timestamps: (millis(now), self.echo),
            payload,
            ..Segment::default()
        }
    }

    fn write(&mut self, segment: &Segment) {
        let [own, peer] = self.ends;
        self.sent.push_back(segment.write(own, peer, self.behaviour.packet));
    }
}

/// What one acknowledgment delivered.
#[derive(Default)]
struct Delivered {
    packets: u32,
    /// Round-trip times of the first and the last of them that were sent once.
    oldest_rtt: Option<Duration>,
    newest_rtt: Option<Duration>,
}
