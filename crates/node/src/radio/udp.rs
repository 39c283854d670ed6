//! UDP broadcast on a network interface: real radios in ad-hoc or mesh mode, or any wired segment.
//!
//! Data waits here, where it can still be coded, and not in the driver's queue. So the send buffer
//! holds four frames, and the next frame is made when less than half of it is in use: the driver
//! never runs out of frames, and at most two or three are made in advance. Drivers that let go of a
//! frame as soon as they have it give no such back-pressure; then the rate limit alone holds frames
//! back.
//!
//! Unicast frames go to the address that their receiver tells in its hellos, if the kernel knows
//! its hardware address. Otherwise they go out as broadcasts, and the kernel is made to ask for the
//! address: a frame that waits for an answer to ARP would hold back all frames behind it for up to
//! three seconds. A socket of their own makes sure of that.
//!
//! This node tells the address that the kernel puts into its broadcasts. Where a frame came from
//! means nothing, because any radio can send on what it hears. A node behind a translation of
//! addresses tells one that no neighbour can resolve, so frames for it stay broadcasts.
//!
//! Rtnetlink tells whether the interface can send. While it cannot, nothing is asked of the node,
//! and nothing is lost. Only IPv4 is used, because IPv6 has no broadcast.

use super::interface::Trouble;
use super::mesh80211;
use super::pacing::{BackPressure, Cost, DEFAULT_RATE, Pacing, limits};
use super::sockets::{Sockets, WIRE_OVERHEAD, source};
use super::watch::Watch;
use super::{Radio, RadioEvent};
use crate::alarm::Alarm;
use crate::config::{Rate, UdpConfig};
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_wire::RadioAddress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Length of the IPv4 and UDP headers, which count towards the interface's MTU, bytes.
const IP_OVERHEAD: usize = 28;
/// Pause after the sockets could not be opened.
const REBIND_PAUSE: Duration = Duration::from_secs(1);
/// Least time between two questions for the hardware address of a neighbour.
const ASK_PAUSE: Duration = Duration::from_secs(5);
/// Port of the discard service (RFC 863). A packet to it makes the kernel ask for an address.
const DISCARD_PORT: u16 = 9;
/// Pause after the kernel refused a frame.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Reason why a UDP radio cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum UdpError {
    /// The interface does not exist.
    #[error("interface = {name:?}: there is no such interface; with an address there are: {known}")]
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
pub struct UdpRadio {
    config: UdpConfig,
    watch: Watch,
    /// The sockets, once the interface was able to send, and the index of that interface.
    sockets: Option<(Sockets, u32)>,
    /// Address that the kernel sends broadcasts from.
    source: Option<Ipv4Addr>,
    /// When the kernel was made to ask for the hardware addresses of neighbours, for `ASK_PAUSE`.
    asked_at: BTreeMap<Ipv4Addr, Instant>,
    pacing: Pacing,
    alarm: Alarm,
    /// Whether the daemon waits for a grant.
    requested: bool,
    /// Frame that waits for the kernel, and its destination.
    sending: Option<(Vec<u8>, Destination)>,
    pressure: BackPressure,
    /// Whether the interface changed since `hints` were made.
    is_dirty: bool,
    /// Hints that the daemon shows.
    hints: Vec<String>,
    /// Whether the kernel refuses frames, which is logged once.
    refused: bool,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    Everyone,
    One(Ipv4Addr),
}

impl UdpRadio {
    /// Opens the radio. Waits for the interface if it exists but cannot send yet. Call it within a
    /// tokio runtime.
    ///
    /// # Errors
    /// [`UdpError`].
    pub fn open(config: &UdpConfig) -> Result<Self, UdpError> {
        let name = &config.interface;
        let failed = |e| UdpError::Io(name.clone(), e);
        let watch = Watch::open(name).map_err(failed)?;
        if watch.interface().index().is_none() {
            return Err(UdpError::NoInterface { name: name.clone(), known: known_interfaces() });
        }
        // Frames that are longer than the interface's MTU would be cut, and a lost half loses both.
        check_mtu(config, watch.interface().mtu())?;
        let (pacing, pressure) = limits(config.rate, Instant::now());
        let mut radio = Self {
            pacing,
            pressure,
            alarm: Alarm::new().map_err(failed)?,
            config: config.clone(),
            watch,
            sockets: None,
            source: None,
            asked_at: BTreeMap::new(),
            requested: false,
            sending: None,
            is_dirty: true,
            hints: Vec::new(),
            refused: false,
        };
        if radio.trouble() == Some(Trouble::NoBroadcast) {
            return Err(UdpError::NoBroadcast(name.clone()));
        }
        radio.bind()?;
        Ok(radio)
    }

