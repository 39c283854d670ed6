//! AVX2: a product by two byte shuffles (J. S. Plank, K. M. Greenan, E. L.
//! Miller, "Screaming Fast Galois Field Arithmetic Using Intel SIMD
//! Instructions", FAST 2013).

use crate::paths::entries;
use crate::paths::ymm::{Bits, Ymm};
use crate::tables::{Nibbles, SHUFFLE_16, SHUFFLE_256};
use crate::vector::Multiply;
use std::arch::x86_64::*;

/// A byte's two nibbles, or the two shuffle tables of a coefficient.
type Halves = [Ymm; 2];

#[inline(always)]
unsafe fn tables(nibbles: &Nibbles) -> Halves {
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
unsafe fn split(x: Ymm) -> Halves {
    // SAFETY: the path's instructions are there.
    unsafe {
        let nibble = _mm256_set1_epi8(15);
        [_mm256_and_si256(x, nibble), _mm256_and_si256(_mm256_srli_epi16::<4>(x), nibble)]
    }
}

#[inline(always)]
unsafe fn add_product(sum: Ymm, x: Halves, table: Halves) -> Ymm {
    // SAFETY: the path's instructions are there.
    unsafe {
        let products = [_mm256_shuffle_epi8(table[0], x[0]), _mm256_shuffle_epi8(table[1], x[1])];
        _mm256_xor_si256(_mm256_xor_si256(sum, products[0]), products[1])
    }
}

/// GF(2^8).
struct Bytes;

impl Multiply<Ymm> for Bytes {
    type Factor = Halves;
    type Operand = Halves;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the path's instructions are there.
        unsafe { tables(&SHUFFLE_256[usize::from(coefficient)]) }
    }

    #[inline(always)]
    unsafe fn operand(x: Ymm) -> Self::Operand {
        // SAFETY: the path's instructions are there.
        unsafe { split(x) }
    }

    #[inline(always)]
    unsafe fn fold(sum: Ymm, x: Self::Operand, factor: Self::Factor) -> Ymm {
        // SAFETY: the path's instructions are there.
        unsafe { add_product(sum, x, factor) }
    }
}

/// GF(2^4), two elements a byte.
struct Pairs;

impl Multiply<Ymm> for Pairs {
    type Factor = Halves;
    type Operand = Halves;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the path's instructions are there.
        unsafe { tables(&SHUFFLE_16[usize::from(coefficient & 15)]) }
    }

    #[inline(always)]
    unsafe fn operand(x: Ymm) -> Self::Operand {
        // SAFETY: the path's instructions are there.
        unsafe { split(x) }
    }

    #[inline(always)]
    unsafe fn fold(sum: Ymm, x: Self::Operand, factor: Self::Factor) -> Ymm {
        // SAFETY: the path's instructions are there.
        unsafe { add_product(sum, x, factor) }
    }
}

entries!(GF2, Ymm, Bits, 2, 2, "avx2");
entries!(GF16, Ymm, Pairs, 2, 2, "avx2");
entries!(GF256, Ymm, Bytes, 2, 2, "avx2");
