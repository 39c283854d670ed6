//! Finite-field kernels for network coding: GF(2), GF(2^4), GF(2^8).
//!
//! A [`Kernels`] value is one code path bound to one [`Field`]. It works on
//! byte slices and on tables of rows ([`Rows`], [`RowsMut`]):
//!
//! | method | computes |
//! |---|---|
//! | [`Kernels::xor`] | `y += x` |
//! | [`Kernels::scale`] | `y = c·y` |
//! | [`Kernels::axpy`] | `y += c·x` |
//! | [`Kernels::combine`] | `out = Σ cᵢ·rowᵢ` |
//! | [`Kernels::accumulate`] | `out += Σ cᵢ·rowᵢ` |
//! | [`Kernels::product`] | `outⱼ = Σ cⱼᵢ·rowᵢ`, several outputs at once |
//! | [`Kernels::product_at`] | the same for chosen outputs only |
//! | [`Kernels::eliminate`] | one step of in-place Gauss-Jordan elimination |
//!
//! A payload byte holds one element of GF(2^8), two of GF(2^4) (low nibble
//! first) or eight of GF(2). A coefficient is always one byte; bits above the
//! field's width are ignored by the kernels.
//!
//! ```
//! use ncmesh_gf::{Field, Kernels};
//! let kernels = Kernels::best(Field::Gf256);
//! let mut y = [0u8; 3];
//! kernels.axpy(2, &[1, 0x80, 3], &mut y)?;
//! assert_eq!(y, [2, 0x1B, 6]);
//! # Ok::<(), ncmesh_gf::GfError>(())
//! ```
// Vector intrinsics and the pointer arithmetic of the register-blocked loops
// have no safe form; every public function here checks its slices first.
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
pub use path::Path;
pub use rows::{Rows, RowsMut};
