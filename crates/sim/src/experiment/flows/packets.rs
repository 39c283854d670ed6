//! UDP packets of a flow, evenly spaced or as fast as the gateway takes them.

use super::{RunError, Traffic, Watch};
use crate::outcome::FlowOutcome;
use crate::simulation::{IpArrival, Simulation};
use ncmesh_engine::time::{Duration, Instant};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IPV4_HEADER_LEN, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, UDP_HEADER_LEN, UdpPacket,
};

/// Headers of IP and UDP, bytes.
const HEADERS: usize = IPV4_HEADER_LEN + UDP_HEADER_LEN;
/// Shortest packet, bytes: behind the headers are the numbers of the flow and of the packet.
pub(super) const SHORTEST: usize = HEADERS + 12;
/// UDP port of both ends.
const PORT: u16 = 5201;

/// Source and sink of a flow's packets.
pub(super) struct Packets {
    number: u32,
    length: usize,
    /// A packet of the flow, to ask the gateway about those that wait.
    sample: Vec<u8>,
    /// When the next packet is sent, if they are evenly spaced.
    next: Instant,
    /// When each packet was sent.
    sent_at: Vec<Instant>,
    arrived: Vec<bool>,
    /// Packets that arrived after a later one.
    disordered: u64,
    /// Packets that arrived with wrong bytes, or twice.
    corrupt: u64,
    /// Highest number of a packet that arrived.
    latest: usize,
    delays: Duration,
}

/// Returns packet `number` of a flow, `length` bytes long with its headers.
fn packet(flow: u32, [from, to]: [Ipv4Address; 2], number: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut ip = Ipv4Packet::new_unchecked(&mut bytes);
    let header = Ipv4Repr {
        src_addr: from,
        dst_addr: to,
        next_header: IpProtocol::Udp,
        payload_len: length - IPV4_HEADER_LEN,
        hop_limit: 64,
    };
    header.emit(&mut ip, &ChecksumCapabilities::default());

    // Without a checksum (RFC 768): the payload is compared byte for byte.
    let mut udp = UdpPacket::new_unchecked(ip.payload_mut());
    udp.set_src_port(PORT);
    udp.set_dst_port(PORT);
    udp.set_len((length - IPV4_HEADER_LEN) as u16);
    let payload = udp.payload_mut();
    payload[..4].copy_from_slice(&flow.to_be_bytes());
    payload[4..12].copy_from_slice(&number.to_be_bytes());
    let salt = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for (i, byte) in payload.iter_mut().enumerate().skip(12) {
        *byte = (salt.rotate_left(i as u32 % 64) >> 7) as u8 ^ i as u8;
    }
    bytes
}

impl Packets {
    pub(super) fn new(number: u32, watch: &Watch) -> Self {
        Self {
            number,
            length: watch.outcome.packet_bytes,
            sample: packet(number, watch.addresses, 0, SHORTEST),
            next: watch.begins,
            sent_at: Vec::new(),
            arrived: Vec::new(),
            disordered: 0,
            corrupt: 0,
            latest: 0,
            delays: Duration::ZERO,
        }
    }

    fn send(&mut self, watch: &mut Watch, s: &mut Simulation) -> Result<(), RunError> {
        let number = self.sent_at.len() as u64;
        let bytes = packet(self.number, watch.addresses, number, self.length);
        self.sent_at.push(s.now());
        self.arrived.push(false);
        watch.send(s, watch.flow.from, bytes)
    }

    /// Returns how many packets of the flow wait in the gateway of its source.
    fn waiting(&self, watch: &Watch, s: &Simulation) -> usize {
        s.gateway_waiting(watch.flow.from, &self.sample)
    }

    fn is_own(&self, watch: &Watch, arrival: &IpArrival) -> bool {
        let payload = arrival.packet.get(HEADERS..).unwrap_or_default();
        let number = payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let to = arrival.packet.get(16..20);
        number == Some(self.number)
            && arrival.to == watch.flow.to
            && to == Some(&watch.addresses[1].octets()[..])
    }
}

impl Traffic for Packets {
    fn due(&mut self, watch: &Watch, _: Instant) -> Option<Instant> {
        watch.flow.rate_bps.map(|_| self.next)
    }

    fn may_act(&self, watch: &Watch, s: &Simulation, last: Instant) -> bool {
        let is_greedy = watch.flow.rate_bps.is_none();
        is_greedy && s.now() > last && self.waiting(watch, s) == 0
    }

    fn act(&mut self, watch: &mut Watch, s: &mut Simulation) -> Result<(), RunError> {
        let now = s.now();
        if !watch.is_open(now) {
            return Ok(());
        }
        match watch.flow.rate_bps {
            // One packet always waits: the gateway is never without, and has none to drop. It drops
            // packets only where no path leads to the destination; then the next event is awaited.
            None => {
                let mut drops = false;
                while !drops && self.waiting(watch, s) == 0 {
                    let taken = watch.taken(s);
                    self.send(watch, s)?;
                    drops = self.waiting(watch, s) == 0 && watch.taken(s) == taken;
                }
            }
            Some(rate_bps) => {
                let nanoseconds = (self.length as f64 * 8e9 / rate_bps as f64).max(1.0) as u64;
                while self.next <= now {
                    self.send(watch, s)?;
                    self.next = self.next + Duration::from_nanos(nanoseconds);
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, watch: &mut Watch, arrival: &IpArrival) {
        if !self.is_own(watch, arrival) {
            return;
        }
        let number = arrival.packet.get(HEADERS + 4..HEADERS + 12);
        let number = number.and_then(|bytes| bytes.try_into().ok());
        let number = number.map_or(u64::MAX, u64::from_be_bytes);
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let is_whole = self.arrived.get(index) == Some(&false)
            && arrival.packet == packet(self.number, watch.addresses, number, self.length);
        if !is_whole {
            self.corrupt += 1;
            return;
        }
        self.arrived[index] = true;
        watch.delivered += 1;
        if watch.counts(arrival.at) {
            watch.outcome.delivered += 1;
            self.disordered += u64::from(index < self.latest);
            self.delays += arrival.at - self.sent_at[index];
        }
        self.latest = self.latest.max(index);
    }

    fn conclude(&self, outcome: &mut FlowOutcome, _: Instant) {
        outcome.disordered = Some(self.disordered);
        outcome.corrupt = Some(self.corrupt);
        let delivered = outcome.delivered;
        if outcome.seconds > 0.0 {
            outcome.throughput_bps = (delivered * self.length as u64 * 8) as f64 / outcome.seconds;
        }
        if delivered > 0 {
            outcome.mean_delay_s = Some(self.delays.as_secs_f64() / delivered as f64);
        }
    }
}