    /// Returns what keeps the radio from sending.
    fn trouble(&self) -> Option<Trouble> {
        let no_broadcast = || self.everyone().is_none().then_some(Trouble::NoBroadcast);
        self.watch.interface().trouble().or_else(no_broadcast)
    }

    /// Returns the broadcast address.
    fn everyone(&self) -> Option<Ipv4Addr> {
        let address = self.watch.interface().address();
        self.config.broadcast.or(address.and_then(|address| address.broadcast))
    }

    /// Returns whether there are sockets on the interface as it is.
    fn is_bound(&self) -> bool {
        self.sockets.as_ref().map(|(_, index)| *index) == self.watch.interface().index()
    }

    /// Opens sockets on the interface, unless they are open or it cannot send.
    fn bind(&mut self) -> Result<(), UdpError> {
        if let Some(index) = self.watch.interface().index()
            && self.trouble().is_none()
            && !self.is_bound()
        {
            let UdpConfig { interface, port, .. } = &self.config;
            let sockets = Sockets::open(&self.config).map_err(|e| match e.kind() {
                io::ErrorKind::AddrInUse => {
                    UdpError::PortInUse { port: *port, interface: interface.clone() }
                }
                _ => UdpError::Io(interface.clone(), e),
            })?;
            self.sockets = Some((sockets, index));
            self.pressure = BackPressure::new(self.config.rate.is_none(), Instant::now());
        }
        Ok(())
    }

    /// Does what a change of the interface asks for. Returns whether the hints changed.
    fn handle_change(&mut self) -> bool {
        self.is_dirty = false;
        self.source = self.everyone().and_then(|everyone| source(&self.config, everyone).ok());
        let name = &self.config.interface;
        let trouble = self.trouble().map(|trouble| trouble.text(name));
        let problem = trouble.or_else(|| self.bind().err().map(|e| e.to_string()));
        let problem = problem.or_else(|| self.mtu_problem());
        let mut hints = Vec::from_iter(problem.or_else(|| self.pressure_hint()));
        hints.extend(self.forwarding_hint());
        if hints == self.hints {
            return false;
        }

        // Each hint is logged once, when it appears.
        for hint in hints.iter().filter(|hint| !self.hints.contains(hint)) {
            tracing::warn!("{hint}");
        }
        if self.trouble().is_none() {
            let address = self.source.map_or("?".into(), |address| address.to_string());
            tracing::info!("{} can send, from {address}", self.config.interface);
        }
        self.hints = hints;
        true
    }

    /// Returns what to do about a mesh interface that forwards by itself.
    fn forwarding_hint(&self) -> Option<String> {
        let name = &self.config.interface;
        let index = self.watch.interface().index()?;
        (mesh80211::forwards(index) == Some(true)).then(|| {
            format!(
                "{name} forwards frames by itself, so that every node of the mesh looks like a \
                 neighbour; `iw dev {name} set mesh_param mesh_fwding 0` on all nodes"
            )
        })
    }

    /// Returns what to do about a driver that takes every frame at once.
    fn pressure_hint(&self) -> Option<String> {
        let name = &self.config.interface;
        self.pressure.is_missing().then(|| {
            format!(
                "{name} takes every frame at once, whatever its channel carries, so no more \
                 than {} Mbit/s is sent; set [radio] rate to what the channel carries",
                DEFAULT_RATE.bits_per_second / 1e6
            )
        })
    }

    /// Returns what is wrong with the MTU of the interface. Short frames get through all the same.
    fn mtu_problem(&self) -> Option<String> {
        let mtu = self.watch.interface().mtu();
        let name = &self.config.interface;
        let wanted = self.config.mtu;
        (wanted + IP_OVERHEAD > mtu).then(|| {
            let fits = mtu.saturating_sub(IP_OVERHEAD);
            format!(
                "long frames are not sent: the MTU of {name} is {mtu} now; raise it to {}, or set \
                 [radio] mtu = {fits} on all nodes",
                wanted + IP_OVERHEAD
            )
        })
    }

