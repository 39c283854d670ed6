//! NEON on AArch64: the product by two byte shuffles of [`shuffle`](super::shuffle), with the
//! table look-up `tbl` on 16-byte registers.

use crate::paths::entries;
use crate::paths::shuffle::{Bytes, Halves, Pairs, Shuffle};
use crate::tables::{MASK_2, Nibbles};
use crate::vector::{Multiply, Vector, first_nonzero_stored, load_part_of_16, store_part_of_16};
use std::arch::aarch64::*;

/// The register.
type Quad = uint8x16_t;

impl Vector for Quad {
    const WIDTH: usize = 16;
    const MASKED: bool = false;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { vdupq_n_u8(0) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: 16 bytes are readable.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: 16 bytes are writable.
        unsafe { vst1q_u8(to, self) }
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
        unsafe { veorq_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe { vandq_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn first_nonzero(self) -> Option<usize> {
        // SAFETY: the caller keeps the same contract.
        unsafe { first_nonzero_stored(self) }
    }
}

impl Shuffle for Quad {
    #[inline(always)]
    unsafe fn tables(nibbles: &Nibbles) -> Halves<Self> {
        let low = nibbles.0.as_ptr();
        // SAFETY: 32 bytes are readable there.
        unsafe { [vld1q_u8(low), vld1q_u8(low.add(16))] }
    }

    #[inline(always)]
    unsafe fn split(self) -> Halves<Self> {
        // SAFETY: the processor has the path's instructions.
        unsafe { [vandq_u8(self, vdupq_n_u8(15)), vshrq_n_u8::<4>(self)] }
    }

    #[inline(always)]
    unsafe fn add_product(self, x: Halves<Self>, table: Halves<Self>) -> Self {
        // SAFETY: the processor has the path's instructions.
        unsafe {
            let products = [vqtbl1q_u8(table[0], x[0]), vqtbl1q_u8(table[1], x[1])];
            veorq_u8(veorq_u8(self, products[0]), products[1])
        }
    }
}

/// GF(2), eight elements a byte.
struct Bits;

impl Multiply<Quad> for Bits {
    type Factor = Quad;
    type Operand = Quad;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the processor has the path's instructions.
        unsafe { vreinterpretq_u8_u64(vdupq_n_u64(MASK_2[usize::from(coefficient & 1)])) }
    }

    #[inline(always)]
    unsafe fn operand(x: Quad) -> Self::Operand {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Quad, x: Self::Operand, factor: Self::Factor) -> Quad {
        // SAFETY: the processor has the path's instructions.
        unsafe { veorq_u8(sum, vandq_u8(x, factor)) }
    }
}

entries!(GF2, Quad, Bits, 2, 2, 4, "neon");
entries!(GF16, Quad, Pairs, 2, 2, 4, "neon");
entries!(GF256, Quad, Bytes, 2, 2, 4, "neon");
