//! MC2, multipath code casting: unicast over all good paths at once (Gkantsidis, Hu, Key,
//! Radunovic, Rodriguez and Gheorghiu, CoNEXT 2007; DOI 10.1145/1364654.1364667).
//!
//! The source cuts its packets into generations and joins the best paths to the destination into
//! one graph. Every node on it broadcasts random linear combinations of what it has of a
//! generation. Relays that hear the same frame need not agree on who forwards it: their
//! combinations differ and are all of use. They only have to agree on how *many* each sends.
//! Credits settle that: a credit is the duty to pass on one packet of a generation. Back-pressure
//! moves credits to the next hops that hold few, and so finds how much each path carries (3.4).
//!
//! A reader may go through the modules in this order:
//!
//! | module | what it is |
//! | --- | --- |
//! | `paths`, `hops` | the graph of a flow; sets of next hops |
//! | `choice`, `prediction`, `simplex` | which paths; what they carry at best; linear programs |
//! | `frame`, `generation` | frames; combinations of one generation |
//! | `ledger`, `credits` | the paper's algorithm: credits of one generation, of one flow |
//! | `frame_log`, `downstream` | who received what; when to send, and what to announce |
//! | `upstream` | acknowledgments and credits of previous hops |
//! | `ingress`, `egress` | the flow's ends: rate of insertion, order and end-to-end recovery |
//! | `flow`, `engine` | all of that for one flow; the engine with its flows |
//! | `share` | which flow goes first although others weigh more |
//!
//! Departures from the paper: `ERRATA.md`.

mod channel_access;
mod choice;
mod config;
mod credits;
mod downstream;
mod egress;
mod engine;
mod flow;
mod frame;
mod frame_log;
mod generation;
mod hops;
mod ingress;
mod ledger;
mod paths;
mod prediction;
mod share;
mod simplex;
mod upstream;

#[cfg(test)]
mod tests;

pub use config::Mc2Config;
pub use engine::Mc2;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_wire::ServiceId;

/// Name of the scheme.
pub const NAME: &str = "mc2";
/// Service number of its frames.
pub const ID: ServiceId = ServiceId(22);

/// Row of this scheme in a program's registry.
pub const MC2: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "packets over all good paths at once, coded; fair among flows",
    paper: "Gkantsidis et al.: Multipath Code Casting (CoNEXT 2007)",
    settings: Mc2Config::settings,
    layouts: frame::LAYOUTS,
    read: |_, kind, body| frame::summary(kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: Mc2Config = settings.parse()?;
        Ok(Box::new(Mc2::new(config)))
    }),
};
