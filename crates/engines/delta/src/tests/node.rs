//! One node whose neighbours are played by the test, honest and not.

use crate::engine::{Delta, ID};
use crate::frame::{DATA, Data, Have, Head, REPORT, State};
use crate::{DeltaConfig, NAME};
use ncmesh_engine::counters::{Counters, DropReason};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::stream::Deadline;
use ncmesh_engine::stream::{StreamStatus, UtilityConfig};
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::coder::pack;
use ncmesh_engine::toolkit::hop::Handled;
use ncmesh_engine::toolkit::live::{ANNOUNCEMENT, Announcement, Contents, Timed};
use ncmesh_engine::topology::Topology;
use ncmesh_engine::{Context, Engine, Event, Frame, StreamEngine, TxReport, TxResult, rng};
use ncmesh_wire::{FlowId, NodeId, StartId};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

pub(super) const FLOW: FlowId = FlowId { source: NodeId(1), serial: 7 };
pub(super) const MTU: usize = 1400;

pub(super) fn announcement() -> Timed {
    let layers = vec!["base".to_owned(), "enh".to_owned()];
    let contents = Contents { group: "tv".into(), layers, sent: vec![3, 4] };
    Announcement { flow: FLOW, version: 1, terms: Deadline { ms: 1000 }, contents }
}

/// Returns a layer of which all packets before `needs` are there.
pub(super) fn has(needs: u32) -> Have {
    Have { oldest: 0, needs, map: Vec::new() }
}

/// Returns the state of a node that has handled frame `handled` of its parent just now.
pub(super) fn state(parent: u16, receivers: u16, handled: u16, layers: [Have; 2]) -> State {
    State {
        flow: FLOW,
        number: handled,
        parent: NodeId(parent),
        receivers,
        feeds: false,
        wants: 0b11,
        lag: 0,
        handled: Handled { number: handled, ago: Duration::ZERO },
        heard: 0,
        layers: Vec::from(layers),
    }
}

/// A data frame as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sent {
    pub head: Head,
    pub symbol: Vec<u8>,
}

impl Sent {
    /// Returns the layer, the first packet and how many the combination spans.
    pub(super) fn packets(&self) -> [u32; 3] {
        let width = 1 + self.head.coefficients.len() as u32;
        [self.head.layer.into(), self.head.first, width]
    }
}

/// Node 2 of a mesh in which 1 reaches 3, 4 and 5 through it. The test plays its neighbours.
pub(super) struct Node {
    pub(super) engine: Delta,
    pub(super) topology: Topology,
    pub(super) counters: Counters,
    pub(super) events: VecDeque<Event>,
    pub(super) rng: ChaCha8Rng,
    pub(super) now: Instant,
    /// Number of the next frame of the source.
    number: u16,
}

impl Node {
    pub(super) fn new() -> Self {
        let links = [(1, 2, 1.0), (2, 3, 1.0), (2, 4, 1.0), (2, 5, 0.5)];
        Self {
            engine: Delta::new(DeltaConfig::default()),
            topology: symmetric(&links),
            counters: Counters::default(),
            events: VecDeque::new(),
            rng: rng::stream(1, NodeId(2), NAME, "test"),
            now: Instant::from_nanos(1_000_000_000),
            number: 0,
        }
    }

    /// Returns a node that knows the stream, and has 3 for its next hop.
    pub(super) fn relay() -> Self {
        let mut node = Self::new();
        node.announce();
        node.report(3, &state(2, 1, 0, [has(0), has(0)]));
        node
    }

