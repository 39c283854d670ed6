//! MORE: opportunistic routing with network coding.
//!
//! Every node that is nearer to a receiver than the source may forward. The nodes between the
//! source and one receiver form a *belt*; each sends, on average, what no node nearer to the
//! receiver has heard. The belts of all receivers are merged ([`Belts`]). The source stays with a
//! generation until every receiver has it, which is what Pacifier improves on.
//!
//! Papers: S. Chachulski, M. Jennings, S. Katti, D. Katabi, SIGCOMM 2007, DOI
//! 10.1145/1282380.1282400; for several receivers as in Pacifier, II-A. Differences from them:
//! `ERRATA.md`. Belts and credits are here; the rest is [`crate::planned`].

mod belt;
mod config;
mod plan;

#[cfg(test)]
mod tests;

use crate::planned::{
    self, ChildWait, Forwarder, Forwarding, LAYOUTS, Plan, Routing, Scheme, Switching, Upstream,
    frame,
};
pub use config::{MoreConfig, Prune};
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::{NodeId, ServiceId};
pub use plan::{Belts, largest_threshold};

/// Name of the scheme.
pub const NAME: &str = "more";
/// Service byte of its frames.
pub const ID: ServiceId = ServiceId(17);
/// Share of a belt's transmissions below which MORE prunes a node.
pub const PRUNE: f64 = 0.1;

/// Row of this scheme in a program's registry.
pub const MORE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "its baseline: everybody nearer to a receiver forwards, generation by generation for all",
    paper: "Chachulski, Jennings, Katti, Katabi: MORE (SIGCOMM 2007)",
    settings: MoreConfig::settings,
    layouts: LAYOUTS,
    read: |_, kind, body| frame::summary(NAME, kind, body),
    build: Constructor::File(|settings| {
        let config: MoreConfig = settings.parse()?;
        Ok(Box::new(planned::engine(ID, More::new(config), settings.file)))
    }),
};

/// The scheme with its settings.
#[derive(Clone, Debug, Default)]
pub struct More {
    config: MoreConfig,
}

impl More {
    /// Returns the scheme with these settings.
    #[must_use]
    pub fn new(config: MoreConfig) -> Self {
        Self { config }
    }
}

impl Scheme for More {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self, topology: &Topology, source: NodeId, receivers: &[NodeId]) -> Plan {
        let MoreConfig { prune, metric, .. } = self.config;
        let belts = Belts::new(topology, source, receivers, prune, metric);
        let source_transmissions = belts.z.get(&source).copied().unwrap_or(1.0);
        Plan { routing: routing(&belts), source_transmissions, ..Plan::default() }
    }

    fn forwarding(&self) -> Forwarding {
        Forwarding::Belts
    }

    fn switching(&self) -> Switching {
        Switching::StopAndWait
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

/// Returns the belts as packets carry them. Nodes that would never send are not listed.
fn routing(belts: &Belts) -> Routing {
    let all = belts.forwarders.iter().map(|node| Forwarder::new(*node, belts.tx_credit[node]));
    let listed: Vec<Forwarder> = all.filter(|f| f.credit > 0).collect();
    let mut upstream = Upstream::none(listed.len());

    for (place, forwarder) in listed.iter().enumerate() {
        for (other, sender) in listed.iter().enumerate() {
            if belts.upstream[&forwarder.node].contains(&sender.node) {
                upstream.insert(place, other);
            }
        }
    }

    Routing::Belts(listed, upstream)
}
