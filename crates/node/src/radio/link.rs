//! Frames of an EtherType on an interface, without any IP address (AF_PACKET, packet(7)).
//!
//! Behind the Ethernet header comes the frame. Ethernet pads what is shorter than 46 bytes, so a
//! frame that is shorter has its length before it, one byte. No frame begins with a byte so small,
//! since all begin with the mark of ncmesh.
//!
//! The socket has the EtherType as its protocol, so the kernel copies nothing else. A bridge takes
//! the frames of its ports before they are told apart by protocol; there, the socket sees all
//! frames and a filter drops the others, also in the kernel.
//!
//! The address to bind to comes from getifaddrs(3), because no safe API makes one. Packet sockets
//! leave their own interface alone when they send, so two daemons on one would not hear each
//! other, and would share a MAC address. A Unix socket in the abstract namespace, which network
//! namespaces have of their own, keeps a second one away.

use super::interface::Mac;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{LinkAddr, SockaddrLike, bind};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use tokio::net::UdpSocket;

/// Length of an Ethernet header: two addresses and the EtherType.
pub(super) const HEADER_LEN: usize = 14;
/// Shortest payload of Ethernet, bytes (IEEE 802.3).
const SHORTEST: usize = 46;
/// Address to which broadcasts go.
pub(super) const EVERYONE: Mac = Mac([0xFF; 6]);
/// Protocol of a socket that sees all frames (`ETH_P_ALL`).
const ALL: u16 = 3;

/// Socket of an EtherType on an interface.
#[derive(Debug)]
pub(super) struct LinkSocket {
    /// Tokio's type for datagram sockets. The methods that have an address do not fit this family.
    pub(super) socket: UdpSocket,
    ethertype: u16,
    /// Keeps other daemons from this EtherType of this interface.
    _lock: UnixDatagram,
}

/// Interface for which a socket is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: u32,
    pub(super) ethertype: u16,
    pub(super) is_bridge_port: bool,
}

/// Frame that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) from: Mac,
    /// Its place in the bytes of the socket.
    pub(super) frame: Range<usize>,
}

impl LinkSocket {
    /// Opens a socket that is prepared by `prepare`. Call it within a tokio runtime.
    pub(super) fn open(
        place: Place,
        prepare: impl FnOnce(&Socket) -> io::Result<()>,
    ) -> io::Result<Self> {
        let Place { index, ethertype, is_bridge_port } = place;
        // Held while the socket is open: two daemons on one interface would not hear each other.
        let lock = UnixAddress::from_abstract_name(format!("ncmesh-{ethertype:04x}-{index}"))?;
        let lock = UnixDatagram::bind_addr(&lock)?;

        let address = address_of(index)?;
        let socket = packet_socket(if is_bridge_port { ALL } else { ethertype })?;
        if is_bridge_port {
            socket.attach_filter(&filter(ethertype))?;
        }

        prepare(&socket)?;
        // The address has no protocol, so the one that the socket was made with stays.
        bind(socket.as_raw_fd(), &address)?;

        let socket = std::net::UdpSocket::from(socket);
        // Frames of other interfaces may have come before it was bound.
        while socket.recv(&mut []).is_ok() {}
        Ok(Self { socket: UdpSocket::from_std(socket)?, ethertype, _lock: lock })
    }

    /// Sends a frame without waiting.
    pub(super) fn try_send(&self, frame: &[u8], from: Mac, to: Mac) -> io::Result<()> {
        match self.socket.try_send(&wrap(frame, from, to, self.ethertype)) {
            // A full queue of the interface lost it, which UDP does not even tell.
            Err(e) if e.raw_os_error() == Some(Errno::NOBUFS.raw_os_error()) => Ok(()),
            sent => sent.map(drop),
        }
    }
}

/// Checks that this process may open packet sockets.
pub(super) fn check_right() -> io::Result<()> {
    packet_socket(0).map(drop)
}

