//! The portable path: eight bytes at a time in a 64-bit machine word.
//!
//! A product is the sum of the shifts `x·2^i` for the bits `i` that are set in the coefficient.
//! Masks replace branches: each shift is ANDed with all ones or all zeros.

use crate::paths::entries;
use crate::vector::{
    Multiply, Vector, first_nonzero_stored, load_part_of_8, store_part_of_8,
};

/// Eight bytes.
pub(crate) type Word = u64;

/// `0x01` in every byte.
const ONES: u64 = u64::from_ne_bytes([1; 8]);

impl Vector for Word {
    const WIDTH: usize = 8;
    const MASKED: bool = false;

    #[inline(always)]
    unsafe fn zero() -> Self {
        0
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: eight bytes are readable.
        unsafe { from.cast::<u64>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: eight bytes are writable.
        unsafe { to.cast::<u64>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, count: usize) -> Self {
        // SAFETY: `count < 8` bytes are readable.
        u64::from_ne_bytes(unsafe { load_part_of_8(from, count) })
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, count: usize) {
        // SAFETY: `count < 8` bytes are writable.
        unsafe { store_part_of_8(self.to_ne_bytes(), to, count) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        self & other
    }

    #[inline(always)]
    unsafe fn first_nonzero(self) -> Option<usize> {
        // SAFETY: the caller keeps the same contract.
        unsafe { first_nonzero_stored(self) }
    }
}

/// Returns, for each of the lowest `N` bits of `coefficient`, all ones if it is set, else zero.
#[inline(always)]
fn masks<const N: usize>(coefficient: u8) -> [u64; N] {
    let mut masks = [0; N];
    for (i, mask) in masks.iter_mut().enumerate() {
        *mask = 0u64.wrapping_sub(u64::from(coefficient >> i & 1));
    }
    masks
}

/// Adds the shifts selected by `masks` to `sum`.
#[inline(always)]
fn sum_of_shifts<const N: usize>(mut sum: u64, shifts: [u64; N], masks: [u64; N]) -> u64 {
    for i in 0..N {
        sum ^= shifts[i] & masks[i];
    }
    sum
}

/// GF(2^8) on words.
pub(crate) struct Bytes;

impl Multiply<Word> for Bytes {
    type Factor = [u64; 8];
    type Operand = [u64; 8];

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        masks(coefficient)
    }

    #[inline(always)]
    unsafe fn operand(x: Word) -> Self::Operand {
        // Doubling shifts each byte left. Where its top bit falls out, the polynomial reduces it.
        let mut shifts = [x; 8];
        for i in 1..8 {
            let low = (shifts[i - 1] & (0x7F * ONES)) << 1;
            shifts[i] = low ^ ((shifts[i - 1] >> 7 & ONES) * 0x1B);
        }
        shifts
    }

    #[inline(always)]
    unsafe fn fold(sum: Word, x: Self::Operand, factor: Self::Factor) -> Word {
        sum_of_shifts(sum, x, factor)
    }
}

/// GF(2^4), two elements a byte, on words.
pub(crate) struct Nibbles;

impl Multiply<Word> for Nibbles {
    type Factor = [u64; 4];
    type Operand = [u64; 4];

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        masks(coefficient)
    }

    #[inline(always)]
    unsafe fn operand(x: Word) -> Self::Operand {
        // As for bytes, within each nibble and with the polynomial x^4 + x + 1.
        let mut shifts = [x; 4];
        for i in 1..4 {
            let low = (shifts[i - 1] & (0x77 * ONES)) << 1;
            shifts[i] = low ^ ((shifts[i - 1] >> 3 & (0x11 * ONES)) * 0x3);
        }
        shifts
    }

    #[inline(always)]
    unsafe fn fold(sum: Word, x: Self::Operand, factor: Self::Factor) -> Word {
        sum_of_shifts(sum, x, factor)
    }
}

/// GF(2), eight elements a byte, on words.
pub(crate) struct Bits;

impl Multiply<Word> for Bits {
    type Factor = u64;
    type Operand = u64;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> u64 {
        masks::<1>(coefficient)[0]
    }

    #[inline(always)]
    unsafe fn operand(x: Word) -> u64 {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Word, x: u64, factor: u64) -> Word {
        sum ^ (x & factor)
    }
}

entries!(GF2, Word, Bits, 1, 1, 8);
entries!(GF16, Word, Nibbles, 1, 1, 8);
entries!(GF256, Word, Bytes, 1, 1, 8);
