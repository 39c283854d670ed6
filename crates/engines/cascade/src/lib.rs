//! The cascade, the default file scheme: a node sends while a child lacks what it has.
//!
//! Not from a paper of this project. `docs/internals/cascade.md` says what it takes from others,
//! and how it was chosen.
//!
//! Each node takes the file from one neighbour, its parent, and tells it what it still wants. A
//! parent counts what it sends and what arrives, and so knows when a child should have enough; then
//! it asks. Nothing is planned, and each report corrects what was expected:
//!
//! ```text
//!             data: rank of the sender, its wants, a combination
//!        parent --------------------------------------------> child
//!               <--------------------------------------------
//!             report: wants, and the rank held of each generation
//! ```
//!
//! How a node decides what to send next, and what braid has in common with that, is in
//! [`ncmesh_engine::toolkit::hop`].
//!
//! - A data packet says what its sender still wants, so a parent that overhears its child forward
//!   learns the child's rank without a report.
//! - A packet serves every child that lacks anything, and every other node that hears it.
//! - A child that forwards gets no more than a few generations ahead of what it has passed on.
//!   Generations follow one another down the tree, and no clock says how fast.
//! - Every node checks a generation once it is whole (`held`).
//!
//! | module | contents |
//! | --- | --- |
//! | `cascade` | the transfers that this node has a part in; serves [`FileMulticast`] as carrier |
//! | `flow` | a transfer at this node: what to send next |
//! | `held` | what it holds, and whether that is genuine |
//! | `sending` | a file that this node sends |
//! | `child` | what a child wants and should have by now |
//! | `slot` | silence for answers that this node may not hear |
//! | `tree` | the parents that a transfer begins with |
//! | `upstream` | which node is the parent, and when to report to it |
//! | [`frame`] | frames |

mod cascade;
mod child;
mod config;
mod flow;
pub mod frame;
mod held;
mod sending;
mod slot;
mod tree;
mod upstream;

#[cfg(test)]
mod tests;

pub use config::CascadeConfig;

use cascade::Cascade;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_transfer::FileMulticast;
use ncmesh_wire::ServiceId;

/// Name of the scheme.
pub const NAME: &str = "cascade";
/// Service byte of its frames.
pub const ID: ServiceId = ServiceId(26);

/// Row of the cascade in a program's registry.
pub const CASCADE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "coded hop by hop: a node sends while a child lacks what it has",
    paper: "none",
    settings: CascadeConfig::settings,
    layouts: frame::LAYOUTS,
    read: |_, kind, body| frame::summary(NAME, kind, body),
    build: Constructor::File(|settings| {
        let config: CascadeConfig = settings.parse()?;
        let cascade = Cascade::new(config.packets(), settings.file.memory);
        Ok(Box::new(FileMulticast::new(ID, cascade, settings.file)))
    }),
};
