//! The three finite fields and their arithmetic on single elements.
//!
//! GF(2^8) multiplies by logarithm tables, GF(2^4) by a full product table, GF(2) by AND. These
//! functions serve coefficients, such as the inverse of a pivot; payloads go through
//! [`Kernels`](crate::Kernels).

use crate::tables::{EXP_256, INVERSE_16, INVERSE_256, LOG_256, PRODUCT_16};

/// A finite field of characteristic 2.
///
/// An element is one byte with a value below [`Field::order`]. Addition is exclusive or.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// GF(2): elements 0 and 1.
    Gf2,
    /// GF(2^4) modulo x^4 + x + 1 (0x13).
    Gf16,
    /// GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (0x11B, FIPS 197).
    #[default]
    Gf256,
}

impl Field {
    /// Every field, smallest first.
    pub const ALL: [Self; 3] = [Self::Gf2, Self::Gf16, Self::Gf256];

    /// Returns the number of bits in an element: 1, 4 or 8.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Gf2 => 1,
            Self::Gf16 => 4,
            Self::Gf256 => 8,
        }
    }

    /// Returns the number of elements: 2, 16 or 256.
    #[must_use]
    pub const fn order(self) -> usize {
        1 << self.bits()
    }

    /// Returns the largest element, which is also the mask of an element's bits.
    #[must_use]
    pub const fn mask(self) -> u8 {
        match self {
            Self::Gf2 => 1,
            Self::Gf16 => 15,
            Self::Gf256 => 255,
        }
    }

    /// Returns whether `element` belongs to the field.
    #[must_use]
    pub const fn contains(self, element: u8) -> bool {
        element <= self.mask()
    }

    /// Returns the product `a·b`. Bits above the field's width are ignored.
    #[must_use]
    pub fn mul(self, a: u8, b: u8) -> u8 {
        match self {
            Self::Gf2 => a & b & 1,
            Self::Gf16 => PRODUCT_16[usize::from(a & 15)][usize::from(b & 15)],
            Self::Gf256 if a == 0 || b == 0 => 0,
            Self::Gf256 => {
                // The table holds the powers twice, so the sum needs no reduction.
                let sum =
                    usize::from(LOG_256[usize::from(a)]) + usize::from(LOG_256[usize::from(b)]);
                EXP_256[sum]
            }
        }
    }

    /// Returns the inverse of `a`, or `None` for zero. Bits above the field's width are ignored.
    #[must_use]
    pub fn inv(self, a: u8) -> Option<u8> {
        let a = a & self.mask();
        if a == 0 {
            return None;
        }

        Some(match self {
            Self::Gf2 => 1,
            Self::Gf16 => INVERSE_16[usize::from(a)],
            Self::Gf256 => INVERSE_256[usize::from(a)],
        })
    }

    /// Returns the quotient `a/b`, or `None` when `b` is zero.
    #[must_use]
    pub fn div(self, a: u8, b: u8) -> Option<u8> {
        self.inv(b).map(|inverse| self.mul(a, inverse))
    }
}
