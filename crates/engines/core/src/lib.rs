//! CORE: packets coded within flows, and between flows where they cross at a relay.
//!
//! Hansen, Krigslund, Lucani, Pahlevani, Fitzek, Computer Networks 145, 2018 (DOI
//! 10.1016/j.comnet.2018.07.014), sections 4 and 6. `ERRATA.md` lists where the engine leaves the
//! paper. The same engine without coding within flows is the baseline [`cope`].
//!
//! # How it works
//!
//! A source cuts its packets into generations and sends random linear combinations of the packets
//! of one generation. Any `n` independent combinations are worth `n` packets, so it does not matter
//! which of them are lost. A relay recodes what it has received.
//!
//! Where two flows cross at a relay, it sends one frame with a combination of each flow, xored.
//! Each receiver eliminates the other flow, whose packets it has overheard. So one broadcast serves
//! two receivers, and beyond them the flows are separate again.
//!
//! ```text
//!   S1 . . . . . > D2      S1 sends p1 to D1 and S2 sends p2 to D2, both through R.
//!      \         ^
//!       v       /         D2 overhears p1, and D1 overhears p2.
//!           R
//!       ^       \         R broadcasts p1 xor p2.
//!      /         v
//!   S2 . . . . . > D1
//! ```
//!
//! Each hop works towards full rank at the next hop:
//!
//! 1. Every packet that is to be forwarded earns *credit*, x / r transmissions. A transmission
//!    costs one, and more while flows are combined (`sending`).
//! 2. When the credits are used up, the node *polls* the next hop with a count frame.
//! 3. The next hop answers with *feedback*: it asks for more packets, which sets the credit again;
//!    for a stop, as it has full rank; or for the next generation, as the destination has this one.
//!
//! # Modules
//!
//! | module | content |
//! | --- | --- |
//! | `engine` | the engine: handles frames, chooses what to send, does what falls due |
//! | `flow_table`, `flow`, `ingress` | flows through this node, and the source's queue |
//! | `generation`, `combined`, `overheard` | packets of a generation, combined and overheard ones |
//! | `sending` | credits and polls of one generation |
//! | `feedback_queue`, `copy_filter` | feedback to be sent, and copies of feedback that is heard |
//! | `regions`, `link_meter` | which flows are combined, by measured links |
//! | `redundancy` | how many packets are sent so that enough arrive |
//! | `frame` | frames |
//! | `parameters`, `config`, `cope` | settings of CORE and of the baseline |

mod combined;
mod config;
pub mod cope;
mod copy_filter;
mod engine;
mod feedback_queue;
mod flow;
mod flow_table;
mod frame;
mod generation;
mod ingress;
mod link_meter;
mod overheard;
mod parameters;
mod redundancy;
mod regions;
mod sending;

#[cfg(test)]
mod tests;

pub use config::CoreConfig;
pub use cope::COPE;
pub use engine::Core;

use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_wire::ServiceId;

/// Name of the scheme.
pub const NAME: &str = "core_nc";
/// Service byte of its frames.
pub const ID: ServiceId = ServiceId(23);

/// Row of this scheme in a program's registry.
pub const CORE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "packets coded within flows, and between flows that cross at a relay",
    paper: "Hansen, Krigslund, Lucani, Pahlevani, Fitzek: CORE (Computer Networks 2018)",
    settings: CoreConfig::settings,
    layouts: frame::LAYOUTS,
    read: |_, kind, body| frame::summary(NAME, kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: CoreConfig = settings.parse()?;
        Ok(Box::new(Core::new(&config)))
    }),
};
