//! The cascade: coded packets hop by hop, by rank.
//!
//! Not from a paper of this project. `docs/internals/cascade.md` says what it takes from others,
//! and how it was chosen. The mechanism is [`crate::multicast`]'s `by_rank`.

mod config;

use crate::multicast::{FileMulticast, LAYOUTS_BY_RANK, frame};
pub use config::CascadeConfig;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
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
    layouts: LAYOUTS_BY_RANK,
    read: |_, kind, body| frame::summary_by_rank(NAME, kind, body),
    build: Constructor::File(|settings| {
        let config: CascadeConfig = settings.parse()?;
        Ok(Box::new(FileMulticast::by_rank(ID, config.packets(), settings.file)))
    }),
};
