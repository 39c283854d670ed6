//! A network interface as the kernel tells it: what keeps it from sending, its addresses, and the
//! neighbours whose hardware addresses it knows.

use rtnetlink::packet_route::RouteNetlinkMessage as Message;
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage};
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// Most neighbours whose hardware addresses are remembered as known. Frames for others go out as
/// broadcasts.
const MAX_RESOLVED: usize = 4096;

/// State of the interface of a name.
#[derive(Debug)]
pub(super) struct Interface {
    name: String,
    /// Index of the interface that has the name; `None` if none has it.
    index: Option<u32>,
    /// Name that it was given in place of ours.
    renamed: Option<String>,
    is_up: bool,
    has_carrier: bool,
    mtu: usize,
    addresses: Vec<Address>,
    /// Neighbours to whom a frame goes out at once.
    resolved: BTreeSet<Ipv4Addr>,
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
    /// It is down.
    Down,
    /// It has no carrier.
    NoCarrier,
    /// It has no IPv4 address.
    NoAddress,
    /// Neither its address nor the configuration names a broadcast address.
    NoBroadcast,
}

/// Meaning of a message of the kernel for the keeper of this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Applied {
    /// All there is to know is known.
    Known,
    /// Another interface took the name: its addresses are to be asked for.
    Replaced,
}

impl Interface {
    /// Returns the state before anything is known.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            index: None,
            renamed: None,
            is_up: false,
            has_carrier: false,
            mtu: 0,
            addresses: Vec::new(),
            resolved: BTreeSet::new(),
        }
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
    pub(super) fn is_own(&self, address: Ipv4Addr) -> bool {
        self.addresses.iter().any(|known| known.own == address)
    }

    /// Returns whether a unicast frame to this neighbour waits for nothing.
    pub(super) fn is_resolved(&self, neighbor: Ipv4Addr) -> bool {
        self.resolved.contains(&neighbor)
    }

    /// Returns what keeps it from sending.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        match self {
            Self { index: None, renamed, .. } => Some(Trouble::Missing(renamed.clone())),
            Self { is_up: false, .. } => Some(Trouble::Down),
            Self { has_carrier: false, .. } => Some(Trouble::NoCarrier),
            Self { addresses, .. } if addresses.is_empty() => Some(Trouble::NoAddress),
            _ => None,
        }
    }

    /// Takes a message of the kernel.
    pub(super) fn apply(&mut self, message: &Message) -> Applied {
        match message {
            Message::NewLink(link) => return self.link_changed(link),
            Message::DelLink(link) if self.index == Some(link.header.index) => self.lose(None),
            Message::NewAddress(address) if self.index == Some(address.header.index) => {
                if let Some(address) = parse_address(address)
                    && !self.addresses.contains(&address)
                {
                    // The same address with another broadcast address is a change, not a second
                    // one.
                    self.addresses.retain(|known| known.own != address.own);
                    self.addresses.push(address);
                }
            }
            Message::DelAddress(address) if self.index == Some(address.header.index) => {
                if let Some(gone) = parse_address(address) {
                    self.addresses.retain(|known| known.own != gone.own);
                }
            }
            Message::NewNeighbour(entry) if self.index == Some(entry.header.ifindex) => {
                self.neighbor_changed(entry);
            }
            Message::DelNeighbour(entry) if self.index == Some(entry.header.ifindex) => {
                if let Some(neighbor) = neighbor_of(entry) {
                    self.resolved.remove(&neighbor);
                }
            }
            _ => {}
        }
        Applied::Known
    }

    fn link_changed(&mut self, link: &LinkMessage) -> Applied {
        let name = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name),
            _ => None,
        });
        // The configuration has a name, and the kernel's messages have an index. A name can move to
        // another interface, and an interface can change its name.
        let index = link.header.index;
        let is_ours = name == Some(&self.name);
        if !is_ours {
            if self.index == Some(index) {
                self.lose(name.cloned());
            }
            return Applied::Known;
        }
        let is_another = self.index != Some(index);
        if is_another {
            self.lose(None);
            self.index = Some(index);
        }
        self.is_up = link.header.flags.contains(LinkFlags::Up);
        self.has_carrier = link.header.flags.contains(LinkFlags::LowerUp);
        for attribute in &link.attributes {
            if let LinkAttribute::Mtu(mtu) = attribute {
                self.mtu = *mtu as usize;
            }
        }
        if is_another { Applied::Replaced } else { Applied::Known }
    }

    /// Forgets the interface, which is gone or has another name.
    fn lose(&mut self, renamed: Option<String>) {
        let name = core::mem::take(&mut self.name);
        *self = Self { renamed, ..Self::new(&name) };
    }

    fn neighbor_changed(&mut self, entry: &NeighbourMessage) {
        use NeighbourState::{Delay, Noarp, Permanent, Probe, Reachable, Stale};
        let Some(neighbor) = neighbor_of(entry) else { return };
        let is_address =
            |a: &NeighbourAttribute| matches!(a, NeighbourAttribute::LinkLayerAddress(_));
        let is_known = entry.attributes.iter().any(is_address)
            && matches!(entry.header.state, Delay | Noarp | Permanent | Probe | Reachable | Stale);
        if !is_known {
            self.resolved.remove(&neighbor);
        } else if self.resolved.len() < MAX_RESOLVED {
            self.resolved.insert(neighbor);
        }
    }
}

