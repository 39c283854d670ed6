//! Coding vectors on the wire: several coefficients in a byte where the field is small.

use crate::error::{CodeError, same_length};
use ncmesh_gf::Field;

/// Returns the bytes that `count` coefficients of `field` take on the wire: 1 bit each over GF(2),
/// 4 over GF(2^4), 8 over GF(2^8), rounded up.
#[must_use]
pub fn packed_len(field: Field, count: usize) -> usize {
    count.div_ceil(per_byte(field))
}

/// Packs coefficients (one in each byte) for the wire. The first coefficient is in the lowest bits
/// of the first byte. `out` has [`packed_len`] bytes.
///
/// # Errors
/// [`CodeError::Length`] for an `out` of another length, [`CodeError::Coefficient`] for a value
/// that is not an element of `field`.
pub fn pack(field: Field, coefficients: &[u8], out: &mut [u8]) -> Result<(), CodeError> {
    same_length("packed coefficients", packed_len(field, coefficients.len()), out.len())?;
    if let Some(index) = coefficients.iter().position(|&c| !field.contains(c)) {
        return Err(CodeError::Coefficient { index, value: coefficients[index] });
    }
    for (byte, group) in out.iter_mut().zip(coefficients.chunks(per_byte(field))) {
        let shifted = group.iter().zip(0u32..).map(|(&c, i)| c << (i * field.bits()));
        *byte = shifted.fold(0, |sum, c| sum | c);
    }

    Ok(())
}

/// Unpacks `out.len()` coefficients from the wire. The inverse of [`pack`].
///
/// # Errors
/// [`CodeError::Length`] unless `packed` has [`packed_len`] bytes, [`CodeError::Padding`] when bits
/// after the last coefficient are set. `out` does not change then.
pub fn unpack(field: Field, packed: &[u8], out: &mut [u8]) -> Result<(), CodeError> {
    same_length("packed coefficients", packed_len(field, out.len()), packed.len())?;

    // Non-zero padding is rejected, so that each vector has one encoding only.
    let used = out.len() % per_byte(field);
    if let (true, Some(&last)) = (used > 0, packed.last())
        && last >> (used as u32 * field.bits()) != 0
    {
        return Err(CodeError::Padding);
    }

    for (group, &byte) in out.chunks_mut(per_byte(field)).zip(packed) {
        for (c, i) in group.iter_mut().zip(0u32..) {
            *c = byte >> (i * field.bits()) & field.mask();
        }
    }

    Ok(())
}

/// Returns the number of coefficients in a byte.
fn per_byte(field: Field) -> usize {
    8 / field.bits() as usize
}
