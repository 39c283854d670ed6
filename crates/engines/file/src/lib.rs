//! File schemes that plan at the source: Pacifier, MORE and two baselines without coding.
//!
//! The schemes share one carrier of packets, [`planned`]. A scheme adds its plan: who forwards a
//! generation, how much every node sends, and when the source moves on to another generation.
//!
//! | module | scheme | plan |
//! | --- | --- | --- |
//! | [`pacifier`] | `pacifier` | a tree of shortest paths, credits, round robin |
//! | [`more`] | `more` | belts: every node nearer to a receiver than the source |
//! | [`uncoded`] | `etx_unicast`, `tree_flood` | a tree, each hop repeated until it succeeds |
//!
//! Each scheme exports a row for the registry of a program ([`PACIFIER`], [`MORE`],
//! [`ETX_UNICAST`], [`TREE_FLOOD`]).

pub mod more;
pub mod pacifier;
pub mod planned;
pub mod uncoded;

#[cfg(test)]
mod node_tests;

pub use more::MORE;
pub use pacifier::PACIFIER;
pub use uncoded::{ETX_UNICAST_ENTRY as ETX_UNICAST, TREE_FLOOD_ENTRY as TREE_FLOOD};
