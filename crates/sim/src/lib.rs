//! Scenarios, and the simulator that runs them on a virtual clock.
//!
//! A [`scenario`] describes the nodes, the links between them and the traffic. A [`Simulation`]
//! runs the same engines as the daemon over it. All random draws come from one seed, so that the
//! same scenario and seed give the same trace. [`run`] carries the traffic of a scenario and
//! returns its results.

mod capture;
mod console;
mod event_lines;
mod experiment;
mod gateway;
mod host;
mod measure;
mod observe;
mod observers;
pub mod outcome;
pub mod scenario;
mod schemes;
mod simulation;
mod spent;
mod tcp;
mod trace;

pub use capture::{Capture, CapturePoints};
pub use console::Console;
pub use event_lines::EventLines;
pub use experiment::{RunError, Stage, Step, check_traffic, contents, run, settling_time};
pub use host::{Host, Observation};
pub use measure::measure;
pub use observe::{Event, Observer, Snapshot, What};
pub use outcome::Outcome;
pub use schemes::{Schemes, SchemesError};
pub use simulation::{
    Arrival, Disturbance, IpArrival, Knowledge, NewFile, Observed, Outage, Simulation,
    SimulationConfig, SimulationError, StreamArrival, node_id,
};
pub use spent::{Part, Spent, SpentOn};
