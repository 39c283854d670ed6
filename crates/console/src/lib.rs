//! Messages that describe a mesh to a console, and recordings of them.
//!
//! [`schema`] has the messages; `docs/reference/console.md` explains them. The console's types in
//! TypeScript are generated from it. A [`Sampler`] makes messages from the state that a source
//! tells, and a [`recording`] is a file of them. Sources are the simulator, daemons and labs; this
//! crate knows none of them.

pub mod recording;
mod sampler;
pub mod schema;

pub use sampler::{Sampler, Sink};
