//! Tests of the engine at one node. Whole meshes: `tests/tests/it/live.rs`.

mod frames;
mod node;
mod relays;
mod rules;
