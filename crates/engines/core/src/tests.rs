//! Frames by their bytes, credits, regions, and what one node does with odd frames. Whole meshes: the tests of tunnels
//! and `core_nc` in `tests`.

mod copies;

use super::frame::{Count, Feedback, Head, Heard, Part, Wish};
use super::generation::unit;
use super::mixtures::Overheard;
use super::regions::{Passage, Regions};
use super::rules::Xor;
use super::sending::Sending;
use super::*;
use ncmesh_engine::Event;
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::coder::symbol_of;
use ncmesh_engine::topology::Topology;
use ncmesh_engine::tunnel::RelayMode;
use proptest::prelude::*;
use std::collections::VecDeque;

const SYMBOL: u16 = 40;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn start(source: u16, destination: u16) -> FlowInstance {
    FlowInstance { source: NodeId(source), destination: NodeId(destination), incarnation: 1 }
}

/// Generation 0 of a flow, of two packets.
fn head(source: u16, destination: u16) -> Head {
    let start = start(source, destination);
    Head { start, generation: 0, behind: 0, room: 4, count: 2, closed: true, symbol: SYMBOL }
}

fn part(head: Head, next: u16, vector: [u8; 4]) -> Part {
    Part { head, next: NodeId(next), vector: vector.to_vec() }
}

// ---- frames

/// The golden vectors of docs/wire-format.md.
#[test]
fn golden_frames() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let first = part(Head { generation: 7, behind: 1, ..head(1, 4) }, 4, [9, 8, 0, 0]);
    let second = part(head(2, 5), 5, [0, 3, 0, 0]);
    let data = Data { serial: 0x0102, first, second: Some(second), payload: &[0xaa, 0xbb] };
    let mut body = Vec::new();
    data.write(&mut body);
    let expected = "0102 02 00010004 00000001 0004 00000007 01 04 02 01 0028 02 0908 \
                    00020005 00000001 0005 00000000 00 04 02 01 0028 02 0003 aabb";
    assert_eq!(hex(&body), expected.replace(' ', ""));
    assert_eq!(Data::parse(&body), Ok(data));
    for end in 0..body.len() - 2 {
        assert!(Data::parse(&body[..end]).is_err(), "{end}");
    }

    let count =
        Count { serial: 0x0102, number: 0x0304, again: true, head: head(1, 4), next: NodeId(3) };
    let mut body = Vec::new();
    count.write(&mut body);
    let expected = "0102 0304 01 00010004 00000001 0003 00000000 00 04 02 01 0028";
    assert_eq!((hex(&body), Count::parse(&body)), (expected.replace(' ', ""), Ok(count)));

    let feedback = Feedback {
        start: start(1, 4),
        to: NodeId(3),
        generation: 7,
        number: 0x0506,
        wish: Wish::More,
        alone: 2,
        combined: 5,
        progress: 62,
        wanted: vec![0, 9],
        heard: vec![Heard { of: NodeId(3), received: 90, sent: 100 }],
    };
    let mut body = Vec::new();
    feedback.write(&mut body);
    let expected = "00010004 00000001 0003 00000007 0506 01 02 05 003e 02 0009 01 0003 005a 0064";
    assert_eq!(hex(&body), expected.replace(' ', ""));
    assert_eq!(Feedback::parse(&body), Ok(feedback));
}

