//! A network interface as the kernel tells it: what keeps it from sending, its addresses, and the
//! neighbours whose hardware addresses it knows.
//!
//! The configuration has a name or a pattern of names. An interface that was taken stays the one
//! until it is gone or has a name that does not fit.

use crate::config::PortPlace;
use ipnet::IpNet;
use rtnetlink::packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use rtnetlink::packet_route::link::{
    InfoKind, InfoPortKind, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most neighbours whose hardware addresses are remembered as known. Frames for others go out as
/// broadcasts.
const MAX_RESOLVED: usize = 4096;

/// Hardware address of an interface on Ethernet or Wi-Fi.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mac(pub(super) [u8; 6]);

/// Interface on which a radio sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied {
    /// Index of the interface.
    pub index: u32,
    /// Index of the bridge that it is a part of.
    pub bridge: Option<u32>,
}

impl Occupied {
    /// Returns whether both send on one interface, or one of them on the bridge that the other one
    /// is a part of: frames would go out twice, and come back.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.index == other.index
            || self.bridge == Some(other.index)
            || other.bridge == Some(self.index)
    }
}

/// State of the interface that a port uses.
#[derive(Debug)]
pub(super) struct Interface {
    /// The configured name or pattern.
    wanted: String,
    /// Its name; the configured one while there is none.
    name: String,
    /// Index of the interface; `None` if none has the name.
    index: Option<u32>,
    /// Name that it was given in place of ours.
    renamed: Option<String>,
    is_up: bool,
    has_carrier: bool,
    /// Its hardware address, if frames of Ethernet travel on it.
    mac: Option<Mac>,
    is_bridge: bool,
    /// Kind of the interface that it is a part of, such as a bridge.
    part_of: Option<InfoPortKind>,
    /// Index of that interface.
    controller: Option<u32>,
    mtu: usize,
    addresses: Vec<Address>,
    link_local: Vec<Ipv6Addr>,
    /// Networks whose hosts are reached without a router.
    networks: BTreeSet<IpNet>,
    /// Whether the kernel asks for hardware addresses on it.
    resolves: bool,
    /// Neighbours to whom a frame goes out at once.
    resolved: BTreeSet<IpAddr>,
}

/// An address of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The address.
    pub(super) own: Ipv4Addr,
    /// Its broadcast address, if it has one.
    pub(super) broadcast: Option<Ipv4Addr>,
}

/// Reason why an interface cannot send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No interface has the name; the one that had it may have another.
    Missing(Option<String>),
    /// No interface has a name that fits the pattern.
    NoneFits,
    /// It is down.
    Down,
    /// It has no carrier.
    NoCarrier,
    /// It has no MAC address.
    NoMac,
    /// It has neither an IPv4 address nor an IPv6 link-local one.
    NoAddress,
    /// It has no IPv6 link-local address.
    NoLinkLocal,
    /// Neither its address nor the configuration names a broadcast address.
    NoBroadcast,
}

/// Effect of a message of the kernel on the keeper of this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Applied {
    /// It tells of other interfaces, or of neighbours, which matter when a frame is sent.
    Elsewhere,
    /// It tells of this interface, and all there is to know is known.
    Known,
    /// Another interface took the name, or may fit the pattern: all is to be asked for.
    Replaced,
}

impl Interface {
    /// Returns the state before anything is known.
    pub(super) fn new(wanted: &str) -> Self {
        Self {
            wanted: wanted.into(),
            name: wanted.into(),
            index: None,
            renamed: None,
            is_up: false,
            has_carrier: false,
            mac: None,
            is_bridge: false,
            part_of: None,
            controller: None,
            mtu: 0,
            addresses: Vec::new(),
            link_local: Vec::new(),
            networks: BTreeSet::new(),
            resolves: false,
            resolved: BTreeSet::new(),
        }
    }

    /// Returns the name of the interface, or the configured one while there is none.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the pattern by which the interface is chosen, if there is one.
    pub(super) fn pattern(&self) -> Option<&str> {
        is_pattern(&self.wanted).then_some(&self.wanted)
    }

    /// Returns its hardware address, if frames of Ethernet travel on it.
    pub(super) fn mac(&self) -> Option<Mac> {
        self.mac
    }

    /// Returns whether it is a bridge, which sends frames out on all its ports.
    pub(super) fn is_bridge(&self) -> bool {
        self.is_bridge
    }

