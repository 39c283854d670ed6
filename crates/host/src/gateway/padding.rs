//! Packets of few lengths, so that their lengths tell outsiders less of what they are.
//!
//! The length of an IP packet stands in its header, so zeros behind it are told from the packet.

use super::header::version;
use smoltcp::wire::{IpVersion, Ipv4Packet, Ipv6Packet};

/// Lengths of packets, besides the longest that there may be, bytes.
const LENGTHS: [usize; 3] = [128, 512, 1024];

/// Returns a packet with zeros behind it up to the next of the lengths, of which `longest` is the
/// greatest. A packet that is longer stays as it is.
pub(super) fn padded(packet: &[u8], longest: usize) -> Vec<u8> {
    let mut lengths = LENGTHS.into_iter().filter(|length| *length < longest).chain([longest]);
    let fits = lengths.find(|length| *length >= packet.len());
    let mut padded = packet.to_vec();
    padded.resize(fits.unwrap_or(packet.len()), 0);
    padded
}

/// Takes off what stands behind the packet.
pub(super) fn strip(packet: &mut Vec<u8>) {
    let stated = version(packet).and_then(|version| match version {
        IpVersion::Ipv4 => Some(Ipv4Packet::new_checked(&*packet).ok()?.total_len().into()),
        IpVersion::Ipv6 => Some(Ipv6Packet::new_checked(&*packet).ok()?.total_len()),
    });
    packet.truncate(stated.unwrap_or(packet.len()));
}

#[cfg(test)]
mod tests {
    use super::super::packets::{udp_v4, udp_v6};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn what_is_padded_is_stripped(payload in 0usize..1300, v6 in any::<bool>()) {
            let packet = if v6 {
                udp_v6("fd00::1", "fd00::2", payload)
            } else {
                udp_v4("10.0.0.1", "10.0.0.2", payload)
            };
            let mut padded = padded(&packet, 1280);
            prop_assert!([128, 512, 1024, 1280, packet.len()].contains(&padded.len()));
            prop_assert!(padded.len() == packet.len() || packet.len() <= 1280);
            strip(&mut padded);
            prop_assert_eq!(padded, packet);
        }

        #[test]
        fn garbage_is_stripped_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut left = bytes.clone();
            strip(&mut left);
            prop_assert!(bytes.starts_with(&left));
        }
    }

    #[test]
    fn there_are_four_lengths() {
        let packets = (0..1252).map(|payload| udp_v4("10.0.0.1", "10.0.0.2", payload));
        let lengths: BTreeSet<usize> = packets.map(|packet| padded(&packet, 1280).len()).collect();
        assert_eq!(lengths, [128, 512, 1024, 1280].into());
        assert_eq!(padded(&[4; 300], 400).len(), 400, "a short MTU has fewer lengths");
    }
}
