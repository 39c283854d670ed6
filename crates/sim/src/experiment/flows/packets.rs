//! UDP packets of a flow, evenly spaced or as fast as the gateway takes them.

use super::{FlowMeter, RunError, TrafficSource};
use crate::outcome::FlowOutcome;
use crate::simulation::{IpArrival, Simulation};
use ncmesh_engine::time::{Duration, Instant};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IPV4_HEADER_LEN, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, UDP_HEADER_LEN, UdpPacket,
};

/// Headers of IP and UDP, bytes.
const HEADERS: usize = IPV4_HEADER_LEN + UDP_HEADER_LEN;
/// Shortest packet, bytes. The headers are followed by the numbers of flow and packet.
pub(super) const SHORTEST: usize = HEADERS + 12;
/// UDP port of both ends.
const PORT: u16 = 5201;

/// Source and sink of a flow's packets.
pub(super) struct Packets {
    number: u32,
    length: usize,
    /// A packet of the flow, with which the gateway is asked how many like it wait.
    sample: Vec<u8>,
    /// When the next packet is sent, if the flow has a rate.
    next: Instant,
    /// When each packet was sent, by number.
    sent_at: Vec<Instant>,
    /// Whether each packet arrived, by number.
    arrived: Vec<bool>,
    /// Packets that arrived after one with a higher number.
    disordered: u64,
    /// Packets that arrived with wrong bytes, or twice.
    corrupt: u64,
    /// Highest number of a packet that arrived.
    latest: usize,
    /// Sum of the delays of packets that arrived during the measurement.
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

    // Two numbers, and bytes that follow from the second one. So a packet that arrives can be
    // checked without keeping what was sent.
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
    pub(super) fn new(number: u32, meter: &FlowMeter) -> Self {
        Self {
            number,
            length: meter.outcome.packet_bytes,
            sample: packet(number, meter.addresses, 0, SHORTEST),
            next: meter.begins,
            sent_at: Vec::new(),
            arrived: Vec::new(),
            disordered: 0,
            corrupt: 0,
            latest: 0,
            delays: Duration::ZERO,
        }
    }

    /// Sends the next packet.
    fn send(&mut self, meter: &mut FlowMeter, sim: &mut Simulation) -> Result<(), RunError> {
        let number = self.sent_at.len() as u64;
        let bytes = packet(self.number, meter.addresses, number, self.length);
        self.sent_at.push(sim.now());
        self.arrived.push(false);
        meter.send(sim, meter.flow.from, bytes)
    }

    /// Returns how many packets of the flow wait in the gateway of its source.
    fn waiting(&self, meter: &FlowMeter, sim: &Simulation) -> usize {
        sim.gateway_waiting(meter.flow.from, &self.sample)
    }

    /// Returns whether a packet that arrived belongs to this flow.
    fn is_own(&self, meter: &FlowMeter, arrival: &IpArrival) -> bool {
        let payload = arrival.packet.get(HEADERS..).unwrap_or_default();
        let number = payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let to = arrival.packet.get(16..20);
        number == Some(self.number)
            && arrival.to == meter.flow.to
            && to == Some(&meter.addresses[1].octets()[..])
    }
}

impl TrafficSource for Packets {
    fn due(&mut self, meter: &FlowMeter, _: Instant) -> Option<Instant> {
        meter.flow.rate_bps.map(|_| self.next)
    }

    fn may_act(&self, meter: &FlowMeter, sim: &Simulation, last: Instant) -> bool {
        let is_greedy = meter.flow.rate_bps.is_none();
        is_greedy && sim.now() > last && self.waiting(meter, sim) == 0
    }

    fn act(&mut self, meter: &mut FlowMeter, sim: &mut Simulation) -> Result<(), RunError> {
        let now = sim.now();
        if !meter.is_open(now) {
            return Ok(());
        }
        match meter.flow.rate_bps {
            // As fast as the tunnel takes packets: keep exactly one waiting, so that the gateway
            // always has a packet and its queue never overflows. Without a path to the destination
            // the gateway drops the packet instead. Then stop, or the loop would never end.
            None => {
                let mut drops = false;
                while !drops && self.waiting(meter, sim) == 0 {
                    let taken = meter.taken(sim);
                    self.send(meter, sim)?;
                    drops = self.waiting(meter, sim) == 0 && meter.taken(sim) == taken;
                }
            }
            // Evenly spaced. A pause of the loop is made up for, so that the rate is kept.
            Some(rate_bps) => {
                let nanoseconds = (self.length as f64 * 8e9 / rate_bps as f64).max(1.0) as u64;
                while self.next <= now {
                    self.send(meter, sim)?;
                    self.next = self.next + Duration::from_nanos(nanoseconds);
                }
            }
        }

        Ok(())
    }

    fn receive(&mut self, meter: &mut FlowMeter, arrival: &IpArrival) {
        if !self.is_own(meter, arrival) {
            return;
        }

        // Compare the packet with the one that was sent under its number. A second copy is an error
        // as well: tunnels must deliver a packet once.
        let number = arrival.packet.get(HEADERS + 4..HEADERS + 12);
        let number = number.and_then(|bytes| bytes.try_into().ok());
        let number = number.map_or(u64::MAX, u64::from_be_bytes);
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let mut sent = packet(self.number, meter.addresses, number, self.length);
        meter.mark(&mut sent);
        let is_whole = self.arrived.get(index) == Some(&false) && arrival.packet == sent;
        if !is_whole {
            self.corrupt += 1;
            return;
        }

        self.arrived[index] = true;
        meter.delivered += 1;
        if meter.counts(arrival.at) {
            meter.outcome.delivered += 1;
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