    /// Returns whether a bridge takes the frames that arrive on it.
    pub(super) fn is_bridge_port(&self) -> bool {
        self.part_of == Some(InfoPortKind::Bridge)
    }

    /// Returns which interface it is, and whose bridge's, for comparison with other ports.
    pub(super) fn occupied(&self) -> Option<Occupied> {
        let bridge = self.controller.filter(|_| self.is_bridge_port());
        self.index.map(|index| Occupied { index, bridge })
    }

    /// Returns whether batman-adv uses it.
    pub(super) fn is_of_batman(&self) -> bool {
        self.part_of.as_ref().is_some_and(|kind| kind.to_string() == "batadv")
    }

    /// Returns the IPv6 link-local address that frames are sent from.
    pub(super) fn link_local(&self) -> Option<Ipv6Addr> {
        self.link_local.first().copied()
    }

    /// Returns the index of the interface, which another one of the same name does not share.
    pub(super) fn index(&self) -> Option<u32> {
        self.index
    }

    /// Returns the length of the longest packet, bytes.
    pub(super) fn mtu(&self) -> usize {
        self.mtu
    }

    /// Returns the address that frames are sent from.
    pub(super) fn address(&self) -> Option<Address> {
        self.addresses.first().copied()
    }

    /// Returns whether this is one of its addresses.
    pub(super) fn is_own(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.addresses.iter().any(|known| known.own == address),
            IpAddr::V6(address) => self.link_local.contains(&address),
        }
    }

    /// Returns whether a unicast frame to this neighbour waits for nothing.
    pub(super) fn is_resolved(&self, neighbour: IpAddr) -> bool {
        self.resolved.contains(&neighbour)
    }

    /// Returns whether a frame to this address would wait in the kernel: it is on this link, and
    /// its hardware address is not known.
    pub(super) fn must_ask_for(&self, address: IpAddr) -> bool {
        let is_here = || self.networks.iter().any(|network| network.contains(&address));
        let is_everyone = |own: &Address| own.broadcast.map(IpAddr::V4) == Some(address);
        let is_one = || !address.is_multicast() && !self.addresses.iter().any(is_everyone);
        self.resolves && !self.is_resolved(address) && is_here() && is_one()
    }

    /// Returns what keeps it from sending, whatever kind of frames.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        match self {
            // The order of the arms matters: without the interface nothing else is known.
            Self { index: None, wanted, .. } if is_pattern(wanted) => Some(Trouble::NoneFits),
            Self { index: None, renamed, .. } => Some(Trouble::Missing(renamed.clone())),
            Self { is_up: false, .. } => Some(Trouble::Down),
            Self { has_carrier: false, .. } => Some(Trouble::NoCarrier),
            _ => None,
        }
    }

    /// Takes a message of the kernel.
    pub(super) fn apply(&mut self, message: &Message) -> Applied {
        match message {
            Message::NewLink(link) => return self.link_changed(link),
            // A port that leaves a bridge is told as the end of a link of that family.
            Message::DelLink(link)
                if self.index == Some(link.header.index)
                    && link.header.interface_family == AddressFamily::Bridge =>
            {
                self.part_of = None;
                self.controller = None;
                return Applied::Known;
            }
            Message::DelLink(link) if self.index == Some(link.header.index) => {
                return self.lose(None);
            }
            Message::NewAddress(address) if self.index == Some(address.header.index) => {
                self.address_came(address);
                return Applied::Known;
            }
            // One message may be of either kind, and each list drops only its own.
            Message::DelAddress(address) if self.index == Some(address.header.index) => {
                self.networks.retain(|network| Some(*network) != parse_network(address));
                if let Some(gone) = parse_link_local(address) {
                    self.link_local.retain(|known| *known != gone);
                }
                if let Some(gone) = parse_address(address) {
                    self.addresses.retain(|known| known.own != gone.own);
                }
                return Applied::Known;
            }
            // The ports of a bridge decide which interface may be meant instead.
            Message::DelLink(_) if self.is_bridge => return Applied::Known,
            // Entries of other interfaces are left out, so that the set stays as small as the
            // neighbourhood.
            Message::NewNeighbour(entry) if self.index == Some(entry.header.ifindex) => {
                self.neighbour_changed(entry);
            }
            Message::DelNeighbour(entry) if self.index == Some(entry.header.ifindex) => {
                if let Some(neighbour) = neighbour_of(entry) {
                    self.resolved.remove(&neighbour);
                }
            }
            // Messages of other interfaces, and of kinds that do not matter here.
            _ => {}
        }

        Applied::Elsewhere
    }

    /// Takes an address of the interface.
    fn address_came(&mut self, message: &AddressMessage) {
        self.networks.extend(parse_network(message));
        // The IPv6 addresses that matter are link-local ones, which hellos carry.
        if message.header.family == AddressFamily::Inet6 {
            return self.link_local_changed(message);
        }
        if let Some(address) = parse_address(message)
            && !self.addresses.contains(&address)
        {
            // The same address with another broadcast address is a change, not a second one.
            self.addresses.retain(|known| known.own != address.own);
            self.addresses.push(address);
        }
    }

    /// Takes an IPv6 address, unless the kernel still asks whether another host has it.
    fn link_local_changed(&mut self, message: &AddressMessage) {
        let unusable = AddressHeaderFlags::Tentative | AddressHeaderFlags::Dadfailed;
        if let Some(address) = parse_link_local(message)
            && !message.header.flags.intersects(unusable)
            && !self.link_local.contains(&address)
        {
            self.link_local.push(address);
        }
    }

    fn link_changed(&mut self, link: &LinkMessage) -> Applied {
        // A bridge looks at the ports that come and go.
        let elsewhere = if self.is_bridge { Applied::Known } else { Applied::Elsewhere };
        // Bridges tell of their ports in messages that have not all attributes.
        if link.header.interface_family == AddressFamily::Bridge {
            if self.index != Some(link.header.index) {
                return elsewhere;
            }
            self.part_of = Some(InfoPortKind::Bridge);
            self.controller = controller(link).or(self.controller);
            return Applied::Known;
        }

        let name = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name),
            _ => None,
        });
        // The configuration has a name, and the kernel's messages have an index. A name can move to
        // another interface, and an interface can change its name.
        let index = link.header.index;
        let Some(name) = name else { return elsewhere };

        let is_taken = self.index == Some(index);
        if !fits(&self.wanted, name) {
            return if is_taken { self.lose(Some(name.clone())) } else { elsewhere };
        }
        // The first one that fits a pattern stays. A plain name is that of one interface.
        if !is_taken && self.index.is_some() && is_pattern(&self.wanted) {
            return elsewhere;
        }

        // Another interface has none of the addresses of the last one.
        let is_another = !is_taken;
        if is_another {
            self.lose(None);
            self.index = Some(index);
        }

        self.name.clone_from(name);
        self.is_up = link.header.flags.contains(LinkFlags::Up);
        self.has_carrier = link.header.flags.contains(LinkFlags::LowerUp);
        // An event of a Wi-Fi driver has name and flags alone, and says nothing of what is missing.
        let is_whole = link.attributes.iter().any(|a| matches!(a, LinkAttribute::Mtu(_)));
        if !is_whole {
            return if is_another { Applied::Replaced } else { Applied::Known };
        }

        // Frames of Ethernet need a MAC address of six bytes; a tunnel or a modem may have another
        // kind.
        let is_ethernet = link.header.link_layer_type == LinkLayerType::Ether;
        self.resolves = is_ethernet && !link.header.flags.contains(LinkFlags::Noarp);
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => self.mtu = *mtu as usize,
                LinkAttribute::Address(address) => {
                    let mac = address.as_slice().try_into().ok();
                    self.mac = mac.map(Mac).filter(|_| is_ethernet);
                }
                _ => {}
            }
        }

        // The bridge or team that the interface is a port of takes its frames first.
        let infos = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(infos) => Some(infos.as_slice()),
            _ => None,
        });
        let infos = infos.unwrap_or_default();
        self.is_bridge = infos.contains(&LinkInfo::Kind(InfoKind::Bridge));
        let part_of = infos.iter().find_map(|info| match info {
            LinkInfo::PortKind(kind) => Some(kind.clone()),
            _ => None,
        });
        // Without a controller it is no port, whatever kind the message names.
        self.controller = controller(link);
        self.part_of = part_of.filter(|_| self.controller.is_some());

        if is_another { Applied::Replaced } else { Applied::Known }
    }

    /// Forgets the interface, which is gone or has another name. Another one may fit the pattern.
    fn lose(&mut self, renamed: Option<String>) -> Applied {
        let had_one = self.index.is_some();
        let wanted = core::mem::take(&mut self.wanted);
        *self = Self { renamed, ..Self::new(&wanted) };
        let is_choice = had_one && is_pattern(&self.wanted);
        if is_choice { Applied::Replaced } else { Applied::Known }
    }

    fn neighbour_changed(&mut self, entry: &NeighbourMessage) {
        use NeighbourState::{Delay, Noarp, Permanent, Probe, Reachable, Stale};
        let Some(neighbour) = neighbour_of(entry) else { return };
        let is_address =
            |a: &NeighbourAttribute| matches!(a, NeighbourAttribute::LinkLayerAddress(_));
        let is_known = entry.attributes.iter().any(is_address)
            // In these states the kernel sends at once, without asking first.
            && matches!(entry.header.state, Delay | Noarp | Permanent | Probe | Reachable | Stale);

        if !is_known {
            self.resolved.remove(&neighbour);
        } else if self.resolved.len() < MAX_RESOLVED {
            // Bounded, for a network with more hosts than a mesh has neighbours.
            self.resolved.insert(neighbour);
        }
    }
}

