//! The gateway between a TUN device and a tunnel of the mesh, without the device: IP packets that the host sends out
//! go to the node their route leads to; what comes from a node goes to the host if that node may send it.
//!
//! - handle: [`Gateway::handle_outbound`], [`Gateway::handle_inbound`]
//! - poll: [`Gateway::drain`], [`Gateway::poll_inbound`]
//!
//! Both sides are hostile: what is no IP packet is a counted drop.

mod codel;
pub mod device;
mod header;
mod icmp;
mod mss;
#[cfg(test)]
mod packets;
mod queues;
mod routes;
#[cfg(test)]
mod tests;

use crate::config::TunnelConfig;
use header::Header;
use icmp::Problem;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::tunnel::PacketError;
use ncmesh_wire::NodeId;
use queues::Queues;
use routes::{Next, Routes};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// ICMP messages made in a second at most.
const ANSWERS_PER_SECOND: u32 = 100;

/// What the gateway needs of the mesh.
pub trait Mesh {
    /// Changes whenever a name may stand for another node.
    fn version(&self) -> u64;
    /// The only node of that name, or of that id where none is named so.
    fn named(&self, name: &str) -> Option<NodeId>;
    /// Whether a packet for a node is wanted now: what would only wait in the mesh's own queues is not.
    fn below_low_watermark(&self, to: NodeId) -> bool;
    /// Offers a packet for a node.
    ///
    /// # Errors
    /// [`Refused`].
    fn send(&mut self, to: NodeId, packet: &[u8]) -> Result<(), PacketError>;
}

/// Why a packet goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// From the host or the mesh: no IP packet, or one whose lengths are wrong.
    Malformed,
    /// From the host: to many receivers at once, which a tunnel does not carry.
    Multicast,
    /// From the host: no route leads to its destination.
    NoRoute,
    /// From the host: the node of its route cannot be reached.
    NoPath,
    /// From the host: longer than the MTU.
    TooLong,
    /// From the host: as many packets waited for its node as may.
    Full,
    /// From the host: it or those before it waited too long for room.
    Late,
    /// From the mesh: its source address is not routed to the node that it came from.
    Spoofed,
    /// From the mesh: the device did not take it, for instance because it is down.
    Device,
}

impl Dropped {
    /// In statistics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Multicast => "multicast",
            Self::NoRoute => "no_route",
            Self::NoPath => "no_path",
            Self::TooLong => "too_long",
            Self::Full => "full",
            Self::Late => "late",
            Self::Spoofed => "spoofed",
            Self::Device => "device",
        }
    }
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    fn count(&mut self, packet: &[u8]) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
    }
}

/// What a gateway counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// From the host, taken by the scheme.
    pub outbound: Tally,
    /// From the mesh, for the host.
    pub inbound: Tally,
    /// Packets that went no further.
    pub drops: BTreeMap<Dropped, u64>,
    /// ICMP messages made.
    pub answers: u64,
    /// TCP connections whose segment size was lowered, each way for itself.
    pub clamped: u64,
}

impl Counters {
    fn drop(&mut self, why: Dropped) {
        self.add(why, 1);
    }

    fn add(&mut self, why: Dropped, packets: u64) {
        if packets > 0 {
            *self.drops.entry(why).or_default() += packets;
        }
    }
}

/// The gateway.
#[derive(Debug)]
pub struct Gateway {
    own: Vec<IpAddr>,
    mtu: usize,
    clamp_mss: bool,
    routes: Routes,
    queues: Queues,
    /// For the host.
    inbound: VecDeque<Vec<u8>>,
    allowance: Allowance,
    counters: Counters,
}

impl Gateway {
    /// A gateway for packets of up to `mtu` bytes.
    #[must_use]
    pub fn new(config: &TunnelConfig, mtu: usize) -> Self {
        Self {
            own: config.address.iter().map(ipnet::IpNet::addr).collect(),
            mtu,
            clamp_mss: config.clamp_mss,
            routes: Routes::new(&config.routes),
            queues: Queues::new(config.queue),
            inbound: VecDeque::new(),
            allowance: Allowance::default(),
            counters: Counters::default(),
        }
    }

    // ---- getters

