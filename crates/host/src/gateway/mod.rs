//! Gateway between a host's IP stack and a tunnel of the mesh.
//!
//! Packets that the host sends are routed to a node by longest prefix, wait in a queue of their
//! connection (`queues`) whose delay CoDel controls (`codel`) by drops and marks (`ecn`), and go to
//! the scheme when it asks for more. Packets from the mesh reach the host if their source address
//! is routed to the node that sent them. What passes both ways tells round trips (`round_trip`).
//! Packets to groups go by streams of the mesh ([`multicast`]).
//! IPv6 packets that a mesh of short frames has to carry go in two halves (`halves`).
//! Both sides are hostile: what is no IP packet is a counted drop, never an error.
//!
//! - handle: [`Gateway::handle_outbound`], [`Gateway::handle_inbound`]
//! - poll: [`Gateway::drain`], [`Gateway::poll_inbound`], [`Gateway::poll_group`]

mod codel;
mod counters;
mod ecn;
mod halves;
mod header;
mod icmp;
mod mesh;
mod mss;
pub mod multicast;
#[cfg(test)]
mod packets;
mod padding;
mod query;
mod queues;
mod round_trip;
mod routes;
#[cfg(test)]
mod tests;

pub use counters::{Dropped, GatewayCounters, PacketCount};
pub use halves::{LONGEST_HALF, V6_LEAST};
pub use mesh::StackMesh;
pub use round_trip::RoundTrip;
pub use routes::{Leads, Target};

use crate::rate_limit::RateLimit;
use halves::{Halves, is_half};
use header::Header;
use icmp::Problem;
use ipnet::IpNet;
use multicast::{GroupAction, Groups, MulticastConfig};
use ncmesh_engine::time::Instant;
use ncmesh_engine::tunnel::PacketError;
use ncmesh_wire::NodeId;
use queues::{QueueKey, Queues};
use round_trip::RoundTrips;
use routes::{NextHop, Routes};
use smoltcp::wire::IpVersion;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::IpAddr;

/// ICMP messages that a gateway makes in one second at most.
const ICMP_PER_SECOND: u32 = 100;

/// Settings of a gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// Addresses of the host itself. Packets from the mesh must not claim them as their source.
    pub addresses: Vec<IpAddr>,
    /// Node that each prefix is reached through. A packet from that node may have a source address
    /// of the prefix.
    pub routes: Vec<(IpNet, Target)>,
    /// Prefixes of addresses that other nodes may announce: each is then reached through the node
    /// that announces it, as if there were a route.
    pub accept: Vec<IpNet>,
    /// Addresses that this node announces itself.
    pub announce: Vec<IpNet>,
    /// Longest IP packet of the host, bytes.
    pub mtu: usize,
    /// Longest one that the scheme carries as a whole, bytes.
    pub whole: usize,
    /// Lowers the segment size that TCP connections offer to what is carried as a whole.
    pub clamp_mss: bool,
    /// Lengthens packets to one of few lengths.
    pub padding: bool,
    /// Packets that wait here for one node at most.
    pub queue: usize,
    /// Multicast; `None` if packets to groups go no further.
    pub multicast: Option<MulticastConfig>,
}

/// Packets that wait for one node where the configuration does not say, at most.
pub const DEFAULT_QUEUE: usize = 128;

/// The mesh as the gateway sees it.
pub trait Mesh {
    /// Number that changes whenever a name may stand for another node, another node may announce a
    /// prefix, or a node may be nearer than before.
    fn version(&self) -> u64;
    /// Passes every prefix that another node announces to `take`, with the node.
    fn each_announced(&self, take: &mut dyn FnMut(NodeId, IpNet));
    /// Returns the nearest of `nodes` to which there is a path.
    fn nearest(&self, nodes: &[NodeId]) -> Option<NodeId>;
    /// Returns the node of that name, the first if there are several, or the node with that id
    /// where none has the name.
    fn named(&self, name: &str) -> Option<NodeId>;
    /// Returns whether a packet offered for `to` now would be sent soon. While it would not,
    /// packets wait in the gateway, where each connection has its own queue.
    fn below_low_watermark(&self, to: NodeId) -> bool;
    /// Offers a packet for a node.
    ///
    /// # Errors
    /// [`PacketError`] says why the scheme did not take it.
    fn send(&mut self, to: NodeId, packet: &[u8]) -> Result<(), PacketError>;
}

