//! `[radio]`: the kind of radio and its settings.

use crate::etherd::datagram::Token;
use ncmesh_engine::settings::{Declared, Kind, Mismatch, Section, Toml, Value};
use ncmesh_engine::topology::USUAL_FRAME;
use ncmesh_stack::MTUS;
use serde::de::{Deserialize, Deserializer, Error};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// EtherType of frames without addresses: the first of two that IEEE 802 leaves to experiments.
const ETHERTYPE: u16 = 0x88B5;
/// Least EtherType: smaller numbers are lengths (IEEE 802.3).
const ETHERTYPE_MIN: u16 = 0x600;
/// UDP port.
const PORT: u16 = 7117;
/// Group of nodes that have no IPv4 address: link-local, and not registered (RFC 4291, section
/// 2.7), with `ncm` in it.
const GROUP: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0x6e63, 0x6d);
/// Most peers that a configuration may name. Each frame goes to each of them.
const MAX_PEERS: usize = 64;

/// `[radio]`.
#[derive(Clone, Debug, PartialEq)]
pub enum RadioConfig {
    /// A port on a network interface.
    Port(PortConfig),
    /// A radio of the channel emulator.
    Air(AirConfig),
}

impl RadioConfig {
    /// Returns the length of the largest frame, bytes.
    #[must_use]
    pub fn mtu(&self) -> usize {
        match self {
            Self::Port(port) => port.mtu,
            Self::Air(air) => air.mtu,
        }
    }

    /// Returns the share of the channel's time that frames take at most.
    #[must_use]
    pub fn airtime_share(&self) -> f64 {
        match self {
            Self::Port(port) => port.airtime_share,
            Self::Air(_) => 1.0,
        }
    }
}

/// The kind says which settings there are; without one, they are those of a port.
impl<'de> Deserialize<'de> for RadioConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut section = toml::Table::deserialize(deserializer)?;
        // The lab's emulator has settings of its own, so the kind is looked at before they are
        // read.
        if section.get("kind").and_then(Toml::as_str) == Some(AIR) {
            section.remove("kind");
            let air = AirConfig::deserialize(section);
            return air.map(Self::Air).map_err(|e| D::Error::custom(e.message()));
        }

        let port = PortConfig::deserialize(section).map_err(|e| D::Error::custom(e.message()))?;
        port.check_kind().map_err(D::Error::custom)?;
        Ok(Self::Port(port))
    }
}

/// Kind of the channel emulator's radios, which the lab writes.
const AIR: &str = "air";

ncmesh_engine::choices! {
    /// How frames travel on an interface.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PortKind {
        /// Frames of an EtherType, from MAC address to MAC address.
        Link = "link",
        /// UDP datagrams.
        Udp = "udp",
    }
}

ncmesh_engine::settings! {
    /// `[radio]` of a port on a network interface.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PortConfig {
        /// How frames travel. `link`: as Ethernet frames, without any IP address; it needs
        /// `CAP_NET_RAW`. `udp`: as UDP datagrams. Nodes of one kind do not hear those of the
        /// other.
        pub kind: Option<PortKind> = None,
            absent "`udp` if a setting of it is there; else `link` where the interface has a MAC \
                address, `udp` elsewhere";
        /// Name of the network interface. With `*` for any characters, as in `wlan*`, the first
        /// interface with such a name is taken, and waited for if there is none. A daemon waits
        /// until the interface has a carrier, and for `udp` an address.
        pub interface: String, allowed "an interface, such as `\"wlan0\"` or `\"wlan*\"`";
        /// EtherType of frames, the same on all nodes. For `link`.
        pub ethertype: Option<u16> = None, absent "0x88B5", within ETHERTYPE_MIN..=u16::MAX;
        /// UDP port, the same on all nodes. For `udp`.
        pub port: Option<u16> = None, absent "7117", within 1..=u16::MAX;
        /// IPv4 address to which frames are sent. For `udp`.
        pub broadcast: Option<Ipv4Addr> = None, absent "the interface's broadcast address",
            allowed "an IPv4 address";
        /// IPv6 group to which frames are sent, the same on all nodes. For `udp`. If it is set,
        /// IPv4 is not used.
        pub group: Option<Ipv6Addr> = None,
            absent "`ff12::6e63:6d`, where the interface has no IPv4 address",
            read read_group, allowed GROUPS;
        /// Nodes to each of which every frame is sent, instead of a broadcast: for VPNs and the
        /// Internet. For `udp`. A node that sends authentic frames to this one gets them too, so
        /// one of two may be behind a translation of addresses, and the other one's list empty.
        pub peers: Option<Vec<String>> = None, absent "frames are broadcast",
            read read_peers, allowed PEERS;
        /// DSCP of datagrams, which some networks and Wi-Fi drivers queue by. For `udp`.
        pub dscp: Option<u8> = None, absent "0", within 0..=63_u8;
        /// Most that is sent, all headers included. Not needed where the driver holds frames back
        /// while the channel is busy, as most Wi-Fi drivers do. Where it does not, 1 Mbit/s is
        /// sent, and `ncmesh status` asks for a rate: set it to what the channel carries.
        pub rate: Option<Rate> = None, absent "as the driver takes frames", allowed RATES;
        /// Most of the channel's time that frames take: those of this node and those that it hears
        /// of others. What nodes say to find each other goes first, and is not held.
        pub airtime_share: f64 = 1.0, within 0.01..=1.0;
        /// Rate at which a radio in ad-hoc or mesh mode sends broadcasts, as coded data is.
        /// `"auto"` raises it up to 24 Mbit/s where broadcasts turn out to be slow and all
        /// neighbours are strong enough, and lowers it again if fewer arrive. The kernel does not
        /// tell the rate that was set before, so at its end the daemon sets the lowest one of the
        /// band, which is the default of Linux. `"leave"` changes nothing: use it where other mesh
        /// software measures its links by broadcasts of the same radio.
        pub broadcast_rate: BroadcastRate = BroadcastRate::Auto, allowed BROADCAST_RATES;
        /// Length of the largest frame: at most the interface's MTU with `link`, 28 bytes less with
        /// `udp`, 48 less over IPv6.
        pub mtu: usize = USUAL_FRAME.into(), within MTUS, unit "bytes";
    }
}

