//! Peers of a port without broadcast: names of hosts, resolved again and again, and guests.
//!
//! A guest is a node that this one cannot name, for instance behind a translation of addresses:
//! once an authentic frame of it has come, frames go to the address that it came from. A copied
//! frame is not authentic a second time, so an address stays only as long as the node sends from
//! it. Hellos keep the translation open.

use nix::ifaddrs::getifaddrs;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
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

/// Peers and guests.
#[derive(Debug)]
pub(super) struct Peers {
    peers: Vec<Peer>,
    guests: BTreeMap<SocketAddr, Instant>,
    news: mpsc::Receiver<Resolved>,
    resolver: JoinHandle<()>,
}

/// Peer of the configuration.
#[derive(Debug)]
struct Peer {
    name: String,
    address: Option<SocketAddr>,
    trouble: Option<Trouble>,
}

/// Reason why frames do not reach a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    Unresolved(String),
    /// It is this node.
    Own,
    /// The kernel refuses to send to it.
    Refused(String),
    /// The path did not carry a frame of `length` bytes, but packets of `mtu` bytes, if known.
    TooLong { length: usize, mtu: Option<u32> },
}

/// Answer of the resolver.
struct Resolved {
    peer: usize,
    address: io::Result<SocketAddr>,
}

impl Peers {
    /// Begins to resolve names. Call it within a tokio runtime.
    pub(super) fn new(names: &[String]) -> Self {
        let peer = |name: &String| Peer { name: name.clone(), address: None, trouble: None };
        let (answers, news) = mpsc::channel(1);
        let resolver = tokio::spawn(resolve(names.to_vec(), answers));
        let peers = names.iter().map(peer).collect();
        Self { peers, guests: BTreeMap::new(), news, resolver }
    }

    /// Returns the addresses to which a frame goes.
    pub(super) fn addresses(&mut self, now: Instant) -> BTreeSet<SocketAddr> {
        self.guests.retain(|_, heard_at| now.saturating_duration_since(*heard_at) < GUEST_TIME);
        let known = self.peers.iter().filter(|peer| peer.trouble != Some(Trouble::Own));
        known.filter_map(|peer| peer.address).chain(self.guests.keys().copied()).collect()
    }

    /// Notes that an authentic frame came from `address`.
    pub(super) fn vouch(&mut self, address: SocketAddr, now: Instant) {
        if self.peers.iter().any(|peer| peer.address == Some(address)) {
            return;
        }
        let has_room = self.guests.len() < MAX_GUESTS;
        if let Some(heard_at) = self.guests.get_mut(&address) {
            *heard_at = now;
        } else if has_room {
            self.guests.insert(address, now);
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
                let is_own = address.port() == port && is_of_this_host(address.ip());
                let is_same = peer.address.replace(address) == Some(address);
                let had_none = matches!(peer.trouble, Some(Trouble::Unresolved(_)));
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
    ) -> bool {
        let is_too_long = |e: &io::Error| {
            e.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
        };
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.address == Some(to)) else {
            return false;
        };
        let trouble = match sent {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
            Err(e) if is_too_long(e) => Some(Trouble::TooLong { length, mtu: path_mtu(to) }),
            Err(e) => Some(Trouble::Refused(e.to_string())),
            Ok(()) => match peer.trouble.clone() {
                Some(Trouble::Refused(_)) => None,
                Some(Trouble::TooLong { length: refused, .. }) if length >= refused => None,
                other => other,
            },
        };
        let is_news = trouble != peer.trouble;
        peer.trouble = trouble;
        is_news
    }

    /// Returns what keeps frames from peers, and what to do.
    pub(super) fn hints(&self) -> impl Iterator<Item = String> {
        self.peers.iter().filter_map(|Peer { name, address, trouble }| {
            Some(match trouble.as_ref()? {
                Trouble::Unresolved(why) => {
                    format!("peer {name:?} cannot be resolved: {why}; look at [radio] peers")
                }
                Trouble::Own => format!(
                    "peer {name:?} is this node itself and is left out; name the other node in \
                     [radio] peers"
                ),
                Trouble::Refused(why) => {
                    format!("nothing is sent to peer {name:?}: {why}; look at routes and firewall")
                }
                Trouble::TooLong { mtu, .. } => {
                    let headers = if address.is_some_and(|to| to.is_ipv6()) { 48 } else { 28 };
                    let fits = mtu.map_or("less".into(), |mtu| {
                        mtu.saturating_sub(headers).to_string()
                    });
                    format!(
                        "long frames do not reach peer {name:?}: its path carries shorter ones; \
                         set [radio] mtu = {fits} on all nodes"
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
            let first = found.and_then(|mut all| all.next().ok_or(io::ErrorKind::NotFound.into()));
            has_failed |= first.is_err();
            if answers.send(Resolved { peer, address: first }).await.is_err() {
                return;
            }
        }
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
        peers.hints().collect()
    }

    #[tokio::test]
    async fn a_peer_that_is_this_node_is_named_and_left_out() {
        let mut peers = resolved(&["127.0.0.1:7117", "127.0.0.1:7118", FAR]).await;
        let expected = ["127.0.0.1:7118", FAR].map(|peer| peer.parse().unwrap());
        assert_eq!(peers.addresses(Instant::now()), expected.into());
        let hints = hints(&peers);
        assert!(hints.len() == 1 && hints[0].contains("127.0.0.1:7117"), "{hints:?}");
        assert!(hints[0].contains("is this node itself"), "{hints:?}");
    }

    #[tokio::test]
    async fn what_keeps_frames_from_a_peer_is_told_until_it_is_over() {
        let mut peers = resolved(&[FAR]).await;
        let to = FAR.parse().unwrap();
        let too_long = || Err(io::Error::from(rustix::io::Errno::MSGSIZE));
        assert!(peers.note_sent(to, 1472, &too_long()));
        assert!(!peers.note_sent(to, 1472, &too_long()));
        assert!(hints(&peers)[0].contains("set [radio] mtu = "), "{:?}", hints(&peers));
        // A short frame says nothing of long ones.
        assert!(!peers.note_sent(to, 100, &Ok(())));
        assert!(peers.note_sent(to, 1472, &Ok(())) && hints(&peers).is_empty());
        assert!(peers.note_sent(to, 100, &Err(rustix::io::Errno::NETUNREACH.into())));
        assert!(hints(&peers)[0].contains("nothing is sent to peer"), "{:?}", hints(&peers));
        assert!(peers.note_sent(to, 100, &Ok(())) && hints(&peers).is_empty());
    }

    #[tokio::test]
    async fn guests_are_few_and_leave_when_they_are_silent() {
        let mut peers = resolved(&[FAR]).await;
        let start = Instant::now();
        let guest = |port: u16| SocketAddr::from(([198, 51, 100, 1], port));
        peers.vouch(FAR.parse().unwrap(), start);
        assert_eq!(peers.len(), 1);
        for port in 1..100 {
            peers.vouch(guest(port), start);
        }
        assert_eq!(peers.len(), 1 + MAX_GUESTS);
        let later = start + GUEST_TIME / 2;
        peers.vouch(guest(3), later);
        let addresses = peers.addresses(start + GUEST_TIME);
        assert_eq!(addresses, [FAR.parse().unwrap(), guest(3)].into());
    }
}
