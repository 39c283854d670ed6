//! The fields of an IP packet that a gateway reads.

use smoltcp::wire::{IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet, TcpOption};
use std::iter;
use std::net::IpAddr;

/// Shortest header of IPv4, bytes.
const V4_HEADER: u8 = 20;

/// Returns the version of IP that a packet claims to be of.
pub(super) fn version(packet: &[u8]) -> Option<IpVersion> {
    // `of_packet` panics on an empty one.
    packet.first().and_then(|_| IpVersion::of_packet(packet).ok())
}

/// Not an IP packet, or one whose lengths contradict each other or its own length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Addresses, connection and contents of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: IpProtocol,
    /// Protocol of the payload. `None` in a fragment of IPv4; in one of IPv6 the protocol says
    /// that it is one.
    pub(super) payload: Option<&'a [u8]>,
    /// Hash of addresses, protocol and ports.
    pub(super) connection: u16,
}

impl<'a> Header<'a> {
    /// Reads an IPv4 or IPv6 packet whose length is the one its header states.
    pub(super) fn read(packet: &'a [u8]) -> Result<Self, Malformed> {
        match version(packet).ok_or(Malformed)? {
            IpVersion::Ipv4 => {
                let ip = Ipv4Packet::new_checked(packet).map_err(|_| Malformed)?;
                // A packet with bytes behind its stated end would be counted and coded with them.
                if ip.header_len() < V4_HEADER || usize::from(ip.total_len()) != packet.len() {
                    return Err(Malformed);
                }

                // Only the first fragment has ports. Without them all fragments share a queue and
                // stay in order.
                let is_whole = !ip.more_frags() && ip.frag_offset() == 0;
                let payload = is_whole.then(|| ip.payload());
                Ok(Self::new(ip.src_addr(), ip.dst_addr(), ip.next_header(), payload))
            }
            IpVersion::Ipv6 => {
                let ip = Ipv6Packet::new_checked(packet).map_err(|_| Malformed)?;
                if ip.total_len() != packet.len() {
                    return Err(Malformed);
                }
                // Extension headers, that of fragments too, stand in the payload. Ports are read
                // only where they follow at once.
                let payload = Some(ip.payload());
                Ok(Self::new(ip.src_addr(), ip.dst_addr(), ip.next_header(), payload))
            }
        }
    }

    fn new(
        source: impl Into<IpAddr>,
        destination: impl Into<IpAddr>,
        protocol: IpProtocol,
        payload: Option<&'a [u8]>,
    ) -> Self {
        let ports = payload.and_then(|payload| ports(protocol, payload));
        let source = source.into();
        let destination = destination.into();

        // Packets of one connection share a queue, and so stay in order.
        let mut hash = Fnv::default();
        hash.write_address(source);
        hash.write_address(destination);
        hash.write(&[protocol.into()]);
        hash.write(&ports.unwrap_or_default());
        Self { source, destination, protocol, payload, connection: hash.finish() }
    }
}

/// Returns the options of a TCP segment, each with its offset among all of them, up to the first
/// that is malformed.
pub(super) fn tcp_options(options: &[u8]) -> impl Iterator<Item = (usize, TcpOption<'_>)> {
    let mut rest = options;
    iter::from_fn(move || {
        let at = options.len() - rest.len();
        let (next, option) = TcpOption::parse(rest).ok()?;
        rest = next;
        (option != TcpOption::EndOfList).then_some((at, option))
    })
}

/// Returns source and destination port as they are in the packet.
fn ports(protocol: IpProtocol, payload: &[u8]) -> Option<[u8; 4]> {
    match protocol {
        IpProtocol::Tcp | IpProtocol::Udp => payload.first_chunk().copied(),
        _ => None,
    }
}

/// FNV-1a hash. The standard library's hasher may differ between its versions, and the order in
/// which connections take turns depends on the hash.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(v4) => self.write(&v4.octets()),
            IpAddr::V6(v6) => self.write(&v6.octets()),
        }
    }

    /// Returns the hash folded to 16 bits.
    fn finish(&self) -> u16 {
        (self.0 >> 48 ^ self.0 >> 32 ^ self.0 >> 16 ^ self.0) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::super::packets::{udp_v4, udp_v6};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_packets_tell_their_addresses() {
        for (packet, source, destination) in [
            (udp_v4("10.0.0.1", "10.0.0.2", 9), "10.0.0.1", "10.0.0.2"),
            (udp_v6("fd00::1", "fd00::2", 9), "fd00::1", "fd00::2"),
        ] {
            let header = Header::read(&packet).unwrap();
            assert_eq!(header.source, source.parse::<IpAddr>().unwrap());
            assert_eq!(header.destination, destination.parse::<IpAddr>().unwrap());
            for cut in 0..packet.len() {
                assert_eq!(Header::read(&packet[..cut]), Err(Malformed), "{cut}");
            }
            assert_eq!(Header::read(&[&packet[..], &[0]].concat()), Err(Malformed));
        }
    }

    #[test]
    fn contradictions_are_malformed() {
        let v4 = udp_v4("10.0.0.1", "10.0.0.2", 40);
        for (at, byte) in [(0, 0x40), (0, 0x44), (0, 0x4f), (0, 0x55), (0, 0x05), (3, 0)] {
            let mut packet = v4.clone();
            packet[at] = byte;
            // A header of 60 bytes fits this packet and is no contradiction.
            let is_valid = byte == 0x4f;
            assert_eq!(Header::read(&packet).is_ok(), is_valid, "{at}: {byte:#x}");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(packet in prop::collection::vec(any::<u8>(), 0..100)) {
            if Header::read(&packet).is_ok() {
                prop_assert!(packet.len() >= 20);
            }
        }
    }
}
