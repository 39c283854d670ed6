//! Random streams, named by their purpose.
//!
//! Each part of a node draws from its own stream. Whatever one part draws, the others get the same
//! numbers, so that runs stay comparable.

use ncmesh_wire::NodeId;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Returns the stream of this seed, node, service and purpose.
#[must_use]
pub fn stream(seed: u64, node: NodeId, service: &str, purpose: &str) -> ChaCha8Rng {
    let mut hasher = blake3::Hasher::new_derive_key("ncmesh randomness stream v1");
    hasher.update(&seed.to_be_bytes());
    hasher.update(&node.0.to_be_bytes());
    hasher.update(&[service.len() as u8]);
    hasher.update(service.as_bytes());
    hasher.update(purpose.as_bytes());
    ChaCha8Rng::from_seed(*hasher.finalize().as_bytes())
}

/// Draws a number uniformly from [0, 1).
pub fn unit(rng: &mut impl RngCore) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_every_part_of_their_name() {
        let first =
            |seed, node, service, purpose| stream(seed, NodeId(node), service, purpose).next_u64();
        let base = first(1, 1, "link", "jitter");
        assert_eq!(base, first(1, 1, "link", "jitter"));
        for other in [
            first(2, 1, "link", "jitter"),
            first(1, 2, "link", "jitter"),
            first(1, 1, "lin", "kjitter"),
            first(1, 1, "link", "codes"),
        ] {
            assert_ne!(base, other);
        }
    }
}
