//! Values of states that have parts of their own.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How much of a generation is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Rank {
    /// Number of the generation, from 0.
    pub generation: u32,
    /// Innovative packets of it that are there.
    pub rank: u32,
    /// Packets that it takes to decode it.
    pub size: u32,
}

/// A hop of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// Id of the node.
    pub node: u16,
    /// Id of its previous hop, towards the source.
    pub parent: u16,
}
