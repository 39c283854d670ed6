//! Behaviour of one node with frames and packets. Whole meshes: `tests/tests/it/xor.rs`.

mod coding;
mod frames;
mod recovery;
mod tunnel;

use super::*;
use ncmesh_engine::Event;
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::StartId;
use packet::PacketId;
use std::collections::VecDeque;

const MS: Duration = Duration::from_millis(1);

/// Returns the header of packet 7 of node 1, on its way from node 2 to node 3.
fn header() -> Header {
    let id = PacketId { source: NodeId(1), number: 7 };
    Header { id, sequence: 0, hop: 1, route: vec![NodeId(2), NodeId(3)], more: false }
}

/// Returns the header of packet 9 of node 3, on its way from node 2 to node 1.
fn header_back() -> Header {
    let id = PacketId { source: NodeId(3), number: 9 };
    Header { id, route: vec![NodeId(2), NodeId(1)], ..header() }
}

/// Returns the header with another number for its packet, at its first hop.
fn from_source(header: Header, number: u32) -> Header {
    Header { id: PacketId { number, ..header.id }, hop: 0, ..header }
}

/// Returns the body of a frame with one packet.
fn native(header: &Header, packet: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    Data::write_native(header, packet, &mut body);
    body
}

/// Parses a data frame of node 2.
fn parse(body: &[u8]) -> Result<Data<'_>, ncmesh_engine::Malformed> {
    Data::parse(body, NodeId(2))
}

/// A frame that a node sent.
#[derive(Debug, PartialEq)]
struct Sent {
    kind: u8,
    /// Receiver if it is unicast.
    to: Option<NodeId>,
    body: Vec<u8>,
}

impl Sent {
    /// Returns how many packets the data frame carries.
    fn packets(&self) -> usize {
        match parse(&self.body) {
            Ok(Data::Native(..)) if self.kind == DATA => 1,
            Ok(Data::Coded(..)) if self.kind == DATA => 2,
            _ => panic!("no data frame of node 2: {self:?}"),
        }
    }
}

/// A node of a line 1, 2, 3, 4.
struct Bench {
    me: NodeId,
    now: Instant,
    engine: Xor,
    topology: Topology,
    counters: Counters,
    events: VecDeque<Event>,
}

impl Bench {
    fn new(me: u16, settings: &str) -> Self {
        let config: XorConfig = toml::from_str(settings).unwrap();
        Self {
            me: NodeId(me),
            now: Instant::from_nanos(1_000_000_000),
            engine: Xor::new(config),
            topology: symmetric(&[(1, 2, 0.9), (2, 3, 0.9), (3, 4, 0.9)]),
            counters: Counters::default(),
            events: VecDeque::new(),
        }
    }

    fn with<R>(&mut self, call: impl FnOnce(&mut Xor, &mut Context<'_>) -> R) -> R {
        let mut cx = Context {
            now: self.now,
            me: self.me,
            epoch: 1,
            mtu: 1400,
            at: ncmesh_engine::At::ONLY,
            topology: &self.topology,
            rng: &mut rng::stream(1, self.me, "xor", "test"),
            counters: &mut self.counters,
            events: &mut self.events,
            storage: &mut MemoryStorage::default(),
        };
        call(&mut self.engine, &mut cx)
    }

    /// Hands a packet of the application to the engine.
    fn send(&mut self, to: u16, packet: &[u8]) -> Result<(), PacketError> {
        self.with(|engine, cx| engine.handle_packet(cx, NodeId(to), packet))
    }

    /// Transmits a frame that takes no time.
    fn transmit(&mut self) -> Option<Sent> {
        self.transmit_for(Duration::ZERO)
    }

    /// Transmits a frame that takes `time`.
    fn transmit_for(&mut self, time: Duration) -> Option<Sent> {
        let mut body = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut body))?;
        self.now = self.now + time;
        let report = TxReport { result: TxResult::Sent, airtime: MS, heard_by: None };
        self.with(|engine, cx| engine.handle_tx_report(cx, report));
        Some(Sent { kind: filled.kind, to: filled.to, body })
    }

    /// Lets the node hear a frame.
    fn handle(&mut self, sender: u16, kind: u8, body: &[u8]) {
        let frame = Frame { sender: NodeId(sender), start: StartId(1), service: ID, kind, body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    /// Lets the node hear a data frame with one packet.
    fn handle_native(&mut self, sender: u16, header: &Header, packet: &[u8]) {
        self.handle(sender, DATA, &native(header, packet));
    }

    /// Moves the clock and lets the engine handle what is due.
    fn advance_to(&mut self, now: Instant) {
        self.now = now;
        self.with(Engine::handle_timeout);
    }

    /// Returns the next packet that was delivered here.
    fn delivered(&mut self) -> Option<(NodeId, Vec<u8>)> {
        match self.events.pop_front()? {
            Event::Packet { from, packet } => Some((from, packet)),
            other => panic!("{other:?}"),
        }
    }

    fn status(&self) -> CodingStatus {
        self.engine.coding(self.now).unwrap()
    }
}

/// Returns nodes 1, 2 and 3. Node 2 has received a packet of node 1 for node 3, and one of node 3
/// for node 1.
fn crossing(settings: &str) -> [Bench; 3] {
    let mut nodes = [1, 2, 3].map(|me| Bench::new(me, settings));
    nodes[0].send(3, b"from one to three").unwrap();
    nodes[2].send(1, b"from three").unwrap();
    for sender in [0, 2] {
        let sent = nodes[sender].transmit().unwrap();
        nodes[1].handle(sender as u16 + 1, sent.kind, &sent.body);
    }
    nodes
}
