//! A node with several ports: who hears what, which port a frame takes, and what a lost port costs.

// A helper outside the `#[test]` functions fails its test where it unwraps.
#![allow(clippy::unwrap_used)]

use ncmesh_engine::file::FileLimits;
use ncmesh_engine::port::MAX_PORTS;
use ncmesh_engine::registry::{Constructor, Entry, Registry};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::tunnel::{FlowStatus, PacketError};
use ncmesh_engine::{
    Class, Context, Engine, Event, Filled, Frame, Offer, Port, TunnelEngine, TxReport, TxResult,
};
use ncmesh_stack::control::{HELLO, SERVICE};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_wire::{Cipher, NodeId, Salt, ServiceId, Versions};
use std::collections::VecDeque;

const TICK: Duration = Duration::from_millis(1);
/// Service of the test's engine.
const ID: ServiceId = ServiceId(200);
/// Destination of packets that the engine broadcasts.
const ALL: NodeId = NodeId(99);

/// An engine that knows nothing of ports: it sends packets to a neighbour, or to all.
#[derive(Default)]
struct Simple {
    queue: VecDeque<(NodeId, Vec<u8>)>,
    /// Frames whose report is still to come. An engine like this expects one at a time.
    unreported: u32,
}

impl Engine for Simple {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        cx.hand_up(frame.sender, frame.body.to_vec());
    }

    fn handle_timeout(&mut self, _: &mut Context<'_>) {}

    fn poll_timeout(&self, _: Instant) -> Option<Instant> {
        None
    }

    fn offer(&self, _: Instant) -> Option<Offer> {
        self.queue.front().map(|_| Offer::of(Class::Data))
    }

    fn fill(&mut self, _: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let (to, packet) = self.queue.pop_front()?;
        out.extend(packet);
        self.unreported += 1;
        assert_eq!(self.unreported, 1, "another frame is under way");
        Some(Filled { kind: 1, to: Some(to).filter(|to| *to != ALL) })
    }

    fn handle_tx_report(&mut self, _: &mut Context<'_>, _: TxReport) {
        self.unreported -= 1;
    }
}

impl TunnelEngine for Simple {
    fn longest(&self, mtu: usize) -> usize {
        mtu
    }

    fn can_send(&self, _: NodeId) -> bool {
        true
    }

    fn handle_packet(
        &mut self,
        _: &mut Context<'_>,
        to: NodeId,
        packet: &[u8],
    ) -> Result<(), PacketError> {
        self.queue.push_back((to, packet.to_vec()));
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        Vec::new()
    }
}

const SIMPLE: Registry = Registry(&[Entry {
    name: "simple",
    id: ID,
    summary: "packets to neighbours",
    paper: "none",
    settings: Vec::new,
    layouts: &[],
    read: |_, _, _| None,
    build: Constructor::Tunnel(|_| Ok(Box::new(Simple::default()))),
}]);

/// Place of a port: the node, and the port's number there.
type Place = (usize, usize);

/// A channel that delivers every frame to all ports on it, and takes a time for each byte.
struct Channel {
    ports: Vec<Place>,
    per_byte: Duration,
    /// Whether frames pass it.
    is_up: bool,
    /// Until when it is busy with the frame of a port.
    busy: Option<(Instant, Place, Duration)>,
    frames: u32,
}

struct Mesh {
    nodes: Vec<Stack>,
    storage: MemoryStorage,
    channels: Vec<Channel>,
    now: Instant,
    /// Packets that arrived: where, and from whom.
    arrived: Vec<(usize, NodeId)>,
}

fn id(node: usize) -> NodeId {
    NodeId(node as u16 + 1)
}

fn port(place: usize) -> Port {
    Port::new(place).unwrap()
}

impl Mesh {
    /// Returns nodes with as many ports as the channels name. A byte takes this many nanoseconds on
    /// each channel.
    fn new(channels: &[(&[Place], u64)]) -> Self {
        let channels: Vec<Channel> = channels
            .iter()
            .map(|(ports, ns)| Channel {
                ports: ports.to_vec(),
                per_byte: Duration::from_nanos(*ns),
                is_up: true,
                busy: None,
                frames: 0,
            })
            .collect();
        let places = || channels.iter().flat_map(|channel| &channel.ports);
        let count = places().map(|(node, _)| node + 1).max().unwrap();
        let nodes = (0..count).map(|node| {
            let mut stack = stack(node);
            let ports = places().filter(|(other, _)| *other == node).count();
            for _ in 1..ports {
                stack.add_port(Instant::default()).unwrap();
            }
            stack
        });
        Self {
            nodes: nodes.collect(),
            storage: MemoryStorage::default(),
            channels,
            now: Instant::default(),
            arrived: Vec::new(),
        }
    }

