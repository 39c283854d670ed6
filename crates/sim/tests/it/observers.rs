//! Observers of a simulation: the events that they get, and the files that they write.

use ncmesh_engine::counters::Tally;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_medium::TxResult;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{
    Capture, CapturePoints, Event, EventLines, Observer, Part, RunError, Simulation,
    SimulationConfig, What, node_id, run,
};
use ncmesh_wire::{NodeId, ServiceId};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::rc::Rc;

/// Output that the test can read after the observer that wrote it is dropped.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn diamond() -> Scenario {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/diamond.toml");
    let mut scenario = Scenario::load(file.as_ref()).unwrap();
    scenario.set("traffic.size=20kB").unwrap();
    scenario
}

fn mesh(sealed: bool) -> Simulation {
    let config = SimulationConfig::from_scenario(&diamond()).unwrap();
    Simulation::new(SimulationConfig { sealed, ..config }).unwrap()
}

/// Lets the mesh measure its links for 10 s, sends a file and runs for another 20 s.
fn carry(s: &mut Simulation) {
    s.run_for(Duration::from_secs(10));
    s.send_file("pacifier", 0, Some(&[3]), vec![7; 20_000]).unwrap();
    s.run_for(Duration::from_secs(20));
}

type Tallies = Vec<BTreeMap<(ServiceId, u8), Tally>>;

/// Counts frames sent and heard by node, service and kind.
struct Counts {
    config: SimulationConfig,
    sent: Tallies,
    heard: Tallies,
}

impl Observer for Counts {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        let (frame, tallies) = match event.what {
            What::Sent { frame, .. } => (frame, &mut self.sent),
            What::Heard { frame, .. } => (frame, &mut self.heard),
            _ => return Ok(()),
        };
        let mut scratch = Vec::new();
        let opened = self.config.cipher().open(frame, &mut scratch).unwrap();
        let tally = tallies[event.node].entry((opened.service, opened.kind)).or_default();
        tally.frames += 1;
        tally.bytes += frame.len() as u64;
        Ok(())
    }
}

#[test]
fn events_agree_with_the_counters_of_every_node() {
    for sealed in [true, false] {
        let mut s = mesh(sealed);
        let none: Tallies = vec![BTreeMap::new(); s.len()];
        let config = s.config().clone();
        let counts = Rc::new(RefCell::new(Counts { config, sent: none.clone(), heard: none }));
        s.observe(Box::new(Rc::clone(&counts)));
        carry(&mut s);
        for node in 0..s.len() {
            let counters = s.host(node).stack().unwrap().counters();
            assert_eq!(counts.borrow().sent[node], counters.all_sent().collect());
            assert_eq!(counts.borrow().heard[node], counters.all_heard().collect());
        }
        assert!(counts.borrow().heard[3][&(ServiceId(16), 1)].frames > 0);
    }
}

#[test]
fn the_time_of_parts_is_measured_without_changing_the_run() {
    let config = SimulationConfig::from_scenario(&diamond()).unwrap();
    let mut timed =
        Simulation::new(SimulationConfig { time_parts: true, ..config.clone() }).unwrap();
    carry(&mut timed);
    let mut untimed = Simulation::new(config).unwrap();
    carry(&mut untimed);
    assert_eq!(timed.trace_hash(), untimed.trace_hash());
    assert!(untimed.time_spent().is_none());

    let parts = timed.time_spent().unwrap().parts();
    let runs = |part| parts.iter().find(|spent| spent.part == part).map_or(0, |spent| spent.runs);
    for service in [ServiceId(0), ServiceId(16)] {
        let heard = |node| timed.host(node).stack().unwrap().counters().all_heard();
        let heard = (0..timed.len()).flat_map(heard).filter(|((of, _), _)| *of == service);
        let heard: u64 = heard.map(|(_, tally)| tally.frames).sum();
        assert_eq!(runs(Part::Heard(service)), heard, "{service:?}");
        assert!(runs(Part::Written(service)) > 0);
    }
    assert!(runs(Part::Medium) > 0 && runs(Part::Timers) > 0);
    assert!(parts.is_sorted_by(|a, b| a.time >= b.time));
}

