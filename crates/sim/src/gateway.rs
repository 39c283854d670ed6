//! Gateway of a simulated node: the daemon's gateway, and a count of what its scheme took.

use ipnet::IpNet;
use ncmesh_engine::registry::Scheme;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::Instant;
use ncmesh_engine::tunnel::PacketError;
use ncmesh_host::gateway::{Gateway, GatewayConfig, Mesh, StackMesh};
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Gateway of a simulated node.
#[derive(Debug)]
pub(crate) struct HostGateway {
    gateway: Gateway,
    scheme: Option<Scheme>,
    /// By source address, packets that the scheme took.
    taken: BTreeMap<Ipv4Addr, u64>,
}

impl HostGateway {
    pub(crate) fn new(scheme: Option<Scheme>, config: GatewayConfig) -> Self {
        Self { gateway: Gateway::new(config), scheme, taken: BTreeMap::new() }
    }

    /// Returns how many packets of the connection that `packet` belongs to wait.
    pub(crate) fn waiting_like(&self, packet: &[u8]) -> usize {
        self.gateway.waiting_like(packet)
    }

    /// Returns the number of packets that wait, of all connections.
    pub(crate) fn waiting(&self) -> usize {
        self.gateway.waiting()
    }

    /// Returns how many packets from a source address the scheme took.
    pub(crate) fn taken(&self, source: Ipv4Addr) -> u64 {
        self.taken.get(&source).copied().unwrap_or(0)
    }

    /// Handles a packet that the host sends.
    pub(crate) fn handle_outbound(
        &mut self,
        packet: Vec<u8>,
        stack: &mut Stack,
        storage: &mut MemoryStorage,
        now: Instant,
    ) {
        let Self { gateway, scheme, taken } = self;
        let mesh = StackMesh { stack, storage, scheme: *scheme, now };
        gateway.handle_outbound(packet, &mut CountingMesh { mesh, taken }, now);
    }

    /// Handles a packet that came from a node of the mesh.
    pub(crate) fn handle_inbound(
        &mut self,
        from: NodeId,
        packet: Vec<u8>,
        stack: &mut Stack,
        storage: &mut MemoryStorage,
        now: Instant,
    ) {
        let mesh = StackMesh { stack, storage, scheme: self.scheme, now };
        self.gateway.handle_inbound(from, packet, &mesh, now);
    }

    /// Passes waiting packets to the scheme, as many as it asks for.
    pub(crate) fn drain(&mut self, stack: &mut Stack, storage: &mut MemoryStorage, now: Instant) {
        let Self { gateway, scheme, taken } = self;
        let mesh = StackMesh { stack, storage, scheme: *scheme, now };
        gateway.drain(&mut CountingMesh { mesh, taken }, now);
    }

    /// Returns the next packet for the host.
    pub(crate) fn poll_inbound(&mut self) -> Option<Vec<u8>> {
        self.gateway.poll_inbound()
    }
}

/// Mesh that counts the packets it took by their source address.
struct CountingMesh<'a> {
    mesh: StackMesh<'a>,
    taken: &'a mut BTreeMap<Ipv4Addr, u64>,
}

impl Mesh for CountingMesh<'_> {
    fn version(&self) -> u64 {
        self.mesh.version()
    }

    fn named(&self, name: &str) -> Option<NodeId> {
        self.mesh.named(name)
    }

    fn each_announced(&self, take: &mut dyn FnMut(NodeId, IpNet)) {
        self.mesh.each_announced(take);
    }

    fn nearest(&self, nodes: &[NodeId]) -> Option<NodeId> {
        self.mesh.nearest(nodes)
    }

    fn below_low_watermark(&self, to: NodeId) -> bool {
        self.mesh.below_low_watermark(to)
    }

    fn send(&mut self, to: NodeId, packet: &[u8]) -> Result<(), PacketError> {
        self.mesh.send(to, packet)?;
        // The source address of IPv4 (RFC 791, 3.1).
        if let Some(source) = packet.get(12..16).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()) {
            *self.taken.entry(source.into()).or_default() += 1;
        }
        Ok(())
    }
}