#[test]
fn what_contradicts_itself_is_malformed() {
    let written = |first: Part, second: Option<Part>, payload: &[u8]| {
        let mut body = Vec::new();
        Data { serial: 1, first, second, payload }.write(&mut body);
        Data::parse(&body).is_err()
    };
    let good = part(head(1, 4), 3, [1, 0, 0, 0]);
    assert!(!written(good.clone(), None, &[1; 40]));
    assert!(written(good.clone(), None, &[1; 41]), "longer than its symbols");
    assert!(written(good.clone(), Some(good.clone()), &[1]), "a flow with itself");
    assert!(written(part(head(1, 4), 3, [0; 4]), None, &[1]), "no coefficients");
    let longer = Part { vector: vec![1; 5], ..good.clone() };
    assert!(written(longer, None, &[1]), "more coefficients than the generation has packets");
    for wrong in [
        Head { room: 0, ..head(1, 4) },
        Head { room: 121, ..head(1, 4) },
        Head { count: 5, ..head(1, 4) },
        Head { behind: 8, generation: 9, ..head(1, 4) },
        Head { behind: 1, ..head(1, 4) },
        Head { symbol: 2, ..head(1, 4) },
    ] {
        assert!(written(Part { head: wrong, ..good.clone() }, None, &[1]), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics_and_what_is_read_is_written_alike(body in prop::collection::vec(any::<u8>(), 0..90)) {
        if let Ok(data) = Data::parse(&body) {
            let mut again = Vec::new();
            data.write(&mut again);
            prop_assert_eq!(Data::parse(&again).map(|d| (d.first, d.second)), Ok((data.first, data.second)));
        }
        if let Ok(feedback) = Feedback::parse(&body) {
            let mut again = Vec::new();
            feedback.write(&mut again);
            prop_assert_eq!(again, body.clone());
        }
        let _ = Count::parse(&body);
    }
}

// ---- credits

#[test]
fn credits_come_with_packets_and_go_with_transmissions() {
    let rules = CoreConfig::default().rules();
    let mut sending = Sending::new(at(0));
    assert!(!sending.has_credit());
    // x/r with r = 0.5: two packets are worth 4.24 transmissions.
    (0..2).for_each(|_| sending.earn(1.06 / 0.5, at(1)));
    let mut sent = 0;
    while sending.has_credit() {
        sending.spend(false, at(2));
        sent += 1;
    }
    assert_eq!(sent, 4);
    assert_eq!(sending.polls_at(true, &rules), Some(at(2)), "it asks at once");
    sending.polled(None, 1, at(3));
    assert_eq!(
        sending.polls_at(true, &rules),
        Some(at(3 + 2 * 50)),
        "then after ever longer pauses"
    );
    sending.need(2.0, None, 5, at(10));
    assert!(sending.has_credit());
    sending.stop(6, at(11));
    assert!(!sending.has_credit());
    assert_eq!(sending.polls_at(true, &rules), Some(at(11 + 4 * 50)), "the rest takes its time");
    for polls in 1..=rules.requests {
        assert!(!sending.is_hopeless(&rules, at(1_000_000)), "{polls}");
        sending.polled(None, 1, at(20));
    }
    assert_eq!((sending.polls_at(true, &rules), sending.is_quiet()), (None, true));
    assert!(sending.is_hopeless(&rules, at(1_000_000)));
    sending.answer(7, at(30));
    assert!(!sending.is_quiet(), "it gets on");
}

#[test]
fn combined_a_packet_costs_more_the_less_the_other_flow_is_known() {
    let other = (start(2, 5), 0);
    let mut sending = Sending::new(at(0));
    sending.earn(10.0, at(0));
    assert!((sending.combined(&other, 0.3) - 13.0).abs() < 1e-9);
    sending.pair(other, 0.3);
    sending.earn(10.0, at(0));
    let mut sent = 0;
    while sending.has_credit() {
        sending.spend(true, at(0));
        sent += 1;
    }
    assert_eq!(sent, 26);
    sending.earn(1.5, at(0));
    sending.part();
    assert!((sending.alone() - 1.5).abs() < 1e-9);
}

// ---- regions

/// The cross: 1 to 4 and 2 to 5 over 3; 4 overhears 2, and 5 overhears 1, with these deliveries.
fn cross(direct: f64, overheard: [f64; 2]) -> Topology {
    let mut links = vec![(2, 4, overheard[0]), (1, 5, overheard[1])];
    for node in [1, 2, 4, 5] {
        links.push((node, 3, direct));
    }
    symmetric(&links)
}

/// What node 3 of a mesh has of regions.
fn regions(topology: &Topology, xor: Xor, coded: bool) -> Regions {
    let (mut counters, mut events) = (Counters::default(), VecDeque::new());
    let cx = Context {
        now: at(0),
        me: NodeId(3),
        epoch: 1,
        mtu: 1400,
        topology,
        rng: &mut rng::stream(1, NodeId(3), NAME, "test"),
        counters: &mut counters,
        events: &mut events,
        storage: &mut MemoryStorage::default(),
    };
    let passages = [(1, 4), (2, 5)].map(|(source, destination)| Passage {
        flow: (NodeId(source), NodeId(destination)),
        previous: NodeId(source),
        next: NodeId(destination),
    });
    let rules = Rules { xor, coded, ..CoreConfig::default().rules() };
    Regions::of(&passages, &rules, &Meter::default(), &cx)
}

#[test]
fn flows_are_combined_where_overhearing_pays() {
    let flows = [(NodeId(1), NodeId(4)), (NodeId(2), NodeId(5))];
    let unknown = |direct, overheard| {
        let regions = regions(&cross(direct, overheard), Xor::WherePaying, true);
        flows.map(|flow| regions.of_flow(&flow).first().map(|(_, unknown)| *unknown))
    };
    // All alike: whatever is sent until the relay has it all, as much is overheard.
    assert_eq!(unknown(0.7, [0.7, 0.7]), [Some(0.0), Some(0.0)]);
    let half = unknown(0.7, [0.35, 0.7]);
    assert!((half[0].unwrap() - 0.5).abs() < 1e-9 && half[1] == Some(0.0));
    assert_eq!(unknown(0.7, [0.0, 0.7]), [None, None], "nothing is overheard");
    // By probability of decoding one packet: 0.9 * 0.9 is enough, 0.85 * 0.9 is not.
    let rule = |overheard| {
        let regions = regions(&cross(0.9, overheard), Xor::WhereDecodable(0.8), false);
        (regions.of_flow(&flows[0]).len(), regions.declined().len())
    };
    assert_eq!((rule([0.9, 0.9]), rule([0.85, 0.9])), ((1, 0), (0, 2)));
}

#[test]
fn deliveries_are_counted_by_serials_and_reports() {
    let topology = symmetric(&[(1, 3, 0.9), (1, 5, 0.3)]);
    let (me, one, five) = (NodeId(3), NodeId(1), NodeId(5));
    let mut meter = Meter::default();
    assert!((meter.delivery(&topology, me, one, me) - 0.9).abs() < 1e-9);
    // Of 40 frames every second one is heard; a copy is not counted.
    for serial in (2..=40).step_by(2) {
        meter.hear(one, 1, serial, at(u64::from(serial)));
        meter.note(one, 1, serial, at(u64::from(serial)));
    }
    assert!((meter.delivery(&topology, me, one, me) - 20.0 / 39.0).abs() < 1e-9);
    let report = meter.report(one);
    assert_eq!(report, [Heard { of: one, received: 20, sent: 39 }]);
    // Another start counts anew.
    meter.hear(one, 2, 7, at(50));
    assert_eq!(meter.report(one), [Heard { of: one, received: 1, sent: 1 }]);
    meter.learn(five, &[Heard { of: one, received: 15, sent: 20 }], at(60));
    assert!((meter.delivery(&topology, me, one, five) - 0.75).abs() < 1e-9);
    meter.age(at(20_000));
    assert!((meter.delivery(&topology, me, one, five) - 0.3).abs() < 1e-9);
}

// ---- one node

/// A node of the cross.
struct Bench {
    engine: Core,
    me: NodeId,
    topology: Topology,
    counters: Counters,
    events: VecDeque<Event>,
    now: Instant,
}

impl Bench {
    fn new(me: u16, engine: Core) -> Self {
        let topology = cross(0.9, [0.9, 0.9]);
        let (counters, events) = (Counters::default(), VecDeque::new());
        Self { engine, me: NodeId(me), topology, counters, events, now: at(1000) }
    }

    fn with<R>(&mut self, call: impl FnOnce(&mut Core, &mut Context<'_>) -> R) -> R {
        let mut cx = Context {
            now: self.now,
            me: self.me,
            epoch: 1,
            mtu: 1400,
            topology: &self.topology,
            rng: &mut rng::stream(1, self.me, NAME, "test"),
            counters: &mut self.counters,
            events: &mut self.events,
            storage: &mut MemoryStorage::default(),
        };
        call(&mut self.engine, &mut cx)
    }

    fn hear(&mut self, sender: u16, data: &Data<'_>) {
        let mut body = Vec::new();
        data.write(&mut body);
        let (sender, service) = (NodeId(sender), self.engine.id);
        let frame = Frame { sender, epoch: 1, service, kind: DATA, body: &body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    fn fill(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out))?;
        Some((filled.kind, out))
    }

    fn delivered(&mut self) -> Vec<Vec<u8>> {
        let packet = |event| match event {
            Event::Packet { packet, .. } => Some(packet),
            _ => None,
        };
        self.events.drain(..).filter_map(packet).collect()
    }
}

/// The packet of this place of a flow's generation, as a payload.
fn symbol(flow: u8, place: u8) -> Vec<u8> {
    symbol_of(&[flow, place, 7, 7, 7], usize::from(SYMBOL))
}

fn xored(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(a, b)| a ^ b).collect()
}

/// A frame of node 3 with a packet of either flow.
fn combined(serial: u16, place: u8) -> (Data<'static>, Vec<u8>) {
    let vector = <[u8; 4]>::try_from(unit(4, place)).unwrap();
    let (first, second) = (part(head(1, 4), 4, vector), part(head(2, 5), 5, vector));
    let payload = xored(&symbol(1, place), &symbol(2, place));
    (Data { serial, first, second: Some(second), payload: &[] }, payload)
}

fn overheard(serial: u16, place: u8) -> (Data<'static>, Vec<u8>) {
    let vector = <[u8; 4]>::try_from(unit(4, place)).unwrap();
    let first = part(head(2, 5), 3, vector);
    (Data { serial, first, second: None, payload: &[] }, symbol(2, place))
}

#[test]
fn a_destination_takes_its_packet_out_with_what_it_overhears_before_or_after() {
    let mut bench = Bench::new(4, Core::new(&CoreConfig::default()));
    let (data, payload) = overheard(1, 0);
    bench.hear(2, &Data { payload: &payload, ..data });
    for place in [0, 1] {
        let (data, payload) = combined(1 + u16::from(place), place);
        bench.hear(3, &Data { payload: &payload, ..data });
    }
    assert_eq!(bench.delivered(), [vec![1, 0, 7, 7, 7]]);
    let (data, payload) = overheard(2, 1);
    bench.hear(2, &Data { payload: &payload, ..data });
    assert_eq!(bench.delivered(), [vec![1, 1, 7, 7, 7]]);
    let (kind, body) = bench.fill().unwrap();
    let feedback = Feedback::parse(&body).unwrap();
    assert_eq!((kind, feedback.wish, feedback.to), (FEEDBACK, Wish::Next, NodeId(3)));
    assert_eq!(feedback.heard[0], Heard { of: NodeId(3), received: 2, sent: 2 });
    assert_eq!(bench.fill(), None);
}

/// The baseline keeps nothing that it cannot decode at once, and asks by number.
#[test]
fn cope_decodes_at_once_or_not_at_all() {
    let mut bench = Bench::new(4, cope::engine(&cope::CopeConfig::default()));
    let (data, payload) = combined(1, 0);
    bench.hear(3, &Data { payload: &payload, ..data });
    let (data, payload) = overheard(1, 0);
    bench.hear(2, &Data { payload: &payload, ..data });
    assert_eq!((bench.delivered().len(), bench.counters.dropped(DropReason::Undecodable)), (0, 1));
    let (data, payload) = combined(2, 0);
    bench.hear(3, &Data { payload: &payload, ..data });
    assert_eq!(bench.delivered().len(), 1);
    let mut body = Vec::new();
    Count { serial: 2, number: 1, again: false, head: head(1, 4), next: NodeId(4) }
        .write(&mut body);
    let service = bench.engine.id;
    let frame = Frame { sender: NodeId(3), epoch: 1, service, kind: COUNT, body: &body };
    bench.with(|engine, cx| engine.handle_frame(cx, &frame));
    let feedback = Feedback::parse(&bench.fill().unwrap().1).unwrap();
    assert_eq!((feedback.wish, feedback.wanted), (Wish::More, vec![1]));
}

#[test]
fn a_relay_stops_the_source_and_combines_what_crosses() {
    let mut bench = Bench::new(3, Core::new(&CoreConfig::default()));
    for (source, destination) in [(1, 4), (2, 5)] {
        for place in [0, 1] {
            let first = part(head(source, destination), 3, unit(4, place).try_into().unwrap());
            let payload = symbol(source as u8, place);
            let serial = u16::from(place) + 1;
            bench.hear(source, &Data { serial, first, second: None, payload: &payload });
        }
    }
    let mut kinds = Vec::new();
    while let Some((kind, body)) = bench.fill() {
        match kind {
            FEEDBACK => assert_eq!(Feedback::parse(&body).unwrap().wish, Wish::Stop),
            DATA => assert!(Data::parse(&body).unwrap().second.is_some()),
            _ => assert_eq!(Count::parse(&body).unwrap().head.count, 2),
        }
        kinds.push(kind);
    }
    // Two packets over links of 0.9: 1.06 * 2 / 0.9 transmissions, then it asks both how they stand.
    assert_eq!(kinds, [FEEDBACK, FEEDBACK, DATA, DATA, COUNT, COUNT]);
}

/// What node 3 does with generation `number` of the flow from 1 to 4, of which it hears both packets: the frames it then sends,
/// and whether it stopped the source before any of them.
fn relayed(bench: &mut Bench, number: u32) -> (Vec<Vec<u8>>, bool) {
    let head = Head { generation: number, behind: number as u8, ..head(1, 4) };
    for place in [0, 1] {
        let first = part(head, 3, unit(4, place).try_into().unwrap());
        let payload = symbol(1, place);
        bench.hear(1, &Data { serial: 1, first, second: None, payload: &payload });
    }
    let (mut vectors, mut stopped) = (Vec::new(), false);
    while let Some((kind, body)) = bench.fill() {
        match kind {
            DATA => vectors.push(Data::parse(&body).unwrap().first.vector),
            FEEDBACK => stopped |= Feedback::parse(&body).unwrap().wish == Wish::Stop,
            _ => {}
        }
    }
    (vectors, stopped)
}

#[test]
fn a_relay_changes_with_the_next_generation() {
    let mut bench = Bench::new(3, Core::new(&CoreConfig::default()));
    let relay = |relay| Relaying { relay: Some(relay), coding: None };
    let first = part(Head { behind: 0, ..head(1, 4) }, 3, [1, 0, 0, 0]);
    bench.hear(1, &Data { serial: 1, first, second: None, payload: &symbol(1, 0) });
    bench.with(|engine, cx| engine.relay_as(cx, relay(RelayMode::NonRecoding)));
    assert!(relayed(&mut bench, 0).1, "a generation ends as it began");
    let (vectors, stopped) = relayed(&mut bench, 1);
    assert_eq!((vectors, stopped), (vec![unit(4, 0), unit(4, 1)], false));
    bench.with(|engine, cx| engine.relay_as(cx, relay(RelayMode::Recoding)));
    let (vectors, stopped) = relayed(&mut bench, 2);
    assert!(!stopped && vectors.iter().any(|v| v[0] > 0 && v[1] > 0), "{vectors:?}");
    let status = bench.engine.coding(at(0)).unwrap();
    let expected = Relaying { relay: Some(RelayMode::Recoding), coding: Some(true) };
    assert_eq!(status.relaying, expected);
}

#[test]
fn a_baseline_has_but_one_relay_and_whether_it_combines() {
    let mut bench = Bench::new(3, cope::engine(&cope::CopeConfig::default()));
    let change = Relaying { relay: Some(RelayMode::Core), coding: Some(false) };
    bench.with(|engine, cx| engine.relay_as(cx, change));
    let status = bench.engine.coding(at(0)).unwrap();
    assert_eq!(status.relaying, Relaying { relay: None, coding: Some(false) });
}

#[test]
fn names_of_relays_are_those_of_the_configuration() {
    for relay in [RelayMode::Core, RelayMode::Recoding, RelayMode::NonRecoding] {
        let text = format!("relay = \"{}\"", relay.name());
        assert_eq!(toml::from_str::<CoreConfig>(&text).unwrap().relay, relay);
    }
}

/// 60 packets over a link of 0.7: 85.7 transmissions on average, 90.9 with x = 1.06; by eq. 35 94 arrive with a probability of
/// 0.92, and 101 with one of 0.99.
#[test]
fn a_source_sends_as_much_as_equation_35_asks_for() {
    for (decode_probability, expected) in [(None, 90), (Some(0.919), 94), (Some(0.99), 101)] {
        let config = CoreConfig { generation: 60, decode_probability, ..CoreConfig::default() };
        let mut bench = Bench::new(1, Core::new(&config));
        bench.topology = cross(0.7, [0.7, 0.7]);
        for packet in 0..60 {
            let taken = bench.with(|engine, cx| engine.handle_packet(cx, NodeId(4), &[packet]));
            assert_eq!(taken, Ok(()));
        }
        let mut sent = 0;
        while let Some((DATA, _)) = bench.fill() {
            sent += 1;
        }
        assert_eq!(sent, expected);
    }
}

#[test]
fn frames_of_others_and_of_long_ago_leave_bounded_state() {
    let mut bench = Bench::new(4, Core::new(&CoreConfig::default()));
    let (data, payload) = combined(1, 0);
    bench.hear(3, &Data { payload: &payload, ..data });
    for generation in 0..100 {
        // Overheard of flows that never meet this node's, of generations long gone among them.
        let alien = Head { generation, ..head(7 + (generation % 3) as u16, 10) };
        let first = part(alien, 8, [1, 0, 0, 0]);
        bench.hear(7, &Data { serial: generation as u16, first, second: None, payload: &[1] });
        // This node's flow, combined with ever new ones that nobody knows.
        let other = Head { generation: generation + 1, ..head(2, 5) };
        let (first, second) = (part(head(1, 4), 4, [1, 1, 0, 0]), part(other, 5, [1, 0, 0, 0]));
        let serial = generation as u16 + 1;
        bench.hear(3, &Data { serial, first, second: Some(second), payload: &[1] });
        // Combined for others.
        let (first, second) = (part(head(7, 6), 6, [1; 4]), part(head(8, 9), 9, [1; 4]));
        bench.hear(3, &Data { serial, first, second: Some(second), payload: &[1] });
    }
    assert_eq!(bench.engine.overheard.len(), 16);
    assert_eq!(bench.engine.flows.len(), 1);
    // The same generation with another shape: dropped, and the flow is as it was.
    let odd = Head { room: 3, ..head(1, 4) };
    let first = Part { head: odd, next: NodeId(4), vector: vec![1, 0, 0] };
    bench.hear(3, &Data { serial: 300, first, second: None, payload: &[1] });
    assert_eq!(bench.counters.dropped(DropReason::Malformed), 1);
    for place in [0, 1] {
        let first = part(head(1, 4), 4, unit(4, place).try_into().unwrap());
        let payload = symbol(1, place);
        bench.hear(3, &Data { serial: 301, first, second: None, payload: &payload });
    }
    assert_eq!(bench.delivered().len(), 2);
    // Now it is done with: what comes late is stale, and its sender is told.
    let first = part(head(1, 4), 4, [1, 0, 0, 0]);
    bench.hear(3, &Data { serial: 302, first, second: None, payload: &[1] });
    assert_eq!(bench.counters.dropped(DropReason::Stale), 1);
    assert_eq!(Feedback::parse(&bench.fill().unwrap().1).unwrap().wish, Wish::Next);
}

/// Flows of unlike generations and symbols, combined.
#[test]
fn sizes_may_differ() {
    let mut bench = Bench::new(4, Core::new(&CoreConfig::default()));
    let other = Head { room: 9, count: 3, symbol: 90, ..head(2, 5) };
    let long = symbol_of(&[9; 80], 90);
    let theirs = Part { head: other, next: NodeId(5), vector: unit(9, 2) };
    let alone = Part { next: NodeId(3), ..theirs.clone() };
    bench.hear(2, &Data { serial: 1, first: alone, second: None, payload: &long });
    let mut payload = symbol(1, 0);
    payload.resize(90, 0);
    let payload = xored(&payload, &long);
    let mine = part(head(1, 4), 4, [1, 0, 0, 0]);
    bench.hear(3, &Data { serial: 1, first: theirs, second: Some(mine), payload: &payload });
    assert_eq!(bench.delivered(), [vec![1, 0, 7, 7, 7]]);
}

#[test]
fn settings_out_of_range_are_named() {
    let check = |config: CoreConfig| config.check().unwrap_err();
    let good = CoreConfig::default;
    let bad = [
        CoreConfig { extra: f64::NAN, ..good() },
        CoreConfig { decode_probability: Some(1.0), ..good() },
        CoreConfig { generation: 121, ..good() },
        CoreConfig { window: 9, ..good() },
        CoreConfig { queue: 0, ..good() },
        CoreConfig { requests: 0, ..good() },
        CoreConfig { flush_ms: 10_001, ..good() },
        CoreConfig { hold_ms: 1001, ..good() },
        CoreConfig { request_ms: 4, ..good() },
    ];
    let names = [
        "extra",
        "decode_probability",
        "generation",
        "window",
        "queue",
        "requests",
        "flush_ms",
        "hold_ms",
        "request_ms",
    ];
    for (config, name) in bad.into_iter().zip(names) {
        assert!(check(config).starts_with(name), "{name}");
    }
    let cope = cope::CopeConfig { min_decodable: 1.1, ..Default::default() };
    assert_eq!(cope.check(), Err("min_decodable = 1.1: allowed is 0 to 1".into()));
}

#[test]
fn what_is_overheard_of_one_flow_has_its_bound() {
    let mut overheard = Overheard::default();
    for generation in 0..20 {
        let head = Head { generation, ..head(1, 4) };
        let packet = (unit(4, 0), symbol(1, 0));
        assert_eq!(overheard.keep(&head, &packet, at(u64::from(generation))), Some(true));
        assert_eq!(overheard.keep(&head, &packet, at(u64::from(generation))), Some(false));
    }
    assert_eq!(overheard.len(), 16);
    assert!(overheard.of(&(start(1, 4), 3)).is_none() && overheard.of(&(start(1, 4), 4)).is_some());
    assert_eq!(overheard.keep(&head(1, 4), &(vec![1], vec![1]), at(99)), None);
}

#[test]
fn an_answer_that_the_mac_gives_up_is_sent_again() {
    let mut bench = Bench::new(3, Core::new(&CoreConfig::default()));
    for place in [0, 1] {
        let first = part(head(1, 4), 3, unit(4, place).try_into().unwrap());
        let payload = symbol(1, place);
        bench.hear(1, &Data { serial: 1, first, second: None, payload: &payload });
    }
    let report = |result| TxReport { result, airtime: Duration::ZERO, heard_by: None };
    let tries = 1 + CoreConfig::default().requests;
    for _ in 0..tries {
        assert_eq!(bench.fill().unwrap().0, FEEDBACK);
        bench.with(|engine, cx| engine.handle_tx_report(cx, report(TxResult::Failed)));
    }
    assert_eq!(bench.fill().unwrap().0, DATA, "not for ever");
}
