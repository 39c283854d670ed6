//! UDP broadcast on a network interface: real radios in ad-hoc or mesh mode, or any wired segment.
//!
//! Frames are sent one at a time, when the rate limit allows it and the kernel accepts the frame.
//! The send buffer is as small as the kernel allows, so that data waits here, where it can still be
//! coded, and not in the driver's queue. Unicast frames go to the address that their receiver was
//! last heard from. Only IPv4 is used, because IPv6 has no broadcast.

use super::addresses::Addresses;
use super::pacing::Pacing;
use super::{Radio, RadioEvent};
use crate::alarm::Alarm;
use crate::config::UdpConfig;
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_wire::NodeId;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;

/// Length of the Ethernet (14), IPv4 (20) and UDP (8) headers around a frame, bytes.
const WIRE_OVERHEAD: usize = 42;
/// Length of the IPv4 and UDP headers, which count towards the interface's MTU, bytes.
const IP_OVERHEAD: usize = 28;
/// Size of the kernel's buffer for frames heard while the loop is busy, bytes.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Size of the kernel's send buffer. The kernel raises it to its minimum, a few frames.
const SEND_BUFFER: usize = 1;
/// Pause after the kernel refused a frame.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Reason why a UDP radio cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum UdpError {
    /// The interface does not exist or has no IPv4 address.
    #[error(
        "interface = {name:?}: no interface of that name has an IPv4 address; there are: {known}"
    )]
    NoInterface {
        /// Name of the configured interface.
        name: String,
        /// Names of the interfaces that have an address.
        known: String,
    },
    /// The interface cannot broadcast.
    #[error(
        "broadcast: {0} has no broadcast address of its own; \
         give one, for instance \"10.1.255.255\""
    )]
    NoBroadcast(String),
    /// Frames are too long for the interface.
    #[error(
        "mtu = {mtu} does not fit {interface}, \
         whose packets carry at most {fits} bytes of UDP payload"
    )]
    Mtu {
        /// Configured MTU, bytes.
        mtu: usize,
        /// Name of the interface.
        interface: String,
        /// Largest MTU that would fit, bytes.
        fits: usize,
    },
    /// Another program uses the port.
    #[error(
        "UDP port {port} on {interface} is in use; stop the other program \
         (a second ncmesh daemon?) or set another [radio] port on all nodes"
    )]
    PortInUse {
        /// The port.
        port: u16,
        /// Name of the interface.
        interface: String,
    },
    /// Another error of the operating system.
    #[error("cannot open UDP on {0}: {1}")]
    Io(String, io::Error),
}

impl UdpError {
    /// Returns whether a setting is wrong. The message then begins with the setting's name.
    #[must_use]
    pub fn is_setting(&self) -> bool {
        matches!(self, Self::NoInterface { .. } | Self::NoBroadcast(_) | Self::Mtu { .. })
    }
}

/// Radio on a UDP socket.
#[derive(Debug)]
pub struct UdpRadio {
    config: UdpConfig,
    socket: UdpSocket,
    /// Address of this node, to recognise its own broadcasts.
    own: SocketAddr,
    everyone: SocketAddr,
    addresses: Addresses<SocketAddr>,
    pacing: Pacing,
    alarm: Alarm,
    mtu: usize,
    /// Whether the daemon waits for a grant.
    requested: bool,
    /// Frame that waits for the kernel, and its destination.
    sending: Option<(Vec<u8>, SocketAddr)>,
    /// Whether the kernel refuses frames, which is logged once.
    refused: bool,
}

impl UdpRadio {
    /// Opens the radio. Call it within a tokio runtime.
    ///
    /// # Errors
    /// [`UdpError`].
    pub fn open(config: &UdpConfig) -> Result<Self, UdpError> {
        let (address, broadcast) = addresses_of(config)?;
        check_mtu(config)?;
        Ok(Self {
            socket: open_socket(config)?,
            own: SocketAddrV4::new(address, config.port).into(),
            everyone: SocketAddrV4::new(broadcast, config.port).into(),
            addresses: Addresses::new(),
            pacing: Pacing::new(config.rate.bits_per_second, Instant::now()),
            alarm: Alarm::new().map_err(|e| UdpError::Io(config.interface.clone(), e))?,
            mtu: config.mtu,
            config: config.clone(),
            requested: false,
            sending: None,
            refused: false,
        })
    }

    /// Sends the waiting frame. Returns `None` while the kernel does not accept it.
    fn try_send(&mut self) -> Option<RadioEvent<SocketAddr>> {
        let (frame, to) = self.sending.as_ref()?;
        let sent = self.socket.try_send_to(frame, *to);
        let result = match &sent {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
            Err(_) => TxResult::Failed,
            Ok(_) => TxResult::Sent,
        };
        let bytes = frame.len() + WIRE_OVERHEAD;
        self.sending = None;
        self.pacing.sent(bytes, Instant::now());
        self.note(sent.err());
        let airtime = self.pacing.airtime(bytes);
        Some(RadioEvent::Report(TxReport { result, airtime, heard_by: None }))
    }

