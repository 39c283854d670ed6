//! TCP between simulated hosts, on the virtual clock, as Linux has it.
//!
//! A [`Connection`] is a client that sends and a server that checks what arrives. Their packets are
//! real ones (IPv4, timestamps, SACK); the owner of the connection carries them. The lab runs the
//! same flows with the kernel's TCP. Both must agree, so everything that decides throughput over a
//! slow and lossy path follows the kernel: loss detection and recovery ([`sender`]), congestion
//! control ([`congestion`]), delayed acknowledgments ([`receiver`]).

mod congestion;
mod observer;
mod receiver;
mod rtt;
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
use segment::Endpoint;
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
    /// Delay of an acknowledgment that waits for a second segment; with zero each segment is
    /// acknowledged.
    pub ack_delay: Option<Duration>,
    /// Least retransmission timeout once there is a round-trip time; Linux's policy if absent.
    pub min_rto: Option<Duration>,
    /// Longest IP packet, bytes.
    pub packet: usize,
    /// Seed of initial sequence numbers.
    pub seed: u64,
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The end that sends.
    Client,
    /// The end that receives.
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
        let client = Endpoint { address: addresses[0], port: CLIENT_PORT };
        let server = Endpoint { address: addresses[1], port: SERVER_PORT };

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

    /// Returns the end that a packet is addressed to; `None` if it belongs to another connection.
    pub(crate) fn end_of(&self, packet: &[u8]) -> Option<End> {
        let to = Ipv4Packet::new_checked(packet).ok()?.dst_addr();
        let end = [End::Client, End::Server].into_iter().zip(self.addresses);
        end.filter(|(_, address)| *address == to).map(|(end, _)| end).next()
    }

    /// Handles a packet that arrived at one end.
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

    /// Opens the connection at the first call, and handles the due timers of both ends.
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
            End::Client => &mut self.client.outgoing,
            End::Server => &mut self.server.outgoing,
        }
    }

    /// Notes that a packet of an end was sent.
    pub(crate) fn note_sent(&mut self, end: End, packet: &[u8], now: Instant) {
        if end == End::Client {
            self.observer.note_sent(packet, now);
        }
    }

    /// Returns when the next timer of an end is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        [self.client.due(), self.server.due()].into_iter().flatten().min()
    }

    /// Returns whether a transfer of a given size has arrived completely.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Returns the number of bytes that arrived and differ from the bytes sent.
    pub(crate) fn wrong(&self) -> u64 {
        self.server.wrong
    }

    /// Begins the measurement: the outcome counts from now on.
    pub(crate) fn begin_counting(&mut self) {
        self.observer.begin();
        self.counted_from = self.server.received;
    }

    /// Returns the result since counting began. The connection started at `start`.
    pub(crate) fn outcome(&self, start: Instant) -> TcpOutcome {
        // Segments and round-trip times come from the packets themselves, not from the sender's
        // state, which a retransmission changes.
        let Observer { sent, repeated, arrived, rtt_sum, rtt_samples, shortest, .. } =
            self.observer;
        let mean = |of: f64, n: f64| (n > 0.0).then(|| of / n);
        TcpOutcome {
            congestion: Some(self.behaviour.congestion.name().to_owned()),
            segment_bytes: self.behaviour.packet - HEADERS,
            bytes: self.server.received - self.counted_from,
            segments: sent,
            retransmissions: repeated,
            arrived,
            loss: mean(sent.saturating_sub(arrived) as f64, sent as f64),
            rtt_s: mean(rtt_sum.as_secs_f64(), f64::from(rtt_samples)),
            min_rtt_s: shortest.map(|rtt| rtt.as_secs_f64()),
            finished_s: self.finished.map(|at| (at - start).as_secs_f64()),
        }
    }
}
