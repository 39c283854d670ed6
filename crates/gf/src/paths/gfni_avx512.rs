//! GFNI with 64-byte registers.
//!
//! `gf2p8mulb` multiplies 64 elements of GF(2^8) in one instruction. Two elements of GF(2^4) in a
//! byte are multiplied by `gf2p8affineqb`, which applies an 8 x 8 bit matrix to each byte. The
//! three-way exclusive or of `vpternlogq` adds two products at once. Masked loads and stores
//! handle the end of a row.

use crate::paths::entries;
use crate::tables::{FOURFOLD_256, MASK_2, MATRIX_16};
use crate::vector::{Multiply, Vector};
use std::arch::x86_64::*;

/// The register.
type Zmm = __m512i;

/// Truth table of `a ^ b ^ c` for `vpternlog`.
const XOR_THREE: i32 = 0x96;
/// Truth table of `a ^ (b & c)` for `vpternlog`.
const XOR_AND: i32 = 0x78;

/// Returns the mask of the first `count < 64` byte lanes.
#[inline(always)]
fn lanes(count: usize) -> __mmask64 {
    !(u64::MAX << count)
}

impl Vector for Zmm {
    const WIDTH: usize = 64;
    const MASKED: bool = true;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 64 bytes are readable.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 64 bytes are writable.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, count: usize) -> Self {
        // SAFETY: the instruction does not access masked lanes.
        unsafe { _mm512_maskz_loadu_epi8(lanes(count), from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, count: usize) {
        // SAFETY: the instruction does not access masked lanes.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), lanes(count), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm512_and_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn first_nonzero(self) -> Option<usize> {
        // SAFETY: the processor has the path's instructions.
        let lanes = unsafe { _mm512_test_epi8_mask(self, self) };
        (lanes != 0).then(|| lanes.trailing_zeros() as usize)
    }
}

/// GF(2^8).
struct Bytes;

impl Multiply<Zmm> for Bytes {
    type Factor = Zmm;
    type Operand = Zmm;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm512_set1_epi32(FOURFOLD_256[usize::from(coefficient)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn operand(x: Zmm) -> Self::Operand {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Zmm, x: Self::Operand, factor: Self::Factor) -> Zmm {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm512_xor_si512(sum, _mm512_gf2p8mul_epi8(x, factor)) }
    }

    #[inline(always)]
    unsafe fn fold_two(sum: Zmm, x: [Self::Operand; 2], factor: [Self::Factor; 2]) -> Zmm {
        // SAFETY: the processor has the path's instructions.
        unsafe {
            let products =
                [_mm512_gf2p8mul_epi8(x[0], factor[0]), _mm512_gf2p8mul_epi8(x[1], factor[1])];
            _mm512_ternarylogic_epi64::<XOR_THREE>(sum, products[0], products[1])
        }
    }
}

/// GF(2^4), two elements a byte.
struct Nibbles;

impl Multiply<Zmm> for Nibbles {
    type Factor = Zmm;
    type Operand = Zmm;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm512_set1_epi64(MATRIX_16[usize::from(coefficient & 15)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn operand(x: Zmm) -> Self::Operand {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Zmm, x: Self::Operand, factor: Self::Factor) -> Zmm {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm512_xor_si512(sum, _mm512_gf2p8affine_epi64_epi8::<0>(x, factor)) }
    }

    #[inline(always)]
    unsafe fn fold_two(sum: Zmm, x: [Self::Operand; 2], factor: [Self::Factor; 2]) -> Zmm {
        // SAFETY: the processor has the path's instructions.
        unsafe {
            let products = [
                _mm512_gf2p8affine_epi64_epi8::<0>(x[0], factor[0]),
                _mm512_gf2p8affine_epi64_epi8::<0>(x[1], factor[1]),
            ];
            _mm512_ternarylogic_epi64::<XOR_THREE>(sum, products[0], products[1])
        }
    }
}

/// GF(2), eight elements a byte.
struct Bits;

impl Multiply<Zmm> for Bits {
    type Factor = Zmm;
    type Operand = Zmm;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm512_set1_epi64(MASK_2[usize::from(coefficient & 1)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn operand(x: Zmm) -> Self::Operand {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Zmm, x: Self::Operand, factor: Self::Factor) -> Zmm {
        // SAFETY: the processor has the path's instructions.
        unsafe { _mm512_ternarylogic_epi64::<XOR_AND>(sum, x, factor) }
    }
}

entries!(GF2, Zmm, Bits, 4, 4, 1, "gfni,avx512f,avx512bw");
entries!(GF16, Zmm, Nibbles, 4, 4, 1, "gfni,avx512f,avx512bw");
entries!(GF256, Zmm, Bytes, 4, 4, 1, "gfni,avx512f,avx512bw");
