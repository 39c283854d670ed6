//! The 32-byte register that the two AVX2 paths share, and its multiplication in GF(2).

use crate::tables::MASK_2;
use crate::vector::{Multiply, Vector, first_nonzero_stored};
use std::arch::x86_64::*;

/// The register.
pub(crate) type Ymm = __m256i;

impl Vector for Ymm {
    const WIDTH: usize = 32;

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
        let mut bytes = [0; 32];
        // SAFETY: `count < 32` bytes are readable.
        unsafe {
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), count);
            Self::load(bytes.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, count: usize) {
        let mut bytes = [0; 32];
        // SAFETY: `count < 32` bytes are writable.
        unsafe {
            self.store(bytes.as_mut_ptr());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, count);
        }
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
