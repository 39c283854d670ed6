//! The 32-byte register that the two AVX2 paths share, and its multiplication in GF(2).

use crate::tables::MASK_2;
use crate::vector::{Multiply, Vector, first_nonzero_stored};
use std::arch::x86_64::*;

/// The register.
pub(crate) type Ymm = __m256i;

impl Vector for Ymm {
    const WIDTH: usize = 32;
    const MASKED: bool = false;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 32 bytes are readable.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 32 bytes are writable.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, count: usize) -> Self {
        // SAFETY: `count < 32` bytes are readable.
        unsafe {
            if count >= 16 {
                let high = __m128i::load_part(from.add(16), count - 16);
                _mm256_set_m128i(high, __m128i::load(from))
            } else {
                _mm256_zextsi128_si256(__m128i::load_part(from, count))
            }
        }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, count: usize) {
        // SAFETY: `count < 32` bytes are writable.
        unsafe {
            let low = _mm256_castsi256_si128(self);
            if count >= 16 {
                low.store(to);
                _mm256_extracti128_si256::<1>(self).store_part(to.add(16), count - 16);
            } else {
                low.store_part(to, count);
            }
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm256_and_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn first_nonzero(self) -> Option<usize> {
        // SAFETY: the caller keeps the same contract.
        unsafe { first_nonzero_stored(self) }
    }
}

/// GF(2), eight elements a byte.
pub(crate) struct Bits;

impl Multiply<Ymm> for Bits {
    type Factor = Ymm;
    type Operand = Ymm;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm256_set1_epi64x(MASK_2[usize::from(coefficient & 1)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn operand(x: Ymm) -> Self::Operand {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Ymm, x: Self::Operand, factor: Self::Factor) -> Ymm {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm256_xor_si256(sum, _mm256_and_si256(x, factor)) }
    }
}