fn packet_socket(protocol: u16) -> io::Result<Socket> {
    let protocol = Protocol::from(i32::from(protocol.to_be()));
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Returns the address that binds a packet socket to an interface.
fn address_of(index: u32) -> io::Result<LinkAddr> {
    let addresses = getifaddrs()?.filter_map(|interface| interface.address);
    let mut links = addresses.filter_map(|address| address.as_link_addr().copied());
    let found = links.find(|link| link.ifindex() == index as usize);
    debug_assert!(found.is_none_or(|link| link.protocol() == 0 && link.len() > 0));
    found.ok_or(Errno::NODEV.into())
}

/// Returns a program of the kernel's packet filter that takes frames of the EtherType, as long as
/// this host did not send them (bpf in `linux/filter.h`).
fn filter(ethertype: u16) -> [SockFilter; 6] {
    /// Load a byte, load two bytes, jump if equal, and return (`BPF_LD | BPF_B | BPF_ABS`, ...).
    const BYTE: u16 = 0x30;
    const HALF: u16 = 0x28;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;

    /// Where the kind of packet is found (`SKF_AD_OFF + SKF_AD_PKTTYPE`), and a kind of it
    /// (`PACKET_OUTGOING`).
    const PACKET_KIND: u32 = 0xFFFF_F004;
    const OUTGOING: u32 = 4;
    /// Where an Ethernet header has the EtherType.
    const ETHERTYPE_AT: u32 = 12;

    [
        SockFilter::new(BYTE, 0, 0, PACKET_KIND),
        SockFilter::new(IF_EQUAL, 2, 0, OUTGOING),
        SockFilter::new(HALF, 0, 0, ETHERTYPE_AT),
        SockFilter::new(IF_EQUAL, 1, 0, ethertype.into()),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ]
}

/// Returns the bytes that go out for a frame.
fn wrap(frame: &[u8], from: Mac, to: Mac, ethertype: u16) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_LEN + 1 + frame.len());
    bytes.extend(to.0);
    bytes.extend(from.0);
    bytes.extend(ethertype.to_be_bytes());
    // Ethernet pads a short frame, so its length goes before it.
    if frame.len() < SHORTEST {
        bytes.push(frame.len() as u8);
    }
    bytes.extend(frame);
    bytes
}

/// Returns where the frame is in bytes that arrived. It is empty if they are shorter than they say,
/// so that it is counted as malformed.
pub(super) fn unwrap(bytes: &[u8]) -> Arrived {
    let Some((header, payload)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return Arrived { from: EVERYONE, frame: 0..0 };
    };
    let [_, _, _, _, _, _, from @ .., _, _] = *header;
    let frame = match payload.first() {
        // No frame begins with a byte below 46, so this is a length.
        Some(length) if usize::from(*length) < SHORTEST => {
            let start = HEADER_LEN + 1;
            let end = start + usize::from(*length);
            // The length is a claim of the sender and may lead beyond what came.
            if end <= bytes.len() { start..end } else { 0..0 }
        }
        _ => HEADER_LEN..bytes.len(),
    };
    Arrived { from: Mac(from), frame }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FROM: Mac = Mac([2, 0, 0, 0, 0, 1]);

    #[test]
    fn a_long_frame_follows_the_ethernet_header_at_once() {
        let frame = [0xC2; 46];
        let bytes = wrap(&frame, FROM, EVERYONE, 0x88B5);
        let header = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 1, 0x88, 0xB5];
        assert_eq!(bytes, [&header[..], &frame].concat());
    }

    proptest! {
        #[test]
        fn a_frame_comes_out_as_it_went_in_though_ethernet_pads_it(
            length in 0..200_usize,
            filling in any::<u8>(),
        ) {
            let mut frame = vec![filling; length];
            frame.iter_mut().take(1).for_each(|mark| *mark = 0xC2);
            let mut bytes = wrap(&frame, FROM, EVERYONE, 0x88B5);
            bytes.resize(bytes.len().max(HEADER_LEN + SHORTEST), 0);
            let arrived = unwrap(&bytes);
            prop_assert_eq!((arrived.from, &bytes[arrived.frame]), (FROM, &frame[..]));
        }

        #[test]
        fn no_bytes_are_more_than_they_hold(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let arrived = unwrap(&bytes);
            prop_assert!(bytes.get(arrived.frame).is_some());
        }
    }
}
