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
    /// Whether a load and a store of a part cost no more than those of a whole register.
    const MASKED: bool;

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
    /// Returns the bitwise exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
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

/// Loads `count < 8` bytes, followed by zeros. They are joined from overlapping words, since a copy
/// of a length that is not constant is a call.
#[inline(always)]
pub(crate) unsafe fn load_part_of_8(from: *const u8, count: usize) -> [u8; 8] {
    // SAFETY: the caller promises `count` bytes; both words lie inside them.
    let bits = unsafe {
        match count {
            4.. => {
                let low = u32::from_le(from.cast::<u32>().read_unaligned());
                let high = u32::from_le(from.add(count - 4).cast::<u32>().read_unaligned());
                u64::from(low) | u64::from(high) << ((count - 4) * 8)
            }
            2.. => {
                let low = u16::from_le(from.cast::<u16>().read_unaligned());
                let high = u16::from_le(from.add(count - 2).cast::<u16>().read_unaligned());
                u64::from(low) | u64::from(high) << ((count - 2) * 8)
            }
            1 => u64::from(from.read()),
            0 => 0,
        }
    };
    bits.to_le_bytes()
}

/// Stores the first `count < 8` of these bytes, as [`load_part_of_8`] loads them.
#[inline(always)]
pub(crate) unsafe fn store_part_of_8(bytes: [u8; 8], to: *mut u8, count: usize) {
    let bits = u64::from_le_bytes(bytes);
    // SAFETY: the caller promises `count` bytes; both words lie inside them.
    unsafe {
        match count {
            4.. => {
                to.cast::<u32>().write_unaligned((bits as u32).to_le());
                let high = (bits >> ((count - 4) * 8)) as u32;
                to.add(count - 4).cast::<u32>().write_unaligned(high.to_le());
            }
            2.. => {
                to.cast::<u16>().write_unaligned((bits as u16).to_le());
                let high = (bits >> ((count - 2) * 8)) as u16;
                to.add(count - 2).cast::<u16>().write_unaligned(high.to_le());
            }
            1 => to.write(bits as u8),
            0 => {}
        }
    }
}

/// Loads `count < 16` bytes, followed by zeros, as [`load_part_of_8`] does.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(crate) unsafe fn load_part_of_16(from: *const u8, count: usize) -> [u8; 16] {
    // SAFETY: the caller promises `count` bytes; both words lie inside them.
    let bits = unsafe {
        if count >= 8 {
            let low = u64::from_le(from.cast::<u64>().read_unaligned());
            let high = u64::from_le(from.add(count - 8).cast::<u64>().read_unaligned());
            u128::from(low) | u128::from(high) << ((count - 8) * 8)
        } else {
            u128::from(u64::from_le_bytes(load_part_of_8(from, count)))
        }
    };
    bits.to_le_bytes()
}

/// Stores the first `count < 16` of these bytes, as [`load_part_of_8`] loads them.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(crate) unsafe fn store_part_of_16(bytes: [u8; 16], to: *mut u8, count: usize) {
    let bits = u128::from_le_bytes(bytes);
    // SAFETY: the caller promises `count` bytes; both words lie inside them.
    unsafe {
        if count >= 8 {
            to.cast::<u64>().write_unaligned((bits as u64).to_le());
            let high = (bits >> ((count - 8) * 8)) as u64;
            to.add(count - 8).cast::<u64>().write_unaligned(high.to_le());
        } else {
            store_part_of_8((bits as u64).to_le_bytes(), to, count);
        }
    }
}