    pub(super) fn with<R>(&mut self, call: impl FnOnce(&mut Delta, &mut Context<'_>) -> R) -> R {
        let mut cx = Context {
            now: self.now,
            me: NodeId(2),
            epoch: 1,
            mtu: MTU,
            at: ncmesh_engine::At::ONLY,
            topology: &self.topology,
            rng: &mut self.rng,
            counters: &mut self.counters,
            events: &mut self.events,
            storage: &mut MemoryStorage::default(),
        };
        call(&mut self.engine, &mut cx)
    }

    pub(super) fn join(&mut self) {
        let utility = UtilityConfig { name: "linear".into(), ..UtilityConfig::default() };
        self.with(|engine, cx| engine.join(cx, "tv", utility)).unwrap();
    }

    pub(super) fn handle_frame(&mut self, sender: u16, kind: u8, body: &[u8]) {
        let frame = Frame { sender: NodeId(sender), start: StartId(1), service: ID, kind, body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    /// Handles node 1's announcement of [`FLOW`].
    pub(super) fn announce(&mut self) {
        self.announce_as(1, &announcement());
    }

    pub(super) fn announce_as(&mut self, sender: u16, announcement: &Timed) {
        let mut body = Vec::new();
        announcement.write(&mut body);
        self.handle_frame(sender, ANNOUNCEMENT, &body);
    }

    pub(super) fn report(&mut self, sender: u16, state: &State) {
        let mut body = Vec::new();
        state.write(&mut body);
        self.handle_frame(sender, REPORT, &body);
    }

    /// Handles a packet from the source.
    pub(super) fn data(&mut self, layer: u8, first: u32) {
        self.data_asking(layer, first, &[]);
    }

    /// Handles a packet from the source that asks nodes.
    pub(super) fn data_asking(&mut self, layer: u8, first: u32, asked: &[u16]) {
        self.number += 1;
        let head = Head {
            state: State {
                wants: 0,
                number: self.number,
                ..state(1, 1, 0, [has(first + 1), has(first + 1)])
            },
            asked: asked.iter().map(|node| NodeId(*node)).collect(),
            layer,
            first,
            age_of_first: 0,
            age_of_last: 0,
            coefficients: Vec::new(),
        };
        let symbol = pack(&[first as u8; 100]);
        let mut body = Vec::new();
        Data { head, symbol: &symbol }.write(&mut body);
        self.handle_frame(1, DATA, &body);
    }

    /// Returns the number of the last frame that it sent of [`FLOW`].
    pub(super) fn last_number(&self) -> u16 {
        self.engine.streams.known[&FLOW].number
    }

    /// Lets time pass, then runs its timers.
    pub(super) fn wait(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.with(Engine::handle_timeout);
    }

    /// Grants it the channel, and lets the frame take half a millisecond. Returns its kind and
    /// body.
    pub(super) fn fill(&mut self) -> Option<(u8, Vec<u8>)> {
        let offered = self.engine.offer(self.now).is_some();
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out));
        assert_eq!(filled.is_some(), offered);
        let filled = filled?;
        assert!(out.len() <= MTU, "{}", out.len());
        let airtime = Duration::from_micros(500);
        self.now = self.now + airtime;
        let report = TxReport { result: TxResult::Sent, airtime, heard_by: None };
        self.with(|engine, cx| engine.handle_tx_report(cx, report));
        Some((filled.kind, out))
    }

    /// Returns the next data frame that it sends now; other frames are skipped.
    pub(super) fn next_data(&mut self) -> Option<Sent> {
        loop {
            let (kind, body) = self.fill()?;
            if kind == DATA {
                let data = Data::parse(&body).unwrap();
                return Some(Sent { head: data.head, symbol: data.symbol.to_vec() });
            }
        }
    }

    /// Returns the next report that it sends now; other frames are skipped.
    pub(super) fn next_report(&mut self) -> Option<State> {
        loop {
            let (kind, body) = self.fill()?;
            if kind == REPORT {
                return Some(State::parse(&body).unwrap());
            }
        }
    }

    /// Returns the packets that were handed up, by their first bytes.
    pub(super) fn received(&mut self) -> Vec<u8> {
        let events = self.events.drain(..);
        let packets = events.filter_map(|event| match event {
            Event::StreamPacket { packet, .. } => Some(packet[0]),
            _ => None,
        });
        packets.collect()
    }

    pub(super) fn status(&self) -> StreamStatus {
        self.engine.streams()[0].clone()
    }

    pub(super) fn dropped(&self, why: DropReason) -> u64 {
        self.counters.dropped(why)
    }
}
