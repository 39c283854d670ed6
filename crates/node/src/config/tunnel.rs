//! `[tunnel]`: IP over the mesh through a TUN device.

use super::value;
use ipnet::IpNet;
use ncmesh_engine::name::is_node_name;
use ncmesh_engine::registry::{AUTO, Choice, ServiceKind, UnknownScheme};
use ncmesh_engine::topology::MAX_PREFIXES;
use ncmesh_engines::REGISTRY;
use ncmesh_host::gateway::{DEFAULT_QUEUE, GatewayConfig, Target};
use ncmesh_wire::NodeId;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Largest number of routes.
const MAX_ROUTES: usize = 4096;
/// Length of the longest name of a network interface in Linux, bytes.
const MAX_DEVICE_NAME: usize = 15;

/// `[tunnel]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelConfig {
    /// Name of the scheme that carries the packets, or `auto`.
    #[serde(default = "default_scheme", deserialize_with = "scheme")]
    pub scheme: String,
    /// Name of the TUN device, which the daemon makes.
    #[serde(default = "default_device", deserialize_with = "device")]
    pub device: String,
    /// Network namespace for the device, as `ip netns` names it. The daemon's own if absent.
    #[serde(default, deserialize_with = "namespace")]
    pub namespace: Option<String>,
    /// Addresses of this node. Each prefix is reached through the device. The file may give a whole
    /// network; the node's id then makes the address in it.
    #[serde(deserialize_with = "addresses")]
    pub address: Vec<IpNet>,
    /// Networks behind this node, announced to the others.
    #[serde(default, deserialize_with = "announce")]
    pub announce: Vec<IpNet>,
    /// Prefixes in which other nodes' announcements are taken for routes, besides those of
    /// `address`. They are reached through the device.
    #[serde(default, deserialize_with = "accept")]
    pub accept: Vec<IpNet>,
    /// Length of the longest IP packet, bytes. The longest that the scheme carries if absent.
    #[serde(default, deserialize_with = "mtu")]
    pub mtu: Option<usize>,
    /// Whether the segment size of TCP connections through the device is limited to what fits.
    #[serde(default = "yes")]
    pub clamp_mss: bool,
    /// Limit of packets that wait for one node while the scheme's queue is full.
    #[serde(default = "default_queue", deserialize_with = "queue")]
    pub queue: usize,
    /// Addresses and the node each is reached through. Packets from that node may have no other
    /// source address.
    #[serde(default, deserialize_with = "routes")]
    pub routes: Vec<(IpNet, Target)>,
}

impl TunnelConfig {
    /// Returns the settings of the gateway, for packets of up to `mtu` bytes.
    #[must_use]
    pub fn gateway(&self, mtu: usize) -> GatewayConfig {
        GatewayConfig {
            addresses: self.address.iter().map(IpNet::addr).collect(),
            routes: self.routes.clone(),
            accept: self.address.iter().map(IpNet::trunc).chain(self.accept.clone()).collect(),
            announce: self.announced(),
            mtu,
            clamp_mss: self.clamp_mss,
            queue: self.queue,
        }
    }

    /// Returns what the other nodes are told to be reached through this one: its addresses, and the
    /// networks behind it.
    #[must_use]
    pub fn announced(&self) -> Vec<IpNet> {
        let own = self.address.iter().map(|own| IpNet::from(own.addr()));
        own.chain(self.announce.clone()).collect()
    }

    /// Returns the prefixes that are reached through the device, other than by its addresses.
    pub fn beyond_addresses(&self) -> impl Iterator<Item = IpNet> + '_ {
        let routed = self.routes.iter().map(|(prefix, _)| *prefix);
        let all: BTreeSet<IpNet> = routed.chain(self.accept.iter().copied()).collect();
        all.into_iter().filter(|prefix| !self.address.iter().any(|own| own.contains(prefix)))
    }

    /// Makes the addresses in networks that the file gives as a whole, and checks settings that
    /// depend on each other.
    pub(super) fn completed(mut self, id: NodeId, name: &str) -> Result<Self, String> {
        for own in &mut self.address {
            *own = by_id(*own, id)?;
        }
        if self.address.len() + self.announce.len() > MAX_PREFIXES {
            return Err(format!(
                "announce: allowed are up to {MAX_PREFIXES} prefixes and addresses together"
            ));
        }
        let own = |target: &Target| match target {
            Target::Id(node) => *node == id,
            Target::Name(node) => node == name,
        };
        if let Some((prefix, _)) = self.routes.iter().find(|(_, target)| own(target)) {
            return Err(format!("routes: {prefix} leads to this very node; name another"));
        }

        let twice = |(at, own): (usize, &IpNet)| {
            self.address[..at].iter().any(|other| other.addr() == own.addr())
        };
        match self.address.iter().enumerate().find(|own| twice(*own)) {
            Some((_, own)) => Err(format!("address: {} stands there twice", own.addr())),
            None => Ok(self),
        }
    }
}

