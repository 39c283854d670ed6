//! Random linear network coding: encoder, recoder and decoder of a generation of symbols.
//!
//! A *generation* is a block of `k` *source symbols* of equal size (RFC 8406). A coded packet is a
//! linear combination of them; its `k` coefficients are its *coding vector*. A relay that holds
//! packets of a generation may send fresh combinations of them ([`Recoder`]). A receiver gets the
//! source back from any `k` linearly independent packets ([`Decoder`]). See T. Ho et al., "A Random
//! Linear Network Coding Approach to Multicast", IEEE Trans. Inf. Theory 52(10), 2006.
//!
//! # How it works
//! [`Encoder`] multiplies the matrix of source symbols with coding vectors. Recoder and decoder
//! share two parts: `basis` eliminates on coding vectors and so tells which packets are innovative,
//! and `store` keeps the innovative packets as they came and combines them. The decoder multiplies
//! the kept payloads with the inverse matrix, once. All arithmetic is in [`ncmesh_gf`].
//!
//! The `new` functions allocate everything; later calls do not allocate, except those of
//! [`Separator`]. Randomness is always an argument. [`agreeing`] and [`Probe`] tell true
//! packets from false ones.
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

mod agreement;
mod basis;
mod coefficients;
mod decoder;
mod encoder;
mod error;
mod packing;
mod probe;
mod recoder;
mod separator;
mod shape;
mod store;
mod window;

pub use agreement::agreeing;
pub use basis::Absorbed;
pub use coefficients::{draw, draw_sparse, expand_seed};
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::CodeError;
pub use ncmesh_gf::Field;
pub use packing::{pack, packed_len, unpack};
pub use probe::Probe;
pub use recoder::Recoder;
pub use separator::{Combination, Separated, Separator};
pub use shape::Shape;
pub use window::{Coded, Window};