    /// Logs once that the kernel refuses frames (interface down, firewall), and once that it
    /// accepts them again.
    fn note(&mut self, error: Option<io::Error>) {
        match error {
            Some(e) => {
                self.pacing.pause(REFUSED_PAUSE, Instant::now());
                if !self.refused {
                    tracing::warn!("{} does not send: {e}; trying on", self.config.interface);
                }
                self.refused = true;
                if is_gone(&e) {
                    self.reopen();
                }
            }
            None if self.refused => {
                self.refused = false;
                tracing::info!("{} sends again", self.config.interface);
            }
            None => {}
        }
    }

    /// Binds to a new interface of the same name after the old one was removed. If there is none
    /// yet, the next frame tries again.
    fn reopen(&mut self) {
        let Ok((address, broadcast)) = addresses_of(&self.config) else { return };
        if let Ok(socket) = open_socket(&self.config) {
            self.socket = socket;
            self.own = SocketAddrV4::new(address, self.config.port).into();
            self.everyone = SocketAddrV4::new(broadcast, self.config.port).into();
        }
    }
}

/// Returns whether the error means that the socket's interface was removed.
fn is_gone(e: &io::Error) -> bool {
    let gone = [Errno::NODEV, Errno::NXIO].map(Errno::raw_os_error);
    e.raw_os_error().is_some_and(|code| gone.contains(&code))
}

impl Radio for UdpRadio {
    type Address = SocketAddr;

    fn describe(&self) -> String {
        format!("udp on {}, port {}", self.config.interface, self.own.port())
    }

    fn learn(&mut self, node: NodeId, address: SocketAddr) {
        self.addresses.learn(node, address, Instant::now());
    }

    async fn request(&mut self) -> io::Result<()> {
        self.requested = true;
        Ok(())
    }

    async fn transmit(&mut self, frame: &[u8], to: Option<NodeId>) -> io::Result<()> {
        let to = to.and_then(|node| self.addresses.get(node)).unwrap_or(self.everyone);
        self.sending = Some((frame.to_vec(), to));
        Ok(())
    }

    async fn decline(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn try_receive(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        buffer.resize(self.mtu + 1, 0);
        loop {
            let (length, from) = self.socket.try_recv_from(buffer).ok()?;
            if from != self.own {
                buffer.truncate(length);
                return Some(from);
            }
        }
    }

    async fn event(&mut self, buffer: &mut Vec<u8>) -> io::Result<RadioEvent<SocketAddr>> {
        // One byte more than the largest frame, so that longer frames are recognised and dropped.
        buffer.resize(self.mtu + 1, 0);
        loop {
            if let Some(report) = self.try_send() {
                return Ok(report);
            }
            let sending = self.sending.is_some();
            let due = (self.requested && !sending).then(|| self.pacing.next());
            tokio::select! {
                heard = self.socket.recv_from(buffer) => {
                    // The error is an ICMP answer to an earlier frame. Nothing was heard.
                    if let Ok((length, from)) = heard && from != self.own {
                        buffer.truncate(length);
                        return Ok(RadioEvent::Received { from });
                    }
                }
                () = self.alarm.wait_until(due) => {
                    self.requested = false;
                    return Ok(RadioEvent::Grant);
                }
                ready = self.socket.writable(), if sending => ready?,
            }
        }
    }
}

fn addresses_of(config: &UdpConfig) -> Result<(Ipv4Addr, Ipv4Addr), UdpError> {
    let name = &config.interface;
    let all = if_addrs::get_if_addrs().map_err(|e| UdpError::Io(name.clone(), e))?;
    let found = all.iter().filter(|i| i.name == *name).find_map(|i| match &i.addr {
        if_addrs::IfAddr::V4(v4) => Some(v4),
        if_addrs::IfAddr::V6(_) => None,
    });
    let Some(found) = found else {
        let named = all.iter().filter(|i| matches!(i.ip(), IpAddr::V4(_)));
        let known: Vec<&str> = named.map(|i| i.name.as_str()).collect();
        return Err(UdpError::NoInterface { name: name.clone(), known: known.join(", ") });
    };
    let broadcast = config.broadcast.or(found.broadcast);
    Ok((found.ip, broadcast.ok_or_else(|| UdpError::NoBroadcast(name.clone()))?))
}

fn check_mtu(config: &UdpConfig) -> Result<(), UdpError> {
    let file = format!("/sys/class/net/{}/mtu", config.interface);
    // If /sys does not show the interface, the kernel refuses each frame that is too long.
    let mtu = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<usize>().ok());
    let fits = mtu.map_or(usize::MAX, |mtu| mtu.saturating_sub(IP_OVERHEAD));
    if config.mtu > fits {
        let interface = config.interface.clone();
        return Err(UdpError::Mtu { mtu: config.mtu, interface, fits });
    }
    Ok(())
}

fn open_socket(config: &UdpConfig) -> Result<UdpSocket, UdpError> {
    let name = &config.interface;
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::AddrInUse => {
            UdpError::PortInUse { port: config.port, interface: name.clone() }
        }
        _ => UdpError::Io(name.clone(), e),
    };
    let socket = bound_socket(config).map_err(failed)?;
    UdpSocket::from_std(socket.into()).map_err(failed)
}

fn bound_socket(config: &UdpConfig) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_broadcast(true)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    if let Err(e) = socket.bind_device(Some(config.interface.as_bytes())) {
        tracing::warn!(
            "frames of other interfaces are heard too: cannot bind to {}: {e}",
            config.interface
        );
    }
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, config.port)).into())?;
    Ok(socket)
}
