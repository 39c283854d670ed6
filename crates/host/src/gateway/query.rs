//! Questions to a host's kernel for its memberships: general queries of IGMPv3 (RFC 3376, 4.1) and
//! MLDv2 (RFC 3810, 5.1). Answers come within a second.

use smoltcp::wire::{Icmpv6Packet, IpProtocol, Ipv4Packet, Ipv6Packet, Ipv6Repr};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Length of an IPv4 header with the option Router Alert, bytes.
const V4_HEADER: usize = 24;
/// Length of a query of IGMPv3 without sources, bytes.
const IGMP: usize = 12;

/// Returns a query of IGMPv3. It comes from no address, as a query of a switch does (RFC 4541,
/// 2.1.1): one of the host's own would be refused.
pub(super) fn igmp() -> Vec<u8> {
    let mut packet = vec![0; V4_HEADER + IGMP];
    // A header of six words: the last one is the router alert that IGMPv3 demands.
    packet[0] = 0x46;
    packet[V4_HEADER - 4..V4_HEADER].copy_from_slice(&[0x94, 4, 0, 0]);

    // Query, one second to answer; robustness 2, interval as its sender has it (60 s).
    packet[V4_HEADER..].copy_from_slice(&[0x11, 10, 0, 0, 0, 0, 0, 0, 2, 60, 0, 0]);

    // The checksum is that of a message with zeros in its place.
    let sum = checksum(&packet[V4_HEADER..]);
    packet[V4_HEADER + 2..V4_HEADER + 4].copy_from_slice(&sum.to_be_bytes());

    let length = packet.len() as u16;
    let mut ip = Ipv4Packet::new_unchecked(&mut packet);
    ip.set_total_len(length);
    ip.set_hop_limit(1);
    ip.set_next_header(IpProtocol::Igmp);
    ip.set_src_addr(Ipv4Addr::UNSPECIFIED);
    ip.set_dst_addr(Ipv4Addr::new(224, 0, 0, 1));
    ip.fill_checksum();
    packet
}

/// Returns a query of MLDv2, from a router's address of the link.
pub(super) fn mld() -> Vec<u8> {
    const HEADER: usize = 40;
    const HOP_BY_HOP: usize = 8;
    let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

    // Query, one second to answer, of all groups; robustness 2, interval 60 s, no sources.
    let mut message = vec![0; 28];
    message[0] = 130;
    message[4..6].copy_from_slice(&1000_u16.to_be_bytes());
    message[24..26].copy_from_slice(&[2, 60]);
    let mut icmp = Icmpv6Packet::new_unchecked(&mut message);
    icmp.fill_checksum(&source, &all_nodes);

    let repr = Ipv6Repr {
        src_addr: source,
        dst_addr: all_nodes,
        next_header: IpProtocol::HopByHop,
        payload_len: HOP_BY_HOP + message.len(),
        hop_limit: 1,
    };

    let mut packet = vec![0; HEADER];
    repr.emit(&mut Ipv6Packet::new_unchecked(&mut packet));

    // ICMPv6 follows; Router Alert for MLD, and padding.
    packet.extend([IpProtocol::Icmpv6.into(), 0, 5, 2, 0, 0, 1, 0]);
    packet.extend(message);
    packet
}

/// Returns the checksum of the Internet (RFC 1071) over an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded + (folded >> 16)) as u16)
}