impl Trouble {
    /// Returns what is wrong with the interface `name`, and what to do with its settings at
    /// `place`.
    pub(super) fn text(&self, name: &str, place: PortPlace) -> String {
        format!("nothing is sent: {}", Told { name, place, trouble: self })
    }
}

struct Told<'a> {
    name: &'a str,
    place: PortPlace,
    trouble: &'a Trouble,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, place, trouble } = self;

        match trouble {
            Trouble::Missing(None) => write!(f, "there is no interface {name}"),
            Trouble::Missing(Some(new)) => {
                write!(f, "the interface {name} is called {new} now; change {place} interface")
            }
            Trouble::Down => write!(f, "{name} is down; `ip link set {name} up`"),
            Trouble::NoCarrier => write!(
                f,
                "{name} has no carrier; join its cell or mesh, or look at the cable and the other \
                 end"
            ),
            Trouble::NoneFits => {
                write!(f, "no interface is called {name}; waiting for one, see `ip link`")
            }
            Trouble::NoMac => write!(
                f,
                "{name} has no MAC address, so no frames of Ethernet; set {place} kind = \"udp\" \
                 and peers"
            ),
            Trouble::NoAddress => write!(
                f,
                "{name} has no IPv4 address, and no IPv6 link-local one; `ip address add \
                 ADDRESS/PREFIX broadcast + dev {name}`, or leave out {place} kind, since \"link\" \
                 needs none"
            ),
            Trouble::NoLinkLocal => write!(
                f,
                "{name} has no IPv6 link-local address; \
                 `sysctl net.ipv6.conf.{name}.disable_ipv6=0`, or leave out {place} group"
            ),
            Trouble::NoBroadcast => {
                write!(f, "{name} has no broadcast address; set {place} broadcast")
            }
        }
    }
}