/// Returns the address of a node in a network that is given as a whole: the host part is its id.
/// Another address stays as it is.
fn by_id(given: IpNet, id: NodeId) -> Result<IpNet, String> {
    let host_bits = given.max_prefix_len() - given.prefix_len();
    if given != given.trunc() || host_bits < 2 {
        return Ok(given);
    }
    // The last address of a network of IPv4 is its broadcast address.
    let most = if host_bits >= 16 { u32::from(u16::MAX) } else { (1 << host_bits) - 2 };
    if u32::from(id.0) > most {
        return Err(format!(
            "address: the id {id} does not fit into {given}; write an address, or a wider network"
        ));
    }
    let address = match given.addr() {
        IpAddr::V4(v4) => IpAddr::from(Ipv4Addr::from(u32::from(v4) | u32::from(id.0))),
        IpAddr::V6(v6) => IpAddr::from(Ipv6Addr::from(u128::from(v6) | u128::from(id.0))),
    };
    IpNet::new(address, given.prefix_len()).map_err(|e| e.to_string())
}

fn default_scheme() -> String {
    AUTO.into()
}

fn default_device() -> String {
    "ncmesh0".into()
}

fn default_queue() -> usize {
    DEFAULT_QUEUE
}

fn yes() -> bool {
    true
}

/// Returns the tunnel scheme of this name.
///
/// # Errors
/// [`UnknownScheme`] if there is none.
pub(crate) fn choose(name: &str) -> Result<Choice, UnknownScheme> {
    REGISTRY.choose(ServiceKind::Tunnel, name)
}

fn scheme<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    choose(&name).map_err(Error::custom)?;
    Ok(name)
}

fn device<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let fits = (1..=MAX_DEVICE_NAME).contains(&name.len()) && is_node_name(&name);
    if fits && !matches!(name.as_str(), "." | "..") {
        return Ok(name);
    }
    let allowed = "1 to 15 of letters, digits, '.', '_', '-'";
    Err(Error::custom(format!("device = {name:?}: allowed is {allowed}")))
}

fn namespace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    if !name.is_empty() && !name.contains('/') && name != "." && name != ".." {
        return Ok(Some(name));
    }
    Err(Error::custom(format!("namespace = {name:?}: allowed is a name of `ip netns list`")))
}

fn mtu<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    value::ranged(deserializer, "mtu", super::TUNNEL_MTU_MIN as i64..=65_535).map(Some)
}

fn queue<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    value::ranged(deserializer, "queue", 1..=10_000)
}

fn addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let address = |text: &String| {
        let usable = |net: &IpNet| is_host(net.addr());
        text.parse().ok().filter(usable).ok_or_else(|| {
            let allowed =
                "a host's address with the length of its prefix, for instance \"10.44.0.3/24\", \
                 or a network, in which the id makes the address";
            Error::custom(format!("address = {text:?}: allowed is {allowed}"))
        })
    };
    let all: Vec<IpNet> = texts.iter().map(address).collect::<Result<_, _>>()?;
    if all.is_empty() {
        return Err(Error::custom(
            "address is empty: give this node one, for instance \"10.44.0.3/24\"",
        ));
    }
    Ok(all)
}

/// Returns whether a host can have this address.
fn is_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !address.is_loopback() && !broadcast
}

fn routes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(IpNet, Target)>, D::Error> {
    let texts = BTreeMap::<String, RouteTarget>::deserialize(deserializer)?;
    if texts.len() > MAX_ROUTES {
        return Err(Error::custom(format!("routes: allowed are up to {MAX_ROUTES}")));
    }
    let mut routes = BTreeMap::new();
    for (text, RouteTarget(target)) in texts {
        let prefix = prefix("routes", &text).map_err(Error::custom)?;
        if routes.insert(prefix, target).is_some() {
            return Err(Error::custom(format!("routes: {prefix} stands there twice")));
        }
    }
    Ok(routes.into_iter().collect())
}

fn announce<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    prefixes("announce", deserializer)
}

fn accept<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    prefixes("accept", deserializer)
}

fn prefixes<'de, D: Deserializer<'de>>(
    setting: &str,
    deserializer: D,
) -> Result<Vec<IpNet>, D::Error> {
    let mut prefixes = BTreeSet::new();
    for text in Vec::<String>::deserialize(deserializer)? {
        let prefix = prefix(setting, &text).map_err(Error::custom)?;
        if !prefixes.insert(prefix) {
            return Err(Error::custom(format!("{setting}: {prefix} stands there twice")));
        }
    }
    Ok(prefixes.into_iter().collect())
}

/// Reads a prefix of a setting.
fn prefix(setting: &str, text: &str) -> Result<IpNet, String> {
    let host = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let Some(prefix) = text.parse().ok().or_else(host) else {
        let allowed = "an address or a prefix, for instance \"192.168.7.0/24\"";
        return Err(format!("{setting}: {text:?}: allowed is {allowed}"));
    };
    if prefix == prefix.trunc() {
        return Ok(prefix);
    }
    Err(format!("{setting}: {text:?} has bits beyond its prefix; write \"{}\"", prefix.trunc()))
}

/// The node that a route of the file leads to: a name or an id.
struct RouteTarget(Target);

impl<'de> Deserialize<'de> for RouteTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TargetReader).map(Self)
    }
}

struct TargetReader;

impl Visitor<'_> for TargetReader {
    type Value = Target;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node's name or its id, 1 to 65534")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Target, E> {
        if is_node_name(name) {
            return Ok(Target::Name(name.into()));
        }
        Err(E::custom(format!("routes: no node can be named {name:?}")))
    }

    fn visit_i64<E: Error>(self, id: i64) -> Result<Target, E> {
        let id = u16::try_from(id).ok().filter(|id| (1..u16::MAX).contains(id));
        id.map(|id| Target::Id(NodeId(id)))
            .ok_or_else(|| E::custom("routes: allowed are ids 1 to 65534"))
    }
}
