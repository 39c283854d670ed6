//! Counters of a gateway.

use std::collections::BTreeMap;

/// Why a packet went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// From the host or the mesh: no IP packet, or one whose lengths are wrong.
    Malformed,
    /// From the host: for a broadcast address, or a group that the mesh does not carry. From the
    /// mesh: for a group that the host is no member of.
    Multicast,
    /// From the host: for one group more than there may be.
    Groups,
    /// From the host: faster than a group may be sent to.
    Rate,
    /// From the host: more reports of memberships than are read.
    Reports,
    /// From the host: no route leads to its destination.
    NoRoute,
    /// From the host: the node that its route leads to cannot be reached.
    NoPath,
    /// From the host: longer than the MTU.
    TooLong,
    /// From the host: the queues for its node were full.
    Full,
    /// From the host: dropped by CoDel, or it waited too long.
    Late,
    /// From the mesh: its source address is not routed to the node that it came from.
    Spoofed,
    /// From the mesh: one of its halves did not come.
    Halved,
    /// From the mesh: the device did not take it, for instance because it is down.
    Device,
}

impl Dropped {
    /// Returns the name in statistics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Multicast => "multicast",
            Self::Groups => "groups",
            Self::Rate => "rate",
            Self::Reports => "reports",
            Self::NoRoute => "no_route",
            Self::NoPath => "no_path",
            Self::TooLong => "too_long",
            Self::Full => "full",
            Self::Late => "late",
            Self::Spoofed => "spoofed",
            Self::Halved => "halved",
            Self::Device => "device",
        }
    }
}

/// Number of packets and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCount {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl PacketCount {
    pub(super) fn count(&mut self, packet: &[u8]) {
        self.packets += 1;
        self.bytes += packet.len() as u64;
    }
}

/// Counters of a gateway since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounters {
    /// From the host, taken by the scheme.
    pub outbound: PacketCount,
    /// From the mesh, for the host.
    pub inbound: PacketCount,
    /// Packets that went no further, by reason.
    pub drops: BTreeMap<Dropped, u64>,
    /// ICMP messages made for the host.
    pub icmp_sent: u64,
    /// TCP SYN packets whose segment size was lowered.
    pub clamped: u64,
    /// Packets that were marked for their delay, where others are dropped (ECN).
    pub marked: u64,
}

impl GatewayCounters {
    pub(super) fn drop(&mut self, why: Dropped) {
        self.add(why, 1);
    }

    pub(super) fn add(&mut self, why: Dropped, packets: u64) {
        if packets > 0 {
            *self.drops.entry(why).or_default() += packets;
        }
    }
}
