//! SSSE3: the product by two byte shuffles of [`shuffle`](super::shuffle) on 16-byte registers.

use crate::paths::entries;
use crate::paths::shuffle::{Bytes, Halves, Pairs, Shuffle};
use crate::tables::{MASK_2, Nibbles};
use crate::vector::{Multiply, Vector, first_nonzero_stored, load_part_of_16, store_part_of_16};
use std::arch::x86_64::*;

/// The register.
type Xmm = __m128i;

impl Vector for Xmm {
    const WIDTH: usize = 16;
    const MASKED: bool = false;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm_setzero_si128() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 16 bytes are readable.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 16 bytes are writable.
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, count: usize) -> Self {
        // SAFETY: `count < 16` bytes are readable.
        unsafe { Self::load(load_part_of_16(from, count).as_ptr()) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, count: usize) {
        let mut bytes = [0; 16];
        // SAFETY: `count < 16` bytes are writable.
        unsafe {
            self.store(bytes.as_mut_ptr());
            store_part_of_16(bytes, to, count);
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm_xor_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm_and_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn first_nonzero(self) -> Option<usize> {
        // SAFETY: the caller keeps the same contract.
        unsafe { first_nonzero_stored(self) }
    }
}

impl Shuffle for Xmm {
    #[inline(always)]
    unsafe fn tables(nibbles: &Nibbles) -> Halves<Self> {
        let low = nibbles.0.as_ptr();
        // SAFETY: 32 bytes are readable there.
        unsafe { [_mm_load_si128(low.cast()), _mm_load_si128(low.add(16).cast())] }
    }

    #[inline(always)]
    unsafe fn split(self) -> Halves<Self> {
        // SAFETY: the processor has the path's instructions.
        unsafe {
            let nibble = _mm_set1_epi8(15);
            [_mm_and_si128(self, nibble), _mm_and_si128(_mm_srli_epi16::<4>(self), nibble)]
        }
    }

    #[inline(always)]
    unsafe fn add_product(self, x: Halves<Self>, table: Halves<Self>) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe {
            let products = [_mm_shuffle_epi8(table[0], x[0]), _mm_shuffle_epi8(table[1], x[1])];
            _mm_xor_si128(_mm_xor_si128(self, products[0]), products[1])
        }
    }
}

/// GF(2), eight elements a byte.
struct Bits;

impl Multiply<Xmm> for Bits {
    type Factor = Xmm;
    type Operand = Xmm;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm_set1_epi64x(MASK_2[usize::from(coefficient & 1)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn operand(x: Xmm) -> Self::Operand {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Xmm, x: Self::Operand, factor: Self::Factor) -> Xmm {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm_xor_si128(sum, _mm_and_si128(x, factor)) }
    }
}

entries!(GF2, Xmm, Bits, 2, 2, 4, "ssse3");
entries!(GF16, Xmm, Pairs, 2, 2, 4, "ssse3");
entries!(GF256, Xmm, Bytes, 2, 2, 4, "ssse3");
