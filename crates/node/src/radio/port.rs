//! A port on a network interface: real radios in ad-hoc or mesh mode, cables, VPNs.
//!
//! Data waits here, where it can still be coded, and not in the driver's queue. A frame counts as
//! sent when it has left: when the kernel has taken it out of the send buffer. The next one is made
//! then, or a little earlier where the channel is fast (`Depth` of `pacing`). Drivers that let go
//! of a frame as soon as they have it give no such back-pressure; then the rate limit alone holds
//! frames back.
//!
//! Unicast frames go to the address that their receiver tells in its hellos: a MAC address, or one
//! of IPv4 or IPv6 if the kernel knows its hardware address. Otherwise they go out as broadcasts,
//! and the kernel is made to ask for the address: a frame that waits for an answer to ARP would
//! hold back all frames behind it for up to three seconds. A socket of their own makes sure of
//! that.
//!
//! The address that this node tells is its interface's, or the one that the kernel puts into its
//! broadcasts. The source of a frame means nothing, because any machine can send on what it heard.
//! A node behind a translation of addresses tells one that no neighbour can resolve, so frames for
//! it stay broadcasts.
//!
//! The state of the interface is watched by rtnetlink. While it cannot send, nothing is asked of
//! the node, and nothing is lost.

use super::broadcast_rate::{Change, Look, RateChoice};
use super::carrying::Carrying;
use super::interface::{Mac, Trouble};
use super::link::{self, EVERYONE};
use super::pacing::{BackPressure, Cost, Depth, Pacing, limits};
use super::peers::{Heard, Peers};
use super::sockets::{Full, Sockets, Source, Target, source};
use super::watch::Watch;
use super::ways::Way;
use super::{Occupied, Radio, RadioEvent, hints, nl80211};
use crate::alarm::Alarm;
use crate::config::{BroadcastRate, PortConfig, PortEntry, PortPlace, Rate};
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_stack::{CarrierTime, Unicast};
use ncmesh_wire::{LongAddress, RadioAddress, ShortAddress};
use nix::ifaddrs::getifaddrs;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::time::{Duration, Instant};

/// Pause after the sockets could not be opened.
const REBIND_PAUSE: Duration = Duration::from_secs(1);
/// Least time between two questions for the hardware address of a neighbour.
const ASK_PAUSE: Duration = Duration::from_secs(5);
/// Port of the discard service (RFC 863). A packet to it makes the kernel ask for an address.
const DISCARD_PORT: u16 = 9;
/// Most frames of this node itself that are taken from a socket in a row.
const MOST_OWN: usize = 32;
/// Pause after the kernel refused a frame.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// Least time between two questions about settings of a radio that the kernel tells nobody of.
const LOOK_PAUSE: Duration = Duration::from_secs(10);
/// Longest wait for unicast frames that the driver holds, if there is room for broadcasts: the time
/// for which it repeats a frame of 1,500 bytes, eight times 12 ms at 1 Mbit/s. A neighbour that
/// does not acknowledge must not hold back the others.
const UNICAST_PATIENCE: Duration = Duration::from_millis(100);
/// Longest wait for a broadcast to leave the driver. It is taken for sent then.
const LEAVING_PATIENCE: Duration = Duration::from_secs(1);
/// Least length of a frame, headers included, whose time in the driver is that of a long frame,
/// bytes. Several shorter ones fit into a send buffer for one frame.
const LONG_FRAME: usize = 1_000;

/// Reason why a port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The interface does not exist.
    #[error("interface = {name:?}: there is no such interface; there are: {known}")]
    NoInterface {
        /// Name of the configured interface.
        name: String,
        /// Names of the interfaces that there are.
        known: String,
    },
    /// The interface carries no frames of this kind.
    #[error(
        "kind = \"link\": {0} has no MAC address, so no frames of Ethernet; \
         set kind = \"udp\" and peers"
    )]
    NoMac(String),
    /// The interface cannot broadcast.
    #[error(
        "broadcast: {0} has no broadcast address of its own; \
         give one, for instance \"10.1.255.255\", or peers"
    )]
    NoBroadcast(String),
    /// Frames are too long for the interface.
    #[error(
        "mtu = {mtu} does not fit {interface}, \
         whose packets carry at most {fits} bytes in a {carrier}"
    )]
    Mtu {
        /// Configured MTU, bytes.
        mtu: usize,
        /// Name of the interface.
        interface: String,
        /// Largest MTU that would fit, bytes.
        fits: usize,
        /// Carrier of a frame, for people.
        carrier: &'static str,
    },
    /// This process may not send frames of an EtherType.
    #[error(
        "frames without IP on {0} need the right CAP_NET_RAW: {1}; start as root, \
         `setcap cap_net_raw+ep $(command -v ncmesh)`, or AmbientCapabilities=CAP_NET_RAW and \
         AF_PACKET in RestrictAddressFamilies of the systemd unit; or set {2} kind = \"udp\""
    )]
    NoRight(String, io::Error, PortPlace),
    /// Another program uses the port or the EtherType.
    #[error(
        "{carried} on {interface} is in use; stop the other program \
         (a second ncmesh daemon?) or set another {place} {setting} on all nodes"
    )]
    InUse {
        /// Thing that is in use, such as `UDP port 7117`.
        carried: String,
        /// Name of the interface.
        interface: String,
        /// Setting that has another one.
        setting: &'static str,
        /// Where the settings stand.
        place: PortPlace,
    },
    /// Another error of the operating system.
    #[error("cannot open a socket on {0}: {1}")]
    Io(String, io::Error),
}

