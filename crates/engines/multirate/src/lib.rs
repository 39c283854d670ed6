//! Multirate multicast with in-network congestion control (Paschos, Li, Modiano, Choumas, Korakis, IEEE/ACM ToN
//! 24(5), 2016, DOI 10.1109/TNET.2015.2503261): what each node, link and receiver decides in a slot.
//!
//! The decisions are arithmetic on backlogs; who drives them brings packets, slots and neighbours' reports: the
//! slotted model of `ncmesh-sim`, or [`Multirate`], the engine that carries live streams over the mesh. Where this
//! leaves the paper: ERRATA.md.

mod backlog;
mod config;
mod dropping;
mod engine;
mod frame;
mod hearing;
mod ledger;
mod parameters;
mod policy;
mod queue;
mod rate;
mod receiver;
mod scheduling;
mod service;
mod serving;
mod session;
mod taking;
mod tree;
mod utility;

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod tests;

pub use config::MultirateConfig;
pub use dropping::{Dropping, Due, Moved, Queues};
pub use engine::{ID, Multirate};
use ncmesh_engine::registry::{Constructor, Entry};
pub use parameters::{Explained, Given, ParameterError, Parameters};
pub use policy::Policy;
pub use queue::Packets;
pub use receiver::Receiver;
pub use scheduling::{differential_backlog, most_pressing, pressure};
pub use tree::{Hop, Tree, TreeError};
pub use utility::Utility;

/// The engine's name.
pub const NAME: &str = "multirate";

/// Row of this scheme in a program's registry.
pub const MULTIRATE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "live layered multicast; every receiver at the rate its own links allow",
    paper: "Paschos et al.: In-Network Congestion Control for Multirate Multicast (IEEE/ACM ToN 2016)",
    read: |_, kind, body| frame::summary(kind, body),
    build: Constructor::Stream(|settings| {
        let config: MultirateConfig = settings.parse()?;
        Ok(Box::new(Multirate::new(config)?))
    }),
};
