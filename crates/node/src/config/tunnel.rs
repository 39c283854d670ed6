//! `[tunnel]`: IP over the mesh through a TUN device.

use super::Rate;
use ipnet::IpNet;
use ncmesh_engine::name::is_node_name;
use ncmesh_engine::registry::{AUTO, Choice, ServiceKind, UnknownScheme};
use ncmesh_engine::settings::{Kind, Mismatch, Toml, Value, from_serde};
use ncmesh_engine::topology::MAX_PREFIXES;
use ncmesh_engines::registry;
use ncmesh_host::gateway::multicast::{MulticastConfig, is_local};
use ncmesh_host::gateway::{DEFAULT_QUEUE, GatewayConfig, Target};
use ncmesh_wire::NodeId;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Largest number of routes.
const MAX_ROUTES: usize = 4096;
/// Length of the longest name of a network interface in Linux, bytes.
const MAX_DEVICE_NAME: usize = 15;

ncmesh_engine::settings! {
    /// `[tunnel]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TunnelConfig {
        /// Name of the scheme that carries the packets.
        pub scheme: String = AUTO.into(), read scheme, allowed "a tunnel scheme, or `\"auto\"`";
        /// Name of the TUN device, which the daemon makes.
        pub device: String = "ncmesh0".into(), read device,
            allowed "1 to 15 of letters, digits, '.', '_', '-'";
        /// Network namespace for the device.
        pub namespace: Option<String> = None, absent "the daemon's", read namespace,
            allowed "a name of `ip netns list`";
        /// Addresses of this node, announced to the others. Each prefix is reached through the
        /// device. A whole network, such as `10.44.0.0/16`, stands for the address in it whose host
        /// part is the node's id.
        pub address: Vec<IpNet>, read addresses,
            allowed "a list of addresses with the lengths of their prefixes";
        /// Networks behind this node, announced to the others.
        pub announce: Vec<IpNet> = Vec::new(), read prefixes,
            allowed "a list of prefixes, with the addresses at most 32";
        /// Prefixes in which other nodes' announcements are used as routes, besides those of
        /// `address`. They are reached through the device.
        pub accept: Vec<IpNet> = Vec::new(), read prefixes, allowed "a list of prefixes";
        /// Length of the longest IP packet. With IPv6 it is 1280 or more.
        pub mtu: Option<usize> = None, absent "the longest packet of the scheme",
            within super::TUNNEL_MTU_MIN..=65_535, unit "bytes";
        /// Whether the segment size of TCP connections through the device is limited to what fits.
        pub clamp_mss: bool = true;
        /// Whether packets get zeros up to 128, 512 or 1,024 bytes or the longest length, so that
        /// others see less of what they are by their lengths. Costs airtime. Every node takes the
        /// zeros off. Packets to groups stay as they are.
        pub padding: bool = false;
        /// Most packets that wait for one node while the scheme's queue is full.
        pub queue: usize = DEFAULT_QUEUE, within 1..=10_000, unit "packets";
        /// IP multicast, which streams of the mesh carry: further groups of the local link besides
        /// mDNS, and the rate at which this host may send to each group.
        pub multicast: Multicast = Multicast::default(), absent "mDNS, `\"2M\"`",
            allowed "a table: `groups`, a list of addresses; `rate`, such as `\"500k\"`";
        /// Addresses and the node each is reached through. Packets from that node may have no other
        /// source address.
        pub routes: Routes = Routes::default(),
            allowed "a table: address or prefix = name or id of a node";
    }
}

/// Prefixes, each with the node that it is reached through.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routes(pub Vec<(IpNet, Target)>);

/// `[tunnel.multicast]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Multicast(pub MulticastConfig);

/// `[tunnel.multicast]` as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MulticastTable {
    #[serde(default)]
    groups: Vec<IpAddr>,
    rate: Option<String>,
}