impl PortError {
    /// Returns whether a setting is wrong. The message then begins with the setting's name.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        matches!(
            self,
            Self::NoInterface { .. } | Self::NoMac(_) | Self::NoBroadcast(_) | Self::Mtu { .. }
        )
    }
}

/// Port on a network interface.
pub struct Port {
    config: PortConfig,
    /// Where its settings stand.
    written: PortPlace,
    watch: Watch,
    /// The sockets, once the interface was able to send.
    sockets: Option<Bound>,
    /// Nodes that frames are sent to, where they are not broadcast.
    peers: Option<Peers>,
    /// Rate of broadcasts that this daemon set.
    broadcast_rate: Option<nl80211::RateSet>,
    rate_choice: RateChoice,
    /// Why the rate of broadcasts could not be set.
    rate_problem: Option<String>,
    /// Frequency of its channel, if it is a radio.
    channel_mhz: Option<u32>,
    /// Whether the interface could not send when it was looked at last.
    was_in_trouble: bool,
    /// When the radio's settings were asked for last.
    looked_at: Instant,
    /// IPv4 address that the kernel sends broadcasts from.
    source: Option<Ipv4Addr>,
    /// When the kernel was made to ask for the hardware addresses of neighbours, for `ASK_PAUSE`.
    asked_at: BTreeMap<IpAddr, Instant>,
    pacing: Pacing,
    alarm: Alarm,
    /// Whether the daemon waits for a grant.
    requested: bool,
    /// Frame that waits for the kernel.
    sending: Option<Sending>,
    /// Frame that the kernel has taken, and that waits in the driver.
    leaving: Option<Leaving>,
    /// How many frames wait there.
    depth: Depth,
    /// Whether broadcast or unicast carries more.
    carrying: Carrying,
    /// Whether the driver was full when the frame that is made was granted.
    waited: bool,
    /// When sockets that could not be opened are tried again.
    rebind_at: Option<Instant>,
    /// Since when the driver holds unicast frames.
    unicast_full: Option<Instant>,
    /// Source of the frame that was received last.
    heard_from: Option<Source>,
    pressure: BackPressure,
    /// Whether back-pressure was missing when `hints` were made.
    is_missing_told: bool,
    /// Whether the interface changed since `hints` were made.
    is_dirty: bool,
    /// Hints that the daemon shows.
    hints: Vec<String>,
    /// Description that the daemon shows.
    description: String,
    /// Neighbours that unicast serves, as they were told last.
    unicast_told: Unicast,
    /// Interface and bridge as they were told last.
    occupied: Option<Occupied>,
    /// Whether the kernel refuses frames, which is logged once.
    refused: bool,
}

/// Sockets, and the interface and the way that they are for.
struct Bound {
    sockets: Sockets,
    place: link::Place,
    way: Way,
}

/// Frame on its way to the kernel, perhaps in several datagrams.
#[derive(Debug, PartialEq, Eq)]
struct Sending {
    frame: Vec<u8>,
    targets: Vec<Target>,
    /// The neighbour that it goes to; all if absent.
    to: Option<RadioAddress>,
    /// How many of them are done.
    done: usize,
    /// Whether the kernel took one.
    is_sent: bool,
    /// The last error.
    error: Option<String>,
}

/// Frame that the kernel has taken.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    result: TxResult,
    /// Its length with headers, of all datagrams, bytes.
    bytes: usize,
    /// The neighbour that it went to; all if absent.
    to: Option<RadioAddress>,
    /// The socket by which it went.
    socket: Full,
    /// When the kernel took it.
    at: Instant,
}

impl Port {
    /// Opens the port with settings that are `written` somewhere. Waits for the interface if it
    /// exists but cannot send yet, or if the configuration has a pattern of names. Call it within a
    /// tokio runtime.
    ///
    /// # Errors
    /// [`PortError`].
    fn of(config: &PortConfig, written: PortPlace) -> Result<Self, PortError> {
        let wanted = &config.interface;
        let failed = |e| PortError::Io(wanted.clone(), e);
        let watch = Watch::open(wanted).map_err(failed)?;
        let interface = watch.interface();
        let is_there = interface.index().is_some();
        // A name that does not exist is most likely misspelt. A pattern may fit later.
        if !is_there && interface.pattern().is_none() {
            return Err(PortError::NoInterface { name: wanted.clone(), known: known_interfaces() });
        }

        let way = Way::of(config, interface);
        if way == Way::Link {
            link::check_right().map_err(|e| PortError::NoRight(wanted.clone(), e, written))?;
        }
        // Frames that are longer than the interface's MTU would be cut, and a lost half loses both.
        let fits = interface.mtu().saturating_sub(way.overhead());
        if is_there && config.mtu > fits {
            let interface = interface.name().to_owned();
            let carrier = way.carrier();
            return Err(PortError::Mtu { mtu: config.mtu, interface, fits, carrier });
        }

        let occupied = interface.occupied();
        let (pacing, pressure) = limits(config.rate, Instant::now());
        let mut port = Self {
            pacing,
            pressure,
            alarm: Alarm::new().map_err(failed)?,
            config: config.clone(),
            written,
            watch,
            sockets: None,
            peers: config.peers.as_deref().map(Peers::new),
            broadcast_rate: None,
            rate_choice: RateChoice::new(Instant::now()),
            rate_problem: None,
            was_in_trouble: false,
            looked_at: Instant::now(),
            channel_mhz: None,
            source: None,
            asked_at: BTreeMap::new(),
            requested: false,
            sending: None,
            leaving: None,
            unicast_told: Unicast::Nobody,
            depth: Depth::default(),
            carrying: Carrying::new(Instant::now()),
            waited: false,
            rebind_at: None,
            unicast_full: None,
            heard_from: None,
            is_missing_told: false,
            is_dirty: true,
            hints: Vec::new(),
            description: String::new(),
            occupied,
            refused: false,
        };
        port.description = port.described();
        // Some interfaces will never do, and the daemon says so instead of waiting.
        match port.trouble() {
            Some(Trouble::NoBroadcast) => return Err(PortError::NoBroadcast(port.name())),
            Some(Trouble::NoMac) => return Err(PortError::NoMac(port.name())),
            _ => {}
        }

        port.bind()?;
        Ok(port)
    }

