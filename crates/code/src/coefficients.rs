//! Random coding vectors: dense, sparse, and expanded from a seed.
//!
//! Every function returns a vector with at least one non-zero element, because an all-zero coding
//! vector wastes a transmission.

use crate::error::CodeError;
use ncmesh_gf::Field;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Number of draws after which [`draw`] gives up on a generator that returns only zeros. A single
/// coefficient of GF(2) is zero in all of them with probability 2^-128.
const DRAWS: usize = 128;

/// Draws one coding vector, uniformly from all vectors of `out.len()` elements of `field` except
/// the all-zero vector.
pub fn draw(field: Field, rng: &mut (impl RngCore + ?Sized), out: &mut [u8]) {
    for _ in 0..DRAWS {
        rng.fill_bytes(out);
        // Small fields use the lower bits of each byte, which stay uniform.
        let mask = field.mask();
        if field != Field::Gf256 {
            out.iter_mut().for_each(|c| *c &= mask);
        }
        if out.iter().any(|&c| c != 0) {
            return;
        }
    }

    // A broken generator must not hang the caller.
    if let Some(first) = out.first_mut() {
        *first = 1;
    }
}

/// Draws one sparse coding vector.
///
/// Each coefficient is non-zero with probability `density`, and then uniform over the non-zero
/// elements. If all coefficients are zero, one at a random index is drawn again as non-zero.
///
/// # Errors
/// [`CodeError::Density`] unless `0 < density <= 1`.
pub fn draw_sparse(
    field: Field,
    density: f64,
    rng: &mut (impl RngCore + ?Sized),
    out: &mut [u8],
) -> Result<(), CodeError> {
    if !(density > 0.0 && density <= 1.0) {
        return Err(CodeError::Density);
    }

    // A 32-bit draw is below the threshold with probability `density`.
    let threshold = (density * 4_294_967_296.0) as u64;
    for c in out.iter_mut() {
        let take = u64::from(rng.next_u32()) < threshold;
        *c = if take { draw_nonzero(field, rng) } else { 0 };
    }

    if !out.is_empty() && out.iter().all(|&c| c == 0) {
        let place = below(rng, out.len() as u32);
        out[place as usize] = draw_nonzero(field, rng);
    }

    Ok(())
}

/// Expands an 8-byte seed into one coding vector, so that a packet may carry the seed instead.
///
/// The vector is what [`draw`] returns with ChaCha8 (D. J. Bernstein, "ChaCha, a variant of
/// Salsa20", 2008). The key is the seed, least significant byte first, followed by 24 zero bytes;
/// the stream is 0.
pub fn expand_seed(field: Field, seed: u64, out: &mut [u8]) {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    draw(field, &mut ChaCha8Rng::from_seed(key), out);
}

/// Draws a uniform non-zero element.
fn draw_nonzero(field: Field, rng: &mut (impl RngCore + ?Sized)) -> u8 {
    1 + below(rng, field.order() as u32 - 1) as u8
}

/// Draws a number below `bound` as the high half of a product (D. Lemire, "Fast Random Integer
/// Generation in an Interval", 2019). For bounds up to 255 the bias is below 2^-24.
fn below(rng: &mut (impl RngCore + ?Sized), bound: u32) -> u32 {
    ((u64::from(rng.next_u32()) * u64::from(bound)) >> 32) as u32
}
