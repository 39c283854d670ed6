//! One end of a connection: smoltcp's IP and TCP on the virtual clock.

use super::Congestion;
use super::device::Card;
use ncmesh_engine::time::{Duration, Instant};
use smoltcp::iface::{
    Config, Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet,
};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::{Duration as TcpDuration, Instant as TcpInstant};
use smoltcp::wire::{HardwareAddress, IpCidr, Ipv4Address};

/// The port of all servers.
const SERVER_PORT: u16 = 5001;
/// The port of all clients.
const CLIENT_PORT: u16 = 40_000;

/// How an end behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    pub congestion: Congestion,
    /// Send and receive buffer each, bytes.
    pub window: usize,
    /// How long an acknowledgment is held back for another; zero: never.
    pub ack_delay: Duration,
    /// The longest IP packet, bytes.
    pub packet: usize,
    /// Of initial sequence numbers.
    pub seed: u64,
}

/// One end.
pub(super) struct Host {
    pub card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

/// smoltcp's clock has microseconds.
fn clock(now: Instant) -> TcpInstant {
    TcpInstant::from_micros((now.as_nanos() / 1000) as i64)
}

impl Host {
    pub(super) fn new(address: Ipv4Address, behaviour: &Behaviour, now: Instant) -> Self {
        let mut card = Card::new(behaviour.packet);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = behaviour.seed;
        let mut interface = Interface::new(config, &mut card, clock(now));
        interface.update_ip_addrs(|addresses| {
            // There is room for one at least.
            let _ = addresses.push(IpCidr::new(address.into(), 8));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket(behaviour));
        Self { card, interface, sockets, socket }
    }

    pub(super) fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    pub(super) fn listen(&mut self) {
        // A new socket on a port that is not 0 can listen.
        let _ = self.socket().listen(SERVER_PORT);
    }

    pub(super) fn connect(&mut self, server: Ipv4Address) {
        let (interface, sockets) = (&mut self.interface, &mut self.sockets);
        let socket = sockets.get_mut::<Socket<'_>>(self.socket);
        // A new socket can connect to an address that is not zero.
        let _ = socket.connect(interface.context(), (server, SERVER_PORT), CLIENT_PORT);
    }

    /// Reads what came in and writes what can go out.
    ///
    /// A packet is asked for only where there is room for it: smoltcp forgets that a segment is to be repeated, and stops
    /// its timer, where the card refuses it.
    pub(super) fn poll(&mut self, now: Instant) {
        let Self { card, interface, sockets, .. } = self;
        let now = clock(now);
        while interface.poll_ingress_single(now, card, sockets) != PollIngressSingleResult::None {}
        while card.has_room()
            && interface.poll_egress(now, card, sockets) == PollResult::SocketStateChanged
        {}
    }

    /// When it next has something to do on its own account.
    pub(super) fn due(&mut self, now: Instant) -> Option<Instant> {
        let at = self.interface.poll_at(clock(now), &self.sockets)?;
        Some(Instant::from_nanos(u64::try_from(at.total_micros()).unwrap_or(0) * 1000))
    }
}

fn socket(behaviour: &Behaviour) -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; behaviour.window]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(match behaviour.congestion {
        Congestion::Reno => CongestionControl::Reno,
        Congestion::Cubic => CongestionControl::Cubic,
        Congestion::None => CongestionControl::None,
    });
    let delay = Some(behaviour.ack_delay).filter(|delay| !delay.is_zero());
    socket.set_ack_delay(delay.map(TcpDuration::from));
    socket
}
