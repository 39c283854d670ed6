//! MSS clamping: lowers the segment size that TCP connections agree on to what fits the tunnel.
//!
//! Path MTU discovery would find the same size, but only after a lost packet, and not at all behind
//! a firewall that drops ICMP.

use super::header::{tcp_options, version};
use smoltcp::wire::{
    IpAddress, IpProtocol, IpVersion, Ipv4Packet, Ipv6Packet, TcpOption, TcpPacket,
};

/// Headers of IPv4 and TCP without options, bytes. A maximum segment size leaves them out
/// (RFC 9293, 3.7.1).
const V4_HEADERS: usize = 40;
/// The same of IPv6.
const V6_HEADERS: usize = 60;

/// Lowers the maximum segment size that a SYN offers to what packets of `mtu` bytes hold. Returns
/// whether it changed the packet. Leaves all other packets alone, and a SYN with a wrong checksum.
pub(super) fn clamp(packet: &mut [u8], mtu: usize) -> bool {
    let clamped = match version(packet) {
        Some(IpVersion::Ipv4) => clamp_v4(packet, mtu),
        Some(IpVersion::Ipv6) => clamp_v6(packet, mtu),
        None => None,
    };
    clamped.is_some()
}

/// Returns `None` if nothing was changed, as the functions below do.
fn clamp_v4(packet: &mut [u8], mtu: usize) -> Option<()> {
    let mut ip = Ipv4Packet::new_checked(packet).ok()?;
    let whole = ip.frag_offset() == 0 && !ip.more_frags();
    if !whole || ip.next_header() != IpProtocol::Tcp {
        return None;
    }
    let source = ip.src_addr().into();
    let destination = ip.dst_addr().into();
    clamp_segment(ip.payload_mut(), source, destination, mtu.saturating_sub(V4_HEADERS))
}

fn clamp_v6(packet: &mut [u8], mtu: usize) -> Option<()> {
    let mut ip = Ipv6Packet::new_checked(packet).ok()?;
    if ip.next_header() != IpProtocol::Tcp {
        return None;
    }
    let source = ip.src_addr().into();
    let destination = ip.dst_addr().into();
    clamp_segment(ip.payload_mut(), source, destination, mtu.saturating_sub(V6_HEADERS))
}

fn clamp_segment(
    segment: &mut [u8],
    source: IpAddress,
    destination: IpAddress,
    most: usize,
) -> Option<()> {
    let most = u16::try_from(most).unwrap_or(u16::MAX);
    let mut tcp = TcpPacket::new_checked(segment).ok()?;

    // With a wrong checksum the host would drop the segment. A new checksum would hide the damage.
    if !tcp.syn() || !tcp.verify_checksum(&source, &destination) {
        return None;
    }

    let (at, offered) = find_mss(tcp.options_mut())?;
    if offered <= most {
        return None;
    }

    tcp.options_mut()[at + 2..at + 4].copy_from_slice(&most.to_be_bytes());
    tcp.fill_checksum(&source, &destination);
    Some(())
}

/// Returns the offset of the MSS option among all options, and its value.
fn find_mss(options: &[u8]) -> Option<(usize, u16)> {
    tcp_options(options).find_map(|(at, option)| match option {
        TcpOption::MaxSegmentSize(mss) => Some((at, mss)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::packets::{has_valid_checksums, options_of, segment};
    use super::*;
    use proptest::prelude::*;

    const SYN: u8 = 2;
    const ACK: u8 = 16;
    /// Maximum segment size 1460, SACK permitted, no operation, window scale 7.
    const USUAL: [u8; 12] = [2, 4, 0x05, 0xb4, 4, 2, 1, 3, 3, 7, 1, 1];

    #[test]
    fn a_syn_offers_no_more_than_fits_and_its_checksum_holds() {
        for (v6, mtu, left) in [(false, 1400, 1360), (true, 1400, 1340), (true, 1280, 1220)] {
            for flags in [SYN, SYN | ACK] {
                let mut packet = segment(v6, flags, &USUAL, b"");
                assert!(clamp(&mut packet, mtu));
                assert!(has_valid_checksums(&packet));
                let mut expected = USUAL;
                expected[2..4].copy_from_slice(&u16::to_be_bytes(left));
                assert_eq!(options_of(&packet), expected);
                let before = packet.clone();
                assert!(!clamp(&mut packet, mtu), "once is enough");
                assert_eq!(packet, before);
            }
        }
    }

    #[test]
    fn unknown_options_and_odd_places_are_no_hindrance() {
        // Fast open (34) first, then the size at an odd place.
        let options = [34, 2, 1, 2, 4, 0x22, 0xb8, 0];
        let mut packet = segment(false, SYN, &options, b"early");
        assert!(clamp(&mut packet, 576));
        assert!(has_valid_checksums(&packet));
        assert_eq!(options_of(&packet), [34, 2, 1, 2, 4, 0x02, 0x18, 0]);
    }

    #[test]
    fn all_else_is_left_as_it_is() {
        let mut corrupt = segment(false, SYN, &USUAL, b"");
        let last = corrupt.len() - 1;
        corrupt[last] ^= 1;
        let mut fragment = segment(false, SYN, &USUAL, b"");
        fragment[6] = 0x20;
        let after_the_end = [0, 0, 0, 0, 2, 4, 0x05, 0xb4];
        for packet in [
            segment(false, ACK, &USUAL, b"data"),
            segment(false, SYN, &[2, 4, 0x01, 0x00], b""),
            segment(false, SYN, &after_the_end, b""),
            segment(false, SYN, &[8, 1, 2, 4, 0x05, 0xb4, 0, 0], b""),
            segment(false, SYN, &[], b""),
            corrupt,
            fragment,
        ] {
            let mut clamped = packet.clone();
            assert!(!clamp(&mut clamped, 576));
            assert_eq!(clamped, packet);
        }
    }

    proptest! {
        #[test]
        fn no_packet_panics_or_changes_length(
            mut packet in prop::collection::vec(any::<u8>(), 0..120),
            start in prop::sample::select(vec![0x45_u8, 0x4f, 0x60]),
            mtu in 0_usize..3000,
        ) {
            if let Some(first) = packet.first_mut() {
                *first = start;
            }
            let before = packet.clone();
            let changed = clamp(&mut packet, mtu);
            prop_assert_eq!(changed, packet != before);
        }

        #[test]
        fn every_sound_syn_stays_sound(
            v6: bool,
            mss: u16,
            nops in 0_usize..8,
            payload in prop::collection::vec(any::<u8>(), 0..60),
            mtu in 576_usize..9000,
        ) {
            let mut options = vec![1; nops];
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
            options.resize(options.len().next_multiple_of(4), 0);
            let mut packet = segment(v6, SYN, &options, &payload);
            let most = mtu - if v6 { V6_HEADERS } else { V4_HEADERS };
            prop_assert_eq!(clamp(&mut packet, mtu), usize::from(mss) > most);
            prop_assert!(has_valid_checksums(&packet));
            let (_, left) = find_mss(&options_of(&packet)).unwrap();
            prop_assert_eq!(usize::from(left), usize::from(mss).min(most));
        }
    }
}
