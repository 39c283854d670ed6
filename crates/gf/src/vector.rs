//! The two traits that a code path implements: a vector register, and multiplication by a
//! constant.
//!
//! [`Vector`] loads and stores bytes; [`Multiply`] is implemented once per field. A product is
//! split into three parts, so that loops can hoist them: [`Multiply::factor`] prepares a
//! coefficient once for many registers, [`Multiply::operand`] prepares a register once for many
//! coefficients, and [`Multiply::fold`] adds their product to a sum.
//!
//! All functions are `unsafe` for two shared reasons: they may use instructions that the processor
//! must have (the caller checks), and pointers must be valid for the bytes that they touch.

/// A register of bytes.
pub(crate) trait Vector: Copy {
    /// Bytes in the register.
    const WIDTH: usize;

    /// Returns a register of zeros.
    unsafe fn zero() -> Self;
    /// Loads `WIDTH` bytes.
    unsafe fn load(from: *const u8) -> Self;
    /// Stores `WIDTH` bytes.
    unsafe fn store(self, to: *mut u8);
    /// Loads `count < WIDTH` bytes and sets the others to zero.
    unsafe fn load_part(from: *const u8, count: usize) -> Self;
    /// Stores the first `count < WIDTH` bytes.
    unsafe fn store_part(self, to: *mut u8, count: usize);
    /// Returns the bitwise AND.
    unsafe fn and(self, other: Self) -> Self;
    /// Returns the index of the first byte that is not zero.
    unsafe fn first_nonzero(self) -> Option<usize>;
}

/// Multiplication of every element in a register by one coefficient.
pub(crate) trait Multiply<V: Vector> {
    /// A coefficient, prepared to multiply registers.
    type Factor: Copy;
    /// A register of elements, prepared to be multiplied by many factors.
    type Operand: Copy;

    /// Prepares a coefficient. Bits above the field's width are ignored.
    unsafe fn factor(coefficient: u8) -> Self::Factor;
    /// Prepares a register.
    unsafe fn operand(x: V) -> Self::Operand;
    /// Returns `sum + factor·x`.
    unsafe fn fold(sum: V, x: Self::Operand, factor: Self::Factor) -> V;

    /// Returns `sum + f0·x0 + f1·x1`. Paths with a three-way exclusive or override it.
    #[inline(always)]
    unsafe fn fold_two(sum: V, x: [Self::Operand; 2], factor: [Self::Factor; 2]) -> V {
        // SAFETY: the caller keeps the same contract.
        unsafe { Self::fold(Self::fold(sum, x[0], factor[0]), x[1], factor[1]) }
    }
}

/// Implements [`Vector::first_nonzero`] through memory, for registers of 8, 16 or 32 bytes.
#[inline(always)]
pub(crate) unsafe fn first_nonzero_stored<V: Vector>(register: V) -> Option<usize> {
    let mut bytes = [0; 32];
    // SAFETY: the buffer holds the register.
    unsafe { register.store(bytes.as_mut_ptr()) }
    let (words, _) = bytes[..V::WIDTH].as_chunks::<8>();
    let word = words.iter().position(|&word| u64::from_le_bytes(word) != 0)?;
    Some(word * 8 + u64::from_le_bytes(words[word]).trailing_zeros() as usize / 8)
}