    fn name(&self) -> String {
        self.watch.interface().name().to_owned()
    }

    fn way(&self) -> Way {
        Way::of(&self.config, self.watch.interface())
    }

    /// Returns what keeps the port from sending.
    fn trouble(&self) -> Option<Trouble> {
        let interface = self.watch.interface();
        // Each way needs an address of its own kind.
        let of_way = || match self.way() {
            Way::Link => interface.mac().is_none().then_some(Trouble::NoMac),
            Way::Ipv4 if interface.address().is_none() => Some(Trouble::NoAddress),
            Way::Ipv4 => self.broadcast().is_none().then_some(Trouble::NoBroadcast),
            Way::Ipv6 => interface.link_local().is_none().then_some(Trouble::NoLinkLocal),
            Way::Peers => None,
        };
        // Whether it is up changes often; that it cannot carry such frames at all does not.
        let no_mac = || of_way().filter(|trouble| *trouble == Trouble::NoMac);
        match interface.trouble() {
            Some(Trouble::Down | Trouble::NoCarrier) => no_mac().or_else(|| interface.trouble()),
            other => other.or_else(of_way),
        }
    }

    /// Returns the broadcast address of IPv4.
    fn broadcast(&self) -> Option<Ipv4Addr> {
        let address = self.watch.interface().address();
        self.config.broadcast.or(address.and_then(|address| address.broadcast))
    }

    /// Returns the interface as sockets are bound to it.
    fn place(&self) -> Option<link::Place> {
        let interface = self.watch.interface();
        let is_bridge_port = interface.is_bridge_port();
        let ethertype = self.config.ethertype();
        interface.index().map(|index| link::Place { index, ethertype, is_bridge_port })
    }

    /// Returns whether there are sockets on the interface as it is.
    fn is_bound(&self) -> bool {
        let way = self.way();
        let place = self.place();
        self.sockets.as_ref().is_some_and(|bound| bound.way == way && Some(bound.place) == place)
    }

    /// Opens sockets on the interface, unless they are open or it cannot send.
    fn bind(&mut self) -> Result<(), PortError> {
        let Some(place) = self.place() else { return Ok(()) };
        // Asked again at each change, so most calls end here.
        if self.trouble().is_some() || self.is_bound() {
            return Ok(());
        }
        // The new ones may need what the old ones hold.
        self.sockets = None;

        let way = self.way();
        let name = self.name();
        // Errors are told with what the user can change: the port or EtherType, or the rights.
        let sockets =
            Sockets::open(&self.config, way, &name, place).map_err(|e| match e.kind() {
                io::ErrorKind::AddrInUse => {
                    let port = self.config.port();
                    let (carried, setting) = match way {
                        Way::Link => (format!("EtherType {:#06x}", place.ethertype), "ethertype"),
                        Way::Ipv4 | Way::Ipv6 | Way::Peers => (format!("UDP port {port}"), "port"),
                    };
                    let place = self.written;
                    PortError::InUse { carried, interface: name.clone(), setting, place }
                }
                io::ErrorKind::PermissionDenied if way == Way::Link => {
                    PortError::NoRight(name.clone(), e, self.written)
                }
                _ => PortError::Io(name.clone(), e),
            })?;

        self.sockets = Some(Bound { sockets, place, way });
        self.set_broadcast_rate(place.index);
        // The new buffer has its own room, so back-pressure is measured again.
        self.pressure = BackPressure::new(self.config.rate.is_none(), Instant::now());
        self.depth = Depth::default();
        self.carrying = Carrying::new(Instant::now());
        Ok(())
    }

    /// Sets the rate of broadcasts that the configuration has, if it has one.
    fn set_broadcast_rate(&mut self, index: u32) {
        // A radio that joins anew has the lowest rate again, whatever was chosen.
        self.rate_choice = RateChoice::new(Instant::now());
        let BroadcastRate::Set(units) = self.config.broadcast_rate else { return };

        self.rate_problem = None;
        // The one before sets its rate back when it goes, so it goes first.
        self.broadcast_rate = None;

        match nl80211::RateSet::new(index, units) {
            Ok(set) => self.broadcast_rate = Some(set),
            Err(e) => {
                let name = self.name();
                let written = self.written;
                self.rate_problem = Some(format!(
                    "{name} does not take {written} broadcast_rate: {e}; it is for radios in \
                     ad-hoc or mesh mode, with a rate of their band, and needs CAP_NET_ADMIN; see \
                     `ncmesh doctor --radio`"
                ));
            }
        }
    }

