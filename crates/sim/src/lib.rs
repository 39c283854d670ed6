//! ncmesh scenarios and the virtual-clock driver.
//!
//! A [`scenario`] says which nodes there are, how they hear each other and what is sent. A [`Simulation`] runs
//! the very engines of the daemon over it, on a virtual clock, from a seed: same scenario and seed, same trace.

mod capture;
mod event_lines;
mod experiment;
mod gateway;
mod host;
mod measure;
mod observe;
mod observers;
pub mod scenario;
mod simulation;
mod tcp;
mod trace;

pub use capture::{Capture, CapturePoints};
pub use event_lines::EventLines;
pub use experiment::{
    Carried, CodingOutcome, FlowOutcome, FlowSeries, FlowsOutcome, Outcome, ReceiverOutcome,
    RunError, StreamLayerOutcome, StreamOutcome, StreamQueueOutcome, StreamReceiverOutcome,
    StreamSeries, StreamsOutcome, TransferOutcome, check_traffic, contents, run, settling_time,
};
pub use host::{Host, Observation};
pub use measure::measure;
pub use observe::{Event, Observer, What};
pub use simulation::{
    Arrival, Disturbance, IpArrival, Knowledge, Simulation, SimulationConfig, SimulationError,
    StreamArrival, node_id,
};
pub use tcp::{Congestion, TcpOutcome};
