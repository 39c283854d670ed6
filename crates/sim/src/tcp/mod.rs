//! Real TCP on the virtual clock: a client that sends and a server that checks what it gets, both smoltcp's.
//! Whoever holds the connection carries their packets.

mod device;
mod host;
mod segments;

#[cfg(test)]
mod tests;

use host::Host;
use ncmesh_engine::time::Instant;
use segments::Segments;
use serde::{Deserialize, Serialize};
use smoltcp::wire::{IPV4_HEADER_LEN, Ipv4Address, Ipv4Packet, TCP_HEADER_LEN};
use std::collections::VecDeque;

pub(crate) use host::Behaviour;

/// Bytes of a packet that are IP's and TCP's.
pub(crate) const HEADERS: usize = IPV4_HEADER_LEN + TCP_HEADER_LEN;

/// How a sender answers losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// RFC 5681.
    Reno,
    /// RFC 8312.
    #[default]
    Cubic,
    /// Not at all: as much as the receiver's window allows.
    None,
}

/// The two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Which sends.
    Client,
    /// Which receives.
    Server,
}

/// What came of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TcpOutcome {
    /// Congestion control.
    pub congestion: Congestion,
    /// Payload of a full segment, bytes.
    pub segment_bytes: usize,
    /// Payload that arrived in order, bytes.
    pub bytes: u64,
    /// Segments with data that the source sent, repeated ones included.
    pub segments: u64,
    /// Of those, the ones that repeated bytes sent before.
    pub retransmissions: u64,
    /// Segments with data that arrived.
    pub arrived: u64,
    /// Share of the data segments that did not arrive.
    pub loss: Option<f64>,
    /// Mean round-trip time, of segments sent once with none repeated meanwhile (Karn), s.
    pub rtt_s: Option<f64>,
    /// The shortest of these, s.
    pub min_rtt_s: Option<f64>,
    /// Of a transfer of given size, when all of it had arrived, s since its start.
    pub finished_s: Option<f64>,
}

/// A connection that sends so many bytes, or as many as it can, from client to server.
pub(crate) struct Connection {
    client: Host,
    server: Host,
    addresses: [Ipv4Address; 2],
    behaviour: Behaviour,
    /// Bytes to be sent in all.
    size: Option<u64>,
    opened: bool,
    /// Bytes handed to the client's stack.
    written: u64,
    /// Bytes that arrived in order.
    read: u64,
    /// Bytes that arrived, but other ones than were sent.
    pub wrong: u64,
    counted_from: u64,
    segments: Segments,
    finished: Option<Instant>,
}