    /// Returns a mesh that has measured its links.
    fn settled(channels: &[(&[Place], u64)]) -> Self {
        let mut mesh = Self::new(channels);
        mesh.run(Duration::from_secs(8));
        mesh
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.now + TICK;
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        for stack in &mut self.nodes {
            if stack.poll_timeout().is_some_and(|at| at <= now) {
                stack.at(now, &mut self.storage).handle_timeout();
            }
        }

        let first = now.as_nanos() as usize / 1_000_000;
        for channel in &mut self.channels {
            if let Some((_, (node, place), airtime)) = channel.busy.take_if(|busy| busy.0 <= now) {
                let report = TxReport { result: TxResult::Sent, airtime, heard_by: None };
                let at = self.nodes[node].at(now, &mut self.storage);
                at.on(port(place)).handle_tx_report(report);
            }
            if channel.busy.is_some() {
                continue;
            }

            // The ports of a channel are granted in turns.
            let count = channel.ports.len();
            let granted = (0..count).map(|i| channel.ports[(first + i) % count]);
            let mut frame = Vec::new();
            let mut granted = granted.filter(|(node, place)| {
                self.nodes[*node].offer_on(port(*place), now).is_some()
                    && self.nodes[*node]
                        .at(now, &mut self.storage)
                        .on(port(*place))
                        .fill(&mut frame)
                        .is_some()
            });
            let Some(sender) = granted.next() else { continue };
            channel.frames += 1;
            let airtime = channel.per_byte * frame.len() as u32;
            channel.busy = Some((now + airtime, sender, airtime));
            let is_up = channel.is_up;
            for (node, place) in channel.ports.iter().filter(|to| is_up && **to != sender) {
                let at = self.nodes[*node].at(now, &mut self.storage);
                at.on(port(*place)).handle_datagram(&frame);
            }
        }

        for (node, stack) in self.nodes.iter_mut().enumerate() {
            while let Some(event) = stack.poll_event() {
                if let Event::Packet { from, .. } = event {
                    self.arrived.push((node, from));
                }
            }
        }
    }

    fn send(&mut self, from: usize, to: NodeId) {
        let stack = &mut self.nodes[from];
        let scheme = stack.scheme("simple").unwrap();
        stack.at(self.now, &mut self.storage).send_packet(scheme, to, &[7; 100]).unwrap();
    }
}

fn stack(node: usize) -> Stack {
    let config = StackConfig {
        node: id(node),
        name: format!("n{node}"),
        profile: Default::default(),
        salt: Salt([node as u8 + 1; 16]),
        epoch: 1 << 20,
        seed: 1,
        mtu: 1500,
        versions: Versions::OWN,
        cipher: Cipher::Null,
        trust: Default::default(),
        link: LinkConfig { quick_hello_s: 0.1, ..LinkConfig::default() },
        route: Default::default(),
        share: Default::default(),
        engines: toml::Table::new(),
        file: FileLimits::default(),
    };
    Stack::new(config, SIMPLE, Instant::default()).unwrap()
}

/// A radio of 2 Mbit/s and a cable of 1 Gbit/s.
const RADIO: u64 = 4000;
const CABLE: u64 = 8;
/// Two nodes with both between them.
const PAIR: [(&[Place], u64); 2] = [(&[(0, 0), (1, 0)], RADIO), (&[(0, 1), (1, 1)], CABLE)];
/// Three nodes in a line, the one between with a port for each.
const LINE: [(&[Place], u64); 2] = [(&[(0, 0), (1, 0)], RADIO), (&[(1, 1), (2, 0)], RADIO)];

#[test]
fn a_neighbour_on_two_ports_is_one_that_is_reached_by_the_quicker() {
    let mesh = Mesh::settled(&PAIR);
    for (node, stack) in mesh.nodes.iter().enumerate() {
        let inbound: Vec<_> = stack.inbound().collect();
        assert_eq!(inbound.len(), 1);
        assert!(inbound[0].1 > 0.9, "nothing is lost, on either port: {inbound:?}");
        assert_eq!(stack.port_to(id(1 - node)), port(1));
        for place in 0..2 {
            let here: Vec<_> = stack.inbound_on(port(place)).collect();
            assert!(here[0].1 > 0.9, "port {place}: {here:?}");
        }
    }
}

