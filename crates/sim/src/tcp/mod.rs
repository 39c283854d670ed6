//! TCP between simulated hosts, on the virtual clock, as Linux has it.
//!
//! A [`Connection`] is a client that sends and a server that checks what it gets. Their packets are
//! real ones (IPv4, timestamps, SACK), which whoever holds the connection carries. The lab runs the
//! same flows with the kernel's TCP. For both to agree, what decides throughput over a slow and
//! lossy path is done here as the kernel does it: loss detection and recovery ([`sender`]),
//! congestion control ([`congestion`]), delayed acknowledgments ([`receiver`]).

mod congestion;
mod observer;
mod receiver;
mod round_trips;
mod segment;
mod sender;

#[cfg(test)]
mod interop_tests;
#[cfg(test)]
mod tests;

use crate::outcome::TcpOutcome;
use ncmesh_engine::time::{Duration, Instant};
use observer::Observer;
use receiver::Receiver;
use sender::Sender;
use smoltcp::wire::{Ipv4Address, Ipv4Packet};
use std::collections::VecDeque;

pub(crate) use congestion::Congestion;
pub(crate) use segment::HEADERS;

/// Port of all servers.
const SERVER_PORT: u16 = 5201;
/// Port of all clients.
const CLIENT_PORT: u16 = 40_000;

/// Settings of both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    pub congestion: Congestion,
    /// Send and receive buffer each, bytes.
    pub window: usize,
    /// Delay of an acknowledgment that waits for a second segment; zero: each is acknowledged.
    pub ack_delay: Option<Duration>,
    /// Longest IP packet, bytes.
    pub packet: usize,
    /// Seed of initial sequence numbers.
    pub seed: u64,
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Which sends.
    Client,
    /// Which receives.
    Server,
}

/// A connection that sends `size` bytes, or as many as it can, from client to server.
pub(crate) struct Connection {
    client: Sender,
    server: Receiver,
    addresses: [Ipv4Address; 2],
    behaviour: Behaviour,
    size: Option<u64>,
    is_open: bool,
    /// Bytes that had arrived when counting began.
    counted_from: u64,
    observer: Observer,
    finished: Option<Instant>,
}

/// Byte `i` of what a client sends.
fn content(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Connection {
    /// Returns a connection between the hosts of two addresses, the client's first.
    pub(crate) fn new(
        addresses: [Ipv4Address; 2],
        behaviour: Behaviour,
        size: Option<u64>,
    ) -> Self {
        let [client, server] = [(addresses[0], CLIENT_PORT), (addresses[1], SERVER_PORT)];
        Self {
            client: Sender::new([client, server], behaviour, size),
            server: Receiver::new([server, client], behaviour),
            addresses,
            behaviour,
            size,
            is_open: false,
            counted_from: 0,
            observer: Observer::default(),
            finished: None,
        }
    }

    /// Returns the end that a packet goes to, if it is one of this connection.
    pub(crate) fn end_of(&self, packet: &[u8]) -> Option<End> {
        let to = Ipv4Packet::new_checked(packet).ok()?.dst_addr();
        let end = [End::Client, End::Server].into_iter().zip(self.addresses);
        end.filter(|(_, address)| *address == to).map(|(end, _)| end).next()
    }

    /// Takes a packet that arrived at one end.
    pub(crate) fn receive(&mut self, end: End, packet: &[u8], now: Instant) {
        match end {
            End::Client => {
                self.observer.note_back(packet, now);
                self.client.handle_packet(packet, now);
            }
            End::Server => {
                self.observer.note_arrived(packet);
                self.server.handle_packet(packet, now);
                if self.size.is_some_and(|size| self.server.received >= size) {
                    self.finished.get_or_insert(now);
                }
            }
        }
    }

    /// Opens the connection at the first call. Lets both ends do what is due.
    pub(crate) fn poll(&mut self, now: Instant) {
        if !self.is_open {
            self.is_open = true;
            self.client.open(now);
        }
        self.client.handle_timeout(now);
        self.server.handle_timeout(now);
    }

    /// Returns the packets that an end sends, the oldest first.
    pub(crate) fn outgoing(&mut self, end: End) -> &mut VecDeque<Vec<u8>> {
        match end {
            End::Client => &mut self.client.sent,
            End::Server => &mut self.server.sent,
        }
    }

    /// Notes that a packet of an end was sent.
    pub(crate) fn note_sent(&mut self, end: End, packet: &[u8], now: Instant) {
        if end == End::Client {
            self.observer.note_sent(packet, now);
        }
    }

    /// When an end next has something to do on its own account.
    pub(crate) fn due(&self) -> Option<Instant> {
        [self.client.due(), self.server.due()].into_iter().flatten().min()
    }

    /// Returns whether all of a transfer of given size arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Returns the number of bytes that arrived, but other ones than were sent.
    pub(crate) fn wrong(&self) -> u64 {
        self.server.wrong
    }

    /// Counts from here on.
    pub(crate) fn begin_counting(&mut self) {
        self.observer.begin();
        self.counted_from = self.server.received;
    }

    /// Returns what came of it since counting began; it started at `start`.
    pub(crate) fn outcome(&self, start: Instant) -> TcpOutcome {
        let Observer { sent, repeated, arrived, round_trips: (sum, trips), .. } = self.observer;
        let mean = |of: f64, n: f64| (n > 0.0).then(|| of / n);
        TcpOutcome {
            congestion: Some(self.behaviour.congestion.name().to_owned()),
            segment_bytes: self.behaviour.packet - HEADERS,
            bytes: self.server.received - self.counted_from,
            segments: sent,
            retransmissions: repeated,
            arrived,
            loss: mean(sent.saturating_sub(arrived) as f64, sent as f64),
            rtt_s: mean(sum.as_secs_f64(), f64::from(trips)),
            min_rtt_s: self.observer.shortest.map(|trip| trip.as_secs_f64()),
            finished_s: self.finished.map(|at| (at - start).as_secs_f64()),
        }
    }
}
