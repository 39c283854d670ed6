//! Contents of a symbol: packets, each with its length and its check before it.

use ncmesh_engine::toolkit::coder::{PREFIX, unpack};
use ncmesh_engine::tunnel;

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
    symbol.get(PREFIX..).is_some_and(tunnel::is_real_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::toolkit::coder::pack;

    #[test]
    fn a_symbol_is_of_the_class_of_its_first_packet() {
        let both = [pack(&[0x45, 46 << 2]), pack(&[0x45, 46 << 2])].concat();
        assert!(is_real_time(&both) && !is_real_time(&pack(&[0x45, 0])));
        assert!(!is_real_time(&[]));
    }
}