#[test]
fn observers_do_not_change_a_run_and_one_seed_gives_one_file() {
    let traced = || {
        let mut s = mesh(true);
        let pcap = Shared::default();
        let events = Shared::default();
        let points = CapturePoints::Nodes(BTreeSet::from([1, 3]));
        let capture = Capture::new(pcap.clone(), s.config(), &points).unwrap();
        s.observe(Box::new(capture));
        s.observe(Box::new(EventLines::new(events.clone(), s.config())));
        carry(&mut s);
        s.finish().unwrap();
        (s.trace_hash(), pcap.0.take(), events.0.take())
    };
    let mut alone = mesh(true);
    carry(&mut alone);
    let first = traced();
    let again = traced();
    assert_eq!(first.0, alone.trace_hash());
    assert!(first.1.len() > 20_000 && first.2.len() > 20_000);
    assert!(first == again);
}

#[test]
fn each_line_is_an_event() {
    let mut s = mesh(true);
    let out = Shared::default();
    s.observe(Box::new(EventLines::new(out.clone(), s.config())));
    carry(&mut s);
    let text = String::from_utf8(out.0.take()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |kind: &str| lines.iter().filter(|l| l["kind"] == kind).count() as u64;
    assert_eq!(count("sent") + count("heard") + count("reported"), s.trace_events());
    let happened: Vec<_> = ["delivered", "receiver_done", "send_ended"].map(count).into();
    assert_eq!(happened, [1, 1, 1]);
    assert_eq!(lines.len() as u64, s.trace_events() + 3);
    assert!(lines.is_sorted_by_key(|l| l["time_ns"].as_u64()));
}

/// An observer that fails at event number `at`.
struct Failing {
    at: u32,
    observed: u32,
}

impl Observer for Failing {
    fn observe(&mut self, _: &Event<'_>) -> io::Result<()> {
        self.observed += 1;
        if self.observed < self.at { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }
}

#[test]
fn an_observer_that_fails_ends_the_run_at_once() {
    // While links are measured, and during the transfer.
    for at in [10, 400] {
        let scenario = diamond();
        let failing = Rc::new(RefCell::new(Failing { at, observed: 0 }));
        let config = SimulationConfig::from_scenario(&scenario).unwrap();
        let limit = Duration::from_secs(1_000_000);
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(Rc::clone(&failing))];
        let failed =
            run(&scenario, config, "pacifier", limit, observers, |_| ControlFlow::Continue(()))
                .unwrap_err();
        assert!(
            matches!(&failed, RunError::Observer(e) if e.kind() == io::ErrorKind::StorageFull),
            "{failed}"
        );
        assert_eq!(failing.borrow().observed, at, "it got another event after it failed");
    }
}

/// A disk with space for the given number of bytes.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_is_full_when_buffers_are_flushed_is_an_error() {
    let mut s = mesh(true);
    let buffered = io::BufWriter::with_capacity(1 << 24, Disk(10_000));
    s.observe(Box::new(EventLines::new(buffered, s.config())));
    carry(&mut s);
    assert!(!s.is_stopped());
    assert_eq!(s.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_capture_needs_nodes_that_exist() {
    let points = CapturePoints::Nodes(BTreeSet::from([4]));
    let refused = Capture::new(Vec::new(), mesh(true).config(), &points).err().unwrap();
    assert_eq!(refused.to_string(), "no node 4 to capture at: there are 4, from 0");
}

#[test]
fn ids_without_a_node_are_written_as_numbers() {
    let s = mesh(true);
    let out = Shared::default();
    let mut lines = EventLines::new(out.clone(), s.config());
    let mut capture = Capture::new(io::sink(), s.config(), &CapturePoints::Senders).unwrap();
    for (to, written) in [(node_id(1), "r1"), (NodeId(0), "0"), (NodeId(700), "700")] {
        let what = What::Sent { channel: 0, to: Some(to), frame: &[0xC2; 9] };
        let event = Event { at: Instant::from_nanos(5), node: 0, what };
        lines.observe(&event).unwrap();
        capture.observe(&event).unwrap();
        let line: Value = serde_json::from_slice(&out.0.take()).unwrap();
        let expected = serde_json::json!({
            "time_ns": 5, "node": "s", "kind": "sent", "sender": "s", "to": written, "length": 9,
        });
        assert_eq!(line, expected);
    }
    let result = TxResult::Failed;
    let what = What::Reported { channel: 0, result, attempts: 7, airtime_ns: 9 };
    lines.observe(&Event { at: Instant::from_nanos(6), node: 2, what }).unwrap();
    let line: Value = serde_json::from_slice(&out.0.take()).unwrap();
    let expected = serde_json::json!({
        "time_ns": 6,
        "node": "r2",
        "kind": "reported",
        "result": "failed",
        "attempts": 7,
        "airtime_ns": 9,
    });
    assert_eq!(line, expected);
}
