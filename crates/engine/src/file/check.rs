//! Checks of generations: what a node asks a source for when it took false packets.
//!
//! The matrix of a check follows from a nonce that the asking node draws *after* it has taken the
//! packets in question. So nobody could fit false packets to it, and no clock is needed to know
//! that. `docs/internals/checks.md` has the argument.

use ncmesh_code::{Probe, Shape};
use ncmesh_wire::FlowId;
use rand_core::RngCore;
use std::ops::RangeInclusive;

/// Length of a nonce, bytes.
pub const NONCE_LEN: usize = 16;
/// Sums of each packet in a check. A false packet passes 8 of them once in 2^64 times. A frame that
/// has no room for 8 has fewer.
pub const COLUMNS: RangeInclusive<usize> = 4..=8;

/// Random number of one question for a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(pub [u8; NONCE_LEN]);

impl Nonce {
    /// Draws a nonce.
    pub fn draw(rng: &mut (impl RngCore + ?Sized)) -> Self {
        let mut nonce = Self([0; NONCE_LEN]);
        rng.fill_bytes(&mut nonce.0);
        nonce
    }
}

/// Generation of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GenerationId {
    /// The transfer.
    pub flow: FlowId,
    /// Number of the generation, from 0.
    pub generation: u32,
}

/// Returns the probe of a generation that follows from a nonce. It has `columns` sums for each
/// packet. Returns `None` if there is no such probe.
#[must_use]
pub fn probe(of: GenerationId, nonce: Nonce, shape: Shape, columns: usize) -> Option<Probe> {
    let mut hasher = blake3::Hasher::new_derive_key("ncmesh generation check v1");
    hasher.update(&of.flow.source.0.to_be_bytes()).update(&of.flow.serial.to_be_bytes());
    hasher.update(&of.generation.to_be_bytes()).update(&nonce.0);
    let mut matrix = vec![0; shape.symbol_size() * columns];
    hasher.finalize_xof().fill(&mut matrix);
    Probe::new(shape, columns, matrix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_code::Field;
    use ncmesh_wire::NodeId;

    /// Golden vector: sums of one packet of 64 bytes, `00` to `3f`.
    #[test]
    fn a_nonce_gives_the_same_probe_everywhere() {
        let flow = FlowId { source: NodeId(3), serial: 0x0102_0304 };
        let of = GenerationId { flow, generation: 5 };
        let shape = Shape::new(Field::Gf256, 1, 64).unwrap();
        let packet: Vec<u8> = (0..64).collect();
        let sums = |of, nonce| probe(of, Nonce(nonce), shape, 8).unwrap().sums(&packet).unwrap();
        assert_eq!(sums(of, [7; 16]), GOLDEN);
        assert_ne!(sums(of, [8; 16]), GOLDEN);
        assert_ne!(sums(GenerationId { generation: 6, ..of }, [7; 16]), GOLDEN);
    }

    const GOLDEN: [u8; 8] = [137, 225, 218, 211, 167, 45, 218, 214];
}