    /// Does what a change of the interface asks for. Returns whether description or hints changed.
    fn handle_change(&mut self) -> bool {
        self.is_dirty = false;
        self.is_missing_told = self.pressure.is_missing();
        self.looked_at = Instant::now();
        let name = self.name();

        let everyone = self.broadcast().filter(|_| self.way() == Way::Ipv4);
        // The kernel picks the source by its routes, and hellos must tell the same one.
        self.source = everyone.and_then(|everyone| {
            source(&name, SocketAddrV4::new(everyone, self.config.port())).ok()
        });

        // One hint for what keeps it from sending. Others would only follow from it.
        let trouble = self.trouble();
        let is_back = core::mem::replace(&mut self.was_in_trouble, trouble.is_some());
        let trouble = trouble.map(|trouble| trouble.text(&name, self.written));
        // A radio that joined its cell again has the rate of broadcasts that it had at first. One
        // whose sockets are opened again gets the rate with them.
        if let Some(place) =
            self.place().filter(|_| is_back && trouble.is_none() && self.is_bound())
        {
            self.set_broadcast_rate(place.index);
        }
        // Sockets do not outlive their interface, also where another comes under its index.
        let has_lost_group = self.sockets.as_ref().is_some_and(|bound| bound.way == Way::Ipv6);
        if self.place().is_none() || (trouble.is_some() && has_lost_group) {
            self.sockets = None;
        }
        let unbound = self.bind().err();
        self.rebind_at = unbound.is_some().then(|| Instant::now() + REBIND_PAUSE);
        let problem = trouble.or_else(|| unbound.map(|e| e.to_string()));
        let interface = self.watch.interface();
        let way = self.way();
        let mtu = self.config.mtu;
        let problem = problem.or_else(|| hints::mtu(interface, way, mtu, self.written));
        let slow = || self.pressure.is_missing().then(|| hints::pressure(&name, self.written));
        let mut told = Vec::from_iter(problem.or_else(slow));
        // The others are told besides: it sends, but not as it should.
        told.extend(hints::forwarding(interface));
        told.extend(self.rate_problem.clone());
        told.extend(hints::bridge(interface, self.written));
        if way == Way::Ipv6 {
            told.extend(hints::version(&name, &self.config, self.written));
        }
        told.extend(self.peers.iter().flat_map(|peers| peers.hints(self.written)));

        // An interface that is put into a bridge may look as before, but other ports must know.
        let occupied = self.watch.interface().occupied();
        let mut has_moved = core::mem::replace(&mut self.occupied, occupied) != occupied;

        // Another radio of this node may be on the same channel.
        let place = self.place().map(|place| place.index);
        let channel = place.and_then(nl80211::channel).and_then(|channel| channel.frequency_mhz);
        has_moved |= core::mem::replace(&mut self.channel_mhz, channel) != channel;

        let unicast = self.carrying.unicast();
        has_moved |= core::mem::replace(&mut self.unicast_told, unicast.clone()) != unicast;

        let description = self.described();
        if told == self.hints && description == self.description {
            return has_moved;
        }

        // Each hint is logged once, when it appears.
        for hint in told.iter().filter(|hint| !self.hints.contains(hint)) {
            tracing::warn!("{hint}");
        }
        if self.trouble().is_none() {
            let from = self.told().map(|address| format!(", from {}", shown(self.way(), address)));
            tracing::info!("{name} can send{}", from.unwrap_or_default());
        }

        self.hints = told;
        self.description = description;
        true
    }

    /// Returns what this port is, and why, where the configuration does not say it.
    fn described(&self) -> String {
        let interface = self.watch.interface();
        let name = interface.name();
        if interface.index().is_none() {
            return format!("waits for the interface {name}");
        }
        let PortConfig { kind, .. } = &self.config;
        let port = self.config.port();

        let what = match self.way() {
            Way::Link => format!("link on {name}, EtherType {:#06x}", self.config.ethertype()),
            Way::Ipv4 => format!("udp on {name}, port {port}"),
            Way::Ipv6 => format!("udp on {name}, port {port}, group {}", self.config.group()),
            Way::Peers => {
                let peers = self.peers.as_ref().map_or(0, Peers::len);
                format!("udp on {name}, port {port}, peers: {peers}")
            }
        };

        // The reason is told only where the daemon chose.
        let decided = match self.way() {
            _ if kind.is_some() || self.config.chosen_kind().is_some() => None,
            Way::Link => Some("it has a MAC address".to_owned()),
            _ => Some("it has no MAC address".to_owned()),
        };

        let chosen = interface.pattern().map(|pattern| format!("the first of {pattern}"));
        // The rate and the way that were chosen, and why.
        let auto = self.config.broadcast_rate == BroadcastRate::Auto;
        let rate = self.broadcast_rate.as_ref().filter(|_| auto).map(|set| {
            format!("broadcasts at {} Mbit/s, for its neighbours are strong", set.mbit_s())
        });
        let unicast = self.carrying.share().map(|share| {
            let percent = (share * 100.0).round();
            format!("by unicast where a frame takes {percent} % of a broadcast's time")
        });
        let reasons = chosen.into_iter().chain(decided).chain(rate).chain(unicast);
        let reasons: Vec<String> = reasons.collect();
        if reasons.is_empty() { what } else { format!("{what} ({})", reasons.join("; ")) }
    }

    /// Returns the address that neighbours are told.
    fn told(&self) -> Option<RadioAddress> {
        match self.way() {
            Way::Link => self.watch.interface().mac().map(|Mac([a, b, c, d, e, f])| {
                RadioAddress::Long(LongAddress([a, b, c, d, e, f, 0, 0]))
            }),
            Way::Ipv4 => {
                self.source.map(|address| RadioAddress::Short(ShortAddress(address.octets())))
            }
            Way::Ipv6 => self.watch.interface().link_local().map(|address| {
                let [_, _, _, _, _, _, _, _, interface @ ..] = address.octets();
                RadioAddress::Long(LongAddress(interface))
            }),
            Way::Peers => None,
        }
    }

