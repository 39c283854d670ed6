//! Reliable multicast of files: Pacifier, MORE and two baselines without coding.
//!
//! The schemes share one engine, [`multicast`]: announcement, coding, forwarding, acknowledgment,
//! verification and resumption. A scheme adds its plan: who forwards a batch, how much everyone
//! sends, and when the source moves on to another batch.
//!
//! | module | scheme | plan |
//! | --- | --- | --- |
//! | [`pacifier`] | `pacifier` | a tree of shortest paths, credits, round robin |
//! | [`more`] | `more` | belts: every node nearer to a receiver than the source |
//! | [`uncoded`] | `etx_unicast`, `tree_flood` | a tree, each hop repeated until it succeeds |
//!
//! Each scheme exports a row for the registry of a program ([`PACIFIER`], [`MORE`],
//! [`ETX_UNICAST`], [`TREE_FLOOD`]).

pub mod cascade;
pub mod more;
pub mod multicast;
pub mod pacifier;
pub mod uncoded;

#[cfg(test)]
mod node_tests;

pub use cascade::CASCADE;
pub use more::MORE;
pub use pacifier::PACIFIER;
pub use uncoded::{ETX_UNICAST_ENTRY as ETX_UNICAST, TREE_FLOOD_ENTRY as TREE_FLOOD};
