//! Ways of frames on an interface, and the choice between them.

use super::interface::Interface;
use crate::config::{PortConfig, PortKind};

/// Way on which frames travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Frames of an EtherType.
    Link,
    /// UDP to the broadcast address of IPv4.
    Ipv4,
    /// UDP to a link-local group of IPv6.
    Ipv6,
    /// UDP to each of several peers.
    Peers,
}

impl Way {
    /// Returns the way that the configuration asks for, or that the interface decides.
    pub(super) fn of(config: &PortConfig, interface: &Interface) -> Self {
        // A MAC address is all that frames of Ethernet need; without one only IP is left.
        let decided = if interface.mac().is_some() { PortKind::Link } else { PortKind::Udp };
        match config.chosen_kind().unwrap_or(decided) {
            PortKind::Link => Self::Link,
            PortKind::Udp if config.peers.is_some() => Self::Peers,
            PortKind::Udp if config.group.is_some() => Self::Ipv6,
            PortKind::Udp if config.broadcast.is_some() || interface.address().is_some() => {
                Self::Ipv4
            }
            PortKind::Udp if interface.link_local().is_some() => Self::Ipv6,
            PortKind::Udp => Self::Ipv4,
        }
    }

    /// Returns the length of the headers around a frame that count towards the interface's MTU,
    /// bytes.
    pub(super) fn overhead(self) -> usize {
        match self {
            Self::Link => 0,
            Self::Ipv4 | Self::Peers => 28,
            Self::Ipv6 => 48,
        }
    }

    /// Returns the length of all headers around a frame, Ethernet's included, bytes.
    pub(super) fn wire_overhead(self) -> usize {
        self.overhead() + super::link::HEADER_LEN
    }

    /// Returns what carries a frame, for people.
    pub(super) fn carrier(self) -> &'static str {
        match self {
            Self::Link => "frame of Ethernet",
            Self::Ipv4 | Self::Ipv6 | Self::Peers => "UDP datagram",
        }
    }
}