    /// Returns whether the kernel has room for another frame: less than half the buffer is in use.
    fn kernel_accepts(&self) -> bool {
        let Some((sockets, _)) = &self.sockets else { return false };
        // Through tokio, so that it waits for the kernel's next word if there is no room.
        let writable = sockets.main.try_io(Interest::WRITABLE, || {
            let mut fds = [PollFd::new(&sockets.main, PollFlags::OUT)];
            match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        !writable.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends the waiting frame. Returns `None` while the kernel does not accept it.
    fn try_send(&mut self) -> Option<RadioEvent> {
        let (frame, to) = self.sending.as_ref()?;
        let (sockets, _) = self.sockets.as_ref()?;
        let port = self.config.port;
        let mut sent = Err(io::ErrorKind::WouldBlock.into());
        if let Destination::One(neighbor) = to {
            sent = sockets.unicast.send_to(frame, (*neighbor, port));
        }
        // A unicast that would have to wait goes to everyone.
        if sent.as_ref().is_err_and(|e: &io::Error| e.kind() == io::ErrorKind::WouldBlock) {
            let everyone = SocketAddrV4::new(self.everyone()?, port);
            sent = sockets.main.try_send_to(frame, everyone.into());
        }
        let result = match &sent {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
            Err(_) => TxResult::Failed,
            // Whether a neighbour has it is not known: the driver keeps the MAC's acknowledgment.
            Ok(_) => TxResult::Sent,
        };
        let bytes = frame.len() + WIRE_OVERHEAD;
        let now = Instant::now();
        self.sending = None;
        let Cost { airtime, is_paced } = self.pressure.sent(self.pacing.airtime(bytes), now);
        self.is_dirty |= self.pressure.is_missing() == self.hints.is_empty();
        if is_paced {
            self.pacing.sent(bytes, now);
        }
        self.note(sent.err());
        Some(RadioEvent::Report(TxReport { result, airtime, heard_by: None }))
    }

    /// Logs once that the kernel refuses frames (a firewall, a route), and once that it accepts
    /// them again.
    fn note(&mut self, error: Option<io::Error>) {
        match error {
            Some(e) => {
                self.pacing.pause(REFUSED_PAUSE, Instant::now());
                if !self.refused {
                    tracing::warn!("{} does not send: {e}; trying on", self.config.interface);
                }
                self.refused = true;
            }
            None if self.refused => {
                self.refused = false;
                tracing::info!("{} sends again", self.config.interface);
            }
            None => {}
        }
    }

    /// Returns where a frame for a neighbour goes. Makes the kernel ask for a hardware address that
    /// it does not know.
    fn destination(&mut self, address: Ipv4Addr) -> Destination {
        if self.watch.interface().is_resolved(address) {
            return Destination::One(address);
        }
        let now = Instant::now();
        self.asked_at.retain(|_, at| now - *at < ASK_PAUSE);
        if let Entry::Vacant(entry) = self.asked_at.entry(address) {
            entry.insert(now);
            if let Some((sockets, _)) = &self.sockets {
                // If this is not sent, the next frame asks again after the pause.
                let _ = sockets.unicast.send_to(&[], (address, DISCARD_PORT));
            }
        }
        Destination::Everyone
    }

    /// Returns whether a frame came from this node itself.
    fn is_own(&self, from: SocketAddr) -> bool {
        matches!(from.ip(), IpAddr::V4(address) if self.watch.interface().is_own(address))
    }
}

impl Radio for UdpRadio {
    fn describe(&self) -> String {
        format!("udp on {}, port {}", self.config.interface, self.config.port)
    }

    fn hints(&self) -> Vec<String> {
        self.hints.clone()
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.config.rate = rate;
        (self.pacing, self.pressure) = limits(rate, Instant::now());
    }

    fn address(&self) -> Option<RadioAddress> {
        self.source.map(|address| RadioAddress(address.octets()))
    }

    async fn request(&mut self) -> io::Result<()> {
        self.requested = true;
        Ok(())
    }

    async fn transmit(&mut self, frame: &[u8], to: Option<RadioAddress>) -> io::Result<()> {
        let one = |RadioAddress(address)| self.destination(Ipv4Addr::from(address));
        let to = to.map_or(Destination::Everyone, one);
        self.sending = Some((frame.to_vec(), to));
        Ok(())
    }

    async fn decline(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn try_receive(&mut self, buffer: &mut Vec<u8>) -> bool {
        buffer.resize(self.config.mtu + 1, 0);
        let Some((sockets, _)) = &self.sockets else { return false };
        while let Ok((length, from)) = sockets.main.try_recv_from(buffer) {
            if !self.is_own(from) {
                buffer.truncate(length);
                return true;
            }
        }
        false
    }

    async fn event(&mut self, buffer: &mut Vec<u8>) -> io::Result<RadioEvent> {
        // One byte more than the largest frame, so that longer frames are recognised and dropped.
        buffer.resize(self.config.mtu + 1, 0);
        loop {
            if self.is_dirty && self.handle_change() {
                return Ok(RadioEvent::Changed);
            }
            let can_send = self.trouble().is_none() && self.is_bound();
            if !can_send && let Some((frame, _)) = self.sending.take() {
                // Its time is over when the interface is back.
                let airtime = self.pacing.airtime(frame.len() + WIRE_OVERHEAD);
                let result = TxResult::Failed;
                return Ok(RadioEvent::Report(TxReport { result, airtime, heard_by: None }));
            }
            if let Some(report) = self.try_send() {
                return Ok(report);
            }

            // It waits for two things: room in the kernel, then the time of the next frame.
            let wants = can_send && (self.requested || self.sending.is_some());
            let waits_for_room = wants && !self.kernel_accepts();
            let due = if waits_for_room {
                self.is_dirty |= self.pressure.felt();
                None
            } else if self.sending.is_some() {
                continue;
            } else if wants {
                Some(self.pacing.next())
            } else {
                // Sockets that could not be opened are tried again.
                let is_unbound = self.trouble().is_none() && !self.is_bound();
                is_unbound.then(|| Instant::now() + REBIND_PAUSE)
            };
            if self.is_dirty {
                continue;
            }
            let main = self.sockets.as_ref().map(|(sockets, _)| &sockets.main);
            tokio::select! {
                heard = receive(main, buffer) => {
                    // The error is an ICMP answer to an earlier frame. Nothing was heard.
                    if let Ok((length, from)) = heard && !self.is_own(from) {
                        buffer.truncate(length);
                        return Ok(RadioEvent::Received);
                    }
                }
                () = self.alarm.wait_until(due) => {
                    if !wants {
                        self.is_dirty = true;
                        continue;
                    }
                    self.requested = false;
                    return Ok(RadioEvent::Grant);
                }
                () = writable(main), if waits_for_room => {}
                changed = self.watch.changed() => {
                    changed?;
                    self.is_dirty = true;
                }
            }
        }
    }
}

/// Receives a frame. Waits forever without a socket.
async fn receive(socket: Option<&UdpSocket>, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    match socket {
        Some(socket) => socket.recv_from(buffer).await,
        None => pending().await,
    }
}

/// Waits until the kernel has room for a frame.
async fn writable(socket: Option<&UdpSocket>) {
    match socket {
        // An error shows when the frame is sent.
        Some(socket) => drop(socket.writable().await),
        None => pending().await,
    }
}

/// Returns the names of the interfaces that have an IPv4 address.
fn known_interfaces() -> String {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    let named = all.iter().filter(|i| matches!(i.ip(), IpAddr::V4(_)));
    named.map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn check_mtu(config: &UdpConfig, mtu: usize) -> Result<(), UdpError> {
    let fits = mtu.saturating_sub(IP_OVERHEAD);
    if config.mtu > fits {
        return Err(UdpError::Mtu { mtu: config.mtu, interface: config.interface.clone(), fits });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_unicast_whose_hardware_address_is_unknown_goes_to_everyone() {
        let config = UdpConfig {
            interface: "lo".into(),
            port: 7171,
            broadcast: Some(Ipv4Addr::new(127, 255, 255, 255)),
            rate: None,
            mtu: 1472,
        };
        let mut radio = UdpRadio::open(&config).unwrap();
        let neighbor = Ipv4Addr::new(127, 0, 0, 7);
        let to = Some(RadioAddress(neighbor.octets()));
        // The kernel is made to ask, once in a while, and nothing waits for its answer.
        radio.transmit(b"frame", to).await.unwrap();
        assert_eq!(radio.sending, Some((b"frame".to_vec(), Destination::Everyone)));
        let asked_at = radio.asked_at.get(&neighbor).copied();
        assert!(asked_at.is_some());
        radio.transmit(b"frame", to).await.unwrap();
        assert_eq!(radio.asked_at.get(&neighbor).copied(), asked_at);
        let event = radio.event(&mut Vec::new()).await.unwrap();
        let RadioEvent::Report(report) = event else { panic!("{event:?}") };
        assert_eq!(report.result, TxResult::Sent);
    }

    /// A flood must not make the node's loop run once for each of its frames.
    #[tokio::test]
    async fn frames_that_have_come_are_taken_without_waiting() {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = format!("interface = \"lo\"\nport = {port}\nbroadcast = \"127.255.255.255\"");
        let mut radio = UdpRadio::open(&toml::from_str(&config).unwrap()).unwrap();
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