impl PortConfig {
    /// Returns the settings that a kind has alone and that are there, with the kind.
    fn of_kinds(&self) -> impl Iterator<Item = (&'static str, PortKind)> {
        let settings = [
            ("ethertype", self.ethertype.is_some(), PortKind::Link),
            ("port", self.port.is_some(), PortKind::Udp),
            ("broadcast", self.broadcast.is_some(), PortKind::Udp),
            ("group", self.group.is_some(), PortKind::Udp),
            ("peers", self.peers.is_some(), PortKind::Udp),
            ("dscp", self.dscp.is_some(), PortKind::Udp),
        ];
        settings.into_iter().filter(|(_, is_there, _)| *is_there).map(|(key, _, kind)| (key, kind))
    }

    /// Returns the kind that the settings ask for; `None` if the interface decides.
    #[must_use]
    pub fn chosen_kind(&self) -> Option<PortKind> {
        self.kind.or_else(|| self.of_kinds().next().map(|(_, kind)| kind))
    }

    /// Checks that all settings are of one kind, and of one way of UDP.
    fn check_kind(&self) -> Result<(), String> {
        // Settings of several kinds would be ignored in part, so one that does not fit is refused.
        let Some(kind) = self.chosen_kind() else { return Ok(()) };
        if let Some((key, other)) = self.of_kinds().find(|(_, other)| *other != kind) {
            let kind = kind.name();
            return Err(format!("{key}: a setting of kind = {:?}, not {kind:?}", other.name()));
        }

        // Frames go by one way only: several would reach a neighbour twice.
        let ways = [
            ("broadcast", self.broadcast.is_some()),
            ("group", self.group.is_some()),
            ("peers", self.peers.is_some()),
        ];
        let mut ways = ways.into_iter().filter(|(_, is_there)| *is_there);
        match (ways.next(), ways.next()) {
            (Some((first, _)), Some((second, _))) => {
                Err(format!("{second}: frames go by {first} already; leave one of the two out"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the EtherType of frames.
    #[must_use]
    pub fn ethertype(&self) -> u16 {
        self.ethertype.unwrap_or(ETHERTYPE)
    }

    /// Returns the UDP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(PORT)
    }

    /// Returns the IPv6 group.
    #[must_use]
    pub fn group(&self) -> Ipv6Addr {
        self.group.unwrap_or(GROUP)
    }
}

/// Groups that are allowed.
const GROUPS: &str = "a link-local IPv6 group, for instance \"ff12::6e63:6d\"";

fn read_group(value: Toml) -> Result<Option<Ipv6Addr>, Mismatch> {
    let group = Ipv6Addr::from_toml(value)?;
    // Any flags, scope 2 (RFC 4291, section 2.7).
    let is_link_local = group.segments()[0] & 0xFF0F == 0xFF02;
    if is_link_local { Ok(Some(group)) } else { Err(Mismatch::Value(GROUPS.into())) }
}

/// Peers that are allowed.
const PEERS: &str = "up to 64 of \"HOST:PORT\", for instance [\"vpn.example.net:7117\"]";

fn read_peers(value: Toml) -> Result<Option<Vec<String>>, Mismatch> {
    let peers = Vec::<String>::from_toml(value)?;
    let is_peer = |peer: &String| {
        let parts = peer.rsplit_once(':');
        parts.is_some_and(|(host, port)| {
            let is_name = !host.is_empty() && !host.contains([' ', '/']);
            // The colons of an IPv6 address need brackets, or the port would be one of its parts.
            let is_bracketed = host.starts_with('[') && host.ends_with(']');
            is_name
                && (is_bracketed || !host.contains(':'))
                && port.parse().is_ok_and(|port: u16| port > 0)
        })
    };

    // Bounded, because each broadcast is sent once for each peer.
    if peers.len() > MAX_PEERS || !peers.iter().all(is_peer) {
        return Err(Mismatch::Value(PEERS.into()));
    }
    Ok(Some(peers))
}

ncmesh_engine::settings! {
    /// `kind = "air"`, which the lab writes.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AirConfig {
        /// Address of the channel emulator.
        pub ether: SocketAddr;
        /// Index of this node's radio in the emulator.
        pub index: u32;
        /// Secret of the emulator's run.
        pub token: Token;
        /// Length of the largest frame.
        pub mtu: usize = 1500, within MTUS, unit "bytes";
    }
}

impl RadioConfig {
    /// Returns what is declared of the settings of a radio that an operator may choose.
    #[must_use]
    pub fn settings() -> Vec<Declared> {
        PortConfig::settings()
    }
}

impl Value for Token {
    const KINDS: &'static [Kind] = String::KINDS;

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let token = String::from_toml(value)?.parse();
        token.map_err(|error: <Token as std::str::FromStr>::Err| {
            Mismatch::Problem(error.to_string())
        })
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }
}

/// Rates of broadcasts that are allowed.
const BROADCAST_RATES: &str = "\"auto\", \"leave\", or a rate of the radio, for instance \"24M\"";

/// Rate of broadcasts of a radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastRate {
    /// As high as the neighbours can hear, where the driver leaves it low.
    Auto,
    /// As it is.
    Leave,
    /// This one, in units of 100 kbit/s, which those of all radios are multiples of.
    Set(u32),
}

impl Value for BroadcastRate {
    const KINDS: &'static [Kind] = String::KINDS;

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let refused = || Mismatch::Value(BROADCAST_RATES.into());
        let text = value.as_str().ok_or_else(refused)?;
        match text {
            "auto" => return Ok(Self::Auto),
            "leave" => return Ok(Self::Leave),
            _ => {}
        }
        let rate: Rate = text.parse().map_err(|_| refused())?;
        let units = rate.bits_per_second / 1e5;
        // Up to 54 Mbit/s: nl80211 knows rates of 802.11b and g here.
        let is_rate = (10.0..=540.0).contains(&units) && units.fract() == 0.0;
        if is_rate { Ok(Self::Set(units as u32)) } else { Err(refused()) }
    }