    /// Returns where a frame of `length` bytes for everyone goes.
    fn everyone(&mut self, length: usize) -> Vec<Target> {
        let port = self.config.port();

        // One target, except with peers: there each one gets a copy.
        match self.way() {
            Way::Link => Vec::from_iter(
                self.watch.interface().mac().map(|from| Target::Mac { from, to: EVERYONE }),
            ),
            Way::Ipv4 => {
                let all = self.broadcast().map(|all| SocketAddr::from((all, port)));
                all.map(Target::Everyone).into_iter().collect()
            }
            Way::Ipv6 => {
                vec![Target::Everyone(self.in_scope(self.config.group(), port))]
            }
            Way::Peers => {
                let now = Instant::now();
                let addresses = self.peers.as_mut().map(|peers| peers.addresses(length, now));

                let mut targets = Vec::new();
                for to in addresses.unwrap_or_default() {
                    // A frame that waits for the hardware address of one that is dead would keep
                    // those for all others in the kernel.
                    if !self.watch.interface().must_ask_for(to.ip()) {
                        targets.push(Target::Everyone(self.scoped(to)));
                    } else if self.ask(to, now)
                        && let Some(peers) = &mut self.peers
                    {
                        self.is_dirty |= peers.note_asked(to);
                    }
                }
                targets
            }
        }
    }

    /// Returns an address with the number of this interface, if it has a meaning there only.
    fn scoped(&self, to: SocketAddr) -> SocketAddr {
        match to.ip() {
            IpAddr::V6(address) if address.is_unicast_link_local() => {
                self.in_scope(address, to.port())
            }
            _ => to,
        }
    }

    /// Returns an IPv6 address on this interface.
    fn in_scope(&self, address: Ipv6Addr, port: u16) -> SocketAddr {
        let scope = self.watch.interface().index().unwrap_or(0);
        SocketAddrV6::new(address, port, 0, scope).into()
    }

    /// Returns where a frame for the neighbour goes that told this address. Makes the kernel ask
    /// for a hardware address that it does not know. `None` if everyone has to hear it.
    fn target(&mut self, address: RadioAddress) -> Option<Target> {
        let port = self.config.port();
        let to = match (self.way(), address) {
            (Way::Link, RadioAddress::Long(LongAddress([to @ .., 0, 0]))) => {
                // Not a group, which would be several nodes.
                let is_one = to[0] & 1 == 0 && to != [0; 6];
                let from = self.watch.interface().mac()?;
                return is_one.then_some(Target::Mac { from, to: Mac(to) });
            }
            (Way::Ipv4, RadioAddress::Short(ShortAddress(address))) => {
                SocketAddr::from((address, port))
            }
            (Way::Ipv6, RadioAddress::Long(LongAddress([a, b, c, d, e, f, g, h]))) => {
                let address =
                    Ipv6Addr::from([0xFE, 0x80, 0, 0, 0, 0, 0, 0, a, b, c, d, e, f, g, h]);
                self.in_scope(address, port)
            }
            _ => return None,
        };
        // Only a resolved address is sent to, since the kernel would hold the frame until ARP ends.
        if self.watch.interface().is_resolved(to.ip()) {
            return Some(Target::One(to));
        }

        self.ask(to, Instant::now());
        None
    }

    /// Makes the kernel ask for a hardware address. Returns whether it was time to ask again.
    fn ask(&mut self, to: SocketAddr, now: Instant) -> bool {
        // At most one question for each neighbour in `ASK_PAUSE`. Old ones are forgotten, so the
        // map stays small.
        self.asked_at.retain(|_, at| now - *at < ASK_PAUSE);
        let Entry::Vacant(entry) = self.asked_at.entry(to.ip()) else { return false };
        entry.insert(now);
        if let Some(bound) = &self.sockets {
            // To a port where no program listens: the question alone matters.
            let mut to = self.scoped(to);
            to.set_port(DISCARD_PORT);
            bound.sockets.ask(to);
        }
        true
    }

    /// Returns the socket that the next frame has to wait for.
    fn full(&mut self, now: Instant) -> Option<Full> {
        match self.sockets.as_ref().and_then(|bound| bound.sockets.full()) {
            // Where a frame goes is known when it is made, so it waits for both sockets.
            Some(Full::Unicast) => {
                let since = *self.unicast_full.get_or_insert(now);
                (now < since + UNICAST_PATIENCE).then_some(Full::Unicast)
            }
            Some(Full::Main) => Some(Full::Main),
            None => {
                self.unicast_full = None;
                None
            }
        }
    }

    /// Hands the waiting frame to the kernel, if it takes it.
    fn try_send(&mut self) {
        let Some(mut sending) = self.sending.take() else { return };
        let frame = sending.frame.len();
        // A frame for all peers is as many datagrams. If the kernel has no room it goes on with the
        // next one.
        while let Some(to) = sending.targets.get(sending.done).copied() {
            let sent = match &self.sockets {
                Some(bound) => bound.sockets.try_send(&sending.frame, to),
                None => Err(io::ErrorKind::NotConnected.into()),
            };

            if let (Some(peers), Target::Everyone(to)) = (&mut self.peers, to) {
                self.is_dirty |= peers.note_sent(to, frame, &sent, Instant::now());
            }

            match sent {
                // A unicast that would have to wait goes to everyone.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    // A broadcast reaches the neighbour as well, and waits for no acknowledgment.
                    if matches!(to, Target::One(_)) {
                        sending.targets = self.everyone(frame);
                        sending.to = None;
                        continue;
                    }
                    self.sending = Some(sending);
                    return;
                }
                // One peer that cannot be reached must not keep the frame from the others.
                Err(e) => sending.error = Some(e.to_string()),
                Ok(()) => sending.is_sent = true,
            }
            sending.done += 1;
        }

