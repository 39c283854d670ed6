//! Tests of the engine at one node. Whole meshes: `tests/tests/it/delta.rs`.

mod frames;
mod hop;
mod lies;
mod node;
mod window;
