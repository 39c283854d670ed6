//! The mesh behind a gateway: one scheme of the node's stack.

use super::Mesh;
use ipnet::IpNet;
use ncmesh_engine::registry::Scheme;
use ncmesh_engine::storage::Storage;
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::Metric;
use ncmesh_engine::tunnel::PacketError;
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;

/// A stack as its gateway sees it.
pub struct StackMesh<'a> {
    /// The stack.
    pub stack: &'a mut Stack,
    /// The node's files, which a call of the stack may touch.
    pub storage: &'a mut dyn Storage,
    /// The scheme that carries packets; `None` if this program has no such scheme.
    pub scheme: Option<Scheme>,
    /// The time of the call.
    pub now: Instant,
}

impl Mesh for StackMesh<'_> {
    fn version(&self) -> u64 {
        let topology = self.stack.topology();
        topology.version() + topology.self_descriptions()
    }

    fn each_announced(&self, take: &mut dyn FnMut(NodeId, IpNet)) {
        let me = self.stack.node();
        for (node, state) in self.stack.topology().states().filter(|(node, _)| *node != me) {
            state.profile.prefixes.iter().for_each(|prefix| take(node, *prefix));
        }
    }

    fn nearest(&self, nodes: &[NodeId]) -> Option<NodeId> {
        let paths = self.stack.topology().paths_from(self.stack.node(), Metric::Unicast);
        let reached = nodes.iter().copied().filter(|node| paths.reaches(*node));
        reached.min_by_key(|node| paths.distance(*node))
    }

    fn named(&self, name: &str) -> Option<NodeId> {
        let is_name = self.stack.topology().named(name).next().is_some();
        let by_id = || name.parse().ok().map(NodeId).filter(|_| !is_name);
        self.stack.node_named(name).or_else(by_id)
    }

    fn below_low_watermark(&self, to: NodeId) -> bool {
        self.scheme.and_then(|scheme| self.stack.below_low_watermark(scheme, to)) == Some(true)
    }

    fn send(&mut self, to: NodeId, packet: &[u8]) -> Result<(), PacketError> {
        let scheme = self.scheme.ok_or(PacketError::UnknownScheme)?;
        self.stack.at(self.now, self.storage).send_packet(scheme, to, packet)
    }
}
