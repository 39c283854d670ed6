//! Finite-field kernels for network coding: GF(2), GF(2^4), GF(2^8).
//!
//! A [`Kernels`] value computes in one [`Field`] with the fastest instructions of the processor at
//! hand. It works on byte slices and on tables of rows ([`Rows`], [`RowsMut`]):
//!
//! | method | computes |
//! |---|---|
//! | [`Kernels::scale`] | `y = c·y` |
//! | [`Kernels::axpy`] | `y += c·x` |
//! | [`Kernels::combine`] | `out = Σ cᵢ·rowᵢ` |
//! | [`Kernels::accumulate`] | `out += Σ cᵢ·rowᵢ` |
//! | [`Kernels::product`] | `outⱼ = Σ cⱼᵢ·rowᵢ`, several outputs at once |
//! | [`Kernels::product_at`] | the same for chosen outputs only |
//! | [`Kernels::eliminate`] | one step of in-place Gauss-Jordan elimination |
//!
//! A payload byte holds one element of GF(2^8), two of GF(2^4) (low nibble first) or eight of
//! GF(2). A coefficient is always one byte; the kernels ignore bits above the field's width.
//!
//! # How it works
//! A *code path* is a set of instructions: GFNI, byte shuffles (SSSE3, AVX2, NEON), or plain
//! machine words. It supplies a register type and a product of that register with a constant (the
//! private module `vector`). The loops are generic over both and written once: products in
//! `skeleton`, elimination in `elimination`. `paths` instantiates them for each path and field,
//! and `path` picks the fastest path that the processor can run.
//!
//! Products by byte shuffle follow J. S. Plank, K. M. Greenan, E. L. Miller, "Screaming Fast
//! Galois Field Arithmetic Using Intel SIMD Instructions", FAST 2013.
//!
//! ```
//! use ncmesh_gf::{Field, Kernels};
//! let kernels = Kernels::best(Field::Gf256);
//! let mut y = [0u8; 3];
//! kernels.axpy(2, &[1, 0x80, 3], &mut y)?;
//! assert_eq!(y, [2, 0x1B, 6]);
//! # Ok::<(), ncmesh_gf::GfError>(())
//! ```
// Vector intrinsics and the pointer arithmetic of the register-blocked loops have no safe form.
// Every public function checks its slices first.
#![allow(unsafe_code)]

mod buffer;
mod elimination;
mod error;
mod field;
mod kernels;
mod path;
mod paths;
mod rows;
mod skeleton;
mod tables;
mod vector;

pub use buffer::RowBuffer;
pub use error::GfError;
pub use field::Field;
pub use kernels::Kernels;
pub use rows::{Rows, RowsMut};
