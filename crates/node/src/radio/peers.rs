//! Peers of a port without broadcast: names of hosts, resolved again and again, and guests.
//!
//! A guest is a node that this one cannot name, for instance behind a translation of addresses:
//! frames go to the address that its own came from, and its hellos keep the translation open. A
//! sender has proved that it is there when it names a frame of this node, so it has to get some
//! before. What came until then may be a recording, sent by another machine from the address of a
//! victim. So as in QUIC (RFC 9000, section 8.1), no more than three times the bytes that came go
//! to an address before the proof. Afterwards only new frames count, so an address stays only as
//! long as the node sends from it.

use crate::config::PortPlace;
use nix::ifaddrs::getifaddrs;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::{Duration, Instant};
use tokio::net::lookup_host;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Time between two resolutions of the peers, and after one that failed.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Most guests that get frames. Each frame is sent to each.
const MAX_GUESTS: usize = 16;
/// Time after its last authentic frame for which a guest gets frames.
const GUEST_TIME: Duration = Duration::from_secs(30);
/// Questions in vain for the hardware address of a peer after which it is told.
const ASKED_IN_VAIN: u32 = 2;
/// Least time between two looks at the path to a peer.
const PATH_INTERVAL: Duration = Duration::from_secs(10);
/// Bytes that go to an address without proof for each that came (RFC 9000, section 8.1).
const CREDIT: usize = 3;

/// Peers and guests.
#[derive(Debug)]
pub(super) struct Peers {
    peers: Vec<Peer>,
    guests: BTreeMap<SocketAddr, Guest>,
    news: mpsc::Receiver<Resolved>,
    resolver: JoinHandle<()>,
}

/// Peer of the configuration.
#[derive(Debug)]
struct Peer {
    name: String,
    address: Option<SocketAddr>,
    trouble: Option<Trouble>,
    /// How often its hardware address was asked for in vain.
    asked: u32,
    /// When the path to it was looked at last.
    looked_at: Option<Instant>,
}

/// Address from which a node sends that this one cannot name.
#[derive(Clone, Copy, Debug)]
struct Guest {
    heard_at: Instant,
    standing: Standing,
}

/// Whether a guest has proved that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Proven,
    /// It has proved nothing yet. This many more bytes may go to it.
    Unproven(usize),
}

/// Authentic frame that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) from: SocketAddr,
    /// Its length, bytes.
    pub(super) length: usize,
    /// Whether its sender has proved that it is there, and the frame is new.
    pub(super) is_proven: bool,
}

/// Reason why frames do not reach a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    Unresolved(String),
    /// It is this node.
    Own,
    /// It is on the same network and does not tell its hardware address.
    Silent,
    /// The kernel refuses to send to it.
    Refused(String),
    /// The path carries packets of `mtu` bytes, if known, and a frame of `length` bytes was longer.
    TooLong {
        length: usize,
        mtu: Option<u32>,
    },
}

/// Answer of the resolver.
struct Resolved {
    peer: usize,
    address: io::Result<SocketAddr>,
}

impl Peers {
    /// Begins to resolve names. Call it within a tokio runtime.
    pub(super) fn new(names: &[String]) -> Self {
        let peer = |name: &String| Peer {
            name: name.clone(),
            address: None,
            trouble: None,
            asked: 0,
            looked_at: None,
        };
        let (answers, news) = mpsc::channel(1);
        let resolver = tokio::spawn(resolve(names.to_vec(), answers));
        let peers = names.iter().map(peer).collect();
        Self { peers, guests: BTreeMap::new(), news, resolver }
    }

    /// Returns the addresses to which a frame of `length` bytes goes now.
    pub(super) fn addresses(&mut self, length: usize, now: Instant) -> BTreeSet<SocketAddr> {
        // A guest that is silent has gone, or its address belongs to another by now.
        self.guests.retain(|_, guest| now.saturating_duration_since(guest.heard_at) < GUEST_TIME);

        let known = self.peers.iter().filter(|peer| peer.trouble != Some(Trouble::Own));
        let mut addresses: BTreeSet<SocketAddr> = known.filter_map(|peer| peer.address).collect();
        for (address, guest) in &mut self.guests {
            match &mut guest.standing {
                Standing::Proven => {}
                // An address without proof gets no more than its credit, which came from there.
                Standing::Unproven(credit) if *credit >= length => *credit -= length,
                Standing::Unproven(_) => continue,
            }
            addresses.insert(*address);
        }
        addresses
    }

