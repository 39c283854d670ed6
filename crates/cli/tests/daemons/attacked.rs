//! A member that writes single frames in the names of others, on the segment of real daemons.

use crate::support::net::Segment;
use crate::support::{INBOX, KEY, contents, mesh, send, wait_until};
use ncmesh_engine::file::{ReceiverState, Refusal};
use ncmesh_engines::registry;
use ncmesh_node::api::types::{Peer, State};
use ncmesh_stack::control::{HELLO, SERVICE};
use ncmesh_wire::{Cipher, FlowId, NodeId, Salt, Sealer, ServiceId, Versions, Writer, frame};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Host of the member, and the id that it proves that it has.
const HOST: usize = 3;
const MEMBER: NodeId = NodeId(77);
/// Kinds of the frames of file schemes, and offsets in an announcement's body.
const ANNOUNCE: u8 = 0;
const ACK: u8 = 2;
const DATA: u8 = 1;
/// Number of the generation in a data packet of `cascade`.
const GENERATION: std::ops::Range<usize> = 6..10;
const NUMBER: usize = 14;
const PHASE: usize = 18;
/// Phase of an announcement by which the source withdraws a file.
const WITHDRAWN: u8 = 2;

/// Somebody on the segment who has the key.
struct Member {
    heard: UdpSocket,
    cipher: Cipher,
    sealer: Sealer,
}

impl Member {
    /// Moves this thread to the member's host.
    fn new(segment: &Segment) -> Self {
        let namespace = File::open(format!("/run/netns/{}", segment.host(HOST))).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let heard = UdpSocket::bind("10.77.0.255:7117").unwrap();
        heard.set_broadcast(true).unwrap();
        heard.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let cipher = Cipher::new(&KEY.parse().unwrap());
        let sealer = Sealer::new(cipher.clone(), MEMBER, Salt([7; 16]));
        Self { heard, cipher, sealer }
    }

    /// Waits for a frame from a host that is of `kind`. Returns its header and body.
    fn hear(&self, host: u8, service: ServiceId, kind: u8) -> (frame::Header, Vec<u8>) {
        let mut datagram = [0; 2000];
        let mut scratch = Vec::new();
        for _ in 0..10_000 {
            let (length, from) = self.heard.recv_from(&mut datagram).unwrap();
            let opened = self.cipher.open(&datagram[..length], &mut scratch);
            if let Ok(o) = opened
                && from.ip() == Ipv4Addr::new(10, 77, 0, host)
                && o.service == service
                && o.kind == kind
            {
                return (o.header, o.body.to_vec());
            }
        }
        panic!("host {host} sends no frame {kind} of {service:?}");
    }

    /// Sends a frame to all hosts.
    fn send(&mut self, service: ServiceId, kind: u8, body: &[u8]) {
        send_by(&mut self.sealer, service, kind, body);
    }

    /// Proves to a host that it is there, by the latest hello of that.
    fn introduce_itself(&mut self, host: u8) {
        let (header, _) = self.hear(host, SERVICE, HELLO);
        let mut body = hello();
        body.extend_from_slice(&[0, 0x10]);
        Writer::new(&mut body).node(header.sender).u64(header.salt.start().0).u32(header.counter);
        self.send(SERVICE, HELLO, &body);
    }
}

/// Sends a frame, from another port than daemons listen on.
fn send_by(sealer: &mut Sealer, service: ServiceId, kind: u8, body: &[u8]) {
    let mut frame = Vec::new();
    Sealer::begin(&mut frame, service, kind);
    frame.extend_from_slice(body);
    sealer.seal(&mut frame, Versions::OWN.newest);
    let socket = UdpSocket::bind("10.77.0.3:0").unwrap();
    socket.set_broadcast(true).unwrap();
    socket.send_to(&frame, "10.77.0.255:7117").unwrap();
}

/// Returns the beginning of a hello that promises the next one within 1 s.
fn hello() -> Vec<u8> {
    let mut body = Vec::new();
    Writer::new(&mut body).u16(1000).u16(0).u16(0).u16(1).u64(0).u8(0).u8(0);
    body
}

