//! ncmesh scenarios and the virtual-clock driver.

mod host;
mod simulation;
mod trace;

pub use host::{Happening, Host};
pub use simulation::{Mischief, Simulation, SimulationConfig, SimulationError, node_id};