    /// What it counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets that wait for room.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.len()
    }

    // ---- handle

    /// The host sends a packet.
    pub fn handle_outbound(&mut self, mut packet: Vec<u8>, mesh: &mut impl Mesh, now: Instant) {
        let Ok(header) = Header::read(&packet) else {
            return self.counters.drop(Dropped::Malformed);
        };
        if is_crowd(header.destination) {
            return self.counters.drop(Dropped::Multicast);
        }
        let to = match self.find(header.destination, mesh) {
            Next::Node(node) => node,
            Next::Unknown => return self.refuse(&packet, Dropped::NoPath, now),
            Next::NoRoute => return self.refuse(&packet, Dropped::NoRoute, now),
        };
        if packet.len() > self.mtu {
            return self.refuse(&packet, Dropped::TooLong, now);
        }
        self.clamp(&mut packet);
        if self.queues.push((to, header.connection), packet, now) {
            self.counters.drop(Dropped::Full);
        }
        self.drain(mesh, now);
    }

    /// A packet came from a node of the mesh.
    pub fn handle_inbound(&mut self, from: NodeId, mut packet: Vec<u8>, mesh: &impl Mesh) {
        let Ok(header) = Header::read(&packet) else {
            return self.counters.drop(Dropped::Malformed);
        };
        let permitted = self.find(header.source, mesh) == Next::Node(from);
        if !permitted || self.own.contains(&header.source) {
            return self.counters.drop(Dropped::Spoofed);
        }
        self.clamp(&mut packet);
        self.counters.inbound.count(&packet);
        self.inbound.push_back(packet);
    }

    /// The device did not take a packet from [`poll_inbound`](Self::poll_inbound).
    pub fn handle_device_refusal(&mut self) {
        self.counters.drop(Dropped::Device);
    }

    // ---- poll

    /// Hands over what waited, as far as there is room. To be called whenever that may have changed.
    pub fn drain(&mut self, mesh: &mut impl Mesh, now: Instant) {
        self.queues.expire(now);
        while let Some((to, packet)) = self.queues.pop(|to| mesh.below_low_watermark(to), now) {
            match mesh.send(to, &packet) {
                Ok(()) => self.counters.outbound.count(&packet),
                Err(PacketError::NoPath(_)) => self.refuse(&packet, Dropped::NoPath, now),
                Err(PacketError::TooLong { .. }) => self.refuse(&packet, Dropped::TooLong, now),
                Err(PacketError::Full) => self.counters.drop(Dropped::Full),
                Err(PacketError::Empty | PacketError::Oneself | PacketError::UnknownScheme) => {
                    self.counters.drop(Dropped::NoRoute);
                }
            }
        }
        self.counters.add(Dropped::Late, self.queues.take_late());
    }

    /// The next packet for the host.
    pub fn poll_inbound(&mut self) -> Option<Vec<u8>> {
        self.inbound.pop_front()
    }

    // ---- inside

    fn find(&mut self, address: IpAddr, mesh: &impl Mesh) -> Next {
        self.routes.refresh(mesh.version(), |name| mesh.named(name));
        self.routes.find(address)
    }

    fn clamp(&mut self, packet: &mut [u8]) {
        if self.clamp_mss && mss::clamp(packet, self.mtu) {
            self.counters.clamped += 1;
        }
    }

    /// Drops a packet of the host's and tells it, where that is due.
    fn refuse(&mut self, packet: &[u8], why: Dropped, now: Instant) {
        self.counters.drop(why);
        let problem = match why {
            Dropped::TooLong => Problem::TooBig(u16::try_from(self.mtu).unwrap_or(u16::MAX)),
            Dropped::NoRoute => Problem::NoRoute,
            _ => Problem::NoPath,
        };
        let answer = icmp::answer(packet, problem).filter(|_| self.allowance.take(now));
        if let Some(answer) = answer {
            self.counters.answers += 1;
            self.inbound.push_back(answer);
        }
    }
}

/// Whether packets to it are for many, or for any.
fn is_crowd(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    broadcast || address.is_multicast() || address.is_unspecified()
}

/// So many answers in each second.
#[derive(Debug, Default)]
struct Allowance {
    since: Option<Instant>,
    taken: u32,
}

impl Allowance {
    fn take(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now >= since + Duration::from_secs(1)) {
            *self = Self { since: Some(now), taken: 0 };
        }
        self.taken += 1;
        self.taken <= ANSWERS_PER_SECOND
    }
}
