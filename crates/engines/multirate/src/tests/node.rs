//! One node whose neighbours are played by the test, honest and not. Whole meshes:
//! `crates/sim/tests/it/streams.rs`.

use crate::engine::{ID, Multirate};
use crate::frame::{DATA, DataHeader, REPORT, ReportEntry};
use crate::{MultirateConfig, NAME};
use ncmesh_engine::counters::{Counters, DropReason};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::live::{ANNOUNCEMENT, Announcement, Contents, Untimed};
use ncmesh_engine::topology::Topology;
use ncmesh_engine::{Context, Engine, Event, Frame, TxReport, TxResult, rng};
use ncmesh_wire::{FlowId, NodeId, StartId};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

pub(super) const FLOW: FlowId = FlowId { source: NodeId(1), serial: 7 };

pub(super) fn announcement() -> Untimed {
    let layers = ["base".to_owned(), "enh".to_owned()];
    announcement_of(1, &layers, &[3, 4])
}

pub(super) fn announcement_of(version: u32, layers: &[String], sent: &[u32]) -> Untimed {
    let contents = Contents { group: "tv".into(), layers: layers.to_vec(), sent: sent.to_vec() };
    Announcement { flow: FLOW, version, terms: (), contents }
}

pub(super) fn header() -> DataHeader {
    DataHeader { next: NodeId(2), flow: FLOW, layer: 1, seq: 5, hops: 9 }
}

pub(super) fn entry(parent: u16, receivers: u16, backlog: f32) -> ReportEntry {
    ReportEntry { flow: FLOW, parent: NodeId(parent), receivers, backlog, pressure: 0.0 }
}

/// Returns the utility of this name with its default settings.
pub(super) fn utility(name: &str) -> UtilityConfig {
    UtilityConfig { name: name.into(), ..UtilityConfig::default() }
}

/// Returns settings of slots of 100 ms and queues of V theta = 40 packets.
pub(super) fn config() -> MultirateConfig {
    MultirateConfig {
        v: 10.0,
        mu_max: 10,
        a_max: 10,
        slot_ms: 100,
        report_ms: 1000,
        epsilon: Some(2.0),
        ..MultirateConfig::default()
    }
}

/// Node 2 of a mesh in which 1 reaches 3, 4 and 5 through it. The test plays its neighbours.
pub(super) struct Node {
    pub(super) engine: Multirate,
    pub(super) topology: Topology,
    pub(super) counters: Counters,
    pub(super) events: VecDeque<Event>,
    pub(super) rng: ChaCha8Rng,
    pub(super) now: Instant,
}

impl Node {
    pub(super) fn new(config: MultirateConfig) -> Self {
        let links = [(1, 2, 1.0), (2, 3, 1.0), (2, 4, 1.0), (2, 5, 0.5)];
        Self {
            engine: Multirate::new(config).unwrap(),
            topology: symmetric(&links),
            counters: Counters::default(),
            events: VecDeque::new(),
            rng: rng::stream(1, NodeId(2), NAME, "test"),
            now: Instant::from_nanos(1_000_000_000),
        }
    }

    pub(super) fn with<R>(
        &mut self,
        call: impl FnOnce(&mut Multirate, &mut Context<'_>) -> R,
    ) -> R {
        let mut cx = Context {
            now: self.now,
            me: NodeId(2),
            epoch: 1,
            mtu: 1400,
            at: ncmesh_engine::At::ONLY,
            topology: &self.topology,
            rng: &mut self.rng,
            counters: &mut self.counters,
            events: &mut self.events,
            storage: &mut MemoryStorage::default(),
        };
        call(&mut self.engine, &mut cx)
    }

    pub(super) fn handle_frame(&mut self, sender: u16, kind: u8, body: &[u8]) {
        let frame = Frame { sender: NodeId(sender), start: StartId(1), service: ID, kind, body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    /// Handles node 1's announcement of [`FLOW`].
    pub(super) fn announce(&mut self) {
        let mut body = Vec::new();
        announcement().write(&mut body);
        self.handle_frame(1, ANNOUNCEMENT, &body);
    }

    /// Handles a report of one entry.
    pub(super) fn report(&mut self, sender: u16, entry: ReportEntry) {
        let mut body = Vec::new();
        entry.write(&mut body);
        self.handle_frame(sender, REPORT, &body);
    }

    /// Handles a packet of [`FLOW`].
    pub(super) fn data(&mut self, sender: u16, layer: u8, seq: u32) {
        let mut body = Vec::new();
        DataHeader { layer, seq, ..header() }.write(&mut body);
        body.extend_from_slice(&[layer; 100]);
        self.handle_frame(sender, DATA, &body);
    }

    /// Lets time pass, then runs its timers.
    pub(super) fn wait(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.with(Engine::handle_timeout);
    }

    /// Returns the next data frame that it sends; other frames are skipped.
    pub(super) fn next_data(&mut self) -> Option<DataHeader> {
        loop {
            let (kind, body) = self.fill()?;
            if kind == DATA {
                let report = TxReport {
                    result: TxResult::Acked,
                    airtime: Duration::from_micros(500),
                    heard_by: None,
                };
                self.with(|engine, cx| engine.handle_tx_report(cx, report));
                return Some(DataHeader::parse(&body).unwrap().0);
            }
        }
    }

    /// Grants it the channel. Returns the kind and the body of the frame that it sends.
    pub(super) fn fill(&mut self) -> Option<(u8, Vec<u8>)> {
        let offered = self.engine.offer(self.now).is_some();
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out));
        assert_eq!(filled.is_some(), offered);
        Some((filled?.kind, out))
    }

    /// Returns the next report that it sends; other frames are skipped.
    pub(super) fn next_report(&mut self) -> Option<Vec<ReportEntry>> {
        loop {
            let (kind, body) = self.fill()?;
            if kind == REPORT {
                return Some(ReportEntry::parse_all(&body).unwrap());
            }
        }
    }

    pub(super) fn dropped(&self, why: DropReason) -> u64 {
        self.counters.dropped(why)
    }
}
