//! Multiplication by two byte shuffles, for every register that can look up bytes in a table.
//!
//! A byte is the sum of its low and its high nibble, so its product with a coefficient is the sum
//! of two products with 16 possible values each. One shuffle looks up each of them in a table that
//! depends on the coefficient only. From J. S. Plank, K. M. Greenan, E. L. Miller, "Screaming Fast
//! Galois Field Arithmetic Using Intel SIMD Instructions", FAST 2013.

use crate::tables::{Nibbles, SHUFFLE_16, SHUFFLE_256};
use crate::vector::{Multiply, Vector};

/// The low and high nibbles of a register's bytes, or the shuffle tables for both.
pub(crate) type Halves<V> = [V; 2];

/// A register whose bytes can index a table of 16 bytes.
pub(crate) trait Shuffle: Vector {
    /// Loads the two tables of a coefficient.
    unsafe fn tables(nibbles: &Nibbles) -> Halves<Self>;
    /// Returns the low and the high nibbles, each in a byte of its own.
    unsafe fn split(self) -> Halves<Self>;
    /// Returns `self` plus the table entries of both nibbles.
    unsafe fn add_product(self, x: Halves<Self>, table: Halves<Self>) -> Self;
}

/// GF(2^8).
pub(crate) struct Bytes;

impl<V: Shuffle> Multiply<V> for Bytes {
    type Factor = Halves<V>;
    type Operand = Halves<V>;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the caller keeps the same contract.
        unsafe { V::tables(&SHUFFLE_256[usize::from(coefficient)]) }
    }

    #[inline(always)]
    unsafe fn operand(x: V) -> Self::Operand {
        // SAFETY: the caller keeps the same contract.
        unsafe { x.split() }
    }

    #[inline(always)]
    unsafe fn fold(sum: V, x: Self::Operand, factor: Self::Factor) -> V {
        // SAFETY: the caller keeps the same contract.
        unsafe { sum.add_product(x, factor) }
    }
}

/// GF(2^4), two elements a byte.
pub(crate) struct Pairs;

impl<V: Shuffle> Multiply<V> for Pairs {
    type Factor = Halves<V>;
    type Operand = Halves<V>;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: the caller keeps the same contract.
        unsafe { V::tables(&SHUFFLE_16[usize::from(coefficient & 15)]) }
    }

    #[inline(always)]
    unsafe fn operand(x: V) -> Self::Operand {
        // SAFETY: the caller keeps the same contract.
        unsafe { x.split() }
    }

    #[inline(always)]
    unsafe fn fold(sum: V, x: Self::Operand, factor: Self::Factor) -> V {
        // SAFETY: the caller keeps the same contract.
        unsafe { sum.add_product(x, factor) }
    }
}
