//! Two baselines without coding. Packets travel as they are down shortest paths, and each hop is
//! repeated until it succeeds:
//!
//! - *ETX unicast* sends to one receiver after the other. Each hop is unicast, with the MAC's
//!   acknowledgment and retransmissions.
//! - *Tree flooding* sends to all receivers at once, down the tree of their paths. Each hop is a
//!   broadcast that the children report on.
//!
//! Paths are shortest by ETX, 1/(d_f d_r) per hop (De Couto, Aguayo, Bicket, Morris, MobiCom 2003).
//! Everything else is [`crate::planned`].

mod config;

#[cfg(test)]
mod tests;

use crate::planned::{
    self, Cast, ChildWait, Forwarding, LAYOUTS, Plan, Routing, Scheme, Switching, frame,
};
pub use config::UncodedConfig;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_wire::{NodeId, ServiceId};

/// Name of ETX unicast.
pub const ETX_UNICAST: &str = "etx_unicast";
/// Service byte of its frames.
pub const ETX_UNICAST_ID: ServiceId = ServiceId(18);
/// Name of tree flooding.
pub const TREE_FLOOD: &str = "tree_flood";
/// Service byte of its frames.
pub const TREE_FLOOD_ID: ServiceId = ServiceId(19);

/// Row of ETX unicast in a program's registry.
pub const ETX_UNICAST_ENTRY: Entry = Entry {
    name: ETX_UNICAST,
    id: ETX_UNICAST_ID,
    summary: "a baseline without coding: to one receiver after the other by unicast",
    paper: "none; paths as De Couto, Aguayo, Bicket, Morris (MobiCom 2003)",
    settings: UncodedConfig::settings,
    layouts: LAYOUTS,
    read: |_, kind, body| frame::summary(ETX_UNICAST, kind, body),
    build: Constructor::File(|settings| {
        let config: UncodedConfig = settings.parse()?;
        Ok(Box::new(planned::engine(ETX_UNICAST_ID, Uncoded::etx_unicast(config), settings.file)))
    }),
};

/// Row of tree flooding in a program's registry.
pub const TREE_FLOOD_ENTRY: Entry = Entry {
    name: TREE_FLOOD,
    id: TREE_FLOOD_ID,
    summary: "a baseline without coding: down a tree, each hop repeated until all have it",
    paper: "none; tree as Koutsonikolas, Hu, Wang (IEEE/ACM ToN 2012)",
    settings: UncodedConfig::settings,
    layouts: LAYOUTS,
    read: |_, kind, body| frame::summary(TREE_FLOOD, kind, body),
    build: Constructor::File(|settings| {
        let config: UncodedConfig = settings.parse()?;
        Ok(Box::new(planned::engine(TREE_FLOOD_ID, Uncoded::tree_flood(config), settings.file)))
    }),
};

/// One of the two baselines with its settings.
#[derive(Clone, Debug)]
pub struct Uncoded {
    cast: Cast,
    config: UncodedConfig,
}

impl Uncoded {
    /// Returns ETX unicast with these settings.
    #[must_use]
    pub fn etx_unicast(config: UncodedConfig) -> Self {
        Self { cast: Cast::Unicast, config }
    }

    /// Returns tree flooding with these settings.
    #[must_use]
    pub fn tree_flood(config: UncodedConfig) -> Self {
        Self { cast: Cast::Broadcast, config }
    }
}

impl Scheme for Uncoded {
    fn name(&self) -> &'static str {
        match self.cast {
            Cast::Unicast => ETX_UNICAST,
            Cast::Broadcast => TREE_FLOOD,
        }
    }

    fn plan(&self, topology: &Topology, source: NodeId, receivers: &[NodeId]) -> Plan {
        let paths = topology.paths_from(source, Metric::Unicast);
        Plan { routing: Routing::tree(&paths, receivers), ..Plan::default() }
    }

    fn forwarding(&self) -> Forwarding {
        Forwarding::HopByHop(self.cast)
    }

    fn switching(&self) -> Switching {
        match self.cast {
            Cast::Unicast => Switching::OneByOne,
            Cast::Broadcast => Switching::StopAndWait,
        }
    }

    fn child_wait(&self) -> Option<ChildWait> {
        None
    }

    fn generation(&self) -> u8 {
        self.config.generation
    }

    fn symbol_size(&self) -> Option<u16> {
        self.config.symbol_size
    }
}
