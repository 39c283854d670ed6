//! A file scheme: *even* gives every forwarder the same credit. It is from no paper.
//!
//! `docs/internals/example-scheme.md` shows this file piece by piece.

use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_engine_file::planned::{
    self, ChildWait, Forwarder, Forwarding, LAYOUTS, Plan, Routing, Scheme, Switching, frame,
};
use ncmesh_wire::{NodeId, ServiceId};
use std::collections::BTreeSet;

// --8<-- [start:config]
ncmesh_engine::settings! {
    /// `[even]` in `node.toml`, `[protocol.even]` in a scenario.
    #[derive(Clone, Debug, PartialEq)]
    struct EvenConfig {
        /// Packets each forwarder sends per packet received from upstream.
        credit: f64 = 1.0, within 0.1..=8.0, unit "packets";
        /// Packets of a generation (k).
        generation: u8 = 32, within 1..=255, unit "packets";
    }
}
// --8<-- [end:config]

// --8<-- [start:scheme]
/// Every inner node of the shortest-ETX tree forwards with the same credit.
#[derive(Clone, Debug, Default)]
struct Even {
    config: EvenConfig,
}

impl Scheme for Even {
    fn name(&self) -> &'static str {
        "even"
    }

    fn plan(&self, topology: &Topology, source: NodeId, receivers: &[NodeId]) -> Plan {
        // The inner nodes of the tree forward. Those next to the source are its children.
        let paths = topology.paths_from(source, Metric::Broadcast);
        let mut inner = BTreeSet::new();
        let mut first_hops = BTreeSet::new();
        for receiver in receivers {
            let path = paths.path_to(*receiver);
            first_hops.extend(path.first().copied());
            inner.extend(path.iter().rev().skip(1).copied());
        }

        // A node counts the forwarders listed before it as upstream.
        let mut forwarders: Vec<NodeId> = inner.into_iter().collect();
        forwarders.sort_by_key(|node| (paths.distance(*node), *node));
        let children: Vec<NodeId> =
            forwarders.iter().filter(|node| first_hops.contains(node)).copied().collect();

        // The source sends until its poorest first hop has everything.
        let worst = first_hops.iter().map(|k| topology.delivery(source, *k)).fold(1.0, f64::min);
        let credit = self.config.credit;
        let listed = forwarders.iter().map(|node| Forwarder::new(*node, credit)).collect();
        Plan {
            routing: Routing::Ordered(listed),
            source_transmissions: 1.0 / worst.max(0.01),
            children_credit: credit * children.len() as f64,
            children,
        }
    }

    fn forwarding(&self) -> Forwarding {
        Forwarding::Ordered
    }

    fn switching(&self) -> Switching {
        Switching::RoundRobin
    }

    fn child_wait(&self) -> Option<ChildWait> {
        None
    }

    fn generation(&self) -> u8 {
        self.config.generation
    }

    fn symbol_size(&self) -> Option<u16> {
        None
    }
}
// --8<-- [end:scheme]

// --8<-- [start:entry]
const ID: ServiceId = ServiceId(200);

/// Row of this scheme in a program's registry.
pub(crate) const EVEN: Entry = Entry {
    name: "even",
    id: ID,
    summary: "an example: the same credit for every forwarder",
    paper: "none",
    settings: EvenConfig::settings,
    layouts: LAYOUTS,
    read: |_, kind, body| frame::summary("even", kind, body),
    build: Constructor::File(|settings| {
        let config: EvenConfig = settings.parse()?;
        Ok(Box::new(planned::engine(ID, Even { config }, settings.file)))
    }),
};
// --8<-- [end:entry]

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::testing::symmetric;

    // --8<-- [start:plan]
    #[test]
    fn inner_nodes_forward() {
        let mesh = symmetric(&[(1, 2, 0.5), (2, 3, 0.9), (3, 4, 0.9)]);
        let plan = Even::default().plan(&mesh, NodeId(1), &[NodeId(4)]);
        assert_eq!(plan.routing.forwarders(), BTreeSet::from([NodeId(2), NodeId(3)]));
        assert_eq!(plan.children, [NodeId(2)]);
        assert!((plan.source_transmissions - 2.0).abs() < 1e-9);
    }
    // --8<-- [end:plan]

    #[test]
    fn settings_are_checked() {
        let config = |text: &str| {
            let config = toml::from_str::<EvenConfig>(text);
            config.map(|config| config.credit).map_err(|error| error.message().to_owned())
        };
        assert_eq!(config("credit = 2.5"), Ok(2.5));
        assert_eq!(config("credit = 9.0"), Err("credit = 9: allowed is 0.1 to 8 packets".into()));
        assert_eq!(
            config("generation = 0").unwrap_err(),
            "generation = 0: allowed is 1 to 255 packets"
        );
    }
}
