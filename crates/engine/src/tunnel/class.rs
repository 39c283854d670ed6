//! The traffic class of an IP packet: its DSCP, and its bits of ECN.

/// Classes of real-time traffic, by DSCP (RFC 4594): telephony (EF, VOICE-ADMIT), signalling (CS5),
/// interactive (CS4), and video conferences (AF41 to AF43).
const REAL_TIME: [u8; 7] = [46, 44, 40, 32, 34, 36, 38];

/// Returns the byte of DSCP and ECN of a packet; `None` if it is no IP packet.
#[must_use]
pub fn traffic_class(packet: &[u8]) -> Option<u8> {
    let [first, second] = *packet.first_chunk()?;
    match first >> 4 {
        4 => Some(second),
        // The traffic class of IPv6 begins in the middle of the first byte.
        6 => Some(first << 4 | second >> 4),
        _ => None,
    }
}

/// Returns whether a packet is of real-time traffic, which is of no use when it is late.
#[must_use]
pub fn is_real_time(packet: &[u8]) -> bool {
    traffic_class(packet).is_some_and(|class| REAL_TIME.contains(&(class >> 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_the_ip_header() {
        assert!(is_real_time(&[0x45, 46 << 2, 0, 20]) && is_real_time(&[0x45, 34 << 2 | 1]));
        assert!(!is_real_time(&[0x45, 0]) && !is_real_time(&[0x45, 8 << 2]));
        // EF is 0xb8.
        assert!(is_real_time(&[0x6b, 0x80, 0, 0]) && !is_real_time(&[0x60, 0x00, 0, 0]));
        assert_eq!(traffic_class(&[0x60, 0x30]), Some(3));
        for no_ip in [&[][..], &[0x45], b"\xb8\xb8"] {
            assert_eq!(traffic_class(no_ip), None, "{no_ip:?}");
            assert!(!is_real_time(no_ip));
        }
    }
}