impl TunnelConfig {
    /// Returns the settings of the gateway, for packets of up to `mtu` bytes, of which those up to
    /// `whole` are carried as a whole.
    #[must_use]
    pub fn gateway(&self, mtu: usize, whole: usize) -> GatewayConfig {
        GatewayConfig {
            addresses: self.address.iter().map(IpNet::addr).collect(),
            routes: self.routes.0.clone(),
            accept: self.address.iter().map(IpNet::trunc).chain(self.accept.clone()).collect(),
            announce: self.announced(),
            mtu,
            whole,
            clamp_mss: self.clamp_mss,
            padding: self.padding,
            queue: self.queue,
            multicast: Some(self.multicast.0.clone()),
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
        let routed = self.routes.0.iter().map(|(prefix, _)| *prefix);
        let all: BTreeSet<IpNet> = routed.chain(self.accept.iter().copied()).collect();
        all.into_iter().filter(|prefix| !self.address.iter().any(|own| own.contains(prefix)))
    }

    /// Makes the addresses in networks that the file gives as a whole, and checks settings that
    /// depend on each other.
    pub(super) fn completed(mut self, id: NodeId, name: &str) -> Result<Self, String> {
        // A network stands for the node's own address in it, so that all nodes can have one file.
        for own in &mut self.address {
            *own = by_id(*own, id)?;
        }

        // The node's profile carries both, in one list.
        if self.address.len() + self.announce.len() > MAX_PREFIXES {
            return Err(format!(
                "announce: allowed are up to {MAX_PREFIXES} prefixes and addresses together"
            ));
        }

        // A route to this node would send packets in a circle.
        let own = |target: &Target| match target {
            Target::Id(node) => *node == id,
            Target::Name(node) => node == name,
        };
        if let Some((prefix, _)) = self.routes.0.iter().find(|(_, target)| own(target)) {
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
    // A network of one or two addresses has no room for a host part.
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

/// Returns the tunnel scheme of this name.
///
/// # Errors
/// [`UnknownScheme`] if there is none.
pub(crate) fn choose(name: &str) -> Result<Choice, UnknownScheme> {
    registry().choose(ServiceKind::Tunnel, name)
}

fn scheme(value: Toml) -> Result<String, Mismatch> {
    let name = String::from_toml(value)?;
    choose(&name).map_err(|unknown| Mismatch::Problem(unknown.to_string()))?;
    Ok(name)
}

fn device(value: Toml) -> Result<String, Mismatch> {
    let name = String::from_toml(value)?;
    let fits = (1..=MAX_DEVICE_NAME).contains(&name.len()) && is_node_name(&name);
    if fits && !matches!(name.as_str(), "." | "..") {
        return Ok(name);
    }
    Err(Mismatch::Value("1 to 15 of letters, digits, '.', '_', '-'".into()))
}

fn namespace(value: Toml) -> Result<Option<String>, Mismatch> {
    let name = String::from_toml(value)?;
    if !name.is_empty() && !name.contains('/') && name != "." && name != ".." {
        return Ok(Some(name));
    }
    Err(Mismatch::Value("a name of `ip netns list`".into()))
}

fn addresses(value: Toml) -> Result<Vec<IpNet>, Mismatch> {
    // An empty list is a mistake: without addresses the device is of no use.
    let texts = Vec::<String>::from_toml(value)?;
    let address = |text: &String| {
        let usable = |net: &IpNet| is_host(net.addr());
        text.parse().ok().filter(usable).ok_or_else(|| {
            let allowed =
                "a host's address with the length of its prefix, for instance \"10.44.0.3/24\", \
                 or a network, in which the id makes the address";
            Mismatch::Problem(format!("{text:?}: allowed is {allowed}"))
        })
    };

    let all: Vec<IpNet> = texts.iter().map(address).collect::<Result<_, _>>()?;
    if all.is_empty() {
        let problem = "the list is empty: give this node one, for instance \"10.44.0.3/24\"";
        return Err(Mismatch::Problem(problem.into()));
    }
    Ok(all)
}

/// Returns whether a host can have this address.
fn is_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !address.is_loopback() && !broadcast
}

impl Value for Multicast {
    const KINDS: &'static [Kind] = &[Kind::Table];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let MulticastTable { groups, rate } = from_serde(value)?;
        let mut config = MulticastConfig::default();
        // Groups beyond the local link are carried anyway, so to list one is a mistake.
        if let Some(group) = groups.iter().find(|group| !is_local(**group)) {
            let problem = format!(
                "groups: {group} is no group of the local link, such as 224.0.0.252 or ff02::1:3; \
                 all others are carried anyway"
            );
            return Err(Mismatch::Problem(problem));
        }

        config.groups = groups.into_iter().collect();
        if let Some(rate) = rate {
            let rate: Rate = rate.parse().map_err(Mismatch::Problem)?;
            config.rate_bps = rate.bits_per_second.round() as u64;
        }
        Ok(Self(config))
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }
}

impl Value for Routes {
    const KINDS: &'static [Kind] = &[Kind::Table];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let texts: BTreeMap<String, Toml> = from_serde(value)?;
        // Bounded, because each packet is looked up in them.
        if texts.len() > MAX_ROUTES {
            return Err(Mismatch::Problem(format!("allowed are up to {MAX_ROUTES}")));
        }

        let mut routes = BTreeMap::new();
        for (text, node) in texts {
            let prefix = prefix(&text)?;
            // Two texts may mean the same prefix.
            if routes.insert(prefix, target(&node)?).is_some() {
                return Err(Mismatch::Problem(format!("{prefix} stands there twice")));
            }
        }
        Ok(Self(routes.into_iter().collect()))
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }
}

fn prefixes(value: Toml) -> Result<Vec<IpNet>, Mismatch> {
    let mut prefixes = BTreeSet::new();
    for text in Vec::<String>::from_toml(value)? {
        let prefix = prefix(&text)?;
        if !prefixes.insert(prefix) {
            return Err(Mismatch::Problem(format!("{prefix} stands there twice")));
        }
    }
    Ok(prefixes.into_iter().collect())
}

/// Reads a prefix of a setting.
fn prefix(text: &str) -> Result<IpNet, Mismatch> {
    let host = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let Some(prefix) = text.parse().ok().or_else(host) else {
        let allowed = "an address or a prefix, for instance \"192.168.7.0/24\"";
        return Err(Mismatch::Problem(format!("{text:?}: allowed is {allowed}")));
    };
    if prefix == prefix.trunc() {
        return Ok(prefix);
    }

    // Most likely an address was meant, or a shorter prefix: the user has to say which.
    let problem = format!("{text:?} has bits beyond its prefix; write \"{}\"", prefix.trunc());
    Err(Mismatch::Problem(problem))
}

/// Reads the node that a route of the file leads to.
fn target(value: &Toml) -> Result<Target, Mismatch> {
    match value {
        Toml::String(name) if is_node_name(name) => Ok(Target::Name(name.clone())),
        Toml::String(name) => Err(Mismatch::Problem(format!("no node can be named {name:?}"))),
        Toml::Integer(id) => {
            let id = u16::try_from(*id).ok().filter(|id| (1..u16::MAX).contains(id));
            id.map(|id| Target::Id(NodeId(id)))
                .ok_or_else(|| Mismatch::Problem("allowed are ids 1 to 65534".into()))
        }
        _ => Err(Mismatch::Problem("allowed is a node's name or its id, 1 to 65534".into())),
    }
}
