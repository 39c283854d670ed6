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
pub(crate) use frame::summary;
pub use parameters::{Explained, Given, ParameterError, Parameters};
pub use policy::Policy;
pub use queue::{LAYERS, Packets};
pub use receiver::Receiver;
pub use scheduling::{differential_backlog, most_pressing, pressure};
pub use tree::{Hop, Tree, TreeError};
pub use utility::{Utility, UtilityConfig, UtilityError};

/// The engine's name.
pub const NAME: &str = "multirate";
