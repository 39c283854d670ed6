//! COPE-like forwarding, the baseline that the paper compares CORE with.
//!
//! Packets travel as they are. Two that cross at a relay are xored; a receiver that has the other
//! packet decodes at once, or not at all. What a destination lacks at the end of a generation it
//! asks the source for by number. It is CORE's engine with other parameters: nothing is coded
//! within flows.
//!
//! Hansen et al., Computer Networks 145, 2018, sections 5.2, 6 and 7. COPE itself: Katti et al.,
//! SIGCOMM 2006.

mod config;

pub use config::CopeConfig;

use crate::Core;
use crate::frame;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_wire::ServiceId;

/// Name of the scheme.
pub const NAME: &str = "cope";
/// Service byte of its frames.
pub const ID: ServiceId = ServiceId(25);

/// Row of this scheme in a program's registry.
pub const COPE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "its baseline: packets as they are, two xored where flows cross at a relay",
    paper: "Hansen et al.: CORE (Computer Networks 2018); Katti et al.: COPE (SIGCOMM 2006)",
    settings: CopeConfig::settings,
    layouts: frame::LAYOUTS,
    read: |_, kind, body| frame::summary(NAME, kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: CopeConfig = settings.parse()?;
        Ok(Box::new(engine(&config)))
    }),
};

/// Returns an engine with these settings.
#[must_use]
pub fn engine(config: &CopeConfig) -> Core {
    Core::with_parameters(ID, config.parameters())
}
