//! Two baselines without coding. Packets travel as they are down shortest paths by 1/(d_f d_r) (De Couto et al., MobiCom 2003),
//! and each hop is repeated until it succeeds:
//!
//! - *ETX unicast*: to one receiver after the other, each hop with the MAC's acknowledgment and repetitions;
//! - *tree flooding*: down the tree of all receivers, each hop a broadcast that the children report on.
//!
//! Buffers, repetitions and all else are the engine room of all file schemes, [`crate::file`].

mod config;

#[cfg(test)]
mod tests;

use crate::multicast::{Cast, Forwarding, Plan, Routing, Scheme, Switching};
use crate::multicast::{FileMulticast, frame};
pub use config::UncodedConfig;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_wire::{NodeId, ServiceId};

/// The name of ETX unicast.
pub const ETX_UNICAST: &str = "etx_unicast";
/// Under which its frames travel.
pub const ETX_UNICAST_ID: ServiceId = ServiceId(18);
/// The name of tree flooding.
pub const TREE_FLOOD: &str = "tree_flood";
/// Under which its frames travel.
pub const TREE_FLOOD_ID: ServiceId = ServiceId(19);

/// Row of this scheme in a program's registry.
pub const ETX_UNICAST_ENTRY: Entry = Entry {
    name: ETX_UNICAST,
    id: ETX_UNICAST_ID,
    summary: "a baseline without coding: to one receiver after the other by unicast",
    paper: "none; paths as De Couto, Aguayo, Bicket, Morris (MobiCom 2003)",
    read: |_, kind, body| frame::summary(ETX_UNICAST, kind, body),
    build: Constructor::File(|settings| {
        let config: UncodedConfig = settings.parse()?;
        config.check()?;
        Ok(Box::new(FileMulticast::new(
            ETX_UNICAST_ID,
            Uncoded::etx_unicast(config),
            settings.file,
        )))
    }),
};

/// Row of this scheme in a program's registry.
pub const TREE_FLOOD_ENTRY: Entry = Entry {
    name: TREE_FLOOD,
    id: TREE_FLOOD_ID,
    summary: "a baseline without coding: down a tree, each hop repeated until all have it",
    paper: "none; tree as Koutsonikolas, Hu, Wang (IEEE/ACM ToN 2012)",
    read: |_, kind, body| frame::summary(TREE_FLOOD, kind, body),
    build: Constructor::File(|settings| {
        let config: UncodedConfig = settings.parse()?;
        config.check()?;
        Ok(Box::new(FileMulticast::new(TREE_FLOOD_ID, Uncoded::tree_flood(config), settings.file)))
    }),
};

/// One of the two with its settings.
#[derive(Clone, Debug)]
pub struct Uncoded {
    cast: Cast,
    config: UncodedConfig,
}

impl Uncoded {
    /// ETX unicast with these settings.
    #[must_use]
    pub fn etx_unicast(config: UncodedConfig) -> Self {
        Self { cast: Cast::Unicast, config }
    }

    /// Tree flooding with these settings.
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

    fn patience(&self) -> Option<f64> {
        None
    }

    fn generation(&self) -> u8 {
        self.config.batch_size
    }

    fn symbol_size(&self) -> Option<u16> {
        self.config.symbol_size
    }
}