    /// Notes that an authentic frame came.
    pub(super) fn vouch(&mut self, heard: Heard, now: Instant) {
        let Heard { from, length, is_proven } = heard;
        let from = canonical(from);
        // A named peer needs no proof: the configuration vouches for it.
        if self.peers.iter().any(|peer| peer.address == Some(from)) {
            return;
        }

        // Bounded, because sender addresses can be forged. A proven guest is never driven out.
        if !self.guests.contains_key(&from) && self.guests.len() >= MAX_GUESTS {
            // The longest silent one without proof makes room.
            let unproven = self.guests.iter().filter(|(_, g)| g.standing != Standing::Proven);
            let oldest = unproven.min_by_key(|(_, guest)| guest.heard_at);
            let Some(oldest) = oldest.map(|(address, _)| *address) else { return };
            self.guests.remove(&oldest);
        }

        let new = Guest { heard_at: now, standing: Standing::Unproven(0) };
        let guest = self.guests.entry(from).or_insert(new);
        // The order of the arms matters: a proof lifts any guest, at once.
        match &mut guest.standing {
            _ if is_proven => *guest = Guest { heard_at: now, standing: Standing::Proven },
            Standing::Unproven(credit) => {
                // Bytes that came buy bytes that may go, so that this node amplifies no attack.
                *credit += CREDIT * length;
                guest.heard_at = now;
            }
            // It may be a recording, which keeps no address.
            Standing::Proven => {}
        }
    }

    /// Waits until a name is resolved, or cannot be. `port` is this node's own. Cancel-safe.
    pub(super) async fn changed(&mut self, port: u16) {
        // The resolver does not end before this.
        let Some(Resolved { peer, address }) = self.news.recv().await else {
            return std::future::pending().await;
        };

        let Some(peer) = self.peers.get_mut(peer) else { return };
        match address {
            Ok(address) => {
                let address = canonical(address);
                // A peer that resolves to this node would hear its own frames.
                let is_own = address.port() == port && is_of_this_host(address.ip());
                let is_same = peer.address.replace(address) == Some(address);
                let had_none = matches!(peer.trouble, Some(Trouble::Unresolved(_) | Trouble::Own));
                // A trouble with sending stays while the address is the same.
                if is_own {
                    peer.trouble = Some(Trouble::Own);
                } else if !is_same || had_none {
                    peer.trouble = None;
                }
            }
            // An address from before may still be right.
            Err(e) => peer.trouble = Some(Trouble::Unresolved(e.to_string())),
        }
    }

    /// Notes how a frame of `length` bytes was sent to an address. Returns whether that is news.
    pub(super) fn note_sent(
        &mut self,
        to: SocketAddr,
        length: usize,
        sent: &io::Result<()>,
        now: Instant,
    ) -> bool {
        let is_too_long =
            |e: &io::Error| e.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error());
        let to = canonical(to);
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.address == Some(to)) else {
            return false;
        };

        // A full buffer says nothing of the peer.
        let trouble = match sent {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
            Err(e) if is_too_long(e) => Some(Trouble::TooLong { length, mtu: path_mtu(to) }),
            Err(e) => Some(Trouble::Refused(e.to_string())),
            Ok(()) => peer.trouble_of_path(to, length, now),
        };

        peer.asked = 0;
        let is_news = trouble != peer.trouble;
        peer.trouble = trouble;
        is_news
    }

    /// Notes that the kernel was made to ask for the hardware address of a peer, which got no frame
    /// meanwhile. Returns whether it is news that it does not answer.
    pub(super) fn note_asked(&mut self, to: SocketAddr) -> bool {
        let to = canonical(to);
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.address == Some(to)) else {
            return false;
        };
        peer.asked += 1;
        let is_news = peer.asked >= ASKED_IN_VAIN && peer.trouble != Some(Trouble::Silent);
        if is_news {
            peer.trouble = Some(Trouble::Silent);
        }
        is_news
    }

    /// Returns what keeps frames from peers, and what to do with the settings at `place`.
    pub(super) fn hints(&self, place: PortPlace) -> impl Iterator<Item = String> {
        self.peers.iter().filter_map(move |Peer { name, address, trouble, .. }| {
            Some(match trouble.as_ref()? {
                Trouble::Unresolved(why) => {
                    format!("peer {name:?} cannot be resolved: {why}; look at {place} peers")
                }
                Trouble::Own => format!(
                    "peer {name:?} is this node itself and is left out; name the other node in \
                     {place} peers"
                ),
                Trouble::Silent => format!(
                    "nothing is sent to peer {name:?}: it is on the same network and does not tell \
                     its hardware address; is it up?"
                ),
                Trouble::Refused(why) => {
                    format!("nothing is sent to peer {name:?}: {why}; look at routes and firewall")
                }
                Trouble::TooLong { mtu, .. } => {
                    let headers = address.map_or(0, headers);
                    let fits = mtu.map(|mtu| (mtu as usize).saturating_sub(headers).to_string());
                    let fits = fits.unwrap_or("less".into());
                    format!(
                        "long frames may not reach peer {name:?}: its path carries shorter ones; \
                         set {place} mtu = {fits} on all nodes"
                    )
                }
            })
        })
    }

    /// Returns how many peers and guests there are.
    pub(super) fn len(&self) -> usize {
        self.peers.len() + self.guests.len()
    }
}

