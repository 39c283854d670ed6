//! ICMP messages about packets that a gateway cannot carry: ICMP (RFC 792, 1122, 1191) and ICMPv6
//! (RFC 4443).

use super::header::version;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    Icmpv4Message, Icmpv4Packet, Icmpv6Message, Icmpv6Packet, IpProtocol, IpVersion, Ipv4Packet,
    Ipv4Repr, Ipv6Packet, Ipv6Repr,
};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a packet is not carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is longer than this MTU, bytes.
    TooBig(u16),
    /// No route leads to its destination.
    NoRoute,
    /// The node that its route leads to cannot be reached.
    NoPath,
}

/// Hop limit of a message.
const HOP_LIMIT: u8 = 64;
/// Longest message in IPv4, bytes (RFC 1812, 4.3.2.3).
const V4_LONGEST: usize = 576;
/// Longest message in IPv6, bytes (RFC 4443, 2.4).
const V6_LONGEST: usize = 1280;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const ICMP_HEADER: usize = 8;

/// Returns the message that tells the sender of `packet` about `problem`, if there should be one.
/// Its source is the packet's destination: the host would refuse a message from an address of its
/// own, and its reverse path filter accepts this one, which is routed through the tunnel.
pub(super) fn message(packet: &[u8], problem: Problem) -> Option<Vec<u8>> {
    match version(packet)? {
        IpVersion::Ipv4 => message_v4(packet, problem),
        IpVersion::Ipv6 => message_v6(packet, problem),
    }
}

fn message_v4(packet: &[u8], problem: Problem) -> Option<Vec<u8>> {
    let ip = Ipv4Packet::new_checked(packet).ok()?;

    // A gateway fragments nothing. The host does, once it knows the length, whether or not others
    // might fragment this packet.
    if ip.frag_offset() != 0 || !is_host_v4(ip.src_addr()) || is_error_v4(&ip) {
        return None;
    }

    let quoted = &packet[..packet.len().min(V4_LONGEST - V4_HEADER - ICMP_HEADER)];
    let (code, mtu) = match problem {
        Problem::TooBig(mtu) => (4, mtu),
        Problem::NoRoute => (0, 0),
        Problem::NoPath => (1, 0),
    };

    // The second half of the header holds the MTU, of a packet that is too long (RFC 1191).
    let mut message = vec![0; ICMP_HEADER + quoted.len()];
    message[6..ICMP_HEADER].copy_from_slice(&mtu.to_be_bytes());
    message[ICMP_HEADER..].copy_from_slice(quoted);
    let mut icmp = Icmpv4Packet::new_unchecked(&mut message);
    icmp.set_msg_type(Icmpv4Message::DstUnreachable);
    icmp.set_msg_code(code);
    icmp.fill_checksum();

    // It goes to the sender of the packet.
    let header = Ipv4Repr {
        src_addr: ip.dst_addr(),
        dst_addr: ip.src_addr(),
        next_header: IpProtocol::Icmp,
        payload_len: message.len(),
        hop_limit: HOP_LIMIT,
    };

    let mut bytes = vec![0; V4_HEADER];
    let mut ip = Ipv4Packet::new_unchecked(&mut bytes);
    header.emit(&mut ip, &ChecksumCapabilities::default());
    bytes.extend(message);
    Some(bytes)
}

fn message_v6(packet: &[u8], problem: Problem) -> Option<Vec<u8>> {
    let ip = Ipv6Packet::new_checked(packet).ok()?;
    // An error about an error could go back and forth for ever (RFC 4443, 2.4).
    if !is_host_v6(ip.src_addr()) || is_error_v6(&ip) {
        return None;
    }

    // The message quotes as much of the packet as fits, so that the sender finds its connection. It
    // comes from the address that the packet was for: a gateway needs no address of its own.
    let quoted = &packet[..packet.len().min(V6_LONGEST - V6_HEADER - ICMP_HEADER)];
    let (kind, code, mtu) = match problem {
        Problem::TooBig(mtu) => (Icmpv6Message::PktTooBig, 0, mtu),
        Problem::NoRoute => (Icmpv6Message::DstUnreachable, 0, 0),
        Problem::NoPath => (Icmpv6Message::DstUnreachable, 3, 0),
    };

    let source = ip.dst_addr();
    let destination = ip.src_addr();
    let mut message = vec![0; ICMP_HEADER + quoted.len()];
    message[ICMP_HEADER..].copy_from_slice(quoted);
    let mut icmp = Icmpv6Packet::new_unchecked(&mut message);
    icmp.set_msg_type(kind);
    icmp.set_msg_code(code);
    icmp.set_pkt_too_big_mtu(mtu.into());
    icmp.fill_checksum(&source, &destination);

    // The checksum covers the addresses, so they are known before it is computed (RFC 4443, 2.3).
    let header = Ipv6Repr {
        src_addr: source,
        dst_addr: destination,
        next_header: IpProtocol::Icmpv6,
        payload_len: message.len(),
        hop_limit: HOP_LIMIT,
    };

    let mut bytes = vec![0; V6_HEADER];
    header.emit(&mut Ipv6Packet::new_unchecked(&mut bytes));
    bytes.extend(message);
    Some(bytes)
}

fn is_host_v4(address: Ipv4Addr) -> bool {
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || address.is_broadcast())
}

