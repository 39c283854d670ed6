//! Mechanisms that engines are built from. Each exists once; engines configure it.
//!
//! | module | mechanism |
//! | --- | --- |
//! | [`average`] | exponentially weighted moving averages |
//! | [`backoff`] | pauses that double |
//! | [`bounded`] | tables with eviction |
//! | [`coder`] | what a node has of one generation |
//! | [`dispute`] | packets of a generation of which some are false |
//! | [`flood`] | flooding over lossy broadcast |
//! | [`flow`] | identity of a tunnel's flow |
//! | [`flow_counters`] | counters for each flow |
//! | [`hop`] | the hop: how the default engines decide what to send next, and its parts |
//! | [`live`] | announcements, membership and records of live streams |
//! | [`precedence`] | real-time traffic goes first, and keeps nobody out |
//! | [`retry`] | repetition of one message until it is acknowledged |
//! | [`sequence`] | numbers that wrap, windows over them |

pub mod average;
pub mod backoff;
pub mod bounded;
pub mod coder;
pub mod dispute;
pub mod flood;
pub mod flow;
pub mod flow_counters;
pub mod histogram;
pub mod hop;
pub mod live;
pub mod precedence;
pub mod retry;
pub mod sequence;

/// Packets of its own that a tunnel scheme without windows keeps ready: enough to use a channel
/// that is granted at once.
const READY: usize = 4;

/// Returns whether `own` holds enough packets for the next grants.
pub fn has_enough<T>(mut own: impl Iterator<Item = T>) -> bool {
    own.nth(READY - 1).is_some()
}