        // Whether a neighbour has it is not known: the driver keeps the MAC's acknowledgment.
        let is_sent = sending.is_sent || sending.error.is_none();
        let result = if is_sent { TxResult::Sent } else { TxResult::Failed };
        let bytes = (frame + self.way().wire_overhead()) * sending.targets.len().max(1);
        let is_unicast = matches!(sending.targets.last(), Some(Target::One(_)));
        let socket = if is_unicast { Full::Unicast } else { Full::Main };
        let to = sending.to;
        self.leaving = Some(Leaving { result, bytes, to, socket, at: Instant::now() });
        self.note(sending.error.filter(|_| !is_sent));
    }

    /// Returns the report on a frame that has left the driver.
    fn try_report(&mut self) -> Option<RadioEvent> {
        let Leaving { result, bytes, to, socket, at } = self.leaving?;
        let now = Instant::now();
        self.is_dirty |= self.carrying.handle_time(now);
        if self.depth.is_fast() {
            // The time since the last frame is that of one while the driver has no room.
            if self.waited {
                self.note_time(bytes, now.saturating_duration_since(self.pressure.sent_at()));
            }
        } else if self.is_in_driver(socket) && now < at + patience(socket) {
            self.is_dirty |= self.pressure.felt();
            return None;
        } else {
            let took = now.saturating_duration_since(at);
            if bytes >= LONG_FRAME && self.pressure.is_felt() {
                self.is_dirty |= self.carrying.note(to, bytes, took, now);
            }
            self.note_time(bytes, took);
        }

        (self.leaving, self.waited) = (None, false);
        let Cost { airtime, is_paced } = self.pressure.sent(self.pacing.airtime(bytes), now);
        self.is_dirty |= self.pressure.is_missing() != self.is_missing_told;
        // Pacing counts only what it paced, so that a probe does not slow the frames after it.
        if is_paced {
            self.pacing.sent(bytes, now);
        }
        Some(RadioEvent::Report(TxReport { result, airtime, heard_by: None }))
    }

    /// Notes how long a frame took, and lets more or fewer wait in the driver if that says so.
    fn note_time(&mut self, bytes: usize, took: Duration) {
        if bytes < LONG_FRAME || !self.depth.note(took, Instant::now()) {
            return;
        }
        if let Some(bound) = &self.sockets {
            bound.sockets.set_several(self.depth.is_fast(), self.config.mtu);
        }
    }

    /// Returns whether the frame that was sent last by a socket is still in the driver.
    fn is_in_driver(&self, socket: Full) -> bool {
        self.sockets.as_ref().is_some_and(|bound| bound.sockets.is_full(socket))
    }

    /// Logs once that the kernel refuses frames (a firewall, a route), and once that it accepts
    /// them again.
    fn note(&mut self, error: Option<String>) {
        match error {
            Some(e) => {
                // A refused frame may cost no airtime, and would be tried again at once.
                self.pacing.pause(REFUSED_PAUSE, Instant::now());
                if !self.refused {
                    tracing::warn!("{} does not send: {e}; trying on", self.name());
                }
                self.refused = true;
            }
            None if self.refused => {
                self.refused = false;
                tracing::info!("{} sends again", self.name());
            }
            None => {}
        }
    }

    /// Takes note of the source of a frame. Returns whether the frame came from this node itself.
    fn is_own(&mut self, from: Source) -> bool {
        self.heard_from = Some(from);
        let interface = self.watch.interface();
        match from {
            Source::Mac(from) => interface.mac() == Some(from),
            Source::Ip(from) => {
                // Other daemons on this host have ports of their own.
                from.port() == self.config.port() && interface.is_own(from.ip())
            }
        }
    }

    /// Returns the greatest length of a frame that is received, bytes: one more than there may be,
    /// so that longer frames are recognised and dropped.
    fn room(&self) -> usize {
        self.config.mtu + 1
    }
}

impl Radio for Port {
    type Settings = PortConfig;
    type Error = PortError;

    fn settings(entry: &PortEntry) -> Option<&PortConfig> {
        entry.port()
    }

    async fn open(config: &PortConfig, written: PortPlace) -> Result<Self, PortError> {
        Self::of(config, written)
    }

