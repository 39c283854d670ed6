//! One node of the mesh: link measurement, link state, the airtime scheduler and the engines.
//!
//! A [`Stack`] has no sockets, threads or clock. Its driver, the simulator or the daemon, tells it
//! what was heard and what time it is, and asks it for a frame when the medium grants a
//! transmission. Same configuration, same calls: same frames, byte for byte.
//!
//! The engines come from the [`Registry`](ncmesh_engine::registry::Registry) that the driver passes
//! in; this crate knows none of them.

mod active;
mod config;
pub mod control;
mod egress;
mod impostor;
pub mod link;
mod links;
mod pairs;
mod peers;
mod port;
pub mod route;
pub mod share;
mod stack;
mod statements;
mod strangers;
pub mod summary;
mod transfers;
pub mod trust;
mod usage;

#[cfg(test)]
mod tests;

pub use config::{ConfigError, MTUS, StackConfig};
pub use links::Unicast;
pub use share::CarrierTime;
pub use stack::{Active, Stack, Transmission};
pub use usage::{ControlUsage, Usage};
