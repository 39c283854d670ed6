//! Sending end of a connection, as Linux's TCP does it.
//!
//! The parts follow these documents. `recovery` has those that deal with losses.
//!
//! | part | document |
//! | --- | --- |
//! | loss detection by time, tail loss probe | RACK-TLP, RFC 8985 |
//! | window during fast recovery | proportional rate reduction, RFC 6937 |
//! | undo of a spurious reaction | Eifel detection by timestamps, RFC 3522 |
//! | retransmission timer | RFC 6298 |
//! | congestion window outside recovery | [`congestion`](super::congestion) |
//!
//! Without them a long queue, many losses in one window or a late packet would cost far more than
//! they cost the kernel.
//!
//! | phase | next phase |
//! | --- | --- |
//! | `SynSent` | `Open` when the peer acknowledges the SYN |
//! | `Open` | `FastRecovery` when a segment is lost, `Timeout` when the retransmission timer expires |
//! | `FastRecovery` | `Open` when everything below `end` is acknowledged or the loss was spurious, `Timeout` when the timer expires |
//! | `Timeout` | `Open`, as from `FastRecovery` |

mod recovery;

use super::congestion::{Ack, Window};
use super::receiver::millis;
use super::rtt::{MIN_VARIATION, RttEstimator};
use super::segment::{Endpoint, HEADERS, Segment, Timestamps, WINDOW_SHIFT, offset_of};
use super::{Behaviour, content};
use ncmesh_engine::time::{Duration, Instant};
use std::collections::VecDeque;

/// Retransmission timeout before there is a round-trip time (RFC 6298).
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// Longest retransmission timeout.
const RTO_MAX: Duration = Duration::from_secs(120);

/// State of a segment that is not acknowledged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In flight: transmitted, and known neither to have arrived nor to be lost.
    Outstanding,
    /// Received out of order, by a selective acknowledgment.
    Received,
    /// Lost, and not retransmitted since.
    Lost,
}

/// A segment that is not acknowledged yet.
#[derive(Debug)]
struct SentSegment {
    begin: u64,
    end: u64,
    sent_at: Instant,
    /// Number of the transmission. It distinguishes transmissions of the same instant.
    transmission: u64,
    state: State,
    is_retransmitted: bool,
}

/// State of the connection and its loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The peer has not answered the SYN yet (RFC 9293, 3.3.2).
    SynSent,
    /// No loss is known.
    Open,
    /// Fast recovery, until everything below `end` is acknowledged. `delivered` and `sent` count
    /// packets since it began (prr_delivered and prr_out, RFC 6937).
    FastRecovery { end: u64, delivered: u32, sent: u32 },
    /// After a retransmission timeout, until everything below `end` is acknowledged.
    Timeout { end: u64 },
}