    fn is_setting(error: &PortError) -> bool {
        error.is_setting()
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn hints(&self) -> Vec<String> {
        self.hints.clone()
    }

    fn is_up(&self) -> bool {
        self.trouble().is_none() && self.is_bound()
    }

    fn channel_mhz(&self) -> Option<u32> {
        self.channel_mhz
    }

    fn unicast(&self) -> Unicast {
        self.carrying.unicast()
    }

    fn carrier(&self) -> Option<CarrierTime> {
        // Only radios are asked.
        self.channel_mhz.and(self.place()).and_then(|place| nl80211::carrier(place.index))
    }

    fn locate(config: &PortConfig) -> Option<Occupied> {
        // An error shows when the radio is opened.
        Watch::look(&config.interface).ok()?.occupied()
    }

    fn occupied(&self) -> Option<Occupied> {
        self.watch.interface().occupied()
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.config.rate = rate;
        (self.pacing, self.pressure) = limits(rate, Instant::now());
    }

    fn address(&self) -> Option<RadioAddress> {
        self.told()
    }

    fn look(&mut self, deliveries: impl FnOnce() -> BTreeMap<RadioAddress, f64>) {
        let now = Instant::now();
        let is_due = self.config.broadcast_rate == BroadcastRate::Auto
            && self.channel_mhz.is_some()
            && self.rate_choice.is_due(now);
        let Some(place) = self.place().filter(|_| is_due) else { return };
        let look = Look {
            weakest_dbm: nl80211::weakest_station(place.index),
            are_slow: self.carrying.are_broadcasts_slow(),
            deliveries: deliveries(),
        };

        // The one before sets its rate back when it goes, so it goes first.
        let Some(change) = self.rate_choice.decide(look, now) else { return };
        self.broadcast_rate = None;
        if let Change::Set(units) = change {
            match nl80211::RateSet::new(place.index, units) {
                Ok(set) => {
                    tracing::info!("{} broadcasts at {} Mbit/s", self.name(), units / 10);
                    self.broadcast_rate = Some(set);
                }
                // A station or an access point has no such rate: it is left as it is.
                Err(e) => tracing::debug!("{}: no rate of broadcasts: {e}", self.name()),
            }
        }
        self.carrying = Carrying::new(now);
        self.is_dirty = true;
    }

    async fn request(&mut self) -> io::Result<()> {
        self.requested = true;
        Ok(())
    }

    async fn transmit(&mut self, frame: &[u8], to: Option<RadioAddress>) -> io::Result<()> {
        let frame = frame.to_vec();
        let one = to.and_then(|to| self.target(to));
        let to = to.filter(|_| one.is_some());
        let targets = one.map_or_else(|| self.everyone(frame.len()), |one| vec![one]);
        self.sending = Some(Sending { frame, targets, to, done: 0, is_sent: false, error: None });
        Ok(())
    }

    async fn decline(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn vouch(&mut self, length: usize, is_proven: bool) {
        if let (Some(peers), Some(Source::Ip(from))) = (&mut self.peers, self.heard_from) {
            let before = peers.len();
            peers.vouch(Heard { from, length, is_proven }, Instant::now());
            self.is_dirty |= peers.len() != before;
        }
    }

    fn try_receive(&mut self, buffer: &mut Vec<u8>) -> bool {
        let room = self.room();
        // The kernel may hand a broadcast back to its sender. A flood under this node's address
        // must not keep the node here.
        for _ in 0..MOST_OWN {
            let Some(bound) = &self.sockets else { return false };
            let Ok(from) = bound.sockets.try_receive(buffer, room) else { return false };
            if !self.is_own(from) {
                return true;
            }
        }
        false
    }

    async fn event(&mut self, buffer: &mut Vec<u8>) -> io::Result<RadioEvent> {
        let room = self.room();
        loop {
            // A change is told before any frame is heard or made.
            if self.is_dirty && self.handle_change() {
                return Ok(RadioEvent::Changed);
            }
            let can_send = self.is_up();
            if !can_send && let Some(Sending { frame, .. }) = self.sending.take() {
                // Its time is over when the interface is back.
                let airtime = self.pacing.airtime(frame.len() + self.way().wire_overhead());
                let result = TxResult::Failed;
                return Ok(RadioEvent::Report(TxReport { result, airtime, heard_by: None }));
            }

            self.try_send();
            if let Some(report) = self.try_report() {
                return Ok(report);
            }

            // It waits for two things: room in the kernel, then the time of the next frame. A frame
            // that is made already waits for the socket of broadcasts alone.
            let now = Instant::now();
            let is_made = self.sending.is_some();
            let wants = can_send && (self.requested || is_made || self.leaving.is_some());
            let full = match self.leaving {
                Some(leaving) => Some(leaving.socket),
                None if wants => self.full(now),
                None => None,
            };
            let full = full.filter(|full| !is_made || *full == Full::Main);
            self.waited |= full.is_some();
            let due = if let Some(leaving) = self.leaving {
                Some(leaving.at + patience(leaving.socket))
            } else if let Some(full) = full {
                // A unicast that no neighbour acknowledges must not hold up broadcasts.
                self.is_dirty |= self.pressure.felt();
                let since = self.unicast_full.filter(|_| full == Full::Unicast);
                since.map(|since| since + UNICAST_PATIENCE)
            } else if is_made {
                // There is room, so the frame that was made is tried again at once.
                continue;
            } else if wants {
                // Room is there, only the time is not.
                Some(self.pacing.next())
            } else {
                // Sockets that could not be opened are tried again. The time is kept, for this
                // wait begins anew at each event of the node.
                self.rebind_at
            };

            if self.is_dirty {
                continue;
            }

            let sockets = self.sockets.as_ref().map(|bound| &bound.sockets);
            let port = self.config.port();
            tokio::select! {
                // Hearing goes on while a frame waits.
                heard = receive(sockets, buffer, room) => {
                    // The error is an ICMP answer to an earlier frame, or the end of the interface.
                    // Nothing was heard.
                    if let Ok(from) = heard && !self.is_own(from) {
                        return Ok(RadioEvent::Received);
                    }
                }
                () = self.alarm.wait_until(due) => {
                    if !wants {
                        // The sockets are to be opened again.
                        self.is_dirty = true;
                    } else if full.is_none() {
                        // It is time and there is room: the node makes a frame of its newest data.
                        self.requested = false;
                        return Ok(RadioEvent::Grant);
                    }
                }
                // Room has come: the loop looks again.
                () = has_room(sockets, full), if full.is_some() => {}
                changed = self.watch.changed() => {
                    // Whether a mesh forwards is told by no message, so it is looked up now and
                    // then; a flood of messages about others must not ask for it each time.
                    let is_due = Instant::now() >= self.looked_at + LOOK_PAUSE;
                    self.is_dirty |= changed? || is_due;
                }
                () = resolved(self.peers.as_mut(), port) => self.is_dirty = true,
            }
        }
    }
}

/// Returns how long a frame may be in the driver.
fn patience(socket: Full) -> Duration {
    match socket {
        Full::Main => LEAVING_PATIENCE,
        Full::Unicast => UNICAST_PATIENCE,
    }
}

/// Receives a frame. Waits forever without a socket.
async fn receive(
    sockets: Option<&Sockets>,
    buffer: &mut Vec<u8>,
    room: usize,
) -> io::Result<Source> {
    match sockets {
        Some(sockets) => sockets.receive(buffer, room).await,
        None => pending().await,
    }
}

/// Waits until the kernel has room for a frame.
async fn has_room(sockets: Option<&Sockets>, full: Option<Full>) {
    match (sockets, full) {
        (Some(sockets), Some(full)) => sockets.room(full).await,
        _ => pending().await,
    }
}

/// Waits for news of the peers. Waits forever without any.
async fn resolved(peers: Option<&mut Peers>, port: u16) {
    match peers {
        Some(peers) => peers.changed(port).await,
        None => pending().await,
    }
}

/// Returns an address that neighbours are told, for people.
fn shown(way: Way, address: RadioAddress) -> String {
    match (way, address) {
        (_, RadioAddress::Short(ShortAddress(address))) => Ipv4Addr::from(address).to_string(),
        (Way::Link, RadioAddress::Long(LongAddress([mac @ .., _, _]))) => {
            mac.map(|byte| format!("{byte:02x}")).join(":")
        }
        (_, RadioAddress::Long(LongAddress([a, b, c, d, e, f, g, h]))) => {
            Ipv6Addr::from([0xFE, 0x80, 0, 0, 0, 0, 0, 0, a, b, c, d, e, f, g, h]).to_string()
        }
    }
}

/// Returns the names of the interfaces.
fn known_interfaces() -> String {
    let all = getifaddrs().into_iter().flatten();
    let names: BTreeSet<String> = all.map(|interface| interface.interface_name).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}
#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_unicast_whose_hardware_address_is_unknown_goes_to_everyone() {
        let config = "interface = \"lo\"\nport = 7171\nbroadcast = \"127.255.255.255\"";
        let mut radio = Port::of(&toml::from_str(config).unwrap(), PortPlace::Radio).unwrap();
        let neighbour = Ipv4Addr::new(127, 0, 0, 7);
        let to = Some(RadioAddress::Short(ShortAddress(neighbour.octets())));
        let everyone = [Target::Everyone("127.255.255.255:7171".parse().unwrap())];
        // The kernel is made to ask, once in a while, and nothing waits for its answer.
        radio.transmit(b"frame", to).await.unwrap();
        assert_eq!(radio.sending.as_ref().unwrap().targets, everyone);
        let neighbour = IpAddr::from(neighbour);
        let asked_at = radio.asked_at.get(&neighbour).copied();
        assert!(asked_at.is_some());
        radio.transmit(b"frame", to).await.unwrap();
        assert_eq!(radio.asked_at.get(&neighbour).copied(), asked_at);
        let event = radio.event(&mut Vec::new()).await.unwrap();
        let RadioEvent::Report(report) = event else { panic!("{event:?}") };
        assert_eq!(report.result, TxResult::Sent);
    }

