//! What is in a symbol: packets, each with its length and its check before it.

use ncmesh_engine::toolkit::coder::{PREFIX, unpack};

/// Classes of real-time traffic, by DSCP (RFC 4594): telephony (EF, VOICE-ADMIT), signalling (CS5),
/// interactive (CS4), and video conferences (AF41 to AF43).
const REAL_TIME: [u8; 7] = [46, 44, 40, 32, 34, 36, 38];

/// Returns the packets in a symbol; zeros end it. One whose check is wrong is empty.
pub(crate) fn packets(mut symbol: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Some(unpacked) = unpack(symbol) {
        packets.push(unpacked.packet.unwrap_or_default().to_vec());
        symbol = unpacked.rest;
    }
    packets
}

/// Returns whether the packets in a symbol are of real-time traffic, which is of no use when it is
/// late. All packets of a symbol are, or none.
pub(crate) fn is_real_time(symbol: &[u8]) -> bool {
    let Some([first, second]) = symbol.get(PREFIX..).and_then(|packet| packet.first_chunk()) else {
        return false;
    };
    // The traffic class of IPv6 begins in the middle of the first byte.
    let class = match first >> 4 {
        4 => *second,
        6 => first << 4 | second >> 4,
        _ => return false,
    };
    REAL_TIME.contains(&(class >> 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::toolkit::coder::pack;

    #[test]
    fn classes_are_those_of_the_ip_header() {
        let class = |packet: &[u8]| is_real_time(&pack(packet));
        assert!(class(&[0x45, 46 << 2, 0, 20]) && class(&[0x45, 34 << 2 | 1]));
        assert!(!class(&[0x45, 0]) && !class(&[0x45, 8 << 2]) && !class(&[0x45]));
        // EF is 0xb8.
        assert!(class(&[0x6b, 0x80, 0, 0]) && !class(&[0x60, 0x00, 0, 0]));
        assert!(!class(b"\xb8\xb8") && !is_real_time(&[]));
    }
}
