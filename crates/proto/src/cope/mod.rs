//! COPE-like forwarding, CORE's baseline: packets as they are, two that cross at a relay xored, and what is missing asked for by
//! its number (Hansen et al., Computer Networks 145, 2018, sections 5.2, 6 and 7; COPE: Katti et al., SIGCOMM 2006). It is CORE's
//! engine without coding within flows.

mod config;

use crate::core_nc::Engine;
use crate::core_nc::frame;
use crate::summary::Summary;
pub use config::CopeConfig;
use ncmesh_wire::ServiceId;

/// The scheme's name.
pub const NAME: &str = "cope";
/// Under which its frames travel.
pub const ID: ServiceId = ServiceId(25);

/// The engine with these settings.
#[must_use]
pub fn engine(config: &CopeConfig) -> Engine {
    Engine::with_rules(ID, config.rules())
}

/// What a frame of (kind, fields) says of itself.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    frame::summary(NAME, kind, body)
}