    #[tokio::test]
    async fn a_hint_that_stays_is_not_made_again_for_each_frame() {
        let config = "interface = \"lo\"\nport = 7172\npeers = [\"127.0.0.1:7172\"]";
        let mut radio = Port::of(&toml::from_str(config).unwrap(), PortPlace::Radio).unwrap();
        let mut buffer = Vec::new();
        while radio.hints.is_empty() {
            assert_eq!(radio.event(&mut buffer).await.unwrap(), RadioEvent::Changed);
        }
        radio.transmit(b"frame", None).await.unwrap();
        let event = radio.event(&mut buffer).await.unwrap();
        assert!(matches!(event, RadioEvent::Report(_)) && !radio.is_dirty, "{event:?}");
    }

    /// A flood must not make the loop of a node run once for each of its frames.
    #[tokio::test]
    async fn frames_that_have_come_are_taken_without_waiting() {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = format!("interface = \"lo\"\nport = {port}\nbroadcast = \"127.255.255.255\"");
        let mut radio = Port::of(&toml::from_str(&config).unwrap(), PortPlace::Radio).unwrap();
        let other = std::net::UdpSocket::bind("127.0.0.2:0").unwrap();
        for number in 0..3 {
            other.send_to(&[number; 50], ("127.0.0.1", port)).unwrap();
        }
        let mut frame = Vec::new();
        let event = radio.event(&mut frame).await.unwrap();
        assert!(event == RadioEvent::Received && frame == [0; 50]);
        for number in 1..3 {
            assert!(radio.try_receive(&mut frame) && frame == [number; 50]);
        }
        assert!(!radio.try_receive(&mut frame));
    }
}