/// Returns the index of the interface that a link is a part of.
fn controller(link: &LinkMessage) -> Option<u32> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Controller(index) => Some(*index).filter(|index| *index != 0),
        _ => None,
    })
}

fn parse_address(message: &AddressMessage) -> Option<Address> {
    let mut own = None;
    let mut broadcast = None;
    for attribute in &message.attributes {
        match attribute {
            // The far end's address on point-to-point interfaces, else the same as the local one.
            AddressAttribute::Address(IpAddr::V4(address)) => own = own.or(Some(*address)),
            AddressAttribute::Local(IpAddr::V4(address)) => own = Some(*address),
            AddressAttribute::Broadcast(address) => broadcast = Some(*address),
            _ => {}
        }
    }
    own.map(|own| Address { own, broadcast })
}

fn parse_link_local(message: &AddressMessage) -> Option<Ipv6Addr> {
    message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(IpAddr::V6(address)) => {
            address.is_unicast_link_local().then_some(*address)
        }
        _ => None,
    })
}

/// Returns the network of an address. On a point-to-point interface it is that of the far end.
fn parse_network(message: &AddressMessage) -> Option<IpNet> {
    let prefix = message.header.prefix_len;
    message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(address) => IpNet::new(*address, prefix).ok(),
        _ => None,
    })
}

