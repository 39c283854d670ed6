//! ncmesh scenarios and the virtual-clock driver.
//!
//! A [`scenario`] says which nodes there are, how they hear each other and what is sent. A [`Simulation`] runs
//! the very engines of the daemon over it, on a virtual clock, from a seed: same scenario and seed, same trace.

mod experiment;
mod host;
mod measure;
pub mod scenario;
mod simulation;
mod trace;

pub use experiment::{
    Outcome, ReceiverOutcome, RunError, TransferOutcome, contents, run, settling_time,
};
pub use host::{Happening, Host};
pub use measure::measure;
pub use simulation::{Knowledge, Mischief, Simulation, SimulationConfig, SimulationError, node_id};
