//! Builders of packets for tests.

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Packet, Ipv6Repr, TcpPacket, TcpSeqNumber,
};

/// Builds an IPv4 packet of UDP with `len` bytes behind the IP header.
pub(super) fn udp_v4(source: &str, destination: &str, len: usize) -> Vec<u8> {
    v4(source, destination, IpProtocol::Udp, &vec![7; len])
}

/// Builds an IPv6 packet of UDP with `len` bytes behind the IP header.
pub(super) fn udp_v6(source: &str, destination: &str, len: usize) -> Vec<u8> {
    v6(source, destination, IpProtocol::Udp, &vec![7; len])
}

pub(super) fn v4(source: &str, destination: &str, next: IpProtocol, payload: &[u8]) -> Vec<u8> {
    let repr = Ipv4Repr {
        src_addr: source.parse().unwrap(),
        dst_addr: destination.parse().unwrap(),
        next_header: next,
        payload_len: payload.len(),
        hop_limit: 64,
    };

    let mut bytes = vec![0; repr.buffer_len() + payload.len()];
    let mut ip = Ipv4Packet::new_unchecked(&mut bytes);
    repr.emit(&mut ip, &ChecksumCapabilities::default());
    ip.payload_mut().copy_from_slice(payload);
    bytes
}

pub(super) fn v6(source: &str, destination: &str, next: IpProtocol, payload: &[u8]) -> Vec<u8> {
    let repr = Ipv6Repr {
        src_addr: source.parse().unwrap(),
        dst_addr: destination.parse().unwrap(),
        next_header: next,
        payload_len: payload.len(),
        hop_limit: 64,
    };

    let mut bytes = vec![0; repr.buffer_len() + payload.len()];
    let mut ip = Ipv6Packet::new_unchecked(&mut bytes);
    repr.emit(&mut ip);
    ip.payload_mut().copy_from_slice(payload);
    bytes
}

/// Builds a TCP segment between two hosts. `options` must be a whole number of words.
pub(super) fn segment(is_v6: bool, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let mut bytes = vec![0; header + payload.len()];
    bytes[20..header].copy_from_slice(options);
    bytes[header..].copy_from_slice(payload);

    let mut tcp = TcpPacket::new_unchecked(&mut bytes);
    tcp.set_header_len(header as u8);
    tcp.set_src_port(4000);
    tcp.set_dst_port(80);
    tcp.set_seq_number(TcpSeqNumber(7));
    tcp.set_syn(flags & 2 != 0);
    tcp.set_ack(flags & 16 != 0);

    // The checksum covers the addresses, so it is filled in with those of the packet around.
    if is_v6 {
        let source = "fd00::1";
        let destination = "fd00::2";
        let (from, to): (std::net::Ipv6Addr, std::net::Ipv6Addr) =
            (source.parse().unwrap(), destination.parse().unwrap());
        tcp.fill_checksum(&from.into(), &to.into());
        return v6(source, destination, IpProtocol::Tcp, &bytes);
    }

    let source = "10.0.0.1";
    let destination = "10.0.0.2";
    let (from, to): (std::net::Ipv4Addr, std::net::Ipv4Addr) =
        (source.parse().unwrap(), destination.parse().unwrap());
    tcp.fill_checksum(&from.into(), &to.into());
    v4(source, destination, IpProtocol::Tcp, &bytes)
}

/// Returns whether a packet's checksums are right.
pub(super) fn has_valid_checksums(packet: &[u8]) -> bool {
    if packet[0] >> 4 == 6 {
        let ip = Ipv6Packet::new_checked(packet).unwrap();
        let tcp = TcpPacket::new_checked(ip.payload()).unwrap();
        return tcp.verify_checksum(&ip.src_addr().into(), &ip.dst_addr().into());
    }

    let ip = Ipv4Packet::new_checked(packet).unwrap();
    let tcp = TcpPacket::new_checked(ip.payload()).unwrap();
    ip.verify_checksum() && tcp.verify_checksum(&ip.src_addr().into(), &ip.dst_addr().into())
}

/// Returns the TCP options of a packet.
pub(super) fn options_of(packet: &[u8]) -> Vec<u8> {
    let header = if packet[0] >> 4 == 6 { 40 } else { 20 };
    TcpPacket::new_checked(&packet[header..]).unwrap().options().to_vec()
}
