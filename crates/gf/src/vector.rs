//! What a code path supplies: a vector register and a product by a constant.
//!
//! All functions are `unsafe` for one shared reason: they may use instructions
//! that the processor must have (the caller checked), and the pointers must be
//! valid for the bytes they touch.

/// A register of bytes.
pub(crate) trait Vector: Copy {
    /// Bytes in the register.
    const WIDTH: usize;

    unsafe fn zero() -> Self;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    /// Loads `count < WIDTH` bytes; the others are zero.
    unsafe fn load_part(from: *const u8, count: usize) -> Self;
    /// Stores the first `count < WIDTH` bytes.
    unsafe fn store_part(self, to: *mut u8, count: usize);
    /// Bit by bit.
    unsafe fn and(self, other: Self) -> Self;
    /// The place of the first byte that is not zero.
    unsafe fn first_nonzero(self) -> Option<usize>;
}

/// Multiplication of every element in a register by one coefficient.
pub(crate) trait Multiply<V: Vector> {
    /// A coefficient, ready to multiply with.
    type Factor: Copy;
    /// A register of elements, ready to be multiplied by many factors.
    type Operand: Copy;

    unsafe fn factor(coefficient: u8) -> Self::Factor;
    unsafe fn operand(x: V) -> Self::Operand;
    /// `sum + factor·x`
    unsafe fn fold(sum: V, x: Self::Operand, factor: Self::Factor) -> V;

    /// `sum + f0·x0 + f1·x1`, for paths with a three-way exclusive or.
    #[inline(always)]
    unsafe fn fold_two(sum: V, x: [Self::Operand; 2], factor: [Self::Factor; 2]) -> V {
        // SAFETY: same contract as this function's.
        unsafe { Self::fold(Self::fold(sum, x[0], factor[0]), x[1], factor[1]) }
    }
}

/// [`Vector::first_nonzero`] by way of memory; for registers of at most 32
/// bytes, and whole words.
#[inline(always)]
pub(crate) unsafe fn first_nonzero_stored<V: Vector>(register: V) -> Option<usize> {
    let mut bytes = [0; 32];
    // SAFETY: the buffer holds the register.
    unsafe { register.store(bytes.as_mut_ptr()) }
    let (words, _) = bytes[..V::WIDTH].as_chunks::<8>();
    let word = words.iter().position(|&word| u64::from_le_bytes(word) != 0)?;
    Some(word * 8 + u64::from_le_bytes(words[word]).trailing_zeros() as usize / 8)
}