/// Window and threshold before a reaction to a loss. They are restored if the loss was spurious.
#[derive(Clone, Copy, Debug)]
struct Undo {
    packets: u32,
    threshold: u32,
    /// Timestamp of the first retransmission, ms.
    retransmitted_at: Option<u32>,
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
    /// Bytes to send in total.
    size: u64,
    /// Offset of the oldest byte not acknowledged (SND.UNA).
    una: u64,
    /// Offset of the next new byte (SND.NXT).
    next: u64,
    /// Segments between the two, in order.
    segments: VecDeque<SentSegment>,
    peer_window: usize,
    phase: Phase,
    window: Window,
    /// Whether the congestion window was what stopped the last transmission.
    is_window_limited: bool,
    undo: Option<Undo>,
    rtt: RttEstimator,
    /// Number of the latest transmission that was delivered (RACK.xmit_ts), and its round-trip time
    /// (RACK.rtt).
    rack: u64,
    rack_rtt: Duration,
    /// Number of transmissions.
    transmissions: u64,
    /// End of the highest segment delivered (RACK.fack).
    highest: u64,
    saw_reordering: bool,
    /// Consecutive timeouts without an acknowledgment between them.
    backoff: u32,
    /// Retransmission timer.
    rto_at: Option<Instant>,
    /// Timer of the tail loss probe.
    probe_at: Option<Instant>,
    /// SND.NXT when a tail loss probe was sent; `None` while none is in flight (TLP.end_seq).
    probe_end: Option<u64>,
    /// Timer after which late segments count as lost.
    reorder_at: Option<Instant>,
    /// Timestamp to echo.
    echo: u32,
    /// Packets to the peer, the oldest first.
    pub outgoing: VecDeque<Vec<u8>>,
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
            phase: Phase::SynSent,
            window: Window::new(behaviour.congestion),
            is_window_limited: false,
            undo: None,
            // A least timeout takes the place of Linux's allowance (RFC 6298, 2.4).
            rtt: RttEstimator::new(match behaviour.min_rto {
                Some(_) => Duration::ZERO,
                None => MIN_VARIATION,
            }),
            rack: 0,
            rack_rtt: Duration::ZERO,
            transmissions: 0,
            highest: 0,
            saw_reordering: false,
            backoff: 0,
            rto_at: None,
            probe_at: None,
            probe_end: None,
            reorder_at: None,
            echo: 0,
            outgoing: VecDeque::new(),
        }
    }

    /// Sends the SYN, for the first time or again.
    pub(super) fn open(&mut self, now: Instant) {
        let syn = Segment {
            sequence: self.first.wrapping_sub(1),
            syn: true,
            window: self.behaviour.window.min(usize::from(u16::MAX)),
            timestamps: Timestamps { value: millis(now), echo: 0 },
            ..Segment::default()
        };
        self.write(&syn);
        self.rto_at = Some(now + self.timeout());
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) must be called next.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.rto_at, self.probe_at, self.reorder_at].into_iter().flatten().min()
    }

    /// Handles the timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);

        // The reordering window has passed without the late segments (RFC 8985, 6.3). Nothing was
        // delivered, so the window only makes room for retransmissions.
        if is_due(self.reorder_at) {
            let lost = self.detect_losses(now);
            self.react_to_losses();
            self.reduce_window(0, lost, false);
            self.transmit(now);
        }

        // A timeout makes a probe useless: it declares everything lost anyway.
        if is_due(self.rto_at) {
            self.handle_rto(now);
        } else if is_due(self.probe_at) {
            self.probe(now);
        }
    }

    /// Handles a packet from the receiver.
    pub(super) fn handle_packet(&mut self, packet: &[u8], now: Instant) {
        // Acceptable are only acknowledgments of data in flight (RFC 9293, 3.10.7.4). An older one
        // was overtaken, and its window is out of date.
        let Some(segment) = Segment::read(packet, WINDOW_SHIFT) else { return };
        let Some(number) = segment.acknowledged else { return };
        let acknowledged = offset_of(number, self.first, self.una);
        if acknowledged < self.una || acknowledged > self.next {
            return;
        }

        self.peer_window = segment.window;
        self.echo = segment.timestamps.value;

        // SYN and acknowledgment: the third packet of the handshake, and data. The handshake gives
        // the first round-trip time. The peer repeats its SYN if that third packet was lost.
        if segment.syn {
            if self.phase == Phase::SynSent {
                self.phase = Phase::Open;
                self.backoff = 0;
                self.rto_at = None;
                let sent_at = u64::from(segment.timestamps.echo) * 1_000_000;
                self.rtt.add(now - Instant::from_nanos(sent_at), 0, 0);
            }
            self.peer_next = segment.sequence.wrapping_add(1);
            self.write(&self.segment(now, self.next, Vec::new()));
            return self.transmit(now);
        }

        if self.phase != Phase::SynSent {
            self.handle_acknowledgment(acknowledged, &segment, now);
        }
    }

    /// Handles an acknowledgment of everything below `acknowledged`, and of ranges beyond.
    fn handle_acknowledgment(&mut self, acknowledged: u64, segment: &Segment, now: Instant) {
        let advances = acknowledged > self.una;
        let mut delivered = Delivered::default();

        // 1. Cumulative acknowledgment: remove these segments. Those that a selective
        // acknowledgment reported before were counted then.
        while self.segments.front().is_some_and(|sent| sent.end <= acknowledged) {
            let Some(sent) = self.segments.pop_front() else { break };
            if sent.state != State::Received {
                self.note_delivered(&sent, &mut delivered, now);
            }
        }
        self.una = acknowledged;

        // 2. Selective acknowledgment (RFC 2018): mark these segments, and keep them until they are
        // acknowledged in order.
        for (begin, end) in segment.sack.into_iter().flatten() {
            let range = [begin, end].map(|number| offset_of(number, self.first, self.una));
            let mut segments = core::mem::take(&mut self.segments);
            let is_in = |sent: &&mut SentSegment| range[0] <= sent.begin && sent.end <= range[1];
            for sent in segments.iter_mut().filter(is_in) {
                if sent.state != State::Received {
                    self.note_delivered(sent, &mut delivered, now);
                    sent.state = State::Received;
                }
            }
            self.segments = segments;
        }

        // 3. Timers. The oldest delivered segment gives the sample for the retransmission timeout,
        // because it includes the delay of the acknowledgment. Progress ends the backoff.
        if let Some(rtt) = delivered.oldest_rtt {
            self.rtt.add(rtt, self.una, self.next);
        }
        if advances {
            self.backoff = 0;
        }
        if self.probe_end.is_some_and(|probe_end| self.una >= probe_end) {
            self.probe_end = None;
        }

        // 4. Losses. An undo comes first, since it makes segments outstanding that the detection
        // then looks at again.
        if advances {
            self.undo_if_spurious(segment.timestamps.echo);
        }
        let lost = if delivered.packets > 0 { self.detect_losses(now) } else { 0 };

        // 5. The end of recovery. Fast recovery leaves the window wherever PRR had it, so it is set
        // to the threshold (RFC 6937, 3). Losses found just now may begin the next recovery.
        let end = match self.phase {
            Phase::FastRecovery { end, .. } | Phase::Timeout { end } => end,
            _ => u64::MAX,
        };
        if self.una >= end {
            if matches!(self.phase, Phase::FastRecovery { .. }) {
                self.window.packets = self.window.threshold;
            }
            self.phase = Phase::Open;
            self.undo = None;
        }
        self.react_to_losses();

        // 6. The window. PRR sets it during fast recovery. Otherwise it grows, but only if the
        // sender made use of all of it (RFC 7661).
        let ack = Ack {
            delivered: delivered.packets,
            rtt: delivered.newest_rtt,
            una: self.una,
            next: self.next,
        };
        self.window.note_rtt(ack, now);
        if matches!(self.phase, Phase::FastRecovery { .. }) {
            self.reduce_window(delivered.packets, lost, advances);
        } else if self.is_window_limited && advances {
            self.window.grow(ack, now);
        }

        // 7. New data acknowledged restarts the retransmission timer (RFC 6298, 5.2 and 5.3).
        if advances {
            self.rto_at = Some(now + self.timeout()).filter(|_| !self.segments.is_empty());
            self.arm_probe(now);
        }
        self.transmit(now);
    }

    /// Updates round-trip times and the state of RACK with a segment that was delivered.
    fn note_delivered(&mut self, sent: &SentSegment, delivered: &mut Delivered, now: Instant) {
        delivered.packets += 1;
        let rtt = now - sent.sent_at;

        // A segment sent once gives a sample (Karn, RFC 6298, 3). If it arrived after a higher
        // one, the path reorders (RFC 8985, 6.2 step 3).
        if !sent.is_retransmitted {
            self.saw_reordering |= sent.end < self.highest;
            delivered.oldest_rtt.get_or_insert(rtt);
            delivered.newest_rtt = Some(rtt);
        }

        self.highest = self.highest.max(sent.end);

        // If a retransmission is acknowledged faster than any round-trip time, the acknowledgment
        // is for the original (RFC 8985, 6.2 step 2), whose sending time is no longer known.
        let is_ambiguous = sent.is_retransmitted && self.rtt.min.is_some_and(|min| rtt < min);
        if !is_ambiguous && sent.transmission > self.rack {
            self.rack = sent.transmission;
            self.rack_rtt = rtt;
        }
    }

    /// Sends what the congestion window allows: lost segments first, since the receiver can use
    /// nothing behind them, and then new ones.
    fn transmit(&mut self, now: Instant) {
        let mut in_flight = self.in_flight();
        let mut lost = self.segments.iter().position(|sent| sent.state == State::Lost);
        let mut sent_new = false;
        loop {
            self.is_window_limited = in_flight >= self.window.packets;
            if self.is_window_limited {
                break;
            }

            // The search for the next lost segment goes on behind this one: the whole window is
            // walked once.
            if let Some(index) = lost {
                self.retransmit(index, now);
                let mut rest = self.segments.iter().skip(index + 1);
                lost = rest.position(|sent| sent.state == State::Lost).map(|i| index + 1 + i);
            } else if self.new_segment().is_some() {
                self.send_new(now);
                sent_new = true;
            } else {
                break;
            }

            // PRR counts new segments as well as retransmissions.
            if let Phase::FastRecovery { sent, .. } = &mut self.phase {
                *sent += 1;
            }
            in_flight += 1;
        }

        // The timer runs while anything is in flight (RFC 6298, 5.1).
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
        // Full-sized if there is so much data and window left.
        let full = self.behaviour.packet - HEADERS;
        let left = usize::try_from(self.size - self.next).unwrap_or(usize::MAX);
        let limit = self.peer_window.min(self.behaviour.window) as u64;
        let room = (self.una + limit).saturating_sub(self.next) as usize;
        let length = full.min(left).min(room);

        // No small segment while a full one may soon be possible, or the window would fill with
        // small ones (silly window syndrome, RFC 9293, 3.8.6.2.1).
        let is_silly = length < full.min(left) && !self.segments.is_empty();
        (length > 0 && !is_silly).then_some(length)
    }

    /// Sends the next new segment.
    fn send_new(&mut self, now: Instant) {
        let Some(length) = self.new_segment() else { return };
        let begin = self.next;
        let end = self.next + length as u64;

        self.next = end;
        self.transmissions += 1;
        self.segments.push_back(SentSegment {
            begin,
            end,
            sent_at: now,
            transmission: self.transmissions,
            state: State::Outstanding,
            is_retransmitted: false,
        });
        self.write(&self.segment(now, begin, (begin..end).map(content).collect()));
    }

    /// Sends the segment at `index` again.
    fn retransmit(&mut self, index: usize, now: Instant) {
        self.transmissions += 1;
        let sent = &mut self.segments[index];
        sent.transmission = self.transmissions;
        sent.sent_at = now;
        sent.state = State::Outstanding;
        sent.is_retransmitted = true;
        let begin = sent.begin;
        let end = sent.end;

        // The timer is that of the oldest segment, which has just been given another chance.
        if index == 0 {
            self.rto_at = Some(now + self.timeout());
        }

        // An echo of an older timestamp will show that the original had arrived.
        if let Some(undo) = &mut self.undo {
            undo.retransmitted_at.get_or_insert(millis(now));
        }
        self.write(&self.segment(now, begin, (begin..end).map(content).collect()));
    }

    /// Returns the number of segments in flight (pipe, RFC 6675).
    fn in_flight(&self) -> u32 {
        let out = self.segments.iter().filter(|sent| sent.state == State::Outstanding);
        out.count() as u32
    }

    /// Returns the retransmission timeout, doubled for each consecutive timeout (RFC 6298, 5.5).
    fn timeout(&self) -> Duration {
        let base = self.rtt.smoothed.map_or(RTO_INITIAL, |smoothed| smoothed + self.rtt.variation);
        let base = base.max(self.behaviour.min_rto.unwrap_or_default());
        (base * (1 << self.backoff)).min(RTO_MAX)
    }

    /// Returns a segment with `payload`, which begins at `offset`.
    fn segment(&self, now: Instant, offset: u64, payload: Vec<u8>) -> Segment {
        Segment {
            sequence: self.first.wrapping_add(offset as u32),
            acknowledged: Some(self.peer_next),
            window: self.behaviour.window,
            timestamps: Timestamps { value: millis(now), echo: self.echo },
            payload,
            ..Segment::default()
        }
    }

    /// Queues a segment as a packet to the peer.
    fn write(&mut self, segment: &Segment) {
        let [own, peer] = self.ends;
        self.outgoing.push_back(segment.write(own, peer, self.behaviour.packet));
    }
}

/// Segments that one acknowledgment reported as delivered.
#[derive(Default)]
struct Delivered {
    packets: u32,
    /// Round-trip times of the first and the last of them that were not retransmitted.
    oldest_rtt: Option<Duration>,
    newest_rtt: Option<Duration>,
}
