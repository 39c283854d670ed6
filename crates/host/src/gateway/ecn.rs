//! Explicit congestion notification (RFC 3168): a packet of a transport that understands it is
//! marked where another one would be dropped.

use super::header::version;
use ncmesh_engine::tunnel::traffic_class;
use smoltcp::wire::{IpVersion, Ipv4Packet, Ipv6Packet};

/// The two bits of ECN in the traffic class.
const ECN: u8 = 0b11;
/// The transport does not understand marks.
const NOT_CAPABLE: u8 = 0b00;
/// Congestion was experienced.
const CONGESTION: u8 = 0b11;

/// Marks a packet as delayed by congestion. Returns whether its transport understands that.
/// Leaves a packet of IPv4 alone whose checksum is wrong: a new one would hide the damage.
pub(super) fn mark(packet: &mut [u8]) -> bool {
    // A transport that does not understand the mark would go on sending at its rate.
    let Some(class) = traffic_class(packet).filter(|class| class & ECN != NOT_CAPABLE) else {
        return false;
    };

    // The mark replaces the loss that would tell the connection to slow down (RFC 3168).
    let marked = match version(packet) {
        Some(IpVersion::Ipv4) => mark_v4(packet),
        Some(IpVersion::Ipv6) => mark_v6(packet, class | CONGESTION),
        None => None,
    };

    marked.is_some()
}

fn mark_v4(packet: &mut [u8]) -> Option<()> {
    let mut ip = Ipv4Packet::new_checked(packet).ok().filter(Ipv4Packet::verify_checksum)?;
    ip.set_ecn(CONGESTION);
    ip.fill_checksum();
    Some(())
}

/// The header of IPv6 has no checksum.
fn mark_v6(packet: &mut [u8], class: u8) -> Option<()> {
    let mut ip = Ipv6Packet::new_checked(packet).ok()?;
    ip.set_traffic_class(class);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::packets::{has_valid_checksums, segment};
    use super::*;
    use proptest::prelude::*;

    const ACK: u8 = 16;
    const DSCP: u8 = 0b1011_1000;

    /// Returns a segment of this traffic class, with valid checksums.
    fn of_class(is_v6: bool, class: u8) -> Vec<u8> {
        let mut packet = segment(is_v6, ACK, &[], b"data");
        if is_v6 {
            Ipv6Packet::new_unchecked(&mut packet).set_traffic_class(class);
        } else {
            let mut ip = Ipv4Packet::new_unchecked(&mut packet);
            ip.set_dscp(class >> 2);
            ip.set_ecn(class & ECN);
            ip.fill_checksum();
        }
        packet
    }

    #[test]
    fn capable_transports_get_the_mark_and_all_else_stays() {
        for is_v6 in [false, true] {
            for capable in [0b01, 0b10, 0b11] {
                let mut packet = of_class(is_v6, DSCP | capable);
                assert!(mark(&mut packet));
                assert_eq!(packet, of_class(is_v6, DSCP | CONGESTION));
                assert!(has_valid_checksums(&packet));
            }
            let mut packet = of_class(is_v6, DSCP);
            assert!(!mark(&mut packet));
            assert_eq!(packet, of_class(is_v6, DSCP));
        }
    }

    #[test]
    fn damage_is_not_hidden() {
        let mut packet = of_class(false, 0b10);
        packet[8] ^= 1;
        let damaged = packet.clone();
        assert!(!mark(&mut packet));
        assert_eq!(packet, damaged);
    }

    proptest! {
        #[test]
        fn marking_never_panics(mut packet in prop::collection::vec(any::<u8>(), 0..80)) {
            let length = packet.len();
            mark(&mut packet);
            prop_assert_eq!(packet.len(), length);
        }
    }
}
