//! Pacifier: reliable multicast without crying babies (Koutsonikolas, Hu and Wang; DOI 10.1109/TNET.2011.2177274).
//!
//! Its tree and credits are in [`Tree`]; batches, rate limiting, round robin and acknowledgments are the
//! engine room of all file schemes, [`crate::file`]. Where this leaves the paper: ERRATA.md.

mod config;
mod plan;

#[cfg(test)]
mod tests;

use crate::multicast::{FileMulticast, frame};
use crate::multicast::{Forwarder, Forwarding, Plan, Routing, Scheme, Switching};
pub use config::{PacifierConfig, Variant};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::topology::Topology;
use ncmesh_wire::{NodeId, ServiceId};
pub use plan::Tree;

/// The scheme's name.
pub const NAME: &str = "pacifier";
/// Under which its frames travel.
pub const ID: ServiceId = ServiceId(16);

/// Row of this scheme in a program's registry.
pub const PACIFIER: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "reliable multicast of files; a poor receiver does not slow the good ones",
    paper: "Koutsonikolas, Hu, Wang: Pacifier (IEEE/ACM ToN 2012)",
    read: |_, kind, body| frame::summary(NAME, kind, body),
    build: Constructor::File(|settings| {
        let config: PacifierConfig = settings.parse()?;
        config.check()?;
        Ok(Box::new(FileMulticast::new(ID, Pacifier::new(config), settings.file)))
    }),
};

/// The scheme with its settings.
#[derive(Clone, Debug, Default)]
pub struct Pacifier {
    config: PacifierConfig,
}

impl Pacifier {
    /// The scheme with these settings.
    #[must_use]
    pub fn new(config: PacifierConfig) -> Self {
        Self { config }
    }
}

impl Scheme for Pacifier {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self, topology: &Topology, source: NodeId, receivers: &[NodeId]) -> Plan {
        let tree = Tree::new(topology, source, receivers, self.config.knob, self.config.metric);
        let credit = |node: &NodeId| tree.tx_credit.get(node).copied().unwrap_or(0.0);
        let children: Vec<NodeId> =
            tree.children(source).filter(|child| credit(child) > 0.0).collect();
        let forwarders = tree.forwarders.iter().map(|node| Forwarder::new(*node, credit(node)));
        Plan {
            routing: Routing::Ordered(forwarders.collect()),
            source_transmissions: tree.z.get(&source).copied().unwrap_or(1.0).max(1.0),
            children_credit: children.iter().map(credit).sum(),
            children,
        }
    }

    fn forwarding(&self) -> Forwarding {
        Forwarding::Ordered
    }

    fn switching(&self) -> Switching {
        match self.config.variant {
            Variant::Tree | Variant::TreeRl => Switching::StopAndWait,
            Variant::TreeRlRrb | Variant::TreeRrb => Switching::RoundRobin,
        }
    }

    fn patience(&self) -> Option<f64> {
        let limits = matches!(self.config.variant, Variant::TreeRl | Variant::TreeRlRrb);
        limits.then_some(self.config.timeout_factor)
    }

    fn generation(&self) -> u8 {
        self.config.batch_size
    }

    fn symbol_size(&self) -> Option<u16> {
        self.config.symbol_size
    }
}
