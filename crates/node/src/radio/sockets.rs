//! Sockets of the UDP radio.

use crate::config::UdpConfig;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket as StdSocket};
use tokio::net::UdpSocket;

/// Length of the Ethernet (14), IPv4 (20) and UDP (8) headers around a frame, bytes.
pub(super) const WIRE_OVERHEAD: usize = 42;
/// Size of the kernel's buffer for frames heard while the loop is busy, bytes.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Frames that the kernel's send buffer has room for. It wakes the sender when less than half of it
/// is in use.
const SEND_BUFFER_FRAMES: usize = 4;
/// Memory of a buffer of the kernel around a frame, bytes, and the sizes that buffers have.
const BUFFER_OVERHEAD: usize = 512;
const BUFFER_GRAIN: usize = 2048;

/// Sockets bound to the interface.
#[derive(Debug)]
pub(super) struct Sockets {
    /// Sends broadcasts and receives everything.
    pub(super) main: UdpSocket,
    /// Sends unicasts, from another port: what waits here holds back nothing.
    pub(super) unicast: StdSocket,
}

impl Sockets {
    /// Opens the sockets. Call it within a tokio runtime.
    pub(super) fn open(config: &UdpConfig) -> io::Result<Self> {
        let main = bound_socket(config, config.port)?;
        main.set_broadcast(true)?;
        main.set_recv_buffer_size(RECEIVE_BUFFER)?;
        let main = UdpSocket::from_std(main.into())?;
        Ok(Self { main, unicast: bound_socket(config, 0)?.into() })
    }
}

/// Returns the address that the kernel sends broadcasts from. An interface may have several, and
/// routes decide.
pub(super) fn source(config: &UdpConfig, everyone: Ipv4Addr) -> io::Result<Ipv4Addr> {
    // Connecting sends nothing.
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_broadcast(true)?;
    // Without the right to do so the daemon's sockets are not bound to the interface either.
    let _ = socket.bind_device(Some(config.interface.as_bytes()));
    socket.connect(&SocketAddrV4::new(everyone, config.port).into())?;
    let address = socket.local_addr()?.as_socket_ipv4();
    address.map(|address| *address.ip()).ok_or(io::ErrorKind::AddrNotAvailable.into())
}

/// Returns a socket on the interface, with room for a few frames to send.
fn bound_socket(config: &UdpConfig, port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // The kernel counts whole buffers, and doubles what it is asked for.
    let frame = (config.mtu + WIRE_OVERHEAD + BUFFER_OVERHEAD).next_multiple_of(BUFFER_GRAIN);
    socket.set_send_buffer_size(SEND_BUFFER_FRAMES * frame / 2)?;
    if let Err(e) = socket.bind_device(Some(config.interface.as_bytes())) {
        tracing::warn!(
            "frames of other interfaces are heard too: cannot bind to {}: {e}",
            config.interface
        );
    }
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
    Ok(socket)
}
