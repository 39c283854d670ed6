//! COPE-like forwarding, CORE's baseline: packets as they are, two that cross at a relay xored, and what is missing asked for by
//! its number (Hansen et al., Computer Networks 145, 2018, sections 5.2, 6 and 7; COPE: Katti et al., SIGCOMM 2006). It is CORE's
//! engine without coding within flows.

mod config;

use crate::Core;
use crate::frame;
pub use config::CopeConfig;
use ncmesh_engine::Summary;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_wire::ServiceId;

/// The scheme's name.
pub const NAME: &str = "cope";
/// Under which its frames travel.
pub const ID: ServiceId = ServiceId(25);

/// Row of this scheme in a program's registry.
pub const COPE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "its baseline: packets as they are, two xored where flows cross at a relay",
    paper: "Hansen et al.: CORE (Computer Networks 2018); Katti et al.: COPE (SIGCOMM 2006)",
    read: |_, kind, body| summary(kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: CopeConfig = settings.parse()?;
        config.check()?;
        Ok(Box::new(engine(&config)))
    }),
};

/// The engine with these settings.
#[must_use]
pub fn engine(config: &CopeConfig) -> Core {
    Core::with_rules(ID, config.rules())
}

/// What a frame of (kind, fields) says of itself.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    frame::summary(NAME, kind, body)
}
