//! What an observer at the sender sees of a connection: segments, repetitions, round-trip times.

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
    /// Of those, the ones that began with a byte sent before.
    pub repeated: u64,
    /// Those that arrived.
    pub arrived: u64,
    /// Sum and number of round-trip times, of segments sent once with none repeated meanwhile
    /// (Karn).
    pub round_trips: (Duration, u32),
    /// Shortest of them.
    pub shortest: Option<Duration>,
    /// The number behind the highest byte sent.
    highest: Option<u32>,
    /// Ends of segments not acknowledged yet, and when they were sent.
    outstanding: VecDeque<(u32, Instant)>,
}

impl Observer {
    pub(super) fn note_sent(&mut self, packet: &[u8], now: Instant) {
        let Some(segment) = Numbers::of(packet).filter(|segment| segment.payload > 0) else {
            return;
        };
        self.sent += 1;
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

    pub(super) fn note_arrived(&mut self, packet: &[u8]) {
        self.arrived += u64::from(Numbers::of(packet).is_some_and(|segment| segment.payload > 0));
    }

    /// A packet of the other direction came back to the sender.
    pub(super) fn note_back(&mut self, packet: &[u8], now: Instant) {
        let Some(segment) = Numbers::of(packet) else { return };
        let mut newest = None;
        while let Some((end, sent)) = self.outstanding.front().copied()
            && !before(segment.acknowledged, end)
        {
            newest = Some(sent);
            self.outstanding.pop_front();
        }
        if let Some(sent) = newest {
            let trip = now - sent;
            self.round_trips.0 += trip;
            self.round_trips.1 += 1;
            self.shortest = Some(self.shortest.map_or(trip, |shortest| shortest.min(trip)));
        }
    }

    /// Counts anew from here on.
    pub(super) fn begin(&mut self) {
        let (highest, outstanding) = (self.highest, core::mem::take(&mut self.outstanding));
        *self = Self { highest, outstanding, ..Self::default() };
    }
}