    fn to_toml(&self) -> Option<Toml> {
        match self {
            Self::Auto => Some("auto".into()),
            Self::Leave => Some("leave".into()),
            Self::Set(_) => None,
        }
    }
}

/// Bit rates that are allowed.
const RATES: &str = "\"1k\" to \"100G\" (bits per second, in quotes), for instance \"20M\"";

/// Bit rate, written `"500k"`, `"20M"`, `"5.5M"` or `"1G"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bits per second.
    pub bits_per_second: f64,
}

impl std::str::FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = match text.trim().char_indices().next_back() {
            Some((at, 'k')) => (&text.trim()[..at], 1e3),
            Some((at, 'M')) => (&text.trim()[..at], 1e6),
            Some((at, 'G')) => (&text.trim()[..at], 1e9),
            _ => (text.trim(), 1.0),
        };
        let rate = number.parse::<f64>().ok().map(|n| n * unit);
        // At less than 1 kbit/s a frame of 1,500 bytes would take more than 12 s.
        let rate = rate.filter(|r| (1e3..=1e11).contains(r));
        rate.map(|bits_per_second| Self { bits_per_second })
            .ok_or_else(|| format!("rate = {text:?}: allowed is {RATES}"))
    }
}

impl Value for Rate {
    const KINDS: &'static [Kind] = String::KINDS;

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let rate = value.as_str().and_then(|text| text.parse().ok());
        rate.ok_or_else(|| Mismatch::Value(RATES.into()))
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }
}
