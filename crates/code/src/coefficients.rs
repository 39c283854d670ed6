use crate::error::CodeError;
use ncmesh_gf::Field;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Draws before [`draw`] gives up on a generator that only returns zeros. Even
/// one coefficient of GF(2) is zero that often once in 2^128 times.
const DRAWS: usize = 128;

/// Draws one vector of coefficients: uniform over the vectors of `out.len()`
/// elements of `field`, except for the all-zero vector, which never comes.
pub fn draw(field: Field, rng: &mut (impl RngCore + ?Sized), out: &mut [u8]) {
    for _ in 0..DRAWS {
        rng.fill_bytes(out);
        let mask = field.mask();
        if field != Field::Gf256 {
            out.iter_mut().for_each(|c| *c &= mask);
        }
        if out.iter().any(|&c| c != 0) {
            return;
        }
    }
    if let Some(first) = out.first_mut() {
        *first = 1;
    }
}

/// Draws one sparse vector: each coefficient is non-zero with probability
/// `density`, then uniform over the non-zero elements. Where all come out as
/// zero, one at a random place is set, so the vector is never all-zero.
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
    // A 32-bit draw lies below the threshold with probability `density`.
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

/// Expands an 8-byte seed into one vector of coefficients, so that a packet
/// may carry the seed in their place.
///
/// The vector is that of [`draw`] from ChaCha8 (D. J. Bernstein, "ChaCha, a
/// variant of Salsa20", 2008) with the seed, least significant byte first and
/// 24 zero bytes after it, as its key, and stream 0.
pub fn expand_seed(field: Field, seed: u64, out: &mut [u8]) {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    draw(field, &mut ChaCha8Rng::from_seed(key), out);
}

/// A uniform non-zero element.
fn draw_nonzero(field: Field, rng: &mut (impl RngCore + ?Sized)) -> u8 {
    1 + below(rng, field.order() as u32 - 1) as u8
}

/// A number below `bound`, by the high half of a product (D. Lemire, "Fast
/// Random Integer Generation in an Interval", 2019); for bounds up to 255 its
/// bias is below 2^-24.
fn below(rng: &mut (impl RngCore + ?Sized), bound: u32) -> u32 {
    ((u64::from(rng.next_u32()) * u64::from(bound)) >> 32) as u32
}
