//! Tests of the engine at one node. Whole meshes are tested with the other tunnels, and in
//! `core_nc` of the workspace's tests.
//!
//! Most tests use the cross: flows from 1 to 4 and from 2 to 5 through relay 3. Node 4 overhears
//! node 2, and node 5 overhears node 1.

mod config;
mod copies_of_feedback;
mod frames;
mod links_and_regions;
mod receiving;
mod relaying;
mod sending;

use crate::frame::{DataFrame, GenerationHeader, GenerationId, Part};
use crate::generation::unit_vector;
use crate::{Core, CoreConfig, NAME};
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::coder::symbol_of;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::topology::Topology;
use ncmesh_engine::tunnel::DATA;
use ncmesh_engine::{Context, Engine, Event, Frame};
use ncmesh_wire::{NodeId, StartId};
use std::collections::VecDeque;

/// Length of the symbols, bytes.
const SYMBOL_SIZE: u16 = 40;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn instance(source: u16, destination: u16) -> FlowInstance {
    FlowInstance { source: NodeId(source), destination: NodeId(destination), incarnation: 1 }
}

fn generation_id(source: u16, destination: u16, number: u32) -> GenerationId {
    GenerationId { flow: instance(source, destination), number }
}

/// Returns the header of generation 0 of a flow. It has two packets, and is closed.
fn header(source: u16, destination: u16) -> GenerationHeader {
    GenerationHeader {
        id: generation_id(source, destination, 0),
        older_open: 0,
        generation_size: 4,
        count: 2,
        closed: true,
        symbol_size: SYMBOL_SIZE,
    }
}

/// Returns the header of another generation of the same flow, none of which is given up.
fn numbered(number: u32, header: GenerationHeader) -> GenerationHeader {
    let older_open = number as u8;
    GenerationHeader { id: GenerationId { number, ..header.id }, older_open, ..header }
}

fn part(header: GenerationHeader, next_hop: u16, vector: [u8; 4]) -> Part {
    Part { header, next_hop: NodeId(next_hop), vector: vector.to_vec() }
}

/// Returns the coding vector of one packet of a generation of four.
fn unit(position: u8) -> [u8; 4] {
    unit_vector(4, position).try_into().unwrap()
}

/// Returns a frame with one flow.
fn alone(serial: u16, first: Part, payload: &[u8]) -> DataFrame<'_> {
    DataFrame { serial, first, second: None, payload }
}

/// Returns a frame with two flows.
fn combined(serial: u16, first: Part, second: Part, payload: &[u8]) -> DataFrame<'_> {
    DataFrame { serial, first, second: Some(second), payload }
}

/// Returns the symbol of the packet at a position of a flow's generation.
fn symbol(flow: u8, position: u8) -> Vec<u8> {
    symbol_of(&packet(flow, position), usize::from(SYMBOL_SIZE))
}

/// Returns the packet itself.
fn packet(flow: u8, position: u8) -> Vec<u8> {
    vec![flow, position, 7, 7, 7]
}

fn xor(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(a, b)| a ^ b).collect()
}

/// Returns the cross, with these deliveries to and from the relay, and from node 2 to 4 and 1 to 5.
fn cross(direct: f64, overheard: [f64; 2]) -> Topology {
    let mut links = vec![(2, 4, overheard[0]), (1, 5, overheard[1])];
    for node in [1, 2, 4, 5] {
        links.push((node, 3, direct));
    }
    symmetric(&links)
}

/// A node of the cross.
struct TestNode {
    engine: Core,
    me: NodeId,
    topology: Topology,
    counters: Counters,
    events: VecDeque<Event>,
    now: Instant,
}

impl TestNode {
    fn new(me: u16, engine: Core) -> Self {
        let topology = cross(0.9, [0.9, 0.9]);
        let counters = Counters::default();
        let events = VecDeque::new();
        Self { engine, me: NodeId(me), topology, counters, events, now: at(1000) }
    }

    fn core(me: u16) -> Self {
        Self::new(me, Core::new(&CoreConfig::default()))
    }

    fn with<R>(&mut self, call: impl FnOnce(&mut Core, &mut Context<'_>) -> R) -> R {
        let mut cx = Context {
            now: self.now,
            me: self.me,
            epoch: 1,
            mtu: 1400,
            at: ncmesh_engine::At::ONLY,
            topology: &self.topology,
            rng: &mut rng::stream(1, self.me, NAME, "test"),
            counters: &mut self.counters,
            events: &mut self.events,
            storage: &mut MemoryStorage::default(),
        };
        call(&mut self.engine, &mut cx)
    }

    fn receive(&mut self, sender: u16, kind: u8, write: impl Fn(&mut Vec<u8>)) {
        let mut body = Vec::new();
        write(&mut body);
        let sender = NodeId(sender);
        let service = self.engine.id;
        let frame = Frame { sender, start: StartId(1), service, kind, body: &body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    fn receive_data(&mut self, sender: u16, data: &DataFrame<'_>) {
        self.receive(sender, DATA, |body| data.write(body));
    }

    /// Receives both packets of a generation of the flow from `source`, from the source itself.
    fn receive_generation(&mut self, header: GenerationHeader, next_hop: u16, source: u8) {
        for position in [0, 1] {
            let payload = symbol(source, position);
            let part = part(header, next_hop, unit(position));
            self.receive_data(source.into(), &alone(u16::from(position) + 1, part, &payload));
        }
    }

    fn fill(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out))?;
        Some((filled.kind, out))
    }

    /// Returns the packets handed up since the last call.
    fn delivered(&mut self) -> Vec<Vec<u8>> {
        let packet = |event| match event {
            Event::Packet { packet, .. } => Some(packet),
            _ => None,
        };
        self.events.drain(..).filter_map(packet).collect()
    }
}