#[test]
fn what_a_node_knows_goes_out_on_every_port() {
    let mesh = Mesh::settled(&LINE);
    for stack in &mesh.nodes {
        let states = stack.topology().states().map(|(node, state)| (node, state.hears.len()));
        assert_eq!(states.collect::<Vec<_>>(), [(id(0), 1), (id(1), 2), (id(2), 1)]);
    }
}

#[test]
fn a_frame_for_a_neighbour_takes_its_port_and_one_for_all_takes_every_port() {
    let mut mesh = Mesh::settled(&LINE);
    let before = mesh.channels.iter().map(|channel| channel.frames).collect::<Vec<_>>();
    for _ in 0..50 {
        mesh.send(1, id(2));
        mesh.send(1, id(0));
        mesh.send(1, ALL);
    }
    mesh.run(Duration::from_secs(1));
    let at = |node| mesh.arrived.iter().filter(|arrived| **arrived == (node, id(1))).count();
    assert_eq!([at(0), at(2)], [100, 100]);
    for (channel, before) in mesh.channels.iter().zip(before) {
        // Hellos go beside them.
        assert!((100..110).contains(&(channel.frames - before)), "{}", channel.frames - before);
    }
}

#[test]
fn a_port_that_falls_silent_is_left_within_two_seconds_and_one_that_is_pulled_at_once() {
    let mut mesh = Mesh::settled(&PAIR);
    mesh.channels[1].is_up = false;
    mesh.run(Duration::from_secs(2));
    assert_eq!(mesh.nodes[0].port_to(id(1)), Port::FIRST);
    assert_eq!(mesh.nodes[0].inbound().count(), 1, "it is a neighbour still");
    mesh.send(0, id(1));
    mesh.run(Duration::from_millis(100));
    assert_eq!(mesh.arrived, [(1, id(0))]);

    // The cable works again, and is better for long enough.
    mesh.channels[1].is_up = true;
    mesh.run(Duration::from_secs(10));
    assert_eq!(mesh.nodes[0].port_to(id(1)), port(1));
    let storage = &mut mesh.storage;
    mesh.nodes[0].at(mesh.now, storage).set_port_up(port(1), false);
    assert_eq!(mesh.nodes[0].port_to(id(1)), Port::FIRST);
    assert_eq!(mesh.nodes[0].offer_on(port(1), mesh.now), None);
}

/// The node between has a slow port that hears only some frames of the quick one's traffic: the
/// numbers of the frames that it does not hear are no losses there.
#[test]
fn frames_of_another_port_are_no_losses() {
    let mut mesh = Mesh::settled(&LINE);
    for _ in 0..2000 {
        mesh.send(1, id(2));
    }
    mesh.run(Duration::from_secs(5));
    let heard: Vec<_> = mesh.nodes[0].inbound().collect();
    assert_eq!(heard.len(), 1);
    assert!(heard[0].1 > 0.9, "{heard:?}");
}

#[test]
fn hellos_go_before_frames_that_wait_for_a_port() {
    let mut mesh = Mesh::settled(&LINE);
    let hellos = |mesh: &Mesh| mesh.nodes[1].counters().sent(SERVICE, HELLO).frames;
    let before = hellos(&mesh);
    for _ in 0..20_000 {
        mesh.send(1, ALL);
    }
    mesh.run(Duration::from_secs(6));
    assert!(hellos(&mesh) - before >= 10, "{} on two ports", hellos(&mesh) - before);
    for node in [0, 2] {
        let heard: Vec<_> = mesh.nodes[node].inbound().collect();
        assert!(heard[0].1 > 0.9, "{heard:?}");
    }
}

#[test]
fn a_port_that_takes_no_frame_stops_no_other() {
    let mut mesh = Mesh::settled(&LINE);
    // The second port of the node between is granted nothing any more.
    mesh.channels[1].busy = Some((mesh.now + Duration::from_secs(60), (2, 0), TICK));
    for _ in 0..5 {
        mesh.send(1, ALL);
        mesh.run(Duration::from_secs(2));
    }
    assert_eq!(mesh.arrived, [(0, id(1)); 5]);
}

#[test]
fn a_node_has_no_more_ports_than_it_may() {
    let mut stack = stack(0);
    let added = (0..64).filter(|_| stack.add_port(Instant::default()).is_some()).count();
    assert_eq!(added + 1, MAX_PORTS);
    assert_eq!(stack.ports().count(), MAX_PORTS);
}
