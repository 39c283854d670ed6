//! Frames by their bytes; one node among neighbours that are played by hand, honest and not. Whole meshes:
//! `crates/sim/tests/streams.rs`.

use super::engine::{ID, MAX_CHILDREN, MAX_SESSIONS, Multirate};
use super::frame::{ANNOUNCEMENT, Announcement, DATA, Entry, Header, REPORT};
use super::*;
use ncmesh_engine::StreamEngine;
use ncmesh_engine::counters::{Counters, DropReason};
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::stream::{StreamError, StreamPacketError, Trouble};
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Topology;
use ncmesh_engine::{Context, Engine, Event, Frame, TxReport, TxResult};
use ncmesh_wire::{FlowId, NodeId};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

const FLOW: FlowId = FlowId { source: NodeId(1), serial: 7 };

fn announcement() -> Announcement {
    let layers = vec!["base".to_owned(), "enh".to_owned()];
    Announcement { flow: FLOW, version: 1, group: "tv".into(), layers, sent: vec![3, 4] }
}

fn header() -> Header {
    Header { next: NodeId(2), flow: FLOW, layer: 1, seq: 5, hops: 9 }
}

fn entry(parent: u16, receivers: u16, backlog: f32) -> Entry {
    Entry { flow: FLOW, parent: NodeId(parent), receivers, backlog, pressure: 0.0 }
}

/// The golden vectors of docs/wire-format.md.
#[test]
fn golden_frames() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let mut body = Vec::new();
    header().write(&mut body);
    body.extend_from_slice(b"RTP");
    assert_eq!(hex(&body), "0001000000070002010000000509525450");
    assert_eq!(Header::parse(&body), Ok((header(), &b"RTP"[..])));
    for end in 0..=Header::LEN {
        assert!(Header::parse(&body[..end]).is_err(), "{end}");
    }
    body.clear();
    let reported = Entry { pressure: 2.5, ..entry(1, 2, 1.5) };
    reported.write(&mut body);
    assert_eq!(hex(&body), "000100000007000100023fc0000040200000");
    assert_eq!(Entry::parse_all(&body), Ok(vec![reported]));
    assert!(Entry::parse_all(&body[1..]).is_err() && Entry::parse_all(&[]).is_err());
    body.clear();
    announcement().write(&mut body);
    assert_eq!(hex(&body), "0001000000070000000102027476046261736503656e680000000300000004");
    assert_eq!(body.len(), announcement().len());
    assert_eq!(Announcement::parse(&body), Ok(announcement()));
    for end in 0..body.len() {
        assert!(Announcement::parse(&body[..end]).is_err(), "{end}");
    }
}

#[test]
fn frames_that_contradict_themselves_are_malformed() {
    let data = |header: Header| {
        let mut body = Vec::new();
        header.write(&mut body);
        body.push(1);
        Header::parse(&body).map(drop)
    };
    assert!(data(Header { hops: 0, ..header() }).is_err());
    assert!(data(Header { layer: 4, ..header() }).is_err());
    for endless in [f32::NAN, f32::INFINITY] {
        for entry in [entry(1, 1, endless), Entry { pressure: endless, ..entry(1, 1, 0.0) }] {
            let mut body = Vec::new();
            entry.write(&mut body);
            assert!(Entry::parse_all(&body).is_err());
        }
    }
    let names = |group: &str, layers: &[&str]| {
        let mut body = Vec::new();
        let layers: Vec<String> = layers.iter().map(|&name| name.to_owned()).collect();
        let sent = vec![0; layers.len()];
        Announcement { group: group.into(), layers, sent, ..announcement() }.write(&mut body);
        Announcement::parse(&body).map(drop)
    };
    assert_eq!(names("tv", &[]), Ok(()));
    assert!(names("t v", &["a"]).is_err() && names("", &["a"]).is_err());
    assert!(names("tv", &["a", "a"]).is_err() && names("tv", &["\u{202e}"]).is_err());
    assert!(names("tv", &["a", "b", "c", "d", "e"]).is_err());
}

