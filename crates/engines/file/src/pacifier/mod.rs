//! Pacifier: reliable multicast without crying babies.
//!
//! The source sends generations of coded packets down a tree of shortest paths. Each forwarder in
//! the tree has a credit: how many packets it sends for each one that it hears from upstream
//! (III-A, [`Tree`]). The source waits to overhear its children before it sends on (III-B), and
//! leaves a generation after one round, so that a poor receiver, the "crying baby", does not hold
//! up the good ones (III-C).
//!
//! Paper: D. Koutsonikolas, Y. C. Hu, C.-C. Wang, IEEE/ACM Transactions on Networking 20(5), 2012,
//! DOI 10.1109/TNET.2011.2177274. Differences from it: `ERRATA.md`. Tree and credits are here; the
//! rest is [`crate::planned`].

mod config;
mod plan;

#[cfg(test)]
mod tests;

use crate::planned::{
    self, ChildWait, Forwarder, Forwarding, LAYOUTS, Plan, Routing, Scheme, Switching, frame,
};
pub use config::{PacifierConfig, Variant};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::{NodeId, ServiceId};
pub use plan::Tree;

/// Name of the scheme.
pub const NAME: &str = "pacifier";
/// Service byte of its frames.
pub const ID: ServiceId = ServiceId(16);

/// Row of this scheme in a program's registry.
pub const PACIFIER: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "reliable multicast of files; a poor receiver does not slow the good ones",
    paper: "Koutsonikolas, Hu, Wang: Pacifier (IEEE/ACM ToN 2012)",
    settings: PacifierConfig::settings,
    layouts: LAYOUTS,
    read: |_, kind, body| frame::summary(NAME, kind, body),
    build: Constructor::File(|settings| {
        let config: PacifierConfig = settings.parse()?;
        Ok(Box::new(planned::engine(ID, Pacifier::new(config), settings.file)))
    }),
};

/// The scheme with its settings.
#[derive(Clone, Debug, Default)]
pub struct Pacifier {
    config: PacifierConfig,
}

impl Pacifier {
    /// Returns the scheme with these settings.
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

        // The source waits to overhear its children. One without a credit never sends.
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

    fn child_wait(&self) -> Option<ChildWait> {
        let limits_rate = matches!(self.config.variant, Variant::TreeRl | Variant::TreeRlRrb);
        let PacifierConfig { timeout_factor: factor, learned_wait: is_learned, .. } = self.config;
        limits_rate.then_some(ChildWait { factor, is_learned })
    }

    fn generation(&self) -> u8 {
        self.config.generation
    }

    fn symbol_size(&self) -> Option<u16> {
        self.config.symbol_size
    }
}