/// Byte `i` of what a client sends.
fn content(i: u64) -> u8 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Connection {
    /// Connection `number` of a run; numbers tell their packets apart.
    pub(crate) fn new(number: u32, behaviour: Behaviour, size: Option<u64>, now: Instant) -> Self {
        let [_, a, b, c] = (2 * (number + 1)).to_be_bytes();
        let addresses = [Ipv4Address::new(10, a, b, c), Ipv4Address::new(10, a, b, c + 1)];
        let far = Behaviour { seed: !behaviour.seed, ..behaviour };
        Self {
            client: Host::new(addresses[0], &behaviour, now),
            server: Host::new(addresses[1], &far, now),
            addresses,
            behaviour,
            size,
            opened: false,
            written: 0,
            read: 0,
            wrong: 0,
            counted_from: 0,
            segments: Segments::default(),
            finished: None,
        }
    }

    /// To which end of it a packet goes, if it is one of its.
    pub(crate) fn end_of(&self, packet: &[u8]) -> Option<End> {
        let to = Ipv4Packet::new_checked(packet).ok()?.dst_addr();
        let end = [End::Client, End::Server].into_iter().zip(self.addresses);
        end.filter(|(_, address)| *address == to).map(|(end, _)| end).next()
    }

    /// A packet arrived at one end.
    pub(crate) fn receive(&mut self, end: End, packet: Vec<u8>, now: Instant) {
        match end {
            End::Client => self.segments.note_back(&packet, now),
            End::Server => self.segments.note_arrived(&packet),
        }
        self.host(end).card.received.push_back(packet);
        self.poll(now);
    }

    /// Lets both ends do what is due.
    pub(crate) fn poll(&mut self, now: Instant) {
        if !self.opened {
            self.opened = true;
            self.server.listen();
            self.client.connect(self.addresses[1]);
        }
        // What an end writes or reads lets it send more.
        for _ in 0..2 {
            self.write();
            self.client.poll(now);
            self.server.poll(now);
            self.read(now);
        }
    }

    /// Packets that an end would send, the oldest first.
    pub(crate) fn outgoing(&mut self, end: End) -> &mut VecDeque<Vec<u8>> {
        &mut self.host(end).card.sent
    }

    /// Whether there are any.
    pub(crate) fn has_outgoing(&self, end: End) -> bool {
        let host = match end {
            End::Client => &self.client,
            End::Server => &self.server,
        };
        !host.card.sent.is_empty()
    }

    /// A packet of an end was sent.
    pub(crate) fn note_sent(&mut self, end: End, packet: &[u8], now: Instant) {
        if end == End::Client {
            self.segments.note_sent(packet, now);
        }
    }

    /// When an end next has something to do on its own account.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Instant> {
        let times = [self.client.due(now), self.server.due(now)];
        times.into_iter().flatten().min()
    }

    /// Whether all of a transfer of given size arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Counts from here on.
    pub(crate) fn begin_counting(&mut self) {
        self.segments.begin();
        self.counted_from = self.read;
    }

    /// What came of it since counting began; it started at `start`.
    pub(crate) fn outcome(&self, start: Instant) -> TcpOutcome {
        let Segments { sent, repeated, arrived, round_trips: (sum, trips), .. } = self.segments;
        let mean = |of: f64, n: f64| (n > 0.0).then(|| of / n);
        TcpOutcome {
            congestion: self.behaviour.congestion,
            segment_bytes: self.behaviour.packet - HEADERS,
            bytes: self.read - self.counted_from,
            segments: sent,
            retransmissions: repeated,
            arrived,
            loss: mean(sent.saturating_sub(arrived) as f64, sent as f64),
            rtt_s: mean(sum.as_secs_f64(), f64::from(trips)),
            min_rtt_s: self.segments.shortest.map(|trip| trip.as_secs_f64()),
            finished_s: self.finished.map(|at| (at - start).as_secs_f64()),
        }
    }

    fn host(&mut self, end: End) -> &mut Host {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

    fn write(&mut self) {
        let (mut written, size) = (self.written, self.size.unwrap_or(u64::MAX));
        let socket = self.client.socket();
        while socket.can_send() && written < size {
            let put = |room: &mut [u8]| {
                let n = room.len().min(usize::try_from(size - written).unwrap_or(usize::MAX));
                (written..).zip(&mut room[..n]).for_each(|(i, byte)| *byte = content(i));
                (n, n as u64)
            };
            // `can_send` says that it can.
            let Ok(n) = socket.send(put) else { break };
            written += n;
        }
        self.written = written;
    }

    fn read(&mut self, now: Instant) {
        let (mut read, mut wrong) = (self.read, 0);
        let socket = self.server.socket();
        while socket.can_recv() {
            let check = |bytes: &mut [u8]| {
                let differs = |(i, byte): &(u64, &mut u8)| **byte != content(*i);
                wrong += (read..).zip(bytes.iter_mut()).filter(differs).count() as u64;
                (bytes.len(), bytes.len() as u64)
            };
            // `can_recv` says that it can.
            let Ok(n) = socket.recv(check) else { break };
            read += n;
        }
        self.read = read;
        self.wrong += wrong;
        if self.size.is_some_and(|size| read >= size) {
            self.finished.get_or_insert(now);
        }
    }
}
