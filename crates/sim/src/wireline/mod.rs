//! The slotted wireline model of multirate multicast (Paschos et al., IEEE/ACM ToN 24(5), 2016, section II): links
//! that all carry packets at once, and the policies of [`ncmesh_engine_multirate`] at every node.
//!
//! [`Network`] says what there is, [`Setup`] how it is controlled, [`run`] what comes of it: same seed, same result.

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