fn is_host_v6(address: Ipv6Addr) -> bool {
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast())
}

/// Returns whether a packet is an ICMP error, which must not be answered by another (RFC 1122,
/// 3.2.2). Echo requests and replies are none; an unknown type may be one.
fn is_error_v4(ip: &Ipv4Packet<&[u8]>) -> bool {
    let kind = ip.payload().first().copied();
    ip.next_header() == IpProtocol::Icmp && !matches!(kind, Some(0 | 8))
}

fn is_error_v6(ip: &Ipv6Packet<&[u8]>) -> bool {
    let kind = ip.payload().first().copied();
    ip.next_header() == IpProtocol::Icmpv6 && kind.is_none_or(|kind| kind < 128)
}

#[cfg(test)]
mod tests {
    use super::super::header::Header;
    use super::super::packets::{udp_v4, udp_v6, v4, v6};
    use super::*;
    use proptest::prelude::*;

    fn dont_fragment(mut packet: Vec<u8>) -> Vec<u8> {
        packet[6] |= 0x40;
        packet
    }

    #[test]
    fn the_sender_learns_why_and_of_which_packet() {
        let may_be_cut = udp_v4("10.0.0.1", "10.9.0.2", 1400);
        let packet = dont_fragment(may_be_cut.clone());
        for (packet, problem, code, mtu) in [
            (&packet, Problem::TooBig(1300), 4, 1300),
            (&may_be_cut, Problem::TooBig(1300), 4, 1300),
            (&packet, Problem::NoRoute, 0, 0),
            (&packet, Problem::NoPath, 1, 0),
        ] {
            let bytes = message(packet, problem).unwrap();
            assert_eq!(bytes.len(), 576);
            let ip = Ipv4Packet::new_checked(&bytes[..]).unwrap();
            assert!(ip.verify_checksum());
            assert_eq!(ip.src_addr(), Ipv4Addr::new(10, 9, 0, 2));
            assert_eq!(ip.dst_addr(), Ipv4Addr::new(10, 0, 0, 1));
            let icmp = Icmpv4Packet::new_checked(ip.payload()).unwrap();
            assert!(icmp.verify_checksum());
            assert_eq!((icmp.msg_type(), icmp.msg_code()), (Icmpv4Message::DstUnreachable, code));
            assert_eq!(ip.payload()[4..8], [0, 0, (mtu >> 8) as u8, mtu as u8]);
            assert_eq!(icmp.data(), &packet[..548]);
        }
    }

    #[test]
    fn the_same_in_ipv6() {
        let packet = udp_v6("fd00::1", "fd09::2", 1400);
        for (problem, kind, code, mtu) in [
            (Problem::TooBig(1300), Icmpv6Message::PktTooBig, 0, 1300),
            (Problem::NoRoute, Icmpv6Message::DstUnreachable, 0, 0),
            (Problem::NoPath, Icmpv6Message::DstUnreachable, 3, 0),
        ] {
            let bytes = message(&packet, problem).unwrap();
            assert_eq!(bytes.len(), 1280);
            let ip = Ipv6Packet::new_checked(&bytes[..]).unwrap();
            assert_eq!(ip.src_addr(), "fd09::2".parse::<Ipv6Addr>().unwrap());
            let icmp = Icmpv6Packet::new_checked(ip.payload()).unwrap();
            assert!(icmp.verify_checksum(&ip.src_addr(), &ip.dst_addr()));
            assert_eq!((icmp.msg_type(), icmp.msg_code()), (kind, code));
            assert_eq!(icmp.pkt_too_big_mtu(), mtu);
            assert_eq!(icmp.payload(), &packet[..1232]);
        }
    }

    #[test]
    fn errors_fragments_and_group_addresses_get_no_message() {
        let error = |kind| v4("10.0.0.1", "10.0.0.2", IpProtocol::Icmp, &[kind; 16]);
        let error_v6 = |kind| v6("fd00::1", "fd00::2", IpProtocol::Icmpv6, &[kind; 16]);
        let mut later_fragment = udp_v4("10.0.0.1", "10.0.0.2", 100);
        later_fragment[7] = 9;
        for packet in [
            error(3),
            error(11),
            error_v6(1),
            error_v6(2),
            later_fragment,
            udp_v4("0.0.0.0", "10.0.0.2", 100),
            udp_v4("224.0.0.1", "10.0.0.2", 100),
            udp_v6("::", "fd00::2", 100),
            udp_v6("ff02::1", "fd00::2", 100),
        ] {
            assert_eq!(message(&packet, Problem::NoRoute), None);
        }
        assert!(message(&error(8), Problem::NoRoute).is_some(), "an echo is no error");
        assert!(message(&error_v6(128), Problem::NoRoute).is_some());
    }

    proptest! {
        #[test]
        fn no_packet_panics_and_every_message_is_a_packet(
            mut packet in prop::collection::vec(any::<u8>(), 0..200),
            is_v6: bool,
            mtu: u16,
        ) {
            if let Some(first) = packet.first_mut() {
                *first = if is_v6 { 0x60 } else { 0x45 };
            }
            for problem in [Problem::TooBig(mtu), Problem::NoRoute, Problem::NoPath] {
                if let Some(bytes) = message(&packet, problem) {
                    prop_assert!(Header::read(&bytes).is_ok());
                }
            }
        }
    }
}
