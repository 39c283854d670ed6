//! AVX2: the product by two byte shuffles of [`shuffle`](super::shuffle) on 32-byte registers.
//!
//! `vpshufb` looks up within each 16-byte half, so both halves of a register hold the table.

use crate::paths::entries;
use crate::paths::shuffle::{Bytes, Halves, Pairs, Shuffle};
use crate::paths::ymm::{Bits, Ymm};
use crate::tables::Nibbles;
use std::arch::x86_64::*;

impl Shuffle for Ymm {
    #[inline(always)]
    unsafe fn tables(nibbles: &Nibbles) -> Halves<Self> {
        let low = nibbles.0.as_ptr();

        // SAFETY: 32 bytes are readable there.
        unsafe {
            [
                _mm256_broadcastsi128_si256(_mm_load_si128(low.cast())),
                _mm256_broadcastsi128_si256(_mm_load_si128(low.add(16).cast())),
            ]
        }
    }

    #[inline(always)]
    unsafe fn split(self) -> Halves<Self> {
        // SAFETY: the processor has the path's instructions.
        unsafe {
            let nibble = _mm256_set1_epi8(15);
            [_mm256_and_si256(self, nibble), _mm256_and_si256(_mm256_srli_epi16::<4>(self), nibble)]
        }
    }

    #[inline(always)]
    unsafe fn add_product(self, x: Halves<Self>, table: Halves<Self>) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe {
            let products =
                [_mm256_shuffle_epi8(table[0], x[0]), _mm256_shuffle_epi8(table[1], x[1])];
            _mm256_xor_si256(_mm256_xor_si256(self, products[0]), products[1])
        }
    }
}

entries!(GF2, Ymm, Bits, 2, 2, 2, "avx2");
entries!(GF16, Ymm, Pairs, 2, 2, 2, "avx2");
entries!(GF256, Ymm, Bytes, 2, 2, 2, "avx2");
