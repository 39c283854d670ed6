//! Names of nodes. Any node can tell any name, so a name belongs to the node that had it first, for
//! as long as that is known here.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Time by which a node must have had its name before others to be the first. A node that has just
/// started hears all names within seconds, in any order, and cannot tell.
const FIRST: Duration = Duration::from_secs(30);

/// Since when each node tells the name that it tells now. As many as there are states.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<NodeId, Instant>);

impl Names {
    /// Notes that a node tells another name, or none any more.
    pub(super) fn note(&mut self, node: NodeId, has_name: bool, now: Instant) {
        if has_name {
            self.0.insert(node, now);
        } else {
            self.0.remove(&node);
        }
    }

    /// Returns the node of this name: the only one, or the one that had it long before others.
    pub(super) fn owner(&self, name: &str, topology: &Topology) -> Option<NodeId> {
        let since = |node: NodeId| self.0.get(&node).copied().unwrap_or_default();
        let mut named: Vec<NodeId> = topology.named(name).collect();
        named.sort_by_key(|node| since(*node));
        match *named {
            [] => None,
            [only] => Some(only),
            [first, second, ..] => (since(second).since(since(first)) >= FIRST).then_some(first),
        }
    }
}