#[test]
fn ends_that_a_member_claims_end_no_transfer() {
    let Some(segment) = Segment::new(HOST) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", INBOX]);
    let bytes = contents(3_000_000, 1);
    let id = send(&mesh[0], "file", &bytes, "n2");
    let (_, serial) = id.split_once('-').unwrap();
    let flow = FlowId { source: NodeId(1), serial: u32::from_str_radix(serial, 16).unwrap() };
    let scheme = mesh[0].transfers()[0].scheme.clone().unwrap();
    let scheme = registry().entries().find(|entry| entry.name == scheme).unwrap().id;
    mesh[1].wait_for_bytes(100_000);

    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut member = Member::new(&segment);
            [1, 2].into_iter().for_each(|host| member.introduce_itself(host));
            let (_, mut withdrawn) = member.hear(1, scheme, ANNOUNCE);
            for state in [ReceiverState::Complete, ReceiverState::Refused(Refusal::NotAllowed)] {
                let mut claim = Vec::new();
                let mut w = Writer::new(&mut claim);
                w.node(NodeId(1)).flow(flow).node(NodeId(2)).u64(u64::MAX).u32(u32::MAX);
                w.u8(state.code()).u32(u32::MAX);
                member.send(scheme, ACK, &claim);
            }
            withdrawn[NUMBER..NUMBER + 4].copy_from_slice(&u32::MAX.to_be_bytes());
            withdrawn[PHASE] = WITHDRAWN;
            member.send(scheme, ANNOUNCE, &withdrawn);
        });
    });
    wait_until("the claims are denied", || {
        let log = mesh[0].log();
        log.contains("denies it") && mesh[0].status().somebody_sends_as_this_node
    });
    let sent = mesh[0].wait_for_completion();
    assert_eq!(sent.receivers[0].state, State::Complete);
    // The source says so only after the receiver has the file.
    let path = mesh[1].wait_for_completion().path.unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
}

#[test]
fn a_frame_with_a_counter_from_far_ahead_shuts_no_daemon_out() {
    let Some(segment) = Segment::new(HOST) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", ""]);
    for counter in [u32::MAX - 1, 100_000] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let member = Member::new(&segment);
                let (header, _) = member.hear(2, SERVICE, HELLO);
                let cipher = member.cipher.clone();
                let mut sealer = Sealer::resume(cipher, header.sender, header.salt, counter);
                let mut body = hello();
                body.extend_from_slice(&[0, 0]);
                send_by(&mut sealer, SERVICE, HELLO, &body);
            });
        });
        wait_until("n2 says so", || mesh[1].status().somebody_sends_as_this_node);
    }
    std::thread::sleep(Duration::from_secs(12));
    let heard = |peer: &Peer| peer.name.as_deref() == Some("n2") && peer.values.etx.is_some();
    let reached = || mesh[0].ask::<Vec<Peer>>(&["peers"]).iter().any(heard);
    for _ in 0..10 {
        assert!(reached(), "n1 has lost n2");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_member_that_sends_false_packets_is_named_and_left_out() {
    let Some(segment) = Segment::new(HOST) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["[cascade]\nsymbol_size = 1000\n", INBOX]);
    let bytes = contents(20_000_000, 1);
    let (introduced, is_introduced) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut member = Member::new(&segment);
            member.introduce_itself(2);
            introduced.send(()).unwrap();
            for packet in 0..20 {
                let (_, mut body) = member.hear(1, cascade(), DATA);
                // A later generation, of which nothing was sent yet: a cable is fast.
                let generation = u32::from_be_bytes(body[GENERATION].try_into().unwrap());
                let later = generation + 10 * u32::from(packet + 1);
                body[GENERATION].copy_from_slice(&later.min(300).to_be_bytes());
                let payload = body.len() - 1000;
                body[payload - 1] = packet;
                body[payload..].iter_mut().for_each(|byte| *byte ^= 0x5A);
                member.send(cascade(), DATA, &body);
            }
        });
        is_introduced.recv().unwrap();
        send(&mesh[0], "file", &bytes, "n2");
    });
    let path = mesh[1].wait_for_completion().path.unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
    let status = mesh[1].status();
    assert_eq!(status.liars, [MEMBER.0]);
    assert!(status.hints.iter().any(|hint| hint.contains("false packets")), "{:?}", status.hints);
    let peers = mesh[1].ask::<Vec<Peer>>(&["peers"]);
    let member = peers.iter().find(|peer| peer.id == MEMBER.0).unwrap();
    assert!(member.values.false_packets > Some(0));
    wait_until("the log names it", || mesh[1].log().contains("false packets"));
}

fn cascade() -> ServiceId {
    registry().entries().find(|entry| entry.name == "cascade").unwrap().id
}
