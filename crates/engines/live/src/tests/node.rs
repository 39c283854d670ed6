//! One node whose neighbours are played by the test, honest and not.

use crate::LiveConfig;
use crate::engine::{Live, Rule, SMF_ID, STREAM_TREE_ID};
use crate::frame::{DATA, Data, Got, Header, REPORT, Report};
use ncmesh_engine::counters::{Counters, DropReason};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::stream::Deadline;
use ncmesh_engine::stream::{StreamStatus, UtilityConfig};
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::live::{ANNOUNCEMENT, Announcement, Contents, Timed};
use ncmesh_engine::topology::Topology;
use ncmesh_engine::{Context, Engine, Event, Filled, Frame, StreamEngine, TxReport, TxResult, rng};
use ncmesh_wire::{FlowId, NodeId, StartId};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

pub(super) const FLOW: FlowId = FlowId { source: NodeId(1), serial: 7 };
const MTU: usize = 1400;

pub(super) fn announcement() -> Timed {
    let layers = vec!["base".to_owned(), "enh".to_owned()];
    let contents = Contents { group: "tv".into(), layers, sent: vec![3, 4] };
    Announcement { flow: FLOW, version: 1, terms: Deadline { ms: 1000 }, contents }
}

pub(super) fn report(parent: u16, receivers: u16, base: Got) -> Report {
    let layers = vec![base, Got::default()];
    Report { flow: FLOW, parent: NodeId(parent), receivers, layers }
}

/// Returns a layer of which `end` packets came.
pub(super) fn got(end: u32) -> Got {
    Got { end, before: u64::MAX }
}

/// A data frame as it was sent: layer, number and addressee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sent {
    pub layer: u8,
    pub number: u32,
    pub to: Option<u16>,
}

/// Node 2 of a mesh in which 1 reaches 3, 4 and 5 through it. The test plays its neighbours.
pub(super) struct Node {
    engine: Live,
    rule: Rule,
    topology: Topology,
    counters: Counters,
    events: VecDeque<Event>,
    rng: ChaCha8Rng,
    now: Instant,
    /// Outcome of packets by unicast.
    pub(super) acks: bool,
}

impl Node {
    pub(super) fn new(rule: Rule) -> Self {
        let links = [(1, 2, 1.0), (2, 3, 1.0), (2, 4, 1.0), (2, 5, 0.5)];
        let mut node = Self {
            engine: Live::new(rule, LiveConfig::default()),
            rule,
            topology: symmetric(&links),
            counters: Counters::default(),
            events: VecDeque::new(),
            rng: rng::stream(1, NodeId(2), "live", "test"),
            now: Instant::from_nanos(1_000_000_000),
            acks: true,
        };
        node.announce(&announcement());
        node
    }

    pub(super) fn with<R>(&mut self, call: impl FnOnce(&mut Live, &mut Context<'_>) -> R) -> R {
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
        let service = if self.rule == Rule::Tree { STREAM_TREE_ID } else { SMF_ID };
        let sender = NodeId(sender);
        let frame = Frame { sender, start: StartId(1), service, kind, body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    pub(super) fn announce(&mut self, announcement: &Timed) {
        let mut body = Vec::new();
        announcement.write(&mut body);
        self.handle_frame(1, ANNOUNCEMENT, &body);
    }

    pub(super) fn report(&mut self, sender: u16, report: &Report) {
        let mut body = Vec::new();
        report.write(&mut body);
        self.handle_frame(sender, REPORT, &body);
    }

    /// Handles a packet of a neighbour, `age_ms` old.
    pub(super) fn data(&mut self, sender: u16, layer: usize, number: u32, age_ms: u64) {
        let header = Header::new(FLOW, layer, number, Duration::from_millis(age_ms));
        let mut body = Vec::new();
        Data { header, packet: &[number as u8; 100] }.write(&mut body);
        self.handle_frame(sender, DATA, &body);
    }

    /// Lets time pass, then runs its timers.
    pub(super) fn wait(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.with(Engine::handle_timeout);
    }

    /// Grants it the channel, and lets the frame take half a millisecond.
    fn fill(&mut self) -> Option<(Filled, Vec<u8>)> {
        let offered = self.engine.offer(self.now).is_some();
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out));
        assert_eq!(filled.is_some(), offered);
        let filled = filled?;
        assert!(out.len() <= MTU, "{}", out.len());
        let airtime = Duration::from_micros(500);
        self.now = self.now + airtime;
        let result = match filled.to {
            None => TxResult::Sent,
            Some(_) if self.acks => TxResult::Acked,
            Some(_) => TxResult::Failed,
        };
        let report = TxReport { result, airtime, heard_by: None };
        self.with(|engine, cx| engine.handle_tx_report(cx, report));
        Some((filled, out))
    }

    /// Returns the next packet that it sends now; other frames are skipped.
    pub(super) fn next_data(&mut self) -> Option<Sent> {
        loop {
            let (Filled { kind, to }, body) = self.fill()?;
            if kind == DATA {
                let Header { layer, number, .. } = Data::parse(&body).unwrap().header;
                return Some(Sent { layer, number, to: to.map(|node| node.0) });
            }
        }
    }

    /// Returns the next report that it sends now; other frames are skipped.
    pub(super) fn next_report(&mut self) -> Option<Report> {
        loop {
            let (filled, body) = self.fill()?;
            if filled.kind == REPORT {
                return Some(Report::parse(&body).unwrap());
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

    pub(super) fn streams(&self) -> Vec<StreamStatus> {
        self.engine.streams()
    }

    pub(super) fn dropped(&self, why: DropReason) -> u64 {
        self.counters.dropped(why)
    }
}