impl Peer {
    /// Returns what is wrong with the path to this peer, whose address is `to`, after a frame of
    /// `length` bytes went out.
    fn trouble_of_path(&mut self, to: SocketAddr, length: usize, now: Instant) -> Option<Trouble> {
        // A short frame that gets through proves nothing about the length that was too long.
        let kept = match self.trouble.clone() {
            Some(Trouble::Refused(_) | Trouble::Silent) => None,
            other => other,
        };
        let longest = match kept {
            Some(Trouble::TooLong { length, .. }) => length,
            _ => 0,
        };
        let is_early = self.looked_at.is_some_and(|at| now < at + PATH_INTERVAL);
        if is_early || length < longest || length < SURE_TO_FIT {
            return kept;
        }

        // The kernel keeps what routers told of the path. It only warns: the frame went out.
        self.looked_at = Some(now);
        let packet = length + headers(to);
        let shorter = path_mtu(to).filter(|mtu| (*mtu as usize) < packet);
        shorter.map(|mtu| Trouble::TooLong { length, mtu: Some(mtu) })
    }
}

/// Length of a frame that every path carries (RFC 791), bytes.
const SURE_TO_FIT: usize = 548;

/// Returns the length of the headers around a frame to an address, bytes.
fn headers(to: SocketAddr) -> usize {
    if to.is_ipv6() { 48 } else { 28 }
}

/// Returns an address as it is compared. The kernel tells the number of the interface with a
/// link-local one, and the configuration need not.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
            SocketAddrV6::new(*v6.ip(), v6.port(), 0, 0).into()
        }
        other => other,
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.resolver.abort();
    }
}

/// Resolves all names, again and again.
async fn resolve(names: Vec<String>, answers: mpsc::Sender<Resolved>) {
    loop {
        let mut has_failed = false;
        for (peer, name) in names.iter().enumerate() {
            let found = lookup_host(name).await;
            // Only the first address: each further one would be a copy of every frame.
            let first = found.and_then(|mut all| all.next().ok_or(io::ErrorKind::NotFound.into()));
            has_failed |= first.is_err();
            if answers.send(Resolved { peer, address: first }).await.is_err() {
                return;
            }
        }
        // Addresses may change (dynamic DNS), and a network that is not up yet may come.
        tokio::time::sleep(if has_failed { RETRY_INTERVAL } else { RESOLVE_INTERVAL }).await;
    }
}

/// Returns whether an address is one of this host's interfaces.
fn is_of_this_host(address: IpAddr) -> bool {
    let interfaces = getifaddrs().into_iter().flatten();
    let mut own = interfaces.filter_map(|interface| {
        let own = interface.address?;
        let v4 = own.as_sockaddr_in().map(|own| IpAddr::V4(own.ip()));
        v4.or_else(|| own.as_sockaddr_in6().map(|own| IpAddr::V6(own.ip())))
    });
    own.any(|own| own == address)
}

