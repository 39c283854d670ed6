//! Each end beside smoltcp's TCP: what the two exchange is TCP, not a dialect of ours.

use super::*;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketSet};
use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant as TcpInstant;
use smoltcp::wire::{HardwareAddress, IpCidr};

const MS: Duration = Duration::from_millis(1);
const ADDRESSES: [Ipv4Address; 2] = [Ipv4Address::new(10, 0, 0, 2), Ipv4Address::new(10, 0, 0, 3)];
const SIZE: u64 = 300_000;

/// A host of smoltcp's with one socket.
struct Peer {
    card: Card,
    interface: Interface,
    sockets: SocketSet<'static>,
}

/// Network card of a host of smoltcp's: queues of packets.
#[derive(Default)]
struct Card {
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

struct Received(Vec<u8>);
struct Room<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl phy::TxToken for Room<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let result = write(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: TcpInstant) -> Option<(Received, Room<'_>)> {
        let packet = self.received.pop_front()?;
        Some((Received(packet), Room(&mut self.sent)))
    }

    fn transmit(&mut self, _: TcpInstant) -> Option<Room<'_>> {
        Some(Room(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1020;
        capabilities
    }
}

impl Peer {
    fn new(address: Ipv4Address) -> Self {
        let mut card = Card::default();
        let mut interface =
            Interface::new(Config::new(HardwareAddress::Ip), &mut card, TcpInstant::ZERO);
        interface.update_ip_addrs(|all| all.push(IpCidr::new(address.into(), 8)).unwrap());
        let buffer = || SocketBuffer::new(vec![0; 60_000]);
        let mut sockets = SocketSet::new(Vec::new());
        sockets.add(Socket::new(buffer(), buffer()));
        Self { card, interface, sockets }
    }

    fn socket(&mut self) -> (&mut Socket<'static>, &mut Interface) {
        let (handle, _) = self.sockets.iter().next().unwrap();
        (self.sockets.get_mut(handle), &mut self.interface)
    }

    fn poll(&mut self, now: Instant) {
        let now = TcpInstant::from_micros((now.as_nanos() / 1000) as i64);
        let Self { card, interface, sockets } = self;
        while interface.poll_ingress_single(now, card, sockets) != PollIngressSingleResult::None {}
        while interface.poll_egress(now, card, sockets) == PollResult::SocketStateChanged {}
    }
}

fn behaviour() -> Behaviour {
    let congestion = Congestion::Cubic;
    let ack_delay = None;
    let seed = 0xffff_ff00_ffff_ff00;
    Behaviour { congestion, window: 60_000, ack_delay, min_rto: None, packet: 1020, seed }
}

fn ends() -> [Endpoint; 2] {
    let end = |address, port| Endpoint { address, port };
    [end(ADDRESSES[0], CLIENT_PORT), end(ADDRESSES[1], SERVER_PORT)]
}

/// Whether a pipe loses packet `n`: one in 40, once the handshake is over.
fn is_lost(n: usize) -> bool {
    n > 10 && n.is_multiple_of(40)
}

#[test]
fn another_receiver_gets_everything_from_our_sender() {
    let mut sender = Sender::new(ends(), behaviour(), Some(SIZE));
    let mut peer = Peer::new(ADDRESSES[1]);
    peer.socket().0.listen(SERVER_PORT).unwrap();
    let mut now = Instant::default();
    let mut count = 0;
    let mut got = 0;
    sender.open(now);
    while got < SIZE && now < Instant::default() + 60_000 * MS {
        now = now + MS;
        sender.handle_timeout(now);
        while let Some(packet) = sender.outgoing.pop_front() {
            count += 1;
            if !is_lost(count) {
                peer.card.received.push_back(packet);
            }
        }
        peer.poll(now);
        let (socket, _) = peer.socket();
        while socket.can_recv() {
            let check = |bytes: &mut [u8]| {
                assert!(bytes.iter().zip(got..).all(|(byte, i)| *byte == content(i)));
                (bytes.len(), bytes.len() as u64)
            };
            got += socket.recv(check).unwrap();
        }
        peer.poll(now);
        while let Some(packet) = peer.card.sent.pop_front() {
            sender.handle_packet(&packet, now);
        }
    }
    assert_eq!(got, SIZE);
    assert!(now < Instant::default() + 10_000 * MS, "{now:?}");
}

#[test]
fn our_receiver_gets_everything_from_another_sender() {
    let mut receiver = Receiver::new([ends()[1], ends()[0]], behaviour());
    let mut peer = Peer::new(ADDRESSES[0]);
    let (socket, interface) = peer.socket();
    socket.connect(interface.context(), (ADDRESSES[1], SERVER_PORT), CLIENT_PORT).unwrap();
    let mut now = Instant::default();
    let mut count = 0;
    let mut written = 0_u64;
    while receiver.received < SIZE && now < Instant::default() + 120_000 * MS {
        now = now + MS;
        let (socket, _) = peer.socket();
        while socket.can_send() && written < SIZE {
            let put = |room: &mut [u8]| {
                let n = room.len().min((SIZE - written) as usize);
                room[..n].iter_mut().zip(written..).for_each(|(byte, i)| *byte = content(i));
                (n, n as u64)
            };
            written += socket.send(put).unwrap();
        }
        peer.poll(now);
        while let Some(packet) = peer.card.sent.pop_front() {
            count += 1;
            if !is_lost(count) {
                receiver.handle_packet(&packet, now);
            }
        }
        receiver.handle_timeout(now);
        peer.card.received.append(&mut receiver.outgoing);
    }
    assert_eq!((receiver.received, receiver.wrong), (SIZE, 0));
}
