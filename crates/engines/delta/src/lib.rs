//! Delta: live layered streams over lossy hops, coded over a sliding window.
//!
//! Each node broadcasts what its next hops in the tree lack. Every frame says what its sender has
//! of each layer, so that a frame which is sent on is a report, and one broadcast serves all next
//! hops:
//!
//! ```text
//!   source          relay           receivers
//!     | packet 5      |                |
//!     |-------------->| packet 5       |
//!     |<- has to 5 ---|--------------->|   one of two lacks it
//!     | packet 6      |<- report ------|
//!     |------- x      | packet 5       |
//!     | packet 7      |--------------->|
//!     |-------------->| packet 7       |
//!     |<- lacks 6 ----|--------------->|
//!     | packet 6      |                |
//! ```
//!
//! - A packet goes as it is the first time. What is known to be lost goes again: as it is, or, if
//!   several next hops lack different packets, as a combination that repairs all of them.
//! - Every packet has an age, and its stream a deadline. A packet that is too old is given up by
//!   every node at about the same time; no node waits for it.
//! - The base comes first: enhancement layers wait while a packet of the base is missing at a next
//!   hop, and while one is late anywhere behind it.
//! - A layer that reaches a next hop only in part pauses there. Others get it all the same.
//! - Next hops answer when they are asked, one after the other, and with their next packet if they
//!   send on.
//!
//! | module | contents |
//! | --- | --- |
//! | `engine` | the engine at one node: frames in, frames out |
//! | `api` | streams that this node sends, groups that it joins |
//! | `stream` | a stream at one node: what is sent next |
//! | `lane` | one layer of it: the window, and the time left to each packet |
//! | `child` | a next hop: what it has, what is on its way to it |
//! | `parent` | which neighbour the stream comes from |
//! | `frame` | frames |

mod api;
mod child;
mod config;
mod engine;
mod frame;
mod lane;
mod parent;
mod stream;

#[cfg(test)]
mod tests;

pub use config::DeltaConfig;
pub use engine::{Delta, ID};
pub use frame::NAME;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;

/// Row of this scheme in a program's registry.
pub const DELTA: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "live layered streams over lossy hops; the base first, coded hop by hop",
    paper: "none; see docs/internals/delta.md",
    settings: DeltaConfig::settings,
    layouts: frame::LAYOUTS,
    read: |_, kind, body| frame::summary(kind, body),
    build: Constructor::Stream(|settings| {
        let config: DeltaConfig = settings.parse()?;
        Ok(Box::new(Delta::new(config)))
    }),
};
