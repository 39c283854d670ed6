//! Reliable multicast of files: Pacifier, MORE and two uncoded baselines.
//!
//! The schemes share one engine, [`multicast`]: announcement, coding, acknowledgments, verification
//! and resumption. A scheme decides who forwards how much and when the source moves on to another
//! batch.

pub mod more;
pub mod multicast;
pub mod pacifier;
pub mod uncoded;

#[cfg(test)]
mod in_a_node;

pub use more::MORE;
pub use pacifier::PACIFIER;
pub use uncoded::{ETX_UNICAST_ENTRY as ETX_UNICAST, TREE_FLOOD_ENTRY as TREE_FLOOD};