proptest! {
    #[test]
    fn parsing_never_panics(body in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut again = Vec::new();
        if let Ok((header, packet)) = Header::parse(&body) {
            header.write(&mut again);
            again.extend_from_slice(packet);
            prop_assert_eq!(&again, &body);
        }
        again.clear();
        if let Ok(entries) = Entry::parse_all(&body) {
            entries.iter().for_each(|entry| entry.write(&mut again));
            prop_assert_eq!(&again, &body);
        }
        again.clear();
        if let Ok(announcement) = Announcement::parse(&body) {
            announcement.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
    }
}

/// Node 2 of a mesh in which 1 reaches 3, 4 and 5 through it.
struct Bench {
    engine: Multirate,
    topology: Topology,
    counters: Counters,
    events: VecDeque<Event>,
    rng: ChaCha8Rng,
    now: Instant,
}

impl Bench {
    fn new(config: MultirateConfig) -> Self {
        let links = [(1, 2, 1.0), (2, 3, 1.0), (2, 4, 1.0), (2, 5, 0.5)];
        Self {
            engine: Multirate::new(config).unwrap(),
            topology: symmetric(&links),
            counters: Counters::default(),
            events: VecDeque::new(),
            rng: rng::stream(1, NodeId(2), "multirate", "test"),
            now: Instant::from_nanos(1_000_000_000),
        }
    }

    fn with<R>(&mut self, call: impl FnOnce(&mut Multirate, &mut Context<'_>) -> R) -> R {
        let mut cx = Context {
            now: self.now,
            me: NodeId(2),
            epoch: 1,
            mtu: 1400,
            topology: &self.topology,
            rng: &mut self.rng,
            counters: &mut self.counters,
            events: &mut self.events,
            storage: &mut MemoryStorage::default(),
        };
        call(&mut self.engine, &mut cx)
    }

    fn hear(&mut self, sender: u16, kind: u8, body: &[u8]) {
        let frame = Frame { sender: NodeId(sender), epoch: 1, service: ID, kind, body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    fn announce(&mut self) {
        let mut body = Vec::new();
        announcement().write(&mut body);
        self.hear(1, ANNOUNCEMENT, &body);
    }

    fn report(&mut self, sender: u16, entry: Entry) {
        let mut body = Vec::new();
        entry.write(&mut body);
        self.hear(sender, REPORT, &body);
    }

    fn data(&mut self, sender: u16, layer: u8, seq: u32) {
        let mut body = Vec::new();
        Header { layer, seq, ..header() }.write(&mut body);
        body.extend_from_slice(&[layer; 100]);
        self.hear(sender, DATA, &body);
    }

    fn pass(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
        self.with(Engine::handle_timeout);
    }

    /// The next data frame, other frames left out.
    fn sends(&mut self) -> Option<Header> {
        loop {
            let (kind, body) = self.fill()?;
            if kind == DATA {
                let report = TxReport {
                    result: TxResult::Acked,
                    airtime: Duration::from_micros(500),
                    heard_by: None,
                };
                self.with(|engine, cx| engine.handle_tx_report(cx, report));
                return Some(Header::parse(&body).unwrap().0);
            }
        }
    }

    fn fill(&mut self) -> Option<(u8, Vec<u8>)> {
        let offered = self.engine.offer(self.now).is_some();
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out));
        assert_eq!(filled.is_some(), offered);
        Some((filled?.kind, out))
    }

    /// What the next report says.
    fn reports(&mut self) -> Option<Vec<Entry>> {
        loop {
            let (kind, body) = self.fill()?;
            if kind == REPORT {
                return Some(Entry::parse_all(&body).unwrap());
            }
        }
    }

    fn dropped(&self, why: DropReason) -> u64 {
        self.counters.dropped(why)
    }
}

fn small() -> MultirateConfig {
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

#[test]
fn a_tree_is_made_by_reports_and_packets_go_down_it() {
    let mut bench = Bench::new(small());
    bench.announce();
    assert_eq!(bench.reports(), None);
    bench.report(3, entry(2, 1, 0.0));
    bench.report(4, entry(2, 2, 0.0));
    bench.pass(200);
    let said = bench.reports().unwrap();
    assert_eq!((said.len(), said[0].parent, said[0].receivers), (1, NodeId(1), 3));
    bench.data(1, 0, 0);
    let mut next: Vec<_> = [bench.sends(), bench.sends()].map(|h| h.unwrap().next.0).to_vec();
    next.sort_unstable();
    assert_eq!((next, bench.sends()), (vec![3, 4], None));
    // Both have it; what this node tells is its own queues again.
    bench.pass(1000);
    assert_eq!(bench.reports().unwrap()[0].backlog, 0.0);
    // One chooses another parent, the other leaves.
    bench.report(3, entry(5, 1, 0.0));
    bench.report(4, entry(2, 0, 0.0));
    bench.pass(200);
    assert_eq!(bench.reports().unwrap()[0].receivers, 0);
    bench.data(1, 0, 1);
    assert_eq!(bench.sends(), None);
}

#[test]
fn a_receiver_that_comes_and_goes_within_a_slot_leaves_nothing() {
    let mut bench = Bench::new(small());
    bench.announce();
    let linear = UtilityConfig { name: "linear".into(), ..UtilityConfig::default() };
    bench.with(|e, cx| e.join(cx, "tv", linear)).unwrap();
    assert_eq!(bench.engine.streams()[0].receivers, 1);
    assert!(bench.with(|e, cx| e.leave(cx, "tv")));
    assert!(!bench.with(|e, cx| e.leave(cx, "tv")));
    assert_eq!(bench.engine.streams()[0].receivers, 0);
    // It says three times that it left, then nothing.
    let said: Vec<_> = (0..6)
        .filter_map(|_| {
            bench.pass(200);
            bench.reports()
        })
        .collect();
    assert_eq!(said, vec![vec![entry(1, 0, 0.0)]; 3]);
    // Its parent has not heard: the next packet is answered by saying so again.
    bench.data(1, 0, 0);
    bench.pass(200);
    assert_eq!(bench.reports(), Some(vec![entry(1, 0, 0.0)]));
    assert!(bench.events.is_empty());
}

#[test]
fn the_base_is_served_first_and_the_enhancement_dropped_first() {
    let mut bench = Bench::new(small());
    bench.announce();
    bench.report(3, entry(2, 1, 0.0));
    for seq in 0..30 {
        bench.data(1, 1, seq);
        bench.data(1, 0, seq);
    }
    // V theta is 40 packets: above it, in the slot after, d_max = 20 are dropped.
    bench.pass(100);
    bench.pass(100);
    let queue = &bench.engine.streams()[0].queues[0];
    assert_eq!((queue.held, queue.dropped), ([30, 10, 0, 0], [0, 20, 0, 0]));
    let sent: Vec<u8> = std::iter::from_fn(|| bench.sends()).map(|header| header.layer).collect();
    assert_eq!(sent, [vec![0; 30], vec![1; 10]].concat());
    // The oldest were dropped.
    assert_eq!(bench.engine.streams()[0].queues[0].sent, [30, 10, 0, 0]);
}

#[test]
fn place_holders_stand_for_virtual_pressure() {
    let mut bench = Bench::new(small());
    bench.announce();
    bench.report(3, Entry { pressure: 50.0, ..entry(2, 2, 0.0) });
    bench.report(4, Entry { pressure: 7.0, ..entry(2, 1, 0.0) });
    bench.pass(200);
    // Its parent is told all of it at once, and that no packets are behind it.
    let told = Entry { pressure: 57.0, ..entry(1, 3, 0.0) };
    assert_eq!(bench.reports(), Some(vec![told]));
    // A packet goes at once: what is before it are no packets.
    bench.data(1, 1, 0);
    assert!(bench.sends().is_some() && bench.sends().is_some());
    // With 25 of them, one for each receiver, and 16 packets Q is above V theta = 40.
    (1..17).for_each(|seq| bench.data(1, 1, seq));
    bench.pass(100);
    bench.pass(100);
    let queues = bench.engine.streams()[0].queues.clone();
    let of = |i: usize| (queues[i].place_holders, queues[i].held[1], queues[i].dropped[1]);
    assert_eq!((of(0), of(1)), ((25.0, 0, 16), (7.0, 16, 0)));
}

#[test]
fn a_queue_and_all_of_them_are_bounded_whatever_comes() {
    let mut bench = Bench::new(small());
    bench.announce();
    bench.report(3, entry(2, 1, 0.0));
    for seq in 0..5000 {
        bench.data(1, 1, seq);
    }
    // V theta + 2 d_max (Lemma 2).
    assert_eq!(bench.engine.streams()[0].queues[0].held[1], 80);
    assert_eq!(bench.dropped(DropReason::Full), 4920);
    // The base finds room even so.
    (0..30).for_each(|seq| bench.data(1, 0, seq));
    assert_eq!(bench.engine.streams()[0].queues[0].held, [30, 50, 0, 0]);
}

#[test]
fn lies_do_bounded_harm() {
    let mut bench = Bench::new(small());
    bench.announce();
    bench.report(3, Entry { pressure: 1e30, ..entry(2, u16::MAX, -1e30) });
    let queue = bench.engine.streams()[0].queues[0].clone();
    // No more receivers than nodes, no more urgency than a queue can hold, no more pressure than V theta of each.
    assert_eq!((queue.receivers, queue.downstream, queue.place_holders), (5, -80.0, 40.0));
    bench.report(3, Entry { pressure: -1e30, ..entry(2, 1, 0.0) });
    assert_eq!(bench.engine.streams()[0].queues[0].place_holders, 0.0);
    bench.report(3, entry(2, 1, 1e30));
    assert_eq!(bench.engine.streams()[0].queues[0].downstream, 160.0);
    // One that calls itself full is not served, and its packets are dropped.
    bench.data(1, 0, 0);
    assert_eq!(bench.sends(), None);
    // The parent, and the source, as children of their child: no tree.
    bench.report(1, entry(2, 1, 0.0));
    assert_eq!(bench.dropped(DropReason::Stale), 1);
    // Packets from another than the parent, repeated ones, a layer that there is not, an unknown stream.
    bench.data(3, 0, 1);
    bench.data(1, 0, 0);
    assert_eq!(bench.dropped(DropReason::Stale), 3);
    bench.data(1, 2, 0);
    assert_eq!(bench.dropped(DropReason::Malformed), 1);
    bench.report(3, Entry { flow: FlowId { serial: 8, ..FLOW }, ..entry(2, 1, 0.0) });
    assert_eq!(bench.dropped(DropReason::UnknownFlow), 1);
}

#[test]
fn an_end_that_is_a_lie_is_outdone_by_the_source() {
    let mut bench = Bench::new(small());
    let linear = UtilityConfig { name: "linear".into(), ..UtilityConfig::default() };
    bench.with(|e, cx| e.join(cx, "tv", linear)).unwrap();
    bench.announce();
    let say = |bench: &mut Bench, flow, version, layers: &[String]| {
        let mut body = Vec::new();
        let (layers, sent) = (layers.to_vec(), vec![0; layers.len()]);
        Announcement { flow, version, layers, sent, ..announcement() }.write(&mut body);
        bench.hear(1, ANNOUNCEMENT, &body);
    };
    say(&mut bench, FLOW, 9, &[]);
    assert!(bench.engine.streams().is_empty());
    say(&mut bench, FLOW, 10, &announcement().layers);
    assert_eq!(bench.engine.streams()[0].receivers, 1);
    // Of its own stream: version 1 was the first.
    let own = bench.with(|e, cx| e.open(cx, "own", &announcement().layers)).unwrap();
    say(&mut bench, own, 7, &[]);
    bench.pass(30);
    let said = std::iter::from_fn(|| bench.fill()).filter(|(kind, _)| *kind == ANNOUNCEMENT);
    let versions: Vec<_> = said
        .map(|(_, body)| Announcement::parse(&body).unwrap())
        .filter(|announced| announced.flow == own)
        .map(|announced| (announced.version, announced.layers.len()))
        .collect();
    assert_eq!(versions, [(8, 2)]);
}

#[test]
fn floods_of_streams_and_of_children_are_bounded() {
    let mut bench = Bench::new(small());
    for serial in 0..100 {
        let flow = FlowId { source: NodeId(9), serial };
        let mut body = Vec::new();
        Announcement { flow, ..announcement() }.write(&mut body);
        bench.hear(1, ANNOUNCEMENT, &body);
    }
    assert_eq!(bench.engine.streams().len(), MAX_SESSIONS);
    assert_eq!(bench.dropped(DropReason::Full), 100 - MAX_SESSIONS as u64);
    // Streams that nobody announces any more are forgotten.
    bench.pass(30_000);
    assert_eq!(bench.engine.streams().len(), 0);
    bench.announce();
    for sender in 100..300 {
        bench.report(sender, entry(2, 1, 0.0));
    }
    assert_eq!(bench.engine.streams()[0].queues.len(), MAX_CHILDREN);
}

#[test]
fn a_silent_child_goes_and_an_empty_queue_too() {
    let mut bench = Bench::new(small());
    bench.announce();
    bench.report(3, entry(2, 1, 0.0));
    bench.data(1, 0, 0);
    for _ in 0..49 {
        bench.pass(100);
    }
    assert_eq!(bench.engine.streams()[0].queues.len(), 1);
    bench.pass(100);
    assert_eq!(bench.engine.streams()[0].queues.len(), 0);
    // Nobody takes the stream now: slots stop.
    bench.pass(100);
    let next = bench.engine.poll_timeout(bench.now).unwrap();
    assert!(next.since(bench.now) > Duration::from_secs(1), "{next:?}");
}

#[test]
fn the_radio_serves_rate_times_backlog_and_cables_go_beside_it() {
    let mut bench = Bench::new(small());
    bench.announce();
    bench.report(3, entry(2, 1, 0.0));
    bench.report(5, entry(2, 1, 0.0));
    for seq in 0..10 {
        bench.data(1, 0, seq);
    }
    // Half of what is sent to 5 arrives, and of its answers: 3 goes first, for the whole slot.
    let first: Vec<u16> = (0..10).map(|_| bench.sends().unwrap().next.0).collect();
    assert_eq!(first, [3; 10]);
    assert_eq!(bench.sends().unwrap().next, NodeId(5));
    let wired = MultirateConfig { wired: vec!["n5".into(), "4".into()], ..small() };
    let mut bench = Bench::new(wired);
    bench.announce();
    for child in [3, 4, 5] {
        bench.report(child, entry(2, 1, 0.0));
    }
    for seq in 0..3 {
        bench.data(1, 0, seq);
    }
    let all: Vec<u16> = (0..9).map(|_| bench.sends().unwrap().next.0).collect();
    assert_eq!(all, [4, 5, 3, 4, 5, 3, 4, 5, 3]);
}

/// Node 2 as a source.
#[test]
fn a_burst_beyond_a_max_waits_at_the_source_which_announces_itself() {
    let mut bench = Bench::new(small());
    let layers = ["base".to_owned()];
    let flow = bench.with(|e, cx| e.open(cx, "tv", &layers)).unwrap();
    assert_eq!(bench.with(|e, cx| e.open(cx, "tv", &layers)), Err(StreamError::Busy("tv".into())));
    bench.pass(30);
    assert_eq!(bench.fill().unwrap().0, ANNOUNCEMENT);
    let mut send = |layer, packet: &[u8]| bench.with(|e, cx| e.send(cx, flow, layer, packet));
    assert_eq!(send(0, b""), Err(StreamPacketError::Empty));
    assert_eq!(send(1, b"p"), Err(StreamPacketError::Unknown));
    assert_eq!(send(0, &[0; 1387]), Err(StreamPacketError::TooLong { bytes: 1387, longest: 1386 }));
    // Ten enter in this slot, 1,024 wait, others are refused.
    let taken = (0..1500).filter(|_| send(0, b"p").is_ok()).count();
    assert_eq!((taken, send(0, b"p")), (1034, Err(StreamPacketError::Burst)));
    let sending = |bench: &Bench| bench.engine.streams()[0].sending.clone().unwrap();
    bench.pass(100);
    assert_eq!((sending(&bench).waiting, sending(&bench).refused), (1014, 467));
    bench.with(|e, cx| e.send(cx, flow, 0, b"p")).unwrap();
    assert_eq!((sending(&bench).waiting, sending(&bench).packets[0]), (1015, 1035));
    assert!(bench.with(|e, cx| e.close(cx, "tv")));
    assert!(!bench.with(|e, cx| e.close(cx, "tv")));
    assert!(bench.engine.streams().is_empty());
}

#[test]
fn a_receiver_is_handed_its_packets_and_pushes_back() {
    let mut bench = Bench::new(small());
    let linear = |minimum| UtilityConfig { name: "linear".into(), minimum, ..Default::default() };
    // Joined before anybody sends.
    bench.with(|e, cx| e.join(cx, "tv", linear(Some(1.0)))).unwrap();
    bench.announce();
    bench.data(1, 1, 0);
    let Some(Event::StreamPacket { flow, group, layer, packet }) = bench.events.pop_front() else {
        panic!("no packet");
    };
    assert_eq!((flow, &*group, &*layer, packet), (FLOW, "tv", "enh", vec![1; 100]));
    // At first it is eager; what comes in makes it less so, within bounds.
    let pressure = |bench: &Bench| bench.engine.streams()[0].receiving.clone().unwrap().pressure;
    let begun = pressure(&bench);
    assert!((0.9..1.1).contains(&begun), "{begun}");
    for seq in 1..400 {
        bench.data(1, 0, seq);
    }
    bench.pass(100);
    let fed = pressure(&bench);
    assert!(fed > 10.0 * begun, "{fed} after {begun}");
    for _ in 0..100 {
        bench.pass(100);
    }
    assert!(pressure(&bench) < fed, "{fed}");
    for seq in 400..100_000 {
        bench.data(1, 0, seq);
    }
    bench.pass(100);
    assert!(pressure(&bench) <= 80.0, "{}", pressure(&bench));
}

#[test]
fn a_receiver_begins_with_the_pressure_at_which_it_asks_for_no_more() {
    let begins = |utility| {
        let mut bench = Bench::new(small());
        bench.with(|e, cx| e.join(cx, "tv", utility)).unwrap();
        bench.announce();
        bench.engine.streams()[0].receiving.clone().unwrap().pressure
    };
    let named = |name: &str| UtilityConfig { name: name.into(), ..UtilityConfig::default() };
    // V (theta - g'(0)) = 10 (4 - 1), and one packet where that is none.
    assert!((begins(named("linear")) - 30.0).abs() < 1e-6);
    assert!((begins(named("log")) - 1.0).abs() < 1e-6);
}

#[test]
fn what_keeps_a_receiver_from_its_rate_is_said() {
    let mut bench = Bench::new(small());
    let linear = UtilityConfig { name: "linear".into(), minimum: Some(1.0), ..Default::default() };
    bench.with(|e, cx| e.join(cx, "tv", linear)).unwrap();
    assert_eq!((bench.engine.groups(), bench.engine.streams()), (vec!["tv".to_owned()], vec![]));
    let trouble = |bench: &Bench| bench.engine.streams()[0].receiving.clone().unwrap().trouble;
    // Each 5 s 1,000 packets enter, of which 100, of 100 bytes, arrive.
    for version in 1..6 {
        let sent = vec![0, version * 1000];
        let mut body = Vec::new();
        Announcement { version, sent, ..announcement() }.write(&mut body);
        bench.hear(1, ANNOUNCEMENT, &body);
        (0..100).for_each(|seq| bench.data(1, 1, version * 1000 + seq));
        assert!(version > 3 || trouble(&bench).is_none());
        bench.pass(5000);
    }
    let said = trouble(&bench).unwrap();
    assert_eq!(said.name(), "below_minimum");
    assert!(said.to_string().starts_with("gets 0.02 of at least 1.00 Mbit/s"), "{said}");
    bench.topology = symmetric(&[(2, 3, 1.0)]);
    bench.pass(10);
    assert_eq!(trouble(&bench), Some(Trouble::NoPath));
}

#[test]
fn utilities_that_ask_too_much_are_refused_with_the_reason() {
    let mut bench = Bench::new(small());
    let mut join =
        |utility| bench.with(|e, cx| e.join(cx, "tv", utility)).map_err(|e| e.to_string());
    let named = |name: &str| UtilityConfig { name: name.into(), ..UtilityConfig::default() };
    // What is left out is filled in, up to theta = 4.
    for name in ["log", "max_min"] {
        assert_eq!(join(named(name)), Ok(()));
        assert_eq!(join(UtilityConfig { minimum: Some(1.7), ..named(name) }), Ok(()));
    }
    let refused =
        join(UtilityConfig { xi: Some(0.1), weight: Some(1.0), ..named("log") }).unwrap_err();
    assert!(
        refused.contains("slope at rate 0 is 10") && refused.contains("theta = 4"),
        "{refused}"
    );
    let refused = join(UtilityConfig { xi: Some(0.0), ..named("log") }).unwrap_err();
    assert!(refused.contains("unbounded") && refused.contains("xi"), "{refused}");
    let table = UtilityConfig {
        values: vec![0.0, 1.0, 3.0],
        slopes: vec![1.0, 1.5, 2.0],
        step: Some(1.0),
        ..named("table")
    };
    let refused = join(table).unwrap_err();
    assert!(refused.contains("not concave"), "{refused}");
    assert!(join(named("cubic")).unwrap_err().contains("no utility is called"));
    let group = bench.with(|e, cx| e.join(cx, "t/v", named("linear"))).unwrap_err();
    assert!(group.to_string().contains("group \"t/v\""), "{group}");
}

#[test]
fn settings_out_of_range_are_named() {
    let refused = |config: MultirateConfig| config.check().unwrap_err();
    let ok = MultirateConfig::default;
    assert!(refused(MultirateConfig { slot_ms: 0, ..ok() }).starts_with("slot_ms = 0: allowed"));
    assert!(refused(MultirateConfig { v: 0.0, ..ok() }).contains("V = 0"));
    assert!(refused(MultirateConfig { d_max: Some(3), ..ok() }).contains("d_max = 3"));
    assert!(refused(MultirateConfig { theta: 1e9, ..ok() }).contains("queues would grow"));
    assert!(refused(MultirateConfig { epsilon: Some(-1.0), ..ok() }).contains("epsilon"));
}
