//! A product by two byte shuffles, one for each nibble (J. S. Plank, K. M. Greenan, E. L. Miller, "Screaming
//! Fast Galois Field Arithmetic Using Intel SIMD Instructions", FAST 2013), for every register that can
//! shuffle bytes.

use crate::tables::{Nibbles, SHUFFLE_16, SHUFFLE_256};
use crate::vector::{Multiply, Vector};

/// A byte's two nibbles, or the two shuffle tables of a coefficient.
pub(crate) type Halves<V> = [V; 2];

/// A register whose bytes can pick from a table of 16.
pub(crate) trait Shuffle: Vector {
    unsafe fn tables(nibbles: &Nibbles) -> Halves<Self>;
    /// Low and high nibbles, each in a byte of its own.
    unsafe fn split(self) -> Halves<Self>;
    /// `self`, and for each nibble what its table has for it.
    unsafe fn add_product(self, x: Halves<Self>, table: Halves<Self>) -> Self;
}

/// GF(2^8).
pub(crate) struct Bytes;

impl<V: Shuffle> Multiply<V> for Bytes {
    type Factor = Halves<V>;
    type Operand = Halves<V>;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: same contract.
        unsafe { V::tables(&SHUFFLE_256[usize::from(coefficient)]) }
    }

    #[inline(always)]
    unsafe fn operand(x: V) -> Self::Operand {
        // SAFETY: same contract.
        unsafe { x.split() }
    }

    #[inline(always)]
    unsafe fn fold(sum: V, x: Self::Operand, factor: Self::Factor) -> V {
        // SAFETY: same contract.
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
        // SAFETY: same contract.
        unsafe { V::tables(&SHUFFLE_16[usize::from(coefficient & 15)]) }
    }

    #[inline(always)]
    unsafe fn operand(x: V) -> Self::Operand {
        // SAFETY: same contract.
        unsafe { x.split() }
    }

    #[inline(always)]
    unsafe fn fold(sum: V, x: Self::Operand, factor: Self::Factor) -> V {
        // SAFETY: same contract.
        unsafe { sum.add_product(x, factor) }
    }
}