/// Returns the MTU of the path to an address, as far as the kernel knows it.
fn path_mtu(to: SocketAddr) -> Option<u32> {
    use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
    let any: SocketAddr = if to.is_ipv6() { "[::]:0".parse() } else { "0.0.0.0:0".parse() }.ok()?;
    let socket = std::net::UdpSocket::bind(any).ok()?;
    // Connecting sends nothing.
    socket.connect(to).ok()?;
    if to.is_ipv6() { ipv6_mtu(&socket).ok() } else { ip_mtu(&socket).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: &str = "192.0.2.7:7117";

    async fn resolved(names: &[&str]) -> Peers {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut peers = Peers::new(&names);
        for _ in &names {
            peers.changed(7117).await;
        }
        peers
    }

    fn hints(peers: &Peers) -> Vec<String> {
        peers.hints(PortPlace::Radio).collect()
    }

    #[tokio::test]
    async fn a_peer_that_is_this_node_is_named_and_left_out() {
        let mut peers = resolved(&["127.0.0.1:7117", "127.0.0.1:7118", FAR]).await;
        let expected = ["127.0.0.1:7118", FAR].map(|peer| peer.parse().unwrap());
        assert_eq!(peers.addresses(100, Instant::now()), expected.into());
        let hints = hints(&peers);
        assert!(hints.len() == 1 && hints[0].contains("127.0.0.1:7117"), "{hints:?}");
        assert!(hints[0].contains("is this node itself"), "{hints:?}");
    }

    #[tokio::test]
    async fn what_keeps_frames_from_a_peer_is_told_until_it_is_over() {
        // On this host, so that the test does not depend on the path to another one.
        const HERE: &str = "127.0.0.1:7118";
        let mut peers = resolved(&[HERE]).await;
        let to = HERE.parse().unwrap();
        let now = Instant::now();
        let too_long = || Err(io::Error::from(rustix::io::Errno::MSGSIZE));
        assert!(peers.note_sent(to, 1472, &too_long(), now));
        assert!(!peers.note_sent(to, 1472, &too_long(), now));
        assert!(hints(&peers)[0].contains("set [radio] mtu = "), "{:?}", hints(&peers));
        // A short frame says nothing of long ones.
        assert!(!peers.note_sent(to, 100, &Ok(()), now));
        assert!(peers.note_sent(to, 1472, &Ok(()), now) && hints(&peers).is_empty());
        assert!(peers.note_sent(to, 100, &Err(rustix::io::Errno::NETUNREACH.into()), now));
        assert!(hints(&peers)[0].contains("nothing is sent to peer"), "{:?}", hints(&peers));
        assert!(peers.note_sent(to, 100, &Ok(()), now) && hints(&peers).is_empty());

        // A peer that does not answer ARP is told when it was asked twice.
        assert!(!peers.note_asked(to) && hints(&peers).is_empty());
        assert!(peers.note_asked(to) && !peers.note_asked(to));
        assert!(hints(&peers)[0].contains("does not tell its hardware"), "{:?}", hints(&peers));
        assert!(peers.note_sent(to, 100, &Ok(()), now) && hints(&peers).is_empty());
    }

    #[tokio::test]
    async fn a_peer_with_a_link_local_address_is_one_whatever_interface_is_told_with_it() {
        let mut peers = resolved(&["[fe80::7]:7117"]).await;
        let now = Instant::now();
        let from: SocketAddr = "[fe80::7%3]:7117".parse().unwrap();
        peers.vouch(Heard { from, length: 100, is_proven: true }, now);
        assert_eq!(peers.addresses(100, now).len(), 1);
        let refused = Err(rustix::io::Errno::NETUNREACH.into());
        assert!(peers.note_sent(from, 100, &refused, now));
    }

    #[tokio::test]
    async fn guests_are_few_and_leave_when_they_are_silent() {
        let mut peers = resolved(&[FAR]).await;
        let start = Instant::now();
        let from = |from: SocketAddr| Heard { from, length: 100, is_proven: true };
        peers.vouch(from(FAR.parse().unwrap()), start);
        assert_eq!(peers.len(), 1);
        for port in 1..100 {
            peers.vouch(from(guest(port)), start);
        }
        assert_eq!(peers.len(), 1 + MAX_GUESTS);
        let later = start + GUEST_TIME / 2;
        peers.vouch(from(guest(3)), later);
        // A recording keeps no address.
        peers.vouch(Heard { is_proven: false, ..from(guest(4)) }, later);
        let addresses = peers.addresses(100, start + GUEST_TIME);
        assert_eq!(addresses, [FAR.parse().unwrap(), guest(3)].into());
    }

    #[tokio::test]
    async fn little_goes_to_an_address_that_has_not_proved_itself() {
        let mut peers = resolved(&[]).await;
        let now = Instant::now();
        let heard = |port| Heard { from: guest(port), length: 100, is_proven: false };
        peers.vouch(heard(1), now);
        let sent = (0..10).filter(|_| !peers.addresses(100, now).is_empty()).count();
        assert_eq!(sent, CREDIT);
        peers.vouch(heard(1), now);
        assert!(peers.addresses(1400, now).is_empty());
        assert_eq!(peers.addresses(300, now), [guest(1)].into());

        // Any number of them makes room for one that proves itself.
        for port in 2..200 {
            peers.vouch(heard(port), now);
        }
        peers.vouch(Heard { is_proven: true, ..heard(300) }, now);
        assert_eq!(peers.len(), MAX_GUESTS);
        assert!(peers.addresses(1400, now).contains(&guest(300)));
    }

    fn guest(port: u16) -> SocketAddr {
        SocketAddr::from(([198, 51, 100, 1], port))
    }
}
