//! Multirate multicast with in-network congestion control (Paschos, Li, Modiano, Choumas, Korakis, IEEE/ACM ToN
//! 24(5), 2016, DOI 10.1109/TNET.2015.2503261): what each node, link and receiver decides in a slot.
//!
//! Everything here is arithmetic on backlogs; who drives it brings packets, slots and neighbours' reports: the
//! slotted model of `ncmesh-sim`. Where this leaves the paper: ERRATA.md.

mod dropping;
mod parameters;
mod policy;
mod queue;
mod receiver;
mod scheduling;
mod tree;
mod utility;

#[cfg(test)]
mod tests;

pub use dropping::{Dropping, Moved, Queues};
pub use parameters::{Explained, Given, ParameterError, Parameters};
pub use policy::Policy;
pub use queue::{LAYERS, Packets};
pub use receiver::Receiver;
pub use scheduling::{differential_backlog, most_pressing, pressure};
pub use tree::{Hop, Tree, TreeError};
pub use utility::{Utility, UtilityConfig, UtilityError};
