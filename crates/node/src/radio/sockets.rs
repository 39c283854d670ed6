//! Sockets of a port: those of UDP, and what both kinds have in common.
//!
//! The port makes the next frame when less than half of the send buffer is in use. The kernel keeps
//! a frame in it until the driver is done with it. So the length of the buffer decides how many
//! frames wait in the driver, and its use says when a frame has left.

use super::interface::Mac;
use super::link::{self, LinkSocket};
use super::ways::Way;
use crate::config::PortConfig;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Most bytes of headers around a frame: Ethernet (14), IPv6 (40) and UDP (8).
const MOST_OVERHEAD: usize = 62;
/// Size of the kernel's buffer for frames heard while the loop is busy, bytes.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Frames that the kernel's send buffer has room for, if one or if several are to wait in the
/// driver. With four, two or three are made in advance, and the driver never runs out of frames.
const ONE_FRAME: usize = 1;
const SEVERAL_FRAMES: usize = 4;
/// Memory of a buffer of the kernel around a frame, bytes, and the sizes that buffers have.
const BUFFER_OVERHEAD: usize = 512;
const BUFFER_GRAIN: usize = 2048;
/// Bits of the traffic class behind the DSCP.
const DSCP_SHIFT: u32 = 2;

/// Sockets of a port on its interface.
#[derive(Debug)]
pub(super) enum Sockets {
    /// One for everything: no frame waits for an address.
    Link(LinkSocket),
    Udp(UdpSockets),
}

/// Sockets of UDP.
#[derive(Debug)]
pub(super) struct UdpSockets {
    /// Sends to everyone and receives everything.
    main: UdpSocket,
    /// Sends to one neighbour, from another port: a frame that waits here for the neighbour's
    /// hardware address holds back nothing.
    unicast: UdpSocket,
    /// Whether addresses of IPv4 are written as those of IPv6 (RFC 4291, section 2.5.5.2).
    maps: bool,
}

/// One datagram of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A hardware address, or all.
    Mac { from: Mac, to: Mac },
    /// An address that stands for everyone, or one of several peers.
    Everyone(SocketAddr),
    /// One neighbour.
    One(SocketAddr),
}

/// Source of a frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Mac(Mac),
    Ip(SocketAddr),
}

/// Socket without room for another frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    Main,
    Unicast,
}

impl Sockets {
    /// Opens the sockets on an interface. Call it within a tokio runtime.
    pub(super) fn open(
        config: &PortConfig,
        way: Way,
        name: &str,
        place: link::Place,
    ) -> io::Result<Self> {
        let receives = |socket: &Socket| socket.set_recv_buffer_size(RECEIVE_BUFFER);
        let sends =
            |socket: &Socket| socket.set_send_buffer_size(send_buffer(config.mtu, ONE_FRAME));
        if way == Way::Link {
            let prepare = |socket: &Socket| receives(socket).and_then(|()| sends(socket));
            return LinkSocket::open(place, prepare).map(Self::Link);
        }

        // Two sockets, so that a unicast that waits for an acknowledgment holds up no broadcast.
        let bound = |port: u16| {
            let socket = udp_socket(config, way, name, port)?;
            sends(&socket)?;
            Ok::<_, io::Error>(socket)
        };
        let main = bound(config.port())?;
        receives(&main)?;

        match way {
            Way::Ipv6 => {
                main.join_multicast_v6(&config.group(), place.index)?;
                main.set_multicast_if_v6(place.index)?;
                // Two daemons on one host are two nodes.
                main.set_multicast_loop_v6(true)?;
            }
            _ => main.set_broadcast(true).or_else(only_v4)?,
        }

        // A socket of IPv6 reaches peers of IPv4 by mapped addresses.
        let maps = way == Way::Peers && main.domain()? == Domain::IPV6;
        let main = UdpSocket::from_std(main.into())?;
        // Any port: this socket only sends.
        let unicast = UdpSocket::from_std(bound(0)?.into())?;
        Ok(Self::Udp(UdpSockets { main, unicast, maps }))
    }