impl Trouble {
    /// Returns what is wrong with the interface `name`, and what to do.
    pub(super) fn text(&self, name: &str) -> String {
        format!("nothing is sent: {}", Told { name, trouble: self })
    }
}

struct Told<'a> {
    name: &'a str,
    trouble: &'a Trouble,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, trouble } = self;
        match trouble {
            Trouble::Missing(None) => write!(f, "there is no interface {name}"),
            Trouble::Missing(Some(new)) => {
                write!(f, "the interface {name} is called {new} now; change [radio] interface")
            }
            Trouble::Down => write!(f, "{name} is down; `ip link set {name} up`"),
            Trouble::NoCarrier => write!(
                f,
                "{name} has no carrier; join its cell or mesh, or look at the cable and the other \
                 end"
            ),
            Trouble::NoAddress => write!(
                f,
                "{name} has no IPv4 address; `ip address add ADDRESS/PREFIX broadcast + dev {name}`"
            ),
            Trouble::NoBroadcast => {
                write!(f, "{name} has no broadcast address; set [radio] broadcast")
            }
        }
    }
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

fn neighbor_of(message: &NeighbourMessage) -> Option<Ipv4Addr> {
    message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(*address),
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

    fn neighbor(index: u32, state: NeighbourState) -> NeighbourMessage {
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
        then(Message::NewLink(link(2, "wlan0", UP)), Some(Trouble::NoAddress));
        then(Message::NewAddress(address(1, OWN)), Some(Trouble::NoAddress));
        then(Message::NewAddress(address(2, OWN)), None);
        then(Message::NewAddress(address(2, PEER)), None);
        then(Message::DelAddress(address(2, OWN)), None);
        then(Message::DelAddress(address(2, PEER)), Some(Trouble::NoAddress));
        then(Message::NewAddress(address(2, OWN)), None);
        then(Message::NewLink(link(2, "wlan0", LinkFlags::Up)), Some(Trouble::NoCarrier));
        then(Message::NewLink(link(2, "wlan0", UP)), None);
        then(Message::NewLink(link(2, "wlan7", UP)), Some(Trouble::Missing(Some("wlan7".into()))));
        then(Message::NewLink(link(3, "wlan0", UP)), Some(Trouble::NoAddress));
        then(Message::DelLink(link(2, "wlan7", UP)), Some(Trouble::NoAddress));
        then(Message::DelLink(link(3, "wlan0", UP)), missing());
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
    fn a_neighbor_is_resolved_while_its_hardware_address_is_known() {
        let mut wlan = Interface::new("wlan0");
        wlan.apply(&Message::NewLink(link(2, "wlan0", UP)));
        for (state, is_resolved) in [
            (NeighbourState::Incomplete, false),
            (NeighbourState::Reachable, true),
            (NeighbourState::Stale, true),
            (NeighbourState::Failed, false),
            (NeighbourState::Permanent, true),
        ] {
            wlan.apply(&Message::NewNeighbour(neighbor(2, state)));
            assert_eq!(wlan.is_resolved(PEER), is_resolved, "{state:?}");
        }
        wlan.apply(&Message::DelNeighbour(neighbor(1, NeighbourState::Permanent)));
        assert!(wlan.is_resolved(PEER));
        wlan.apply(&Message::DelNeighbour(neighbor(2, NeighbourState::Permanent)));
        assert!(!wlan.is_resolved(PEER));
    }
}
