//! The slotted wireline network in which multirate multicast is analysed.
//!
//! In every slot each link carries as many packets as its capacity allows, and every node applies
//! the policies of [`ncmesh_engine_multirate`] to its queues. [`Network`] describes links and
//! sessions, [`Setup`] the policy and its parameters, and [`run`] returns rates and queue lengths.
//! The same seed gives the same result.
//!
//! Source: G. S. Paschos, C.-P. Li, E. Modiano, K. Choumas, T. Korakis: "In-Network Congestion
//! Control for Multirate Multicast", IEEE/ACM ToN 24(5), 2016, section II; MMU-W from section IV-F.

mod arrivals;
mod error;
mod fabric;
mod network;
mod outcome;
mod run;
mod series;
mod setup;
mod tally;

pub use arrivals::Kind;
pub use error::WirelineError;
pub use network::{Change, Link, Network, Node, Session};
pub use outcome::{Extent, Outcome, QueueOutcome, ReceiverOutcome, SessionOutcome};
pub use run::run;
pub use series::{Series, Track};
pub use setup::Setup;
