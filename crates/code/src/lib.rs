//! Random linear network coding: Encoder, Recoder, Decoder over a generation
//! of symbols.
//!
//! A *generation* is `k` source symbols of equal size. A coded packet is a
//! linear combination of them, sent with its `k` *coefficients*. Any node that
//! holds packets of a generation may send fresh combinations of what it holds
//! ([`Recoder`]), and any `k` linearly independent packets give the source
//! back ([`Decoder`]). See T. Ho et al., "A Random Linear Network Coding
//! Approach to Multicast", IEEE Trans. Inf. Theory 52(10), 2006.
//!
//! Everything is allocated by the `new` functions; nothing after them
//! allocates, but for [`Separator`]. Randomness always comes in as an argument.
//!
//! ```
//! use ncmesh_code::{CodeError, Decoder, Encoder, Field, Shape, draw};
//! # use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//! # let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let shape = Shape::new(Field::Gf256, 4, 16)?;
//! let mut encoder = Encoder::new(shape);
//! encoder.load(b"sixty-four bytes at most, padded with zeros")?;
//! let mut decoder = Decoder::new(shape);
//! let (mut coefficients, mut payload) = ([0; 4], [0; 16]);
//! while !decoder.is_complete() {
//!     draw(shape.field(), &mut rng, &mut coefficients);
//!     encoder.encode(&coefficients, &mut payload)?;
//!     decoder.absorb(&coefficients, &payload)?;
//! }
//! assert!(decoder.decode().is_some_and(|data| data.starts_with(b"sixty-four")));
//! # Ok::<(), CodeError>(())
//! ```

mod basis;
mod coefficients;
mod decoder;
mod encoder;
mod error;
mod packing;
mod recoder;
mod separator;
mod shape;
mod store;

pub use basis::Absorbed;
pub use coefficients::{draw, draw_sparse, expand_seed};
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::CodeError;
pub use ncmesh_gf::Field;
pub use packing::{pack, packed_len, unpack};
pub use recoder::Recoder;
pub use separator::{Combination, Separated, Separator};
pub use shape::Shape;