    /// Makes room for several frames in the driver, or for one. A socket has room for one at first.
    pub(super) fn set_several(&self, several: bool, mtu: usize) {
        let frames = if several { SEVERAL_FRAMES } else { ONE_FRAME };
        let sockets = match self {
            Self::Link(link) => vec![&link.socket],
            Self::Udp(udp) => vec![&udp.main, &udp.unicast],
        };
        for socket in sockets {
            // Cannot fail: a size that the kernel does not like is made one that it does.
            let _ = SockRef::from(socket).set_send_buffer_size(send_buffer(mtu, frames));
        }
    }

    fn main(&self) -> &UdpSocket {
        match self {
            Self::Link(link) => &link.socket,
            Self::Udp(udp) => &udp.main,
        }
    }

    /// Returns the socket that has no room for another frame: half of its buffer or more is in use.
    pub(super) fn full(&self) -> Option<Full> {
        // A unicast that cannot be sent ends as a broadcast, so the main socket comes first.
        [Full::Main, Full::Unicast].into_iter().find(|socket| self.is_full(*socket))
    }

    /// Returns whether half of the buffer of a socket or more is in use.
    pub(super) fn is_full(&self, which: Full) -> bool {
        let socket = self.of(which);
        // Through tokio, so that it waits for the kernel's next word if there is no room.
        let writable = socket.try_io(Interest::WRITABLE, || {
            let mut fds = [PollFd::new(socket, PollFlags::OUT)];
            match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        writable.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until a socket has room.
    pub(super) async fn room(&self, full: Full) {
        // An error shows when the frame is sent.
        drop(self.of(full).writable().await);
    }

    /// Returns a socket. With a single one for everything it is that.
    fn of(&self, which: Full) -> &UdpSocket {
        match (which, self) {
            (Full::Unicast, Self::Udp(udp)) => &udp.unicast,
            _ => self.main(),
        }
    }

    /// Sends a frame without waiting.
    pub(super) fn try_send(&self, frame: &[u8], to: Target) -> io::Result<()> {
        match (self, to) {
            (Self::Link(link), Target::Mac { from, to }) => link.try_send(frame, from, to),
            (Self::Udp(udp), Target::Everyone(to)) => {
                udp.main.try_send_to(frame, udp.written(to)).map(drop)
            }
            (Self::Udp(udp), Target::One(to)) => udp.unicast.try_send_to(frame, to).map(drop),
            // The sockets were opened again in between, for another kind.
            _ => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    /// Makes the kernel ask for the hardware address of a neighbour, by an empty datagram.
    pub(super) fn ask(&self, to: SocketAddr) {
        if let Self::Udp(udp) = self {
            // If this is not sent, the next frame asks again after the pause.
            let _ = udp.unicast.try_send_to(&[], udp.written(to));
        }
    }

    /// Waits for a frame of at most `room` bytes, which replaces the contents of `buffer`.
    pub(super) async fn receive(&self, buffer: &mut Vec<u8>, room: usize) -> io::Result<Source> {
        match self {
            Self::Link(link) => {
                buffer.resize(link::HEADER_LEN + room, 0);
                let length = link.socket.recv(buffer).await?;
                Ok(unwrapped(buffer, length))
            }
            Self::Udp(udp) => {
                buffer.resize(room, 0);
                let (length, from) = udp.main.recv_from(buffer).await?;
                buffer.truncate(length);
                Ok(Source::Ip(plain(from)))
            }
        }
    }

    /// Takes a frame that has come already.
    pub(super) fn try_receive(&self, buffer: &mut Vec<u8>, room: usize) -> io::Result<Source> {
        match self {
            Self::Link(link) => {
                buffer.resize(link::HEADER_LEN + room, 0);
                let length = link.socket.try_recv(buffer)?;
                Ok(unwrapped(buffer, length))
            }
            Self::Udp(udp) => {
                buffer.resize(room, 0);
                let (length, from) = udp.main.try_recv_from(buffer)?;
                buffer.truncate(length);
                Ok(Source::Ip(plain(from)))
            }
        }
    }
}

impl UdpSockets {
    /// Returns an address as the socket wants it.
    fn written(&self, to: SocketAddr) -> SocketAddr {
        match to {
            SocketAddr::V4(to) if self.maps => (to.ip().to_ipv6_mapped(), to.port()).into(),
            to => to,
        }
    }
}

/// Returns the size to ask for so that the send buffer has room for some frames, bytes.
fn send_buffer(mtu: usize, frames: usize) -> usize {
    // The kernel counts whole buffers, and doubles what it is asked for.
    let frame = mtu + MOST_OVERHEAD + BUFFER_OVERHEAD;
    frames * frame.next_multiple_of(BUFFER_GRAIN) / 2
}

/// Returns an address of IPv4 as one.
fn plain(from: SocketAddr) -> SocketAddr {
    match from.ip().to_canonical() {
        IpAddr::V4(address) => (address, from.port()).into(),
        IpAddr::V6(_) => from,
    }
}

/// Leaves the frame in the buffer, without what is around it. Returns its source.
fn unwrapped(buffer: &mut Vec<u8>, length: usize) -> Source {
    let link::Arrived { from, frame } = link::unwrap(&buffer[..length]);
    buffer.truncate(frame.end);
    buffer.drain(..frame.start);
    Source::Mac(from)
}

/// Returns the address that the kernel sends broadcasts from. An interface may have several, and
/// routes decide.
pub(super) fn source(name: &str, everyone: SocketAddrV4) -> io::Result<Ipv4Addr> {
    // Connecting sends nothing.
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_broadcast(true)?;
    // Without the right to do so the daemon's sockets are not bound to the interface either.
    let _ = socket.bind_device(Some(name.as_bytes()));
    socket.connect(&everyone.into())?;
    let address = socket.local_addr()?.as_socket_ipv4();
    address.map(|address| *address.ip()).ok_or(io::ErrorKind::AddrNotAvailable.into())
}

/// Returns a UDP socket on the interface.
fn udp_socket(config: &PortConfig, way: Way, name: &str, port: u16) -> io::Result<Socket> {
    let open = |domain| Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
    let socket = match way {
        Way::Ipv6 => open(Domain::IPV6)?,
        // Peers may have addresses of both families, as far as this kernel has them.
        Way::Peers => open(Domain::IPV6).or_else(|_| open(Domain::IPV4))?,
        _ => open(Domain::IPV4)?,
    };

    socket.set_nonblocking(true)?;
    let is_v6 = socket.domain()? == Domain::IPV6;
    // Without the right to bind, the port still works, but hears frames of other interfaces.
    if let Err(e) = socket.bind_device(Some(name.as_bytes())) {
        tracing::warn!("frames of other interfaces are heard too: cannot bind to {name}: {e}");
    }
    // Peers may have IPv4 addresses, which one socket of IPv6 reaches as well.
    if is_v6 {
        socket.set_only_v6(way == Way::Ipv6)?;
    }

    if way == Way::Peers {
        // No frame is cut in two. What ICMP says of the path is told to people and stops no frame,
        // since anyone may forge it (RFC 8899, section 4.6.1).
        if is_v6 {
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
        }
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
    }

    // Frames of the mesh may have a class of their own in Wi-Fi queues and in routers.
    if let Some(dscp) = config.dscp {
        let class = u32::from(dscp) << DSCP_SHIFT;
        if is_v6 {
            socket.set_tclass_v6(class)?;
        }
        // An IPv6 socket may send to mapped addresses, so it gets both.
        socket.set_tos_v4(class).or_else(only_v4)?;
    }

    let any = if is_v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
    socket.bind(&SocketAddr::new(any, port).into())?;
    Ok(socket)
}

/// Ignores that a socket of IPv6 alone knows no option of IPv4.
fn only_v4(e: io::Error) -> io::Result<()> {
    let unknown = [Errno::NOPROTOOPT, Errno::OPNOTSUPP].map(|errno| Some(errno.raw_os_error()));
    if unknown.contains(&e.raw_os_error()) { Ok(()) } else { Err(e) }
}
