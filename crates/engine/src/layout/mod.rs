//! Interpreter of layouts, and what several of them have in common.

mod read;

pub use ncmesh_wire::layout::*;
pub use read::{Content, Value, describe, find, read};
