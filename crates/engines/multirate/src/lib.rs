//! Multirate multicast with in-network congestion control (Paschos, Li, Modiano, Choumas, Korakis,
//! IEEE/ACM ToN 24(5), 2016, DOI 10.1109/TNET.2015.2503261).
//!
//! A source sends a stream in layers to receivers whose links differ. Nodes drop the layers that do
//! not fit, where they do not fit, so that every receiver gets the rate that its own links allow.
//! Two kinds of backlog decide everything, slot by slot. A queue towards each child in the tree
//! drops packets when it grows beyond its drop queue, which keeps it bounded. A virtual queue at
//! each receiver pushes back: its pressure is part of the differential backlog by which links are
//! scheduled, and rises when more arrives than the receiver's utility asks for.
//!
//! The modules are in two groups:
//!
//! | modules | what they are |
//! | --- | --- |
//! | `parameters`, `policy`, `utility`, `queue`, `dropping`, `receiver`, `scheduling`, `tree` | the paper's decisions: arithmetic on backlogs, public for the slotted model |
//! | `frame`, `packet_queue`, `child`, `source`, `local_receiver`, `rate_monitor`, `link_rate`, `session`, `engine` | [`Multirate`], the engine that carries live streams by these decisions |
//!
//! Departures from the paper: `ERRATA.md`.

mod child;
mod config;
mod dropping;
mod engine;
mod frame;
mod link_rate;
mod local_receiver;
mod packet_queue;
mod parameters;
mod policy;
mod queue;
mod rate_monitor;
mod receiver;
mod scheduling;
mod session;
mod source;
mod tree;
mod utility;

#[cfg(test)]
mod tests;

pub use config::MultirateConfig;
pub use dropping::{Dropping, Due, Moved, Queues};
pub use engine::{ID, Multirate};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
pub use parameters::{Explained, Given, ParameterError, Parameters};
pub use policy::Policy;
pub use queue::Packets;
pub use receiver::Receiver;
pub use scheduling::{Candidate, differential_backlog, max_weight, pressure};
pub use tree::{Hop, Tree, TreeError};
pub use utility::Utility;

/// Name of the scheme.
pub const NAME: &str = "multirate";

/// Row of this scheme in a program's registry.
pub const MULTIRATE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "live layered multicast; every receiver at the rate its own links allow",
    paper: "Paschos et al.: In-Network Congestion Control for Multirate Multicast \
            (IEEE/ACM ToN 2016)",
    settings: MultirateConfig::settings,
    layouts: frame::LAYOUTS,
    read: |_, kind, body| frame::summary(kind, body),
    build: Constructor::Stream(|settings| {
        let config: MultirateConfig = settings.parse()?;
        Ok(Box::new(Multirate::new(config)?))
    }),
};