/// Returns whether a name of the configuration stands for several.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

/// Returns whether a name fits, where `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|left| {
            // The asterisk may stand for nothing, or for all that is left.
            let mut ends = left.char_indices().map(|(at, _)| at).chain([left.len()]);
            ends.any(|at| fits(rest, &left[at..]))
        }),
    }
}

fn neighbour_of(message: &NeighbourMessage) -> Option<IpAddr> {
    message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some((*address).into()),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
            Some((*address).into())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: LinkFlags = LinkFlags::Up.union(LinkFlags::LowerUp);
    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn link(index: u32, name: &str, flags: LinkFlags) -> LinkMessage {
        let mut link = LinkMessage::default();
        (link.header.index, link.header.flags) = (index, flags);
        link.attributes = vec![LinkAttribute::IfName(name.into()), LinkAttribute::Mtu(1500)];
        link
    }

    fn address(index: u32, own: Ipv4Addr) -> AddressMessage {
        let mut address = AddressMessage::default();
        address.header.index = index;
        let broadcast = AddressAttribute::Broadcast(Ipv4Addr::new(10, 0, 0, 255));
        address.attributes = vec![AddressAttribute::Local(IpAddr::V4(own)), broadcast];
        address
    }

    fn neighbour(index: u32, state: NeighbourState) -> NeighbourMessage {
        let mut entry = NeighbourMessage::default();
        (entry.header.ifindex, entry.header.state) = (index, state);
        entry.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::Inet(PEER)),
            NeighbourAttribute::LinkLayerAddress(vec![2, 0, 0, 0, 0, 2]),
        ];
        entry
    }

    #[test]
    fn every_change_of_an_interface_is_told() {
        let mut wlan = Interface::new("wlan0");
        let mut then = |message: Message, trouble: Option<Trouble>| {
            wlan.apply(&message);
            assert_eq!(wlan.trouble(), trouble, "{message:?}");
        };
        let missing = || Some(Trouble::Missing(None));
        then(Message::NewLink(link(1, "lo", UP)), missing());
        then(Message::NewLink(link(2, "wlan0", LinkFlags::empty())), Some(Trouble::Down));
        then(Message::NewLink(link(2, "wlan0", LinkFlags::Up)), Some(Trouble::NoCarrier));
        then(Message::NewLink(link(2, "wlan0", UP)), None);
        then(Message::NewLink(link(2, "wlan0", LinkFlags::Up)), Some(Trouble::NoCarrier));
        then(Message::NewLink(link(2, "wlan0", UP)), None);
        then(Message::NewLink(link(2, "wlan7", UP)), Some(Trouble::Missing(Some("wlan7".into()))));
        then(Message::NewLink(link(3, "wlan0", UP)), None);
        then(Message::DelLink(link(2, "wlan7", UP)), None);
        then(Message::DelLink(link(3, "wlan0", UP)), missing());
    }

    #[test]
    fn addresses_are_followed_and_an_ipv6_one_counts_when_no_other_host_has_it() {
        let mut wlan = Interface::new("wlan0");
        let own = Address { own: OWN, broadcast: Some(Ipv4Addr::new(10, 0, 0, 255)) };
        wlan.apply(&Message::NewLink(link(2, "wlan0", UP)));
        wlan.apply(&Message::NewAddress(address(1, OWN)));
        assert_eq!(wlan.address(), None);
        wlan.apply(&Message::NewAddress(address(2, OWN)));
        wlan.apply(&Message::NewAddress(address(2, PEER)));
        assert_eq!(wlan.address(), Some(own));
        assert!(wlan.is_own(OWN.into()) && wlan.is_own(PEER.into()));
        wlan.apply(&Message::DelAddress(address(2, OWN)));
        assert_eq!(wlan.address().unwrap().own, PEER);

        let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        let v6 = |own: Ipv6Addr, flags| {
            let mut message = AddressMessage::default();
            (message.header.family, message.header.index) = (AddressFamily::Inet6, 2);
            message.header.flags = flags;
            message.attributes = vec![AddressAttribute::Address(own.into())];
            message
        };
        let settled = AddressHeaderFlags::Permanent;
        let asked = settled | AddressHeaderFlags::Tentative;
        let global = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
        for message in [v6(local, asked), v6(global, settled)] {
            wlan.apply(&Message::NewAddress(message));
            assert_eq!(wlan.link_local(), None);
        }
        wlan.apply(&Message::NewAddress(v6(local, settled)));
        assert!(wlan.link_local() == Some(local) && wlan.is_own(local.into()));
        wlan.apply(&Message::DelAddress(v6(local, settled)));
        assert_eq!(wlan.link_local(), None);
    }

    #[test]
    fn the_first_interface_that_fits_a_pattern_stays_until_it_is_gone() {
        for (pattern, name, is_fit) in [
            ("wlan*", "wlan0", true),
            ("wlan*", "wlan", true),
            ("wlan*", "wlx7", false),
            ("*mesh*", "phy0-mesh1", true),
            ("w*n*0", "wlan10", true),
            ("w*n*0", "wlan1", false),
            ("wlan0", "wlan00", false),
            ("é*", "è0", false),
        ] {
            assert_eq!(fits(pattern, name), is_fit, "{pattern} {name}");
        }
        let mut wlan = Interface::new("wlan*");
        assert_eq!(wlan.trouble(), Some(Trouble::NoneFits));
        assert_eq!(wlan.name(), "wlan*");
        wlan.apply(&Message::NewLink(link(1, "eth0", UP)));
        assert_eq!(wlan.index(), None);
        assert_eq!(wlan.apply(&Message::NewLink(link(3, "wlan1", UP))), Applied::Replaced);
        assert_eq!(wlan.apply(&Message::NewLink(link(2, "wlan0", UP))), Applied::Elsewhere);
        assert_eq!((wlan.index(), wlan.name()), (Some(3), "wlan1"));
        // Another name that fits is no reason to change.
        assert_eq!(wlan.apply(&Message::NewLink(link(3, "wlan7", UP))), Applied::Known);
        assert_eq!((wlan.index(), wlan.name()), (Some(3), "wlan7"));
        // Then the kernel is asked which others there are.
        assert_eq!(wlan.apply(&Message::DelLink(link(3, "wlan7", UP))), Applied::Replaced);
        assert_eq!(wlan.trouble(), Some(Trouble::NoneFits));
    }

    #[test]
    fn a_mac_address_and_a_bridge_are_seen() {
        let mut wlan = Interface::new("wlan0");
        let mac = [2, 0, 0, 0, 0, 7];
        let mut message = link(2, "wlan0", UP);
        message.attributes.push(LinkAttribute::Address(mac.to_vec()));
        wlan.apply(&Message::NewLink(message.clone()));
        // Not that of Ethernet, such as an address of IPv4 in a tunnel.
        assert_eq!(wlan.mac(), None);
        message.header.link_layer_type = LinkLayerType::Ether;
        wlan.apply(&Message::NewLink(message.clone()));
        assert_eq!(wlan.mac(), Some(Mac(mac)));
        assert!(!wlan.is_bridge_port());

        let mut port = message.clone();
        port.attributes.push(LinkAttribute::Controller(9));
        let bridge = vec![LinkInfo::PortKind(InfoPortKind::Bridge)];
        port.attributes.push(LinkAttribute::LinkInfo(bridge));
        wlan.apply(&Message::NewLink(port));
        assert!(wlan.is_bridge_port());
        // The bridge tells that it lets go of its port, and the interface stays.
        let mut left = link(2, "wlan0", UP);
        left.header.interface_family = AddressFamily::Bridge;
        wlan.apply(&Message::DelLink(left));
        assert!(!wlan.is_bridge_port() && wlan.index() == Some(2) && wlan.mac().is_some());
    }

    #[test]
    fn an_event_of_a_driver_changes_no_more_than_it_tells() {
        let mut wlan = Interface::new("wlan0");
        let mut port = link(2, "wlan0", UP);
        port.header.link_layer_type = LinkLayerType::Ether;
        port.attributes.push(LinkAttribute::Address(vec![2, 0, 0, 0, 0, 7]));
        port.attributes.push(LinkAttribute::Controller(9));
        let bridge = vec![LinkInfo::PortKind(InfoPortKind::Bridge)];
        port.attributes.push(LinkAttribute::LinkInfo(bridge));
        wlan.apply(&Message::NewLink(port));
        // Wireless extensions tell of a scan with the name alone.
        let mut event = link(2, "wlan0", UP);
        event.attributes.truncate(1);
        assert_eq!(wlan.apply(&Message::NewLink(event)), Applied::Known);
        assert!(wlan.is_bridge_port() && wlan.mac().is_some() && wlan.mtu() == 1500);
        let occupied = Occupied { index: 2, bridge: Some(9) };
        assert_eq!(wlan.occupied(), Some(occupied));
    }

    #[test]
    fn what_is_told_of_others_is_no_change() {
        let mut wlan = Interface::new("wlan0");
        wlan.apply(&Message::NewLink(link(2, "wlan0", UP)));
        for message in [
            Message::NewLink(link(1, "eth0", UP)),
            Message::DelLink(link(1, "eth0", UP)),
            Message::NewAddress(address(1, OWN)),
            Message::NewNeighbour(neighbour(2, NeighbourState::Reachable)),
            Message::DelNeighbour(neighbour(2, NeighbourState::Reachable)),
        ] {
            assert_eq!(wlan.apply(&message), Applied::Elsewhere, "{message:?}");
        }
        assert_eq!(wlan.apply(&Message::NewAddress(address(2, OWN))), Applied::Known);
    }

    #[test]
    fn a_frame_waits_for_the_hardware_address_of_a_host_on_this_link_only() {
        let mut wlan = Interface::new("wlan0");
        let mut ethernet = link(2, "wlan0", UP);
        ethernet.header.link_layer_type = LinkLayerType::Ether;
        wlan.apply(&Message::NewLink(ethernet.clone()));
        let mut own = address(2, OWN);
        own.header.prefix_len = 24;
        own.attributes.push(AddressAttribute::Address(OWN.into()));
        wlan.apply(&Message::NewAddress(own.clone()));

        let far = Ipv4Addr::new(192, 0, 2, 7);
        let everyone = Ipv4Addr::new(10, 0, 0, 255);
        let asks = |wlan: &Interface| {
            [PEER, far, everyone].map(|address| wlan.must_ask_for(address.into()))
        };
        assert_eq!(asks(&wlan), [true, false, false]);
        wlan.apply(&Message::NewNeighbour(neighbour(2, NeighbourState::Reachable)));
        assert_eq!(asks(&wlan), [false; 3]);
        wlan.apply(&Message::NewNeighbour(neighbour(2, NeighbourState::Failed)));
        assert_eq!(asks(&wlan), [true, false, false]);
        // Without the network it is behind a router, and on a tunnel the kernel asks for nothing.
        wlan.apply(&Message::DelAddress(own.clone()));
        assert_eq!(asks(&wlan), [false; 3]);
        wlan.apply(&Message::NewAddress(own));
        ethernet.header.flags |= LinkFlags::Noarp;
        wlan.apply(&Message::NewLink(ethernet));
        assert_eq!(asks(&wlan), [false; 3]);
    }

    #[test]
    fn an_interface_that_takes_the_name_is_asked_for_its_addresses() {
        let mut wlan = Interface::new("wlan0");
        assert_eq!(wlan.apply(&Message::NewLink(link(2, "wlan0", UP))), Applied::Replaced);
        assert_eq!(wlan.apply(&Message::NewLink(link(2, "wlan0", UP))), Applied::Known);
        assert_eq!(wlan.apply(&Message::NewLink(link(3, "wlan0", UP))), Applied::Replaced);
        assert_eq!((wlan.index(), wlan.mtu()), (Some(3), 1500));
    }

    #[test]
    fn a_neighbour_is_resolved_while_its_hardware_address_is_known() {
        let mut wlan = Interface::new("wlan0");
        wlan.apply(&Message::NewLink(link(2, "wlan0", UP)));
        for (state, is_resolved) in [
            (NeighbourState::Incomplete, false),
            (NeighbourState::Reachable, true),
            (NeighbourState::Stale, true),
            (NeighbourState::Failed, false),
            (NeighbourState::Permanent, true),
        ] {
            wlan.apply(&Message::NewNeighbour(neighbour(2, state)));
            assert_eq!(wlan.is_resolved(PEER.into()), is_resolved, "{state:?}");
        }
        wlan.apply(&Message::DelNeighbour(neighbour(1, NeighbourState::Permanent)));
        assert!(wlan.is_resolved(PEER.into()));
        wlan.apply(&Message::DelNeighbour(neighbour(2, NeighbourState::Permanent)));
        assert!(!wlan.is_resolved(PEER.into()));
    }
}
