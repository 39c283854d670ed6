//! Statistics of a connection as an observer beside the sender sees it: segments, retransmissions,
//! round-trip times.

use ncmesh_engine::time::{Duration, Instant};
use smoltcp::wire::{Ipv4Packet, TcpPacket};
use std::collections::VecDeque;

/// Numbers of a segment.
struct Numbers {
    /// Number of its first byte, modulo 2^32.
    sequence: u32,
    acknowledged: u32,
    payload: usize,
}

impl Numbers {
    fn of(packet: &[u8]) -> Option<Self> {
        let ip = Ipv4Packet::new_checked(packet).ok()?;
        let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
        Some(Self {
            sequence: tcp.seq_number().0 as u32,
            acknowledged: tcp.ack_number().0 as u32,
            payload: tcp.payload().len(),
        })
    }

    /// Returns the number behind its last byte.
    fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.payload as u32)
    }
}

/// Returns whether `a` comes before `b`, modulo 2^32.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Statistics of the data segments of one connection.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// Segments with data that were sent.
    pub sent: u64,
    /// Segments among them that began with a byte sent before.
    pub repeated: u64,
    /// Segments with data that arrived.
    pub arrived: u64,
    /// Sum of the round-trip times. Segments in flight during a retransmission do not count (Karn's
    /// algorithm).
    pub rtt_sum: Duration,
    /// Number of these round-trip times.
    pub rtt_samples: u32,
    /// Shortest of these round-trip times.
    pub shortest: Option<Duration>,
    /// Sequence number behind the highest byte sent.
    highest: Option<u32>,
    /// Ends of segments not acknowledged yet, and when they were sent.
    outstanding: VecDeque<(u32, Instant)>,
}

impl Observer {
    /// Records a packet that the sender sent.
    pub(super) fn note_sent(&mut self, packet: &[u8], now: Instant) {
        let Some(segment) = Numbers::of(packet).filter(|segment| segment.payload > 0) else {
            return;
        };
        self.sent += 1;

        // After a retransmission an acknowledgment may be for either transmission, so no segment
        // in flight can give a round-trip time any more.
        if self.highest.is_some_and(|highest| before(segment.sequence, highest)) {
            self.repeated += 1;
            self.outstanding.clear();
        } else {
            self.outstanding.push_back((segment.end(), now));
        }

        if self.highest.is_none_or(|highest| before(highest, segment.end())) {
            self.highest = Some(segment.end());
        }
    }

    /// Records a packet that arrived at the receiver.
    pub(super) fn note_arrived(&mut self, packet: &[u8]) {
        self.arrived += u64::from(Numbers::of(packet).is_some_and(|segment| segment.payload > 0));
    }

    /// Records a packet from the receiver that arrived at the sender.
    pub(super) fn note_back(&mut self, packet: &[u8], now: Instant) {
        // An acknowledgment gives one round-trip time, of the newest segment that it acknowledges:
        // older ones waited for the delayed acknowledgment.
        let Some(segment) = Numbers::of(packet) else { return };
        let mut newest = None;
        while let Some((end, sent)) = self.outstanding.front().copied()
            && !before(segment.acknowledged, end)
        {
            newest = Some(sent);
            self.outstanding.pop_front();
        }

        if let Some(sent) = newest {
            let rtt = now - sent;
            self.rtt_sum += rtt;
            self.rtt_samples += 1;
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        }
    }

    /// Begins counting again from zero.
    pub(super) fn begin(&mut self) {
        // Segments in flight stay, to recognise retransmissions of it.
        let highest = self.highest;
        let outstanding = core::mem::take(&mut self.outstanding);
        *self = Self { highest, outstanding, ..Self::default() };
    }
}
