//! GFNI with 32-byte registers, for processors without AVX-512.
//!
//! `gf2p8mulb` multiplies in GF(2^8) and `gf2p8affineqb` in GF(2^4), as in
//! [`gfni_avx512`](super::gfni_avx512).

use crate::paths::entries;
use crate::paths::ymm::{Bits, Ymm};
use crate::tables::{FOURFOLD_256, MATRIX_16};
use crate::vector::Multiply;
use std::arch::x86_64::*;

/// GF(2^8).
struct Bytes;

impl Multiply<Ymm> for Bytes {
    type Factor = Ymm;
    type Operand = Ymm;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm256_set1_epi32(FOURFOLD_256[usize::from(coefficient)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn operand(x: Ymm) -> Self::Operand {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Ymm, x: Self::Operand, factor: Self::Factor) -> Ymm {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm256_xor_si256(sum, _mm256_gf2p8mul_epi8(x, factor)) }
    }
}

/// GF(2^4), two elements a byte.
struct Nibbles;

impl Multiply<Ymm> for Nibbles {
    type Factor = Ymm;
    type Operand = Ymm;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm256_set1_epi64x(MATRIX_16[usize::from(coefficient & 15)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn operand(x: Ymm) -> Self::Operand {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Ymm, x: Self::Operand, factor: Self::Factor) -> Ymm {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm256_xor_si256(sum, _mm256_gf2p8affine_epi64_epi8::<0>(x, factor)) }
    }
}

entries!(GF2, Ymm, Bits, 2, 4, 2, "gfni,avx2");
entries!(GF16, Ymm, Nibbles, 2, 4, 2, "gfni,avx2");
entries!(GF256, Ymm, Bytes, 2, 4, 2, "gfni,avx2");