/// Gateway of one node.
#[derive(Debug)]
pub struct Gateway {
    config: GatewayConfig,
    routes: Routes,
    queues: Queues,
    /// Packets for the host, the oldest first.
    inbound: VecDeque<Vec<u8>>,
    icmp_limit: RateLimit,
    round_trips: RoundTrips,
    halves: Halves,
    groups: Option<Groups>,
    counters: GatewayCounters,
}

impl Gateway {
    /// Returns a gateway with empty queues.
    #[must_use]
    pub fn new(config: GatewayConfig) -> Self {
        Self {
            routes: Routes::new(&config),
            queues: Queues::new(config.queue),
            groups: config.multicast.clone().map(Groups::new),
            config,
            inbound: VecDeque::new(),
            icmp_limit: RateLimit::new(ICMP_PER_SECOND),
            round_trips: RoundTrips::default(),
            halves: Halves::default(),
            counters: GatewayCounters::default(),
        }
    }

    // ---- getters

    /// Returns what the gateway counted since it was made.
    #[must_use]
    pub fn counters(&self) -> &GatewayCounters {
        &self.counters
    }

    /// Returns the number of packets that wait for the scheme.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.len()
    }

    /// Returns the number of packets that wait in the queue which `packet` would wait in.
    #[must_use]
    pub fn waiting_like(&self, packet: &[u8]) -> usize {
        Header::read(packet).map_or(0, |header| self.queues.len_of(header.connection))
    }

    /// Returns the round trip from here to the hosts behind a node; `None` if none of their packets
    /// showed one in the last 10 s.
    #[must_use]
    pub fn round_trip(&self, to: NodeId, now: Instant) -> Option<RoundTrip> {
        self.round_trips.to(to, now)
    }

    /// Returns which node each prefix was reached through when the mesh was looked at last.
    pub fn routes(&self) -> impl Iterator<Item = Leads> + '_ {
        self.routes.all()
    }

    /// Returns the groups that the host is a member of and that the mesh carries.
    pub fn groups(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.groups.iter().flat_map(Groups::members)
    }

    /// Uses other settings from now on. Packets beyond a lower limit leave in their turn.
    pub fn adjust(&mut self, config: GatewayConfig) {
        self.queues.set_limit(config.queue);
        self.routes.use_settings(&config);
        if let (Some(groups), Some(multicast)) = (&mut self.groups, &config.multicast) {
            groups.adjust(multicast.clone());
        }
        self.config = config;
    }

    // ---- handle

    /// Takes a packet that the host sends, and passes on what the scheme asks for.
    pub fn handle_outbound(&mut self, mut packet: Vec<u8>, mesh: &mut impl Mesh, now: Instant) {
        let Ok(header) = Header::read(&packet) else {
            return self.counters.drop(Dropped::Malformed);
        };

        if is_group_address(header.destination) {
            return self.handle_group_outbound(packet, now);
        }

        // The table is made again only if the mesh changed since the packet before.
        self.routes.refresh(mesh);
        let to = match self.routes.find(header.destination) {
            NextHop::Node(node) => node,
            NextHop::NoNode => return self.refuse(&packet, Dropped::NoPath, now),
            NextHop::NoRoute => return self.refuse(&packet, Dropped::NoRoute, now),
        };

        if packet.len() > self.config.mtu {
            return self.refuse(&packet, Dropped::TooLong, now);
        }

        // A queue that overflows drops a packet of its longest connection, which need not be this
        // one.
        let key = QueueKey { node: to, connection: header.connection };
        self.round_trips.handle_outbound(to, &header, now);
        self.clamp_mss(&mut packet);
        if self.queues.push(key, packet, now) {
            self.counters.drop(Dropped::Full);
        }
        self.drain(mesh, now);
    }

    /// Takes a packet that came from a node of the mesh.
    pub fn handle_inbound(
        &mut self,
        from: NodeId,
        mut packet: Vec<u8>,
        mesh: &impl Mesh,
        now: Instant,
    ) {
        if is_half(&packet) {
            let Some(joined) = self.halves.join(from, &packet, now) else {
                return self.counters.drop(Dropped::Malformed);
            };

            self.counters.add(Dropped::Halved, joined.given_up);
            let Some(whole) = joined.packet else { return };
            packet = whole;
        }

        padding::strip(&mut packet);
        let Ok(header) = Header::read(&packet) else {
            return self.counters.drop(Dropped::Malformed);
        };

        // A node may send only from addresses that are routed to it or that it announces, and never
        // from the host's own.
        self.routes.refresh(mesh);
        let is_routed_back = self.routes.may_send(from, header.source);
        if !is_routed_back || self.config.addresses.contains(&header.source) {
            return self.counters.drop(Dropped::Spoofed);
        }

        self.round_trips.handle_inbound(from, &header, now);
        self.clamp_mss(&mut packet);
        self.counters.inbound.count(&packet);
        self.inbound.push_back(packet);
    }

    /// Takes a packet that came from a node by the group of this name.
    pub fn handle_group_packet(
        &mut self,
        from: NodeId,
        name: &str,
        packet: Vec<u8>,
        mesh: &impl Mesh,
    ) {
        let Ok(header) = Header::read(&packet) else {
            return self.counters.drop(Dropped::Malformed);
        };
        // The mesh knows a group by its name alone, so the packet must be for the group of that
        // name.
        if !self.groups.as_ref().is_some_and(|groups| groups.takes(name, &header)) {
            return self.counters.drop(Dropped::Multicast);
        }
        self.routes.refresh(mesh);

        // A member of the mesh must not send in the name of another one's addresses, nor of this
        // host.
        let may_send = self.routes.may_send(from, header.source);
        let is_own = self.config.addresses.contains(&header.source);
        if is_own || !(may_send || multicast::is_local_source(&header)) {
            return self.counters.drop(Dropped::Spoofed);
        }

        self.counters.inbound.count(&packet);
        self.inbound.push_back(packet);
    }

    /// Counts a packet to a group that the mesh did not take.
    pub fn handle_group_refusal(&mut self, why: Dropped) {
        self.counters.drop(why);
    }

    /// Counts a membership of the group of this name that the mesh did not take. It asks again when
    /// the kernel reports it again.
    pub fn handle_membership_refusal(&mut self, name: &str) {
        self.counters.drop(Dropped::Groups);
        if let Some(groups) = &mut self.groups {
            groups.refuse_membership(name);
        }
    }

    /// Counts a packet to a group that the mesh took.
    pub fn handle_group_sent(&mut self, packet: &[u8]) {
        self.counters.outbound.count(packet);
    }

    /// Counts a packet from [`poll_inbound`](Self::poll_inbound) that the host's device refused.
    pub fn handle_device_refusal(&mut self) {
        self.counters.drop(Dropped::Device);
    }

    // ---- poll

    /// Passes on waiting packets as far as the scheme asks for them. Call it after everything that
    /// the stack was told, since each may make room.
    pub fn drain(&mut self, mesh: &mut impl Mesh, now: Instant) {
        self.routes.refresh(mesh);
        self.queues.expire(now);
        if let Some(groups) = &mut self.groups {
            self.inbound.extend(groups.handle_time(now));
        }

        while let Some((to, packet)) = self.queues.pop(|to| mesh.below_low_watermark(to), now) {
            match self.send(to, &packet, mesh) {
                Ok(()) => self.counters.outbound.count(&packet),
                Err(PacketError::NoPath(_)) => self.refuse(&packet, Dropped::NoPath, now),
                // A node on the way takes shorter packets than the device does.
                Err(PacketError::TooLong { longest, .. }) => {
                    self.counters.drop(Dropped::TooLong);
                    // IPv6 has no path for shorter ones than these, which are cut in halves.
                    let least = if is_v6(&packet) { V6_LEAST } else { 0 };
                    self.tell_host(&packet, too_big(longest.max(least)), now);
                }
                Err(PacketError::Full) => self.counters.drop(Dropped::Full),
                // Not possible for a packet that was routed; counted in case a route changes
                // meanwhile.
                Err(PacketError::Empty | PacketError::Oneself | PacketError::UnknownScheme) => {
                    self.counters.drop(Dropped::NoRoute);
                }
            }
        }

        let delayed = self.queues.take_delayed();
        self.counters.add(Dropped::Late, delayed.dropped);
        self.counters.marked += delayed.marked;
    }

    /// Returns the next task that a group makes.
    pub fn poll_group(&mut self) -> Option<GroupAction> {
        self.groups.as_mut()?.poll()
    }

    /// Returns the next packet for the host.
    pub fn poll_inbound(&mut self) -> Option<Vec<u8>> {
        self.inbound.pop_front()
    }

    // ---- inside

    /// Takes a packet that the host sends to a group.
    fn handle_group_outbound(&mut self, packet: Vec<u8>, now: Instant) {
        let taken = match &mut self.groups {
            Some(_) if packet.len() > self.config.mtu => Err(Dropped::TooLong),
            Some(groups) => groups.handle_outbound(packet, now),
            None => Err(Dropped::Multicast),
        };
        if let Err(why) = taken {
            self.counters.drop(why);
        }
    }

    /// Offers a packet to the mesh, with padding if it is wanted. One of IPv6 that every path has
    /// to carry goes in halves if it is too long for some node on the way.
    fn send(&mut self, to: NodeId, packet: &[u8], mesh: &mut impl Mesh) -> Result<(), PacketError> {
        let padded = |longest| match self.config.padding {
            true => Cow::Owned(padding::padded(packet, longest)),
            false => Cow::Borrowed(packet),
        };

        let sent = mesh.send(to, &padded(self.config.mtu));
        match sent {
            // Only the padding is too long.
            Err(PacketError::TooLong { longest, .. }) if packet.len() <= longest => {
                mesh.send(to, &padded(longest))
            }
            Err(PacketError::TooLong { .. }) if is_v6(packet) && packet.len() <= V6_LEAST => {
                let [first, second] = self.halves.cut(&padded(V6_LEAST));
                mesh.send(to, &first)?;
                mesh.send(to, &second)
            }
            sent => sent,
        }
    }

    fn clamp_mss(&mut self, packet: &mut [u8]) {
        if self.config.clamp_mss && mss::clamp(packet, self.config.mtu.min(self.config.whole)) {
            self.counters.clamped += 1;
        }
    }

    /// Drops a packet of the host and tells the host why by ICMP, where a router would.
    fn refuse(&mut self, packet: &[u8], why: Dropped, now: Instant) {
        self.counters.drop(why);
        let problem = match why {
            Dropped::TooLong => too_big(self.config.mtu),
            Dropped::NoRoute => Problem::NoRoute,
            _ => Problem::NoPath,
        };
        self.tell_host(packet, problem, now);
    }

    /// Tells the host by ICMP what became of its packet.
    fn tell_host(&mut self, packet: &[u8], problem: Problem, now: Instant) {
        // A host that floods unreachable addresses gets a few answers a second.
        let message = icmp::message(packet, problem).filter(|_| self.icmp_limit.take(now));
        if let Some(message) = message {
            self.counters.icmp_sent += 1;
            self.inbound.push_back(message);
        }
    }
}

/// Returns the problem of a packet that is longer than `mtu` bytes.
fn too_big(mtu: usize) -> Problem {
    Problem::TooBig(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Returns whether a packet of the host is one of IPv6.
fn is_v6(packet: &[u8]) -> bool {
    header::version(packet) == Some(IpVersion::Ipv6)
}

/// Returns whether an address is not that of one host: multicast, broadcast or unspecified.
fn is_group_address(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    broadcast || address.is_multicast() || address.is_unspecified()
}
