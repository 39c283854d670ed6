//! Frames by their bytes, what one node takes and sends, and what liars achieve. Whole meshes: the
//! tests of all tunnels.

mod deadline;
mod hop;
mod liars;
mod pairs;
mod turns;

use super::*;
use crate::frame::State;
use ncmesh_engine::Event;
use ncmesh_engine::TxResult;
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::testing::directed;
use ncmesh_engine::toolkit::coder::pack;
use ncmesh_engine::toolkit::hop::Handled;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::StartId;
use proptest::prelude::*;
use std::collections::VecDeque;

const FLOW: FlowInstance =
    FlowInstance { source: NodeId(1), destination: NodeId(4), incarnation: 0x1122 };
const PACKET_TIME: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn state(needs: u32, leads: u32) -> State {
    State { needs, leads, ..State::default() }
}

fn header(oldest: u32) -> Header {
    let handled = Handled { number: 0x0708, ago: Duration::from_micros(0x90 * 16) };
    let state = State { backlog: 2, feeds: true, handled, ..state(7, 5) };
    Header { flow: FLOW, next_hop: NodeId(2), number: 9, state, poll: true, oldest }
}

/// The way back.
const BACK: FlowInstance =
    FlowInstance { source: NodeId(4), destination: NodeId(1), incarnation: 0x3344 };

/// Returns the header of a data frame of the flow back.
fn back(next_hop: u16) -> Header {
    Header { flow: BACK, next_hop: NodeId(next_hop), ..header(0) }
}

fn plain(number: u32) -> Coded {
    Coded { first: number, coefficients: vec![1], symbol: pack(&[b'I', number as u8]) }
}

// ---- frames

/// Golden vectors of `docs/reference/wire-format.md`.
#[test]
fn golden_frames() {
    let in_turns = |header: Header| {
        let state = State { turn: Some(3), ..header.state };
        Header { state, ..header }
    };
    let coded = Coded { first: 6, coefficients: vec![1, 0, 3], symbol: vec![0, 1, 0xff] };
    let mut body = Vec::new();
    in_turns(header(5)).write(&coded, &mut body);
    let golden = [
        0, 1, 0, 4, 0, 0, 0x11, 0x22, 0, 2, 0, 9, 0, 0, 0, 7, 0, 0, 0, 5, 2, 3, 5, 7, 8, 0, 0x90,
        0, 0, 0, 5, 1, 2, 0, 3, 0, 1, 0xff,
    ];
    assert_eq!(body, golden);
    assert_eq!(Header::parse(&body), Ok((in_turns(header(5)), coded)));
    for end in 0..35 {
        assert!(Header::parse(&body[..end]).is_err(), "{end}");
    }
    assert!(Header::parse(&body[..35]).unwrap().1.symbol.is_empty());
    let report = Report {
        flow: FLOW,
        next_hop: NodeId(3),
        parent: NodeId(2),
        child: NodeId(4),
        number: 9,
        state: State { collides: true, ends: true, more: true, ..state(7, 5) },
    };
    let mut body = Vec::new();
    report.write(&mut body);
    let golden = [
        0, 1, 0, 4, 0, 0, 0x11, 0x22, 0, 3, 0, 2, 0, 4, 0, 9, 0, 0, 0, 7, 0, 0, 0, 5, 0, 255, 26,
        0, 0, 255, 255,
    ];
    assert_eq!(body, golden);
    assert_eq!(Report::parse(&body), Ok(report));
    for end in 0..body.len() {
        assert!(Report::parse(&body[..end]).is_err(), "{end}");
    }

    let ours = Coded { symbol: vec![0, 2, b'I', 6], ..plain(6) };
    let of_back = Coded { symbol: vec![0, 2, b'I', 8, 9], ..plain(6) };
    let parts = [(in_turns(header(5)), ours.clone()), (in_turns(back(1)), of_back.clone())];
    let pair = Pair::of(parts);
    let mut body = Vec::new();
    pair.write(&mut body);
    let golden = [
        2, 0, 1, 0, 4, 0, 0, 0x11, 0x22, 0, 2, 0, 9, 0, 0, 0, 7, 0, 0, 0, 5, 2, 3, 5, 7, 8, 0,
        0x90, 0, 0, 0, 5, 1, 0, 0, 4, 0, 1, 0, 0, 0x33, 0x44, 0, 1, 0, 9, 0, 0, 0, 7, 0, 0, 0, 5,
        2, 3, 5, 7, 8, 0, 0x90, 0, 0, 0, 0, 6, 0, 0, 0, 0, 14, 9,
    ];
    assert_eq!(body, golden);
    let parsed = Pair::parse(&body).unwrap();
    assert_eq!(parsed, pair);
    // Each part comes out for who knows the other.
    assert_eq!(parsed.without(&ours.symbol, 1), of_back);
    assert_eq!(parsed.without(&of_back.symbol, 0).symbol, [0, 2, b'I', 6, 0]);
    for end in 0..68 {
        assert!(Pair::parse(&body[..end]).is_err(), "{end}");
    }
    let of_one_flow = Pair::of([(header(5), plain(6)), (header(5), plain(7))]);
    let mut body = Vec::new();
    of_one_flow.write(&mut body);
    assert!(Pair::parse(&body).is_err());
}

// ---- one node

/// A node of the line 1, 2, 3, 4 whose links deliver nine of ten frames.
struct Bench {
    me: NodeId,
    engine: Braid,
    topology: Topology,
    counters: Counters,
    events: VecDeque<Event>,
    now: Instant,
}

impl Bench {
    fn new(me: u16) -> Self {
        let both = |a, b| [(a, b, 0.9), (b, a, 0.9)];
        Self {
            me: NodeId(me),
            engine: Braid::new(BraidConfig::default()),
            topology: directed(&[both(1, 2), both(2, 3), both(3, 4)].concat()),
            counters: Counters::default(),
            events: VecDeque::new(),
            now: at(1000),
        }
    }

    fn with<R>(&mut self, call: impl FnOnce(&mut Braid, &mut Context<'_>) -> R) -> R {
        let mut cx = Context {
            now: self.now,
            me: self.me,
            epoch: 5 << 16,
            mtu: 1400,
            at: At::ONLY,
            topology: &self.topology,
            rng: &mut rng::stream(1, self.me, "braid", "test"),
            counters: &mut self.counters,
            events: &mut self.events,
            storage: &mut MemoryStorage::default(),
        };
        call(&mut self.engine, &mut cx)
    }

    fn frame(&mut self, sender: u16, kind: u8, body: &[u8]) {
        let sender = NodeId(sender);
        let frame = Frame { sender, start: StartId(1), service: ID, kind, body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    /// Hears a data frame of `sender` to `next_hop`.
    fn data(&mut self, sender: u16, next_hop: u16, change: Header, coded: &Coded) {
        let mut body = Vec::new();
        Header { next_hop: NodeId(next_hop), ..change }.write(coded, &mut body);
        self.frame(sender, DATA, &body);
    }

    fn report(&mut self, child: u16, number: u16, state: State) {
        self.report_of(FLOW, child, number, state);
    }

    fn report_of(&mut self, flow: FlowInstance, child: u16, number: u16, state: State) {
        let child = NodeId(child);
        let me = self.me;
        let mut body = Vec::new();
        Report { flow, next_hop: me, parent: me, child, number, state }.write(&mut body);
        self.frame(child.0, REPORT, &body);
    }

    fn pair(&mut self, sender: u16, parts: [(Header, Coded); 2]) {
        let mut body = Vec::new();
        Pair::of(parts).write(&mut body);
        self.frame(sender, PAIR, &body);
    }

    /// Fills a frame, if the engine offers one, over a MAC that acknowledges nothing.
    fn fill(&mut self) -> Option<(u8, Vec<u8>)> {
        self.transmit(TxResult::Sent).map(|(filled, body)| (filled.kind, body))
    }

    /// Fills a frame of which this becomes. Returns where it goes by unicast.
    fn fill_with(&mut self, result: TxResult) -> Option<(Option<NodeId>, Vec<u8>)> {
        self.transmit(result).map(|(filled, body)| (filled.to, body))
    }

    fn transmit(&mut self, result: TxResult) -> Option<(Filled, Vec<u8>)> {
        self.engine.offer(self.now)?;
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out))?;
        let report = TxReport { result, airtime: PACKET_TIME, heard_by: None };
        self.with(|engine, cx| engine.handle_tx_report(cx, report));
        Some((filled, out))
    }

    /// Fills data frames until there is no more to send. Returns first packet and width of each.
    fn drain(&mut self) -> Vec<(u32, usize)> {
        let frames = std::iter::from_fn(|| self.fill()).filter(|(kind, _)| *kind == DATA).take(200);
        let coded = frames.map(|(_, body)| Header::parse(&body).unwrap().1);
        coded.map(|coded| (coded.first, coded.coefficients.len())).collect()
    }

    fn packets(&mut self) -> Vec<Vec<u8>> {
        self.events
            .drain(..)
            .filter_map(|event| match event {
                Event::Packet { packet, .. } => Some(packet),
                _ => None,
            })
            .collect()
    }
}

#[test]
fn a_relay_sends_packets_on_as_they_are_and_repairs_what_was_lost() {
    let mut bench = Bench::new(2);
    for number in 0..5 {
        bench.data(1, 2, header(0), &plain(number));
    }
    assert_eq!(bench.drain(), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]);
    // The next hop lacks packets 1 and 3: they go again as they are.
    bench.report(3, 1, state(1, 0b101));
    assert_eq!(bench.drain(), [(1, 1), (3, 1)]);
    // Nothing is heard: a combination of both makes up for either.
    bench.now = bench.now + Duration::from_millis(30);
    assert_eq!(bench.drain(), [(1, 3)]);
    bench.report(3, 2, state(5, 0));
    assert_eq!(bench.drain(), []);
}

/// Nine of ten packets should arrive, so after the fourth 0.4 of one should be missing.
#[test]
fn a_relay_asks_after_each_packet_unless_more_are_on_their_way() {
    let asks = |more| {
        let mut bench = Bench::new(2);
        let change = Header { state: State { more, ..header(0).state }, ..header(0) };
        let sent = (0..6).filter_map(|number| {
            bench.now = bench.now + PACKET_TIME;
            bench.data(1, 2, Header { number: number as u16, ..change }, &plain(number));
            let (_, body) = bench.fill()?;
            let (header, _) = Header::parse(&body).unwrap();
            assert_eq!(header.state.more, more);
            Some(header.poll)
        });
        sent.collect::<Vec<_>>()
    };
    assert_eq!(asks(false), [true; 6]);
    assert_eq!(asks(true), [false, false, false, true, false, false]);
}

#[test]
fn it_waits_while_the_next_hop_has_enough() {
    let mut bench = Bench::new(2);
    bench.data(1, 2, header(0), &plain(0));
    assert_eq!(bench.drain(), [(0, 1)]);
    bench.report(3, 1, State { backlog: 8, ..state(1, 0) });
    bench.data(1, 2, header(0), &plain(1));
    assert_eq!(bench.drain(), []);
    let room = bench.engine.poll_timeout(bench.now).unwrap();
    assert!(room > bench.now && room < bench.now + Duration::from_millis(20));
    bench.report(3, 2, State { backlog: 3, ..state(1, 0) });
    assert_eq!(bench.drain(), [(1, 1)]);
}

#[test]
fn the_destination_hands_up_in_order_and_goes_on_when_a_packet_comes_no_more() {
    let mut bench = Bench::new(4);
    for number in [0, 2, 3] {
        bench.data(3, 4, header(0), &plain(number));
    }
    assert_eq!(bench.packets(), [vec![b'I', 0]]);
    bench.data(3, 4, header(0), &plain(1));
    assert_eq!(bench.packets(), [vec![b'I', 1], vec![b'I', 2], vec![b'I', 3]]);
    // Packets 4 and 5 are given up by the relay; 7 is waited for, but not for ever.
    bench.data(3, 4, header(6), &plain(6));
    bench.data(3, 4, header(6), &plain(8));
    assert_eq!(bench.packets(), [vec![b'I', 6]]);
    bench.now = bench.now + Duration::from_millis(500);
    bench.with(Braid::handle_timeout);
    assert_eq!(bench.packets(), [vec![b'I', 8]]);
    // It reports to the relay.
    let (kind, body) = bench.fill().unwrap();
    let report = Report::parse(&body).unwrap();
    assert_eq!((kind, report.parent, report.state.needs), (REPORT, NodeId(3), 9));
}

#[test]
fn packets_that_wait_too_long_are_given_up() {
    let mut bench = Bench::new(2);
    for number in 0..3 {
        bench.data(1, 2, header(0), &plain(number));
    }
    bench.now = bench.now + Duration::from_secs(2);
    bench.with(Braid::handle_timeout);
    assert_eq!((bench.drain(), bench.engine.flows()[0].lost), (vec![], 3));
}

#[test]
fn a_source_takes_what_it_can_send_and_begins_with_packet_0() {
    let mut bench = Bench::new(1);
    let mut taken = 0;
    while bench.engine.can_send(NodeId(4)) {
        bench.with(|e, cx| e.handle_packet(cx, NodeId(4), &[7; 1000])).unwrap();
        taken += 1;
    }
    assert_eq!((taken, bench.engine.below_low_watermark(NodeId(4))), (MOST_OWN, false));
    let mut send = |to, packet: &[u8]| bench.with(|e, cx| e.handle_packet(cx, NodeId(to), packet));
    assert_eq!(send(4, b"p"), Err(PacketError::Full));
    assert_eq!(send(1, b"p"), Err(PacketError::Oneself));
    assert_eq!(send(3, b""), Err(PacketError::Empty));
    assert_eq!(send(9, b"p"), Err(PacketError::NoPath(NodeId(9))));
    let longest = bench.engine.longest(1400);
    let error = bench.with(|e, cx| e.handle_packet(cx, NodeId(3), &vec![0; longest + 1]));
    assert_eq!(error, Err(PacketError::TooLong { bytes: longest + 1, longest }));
    assert_eq!(bench.drain()[0], (0, 1));
}

#[test]
fn small_packets_share_a_symbol_while_it_waits() {
    let mut bench = Bench::new(1);
    let mut send = |packet: &[u8]| bench.with(|e, cx| e.handle_packet(cx, NodeId(4), packet));
    for packet in [&b"one"[..], b"two", &[7; 1290]] {
        send(packet).unwrap();
    }
    let (_, body) = bench.fill().unwrap();
    assert_eq!(Header::parse(&body).unwrap().1.symbol, [pack(b"one"), pack(b"two")].concat());
    // A packet that was sent is not touched any more.
    bench.fill().unwrap();
    bench.with(|e, cx| e.handle_packet(cx, NodeId(4), b"three")).unwrap();
    assert_eq!(bench.drain(), [(2, 1)]);
    let mut end = Bench::new(4);
    let symbol = [pack(b"one"), pack(b"two"), vec![0; 3]].concat();
    end.data(3, 4, header(0), &Coded { symbol, ..plain(0) });
    assert_eq!(end.packets(), [b"one", b"two"]);
}

/// Node 1 with this link to node 4, beside a path of two good hops.
fn beside_a_detour(direct: f64) -> Topology {
    let both = |a, b, d: f64| [(a, b, d), (b, a, d)];
    directed(&[both(1, 2, 0.9), both(2, 4, 0.9), both(1, 4, direct)].concat())
}

/// Sends up to eight packets to node 4. Returns their next hops.
fn send_eight(bench: &mut Bench) -> Vec<u16> {
    while bench.engine.below_low_watermark(NodeId(4)) {
        bench.with(|e, cx| e.handle_packet(cx, NodeId(4), &[7; 1000])).unwrap();
    }
    let mut frames = Vec::new();
    for _ in 0..8 {
        bench.now = bench.now + Duration::from_millis(25);
        frames.extend(bench.fill());
    }
    frames.iter().map(|(_, body)| Header::parse(body).unwrap().0.next_hop.0).collect()
}

/// Lets the next hop report that it has `more` packets than it said last, or all.
fn gain(bench: &mut Bench, more: u32) {
    let flow = bench.engine.flows.get(&(NodeId(1), NodeId(4))).unwrap();
    let id = flow.id;
    let all = flow.state(bench.now).needs;
    let child = flow.child.as_ref().unwrap();
    let node = child.node.0;
    let needs = (child.state.needs + more).min(all);
    bench.report_of(id, node, needs as u16, state(needs, 0));
    bench.with(Braid::handle_timeout);
}

/// It looked good by luck.
#[test]
fn a_link_that_carries_far_less_than_promised_is_left() {
    let mut bench = Bench::new(1);
    bench.topology = beside_a_detour(0.8);
    let left = (0..40).find(|_| {
        let next_hops = send_eight(&mut bench);
        gain(&mut bench, 1);
        next_hops.contains(&2)
    });
    assert!(left.is_some_and(|round| round > 5), "{left:?}");
}

/// Link state's short frames collide where a node is busy. A way around it is no better.
#[test]
fn a_link_that_carries_what_was_promised_is_kept_though_link_state_tells_less() {
    let mut bench = Bench::new(1);
    bench.topology = beside_a_detour(0.8);
    for round in 0..40 {
        assert!(!send_eight(&mut bench).contains(&2), "{round}");
        gain(&mut bench, 8);
        if round == 10 {
            bench.topology = beside_a_detour(0.3);
        }
    }
}

/// The way over node 2 becomes 1.45 times as long as that over node 3.
#[test]
fn another_way_must_be_shorter_by_more_while_the_next_hop_gets_packets() {
    let both = |a, b, d: f64| [(a, b, d), (b, a, d)];
    let ways = |last| [both(1, 2, 0.9), both(2, 4, last), both(1, 3, 0.85), both(3, 4, 0.9)];
    let mut bench = Bench::new(1);
    bench.topology = directed(&ways(0.9).concat());
    for round in 0..20 {
        assert!(!send_eight(&mut bench).contains(&3), "{round}");
        gain(&mut bench, 8);
        bench.topology = directed(&ways(0.625).concat());
    }
    // Nothing is sent for two seconds.
    for _ in 0..3 {
        bench.now = bench.now + Duration::from_secs(1);
        bench.with(Braid::handle_timeout);
    }
    assert!(send_eight(&mut bench).contains(&3));
}

#[test]
fn a_next_hop_that_is_silent_is_left_if_there_is_another() {
    let mut bench = Bench::new(1);
    bench.topology = beside_a_detour(0.8);
    let mut next_hops = Vec::new();
    for _ in 0..20 {
        next_hops.extend(send_eight(&mut bench));
        bench.with(Braid::handle_timeout);
    }
    next_hops.dedup();
    assert_eq!(next_hops, [4, 2]);
}

/// 2 sends to 3, which hears nobody else and knows no way back. 1 hears 3, and 2 hears 1.
#[test]
fn a_report_sent_nowhere_is_passed_on_by_the_node_on_the_way() {
    let mut bench = Bench::new(1);
    bench.topology = directed(&[(1, 2, 0.9), (2, 3, 0.9), (3, 1, 0.9)]);
    let parent = NodeId(2);
    let child = NodeId(3);
    let report = Report {
        flow: FlowInstance { destination: child, ..FLOW },
        next_hop: parent,
        parent,
        child,
        number: 1,
        state: state(1, 0),
    };
    let mut body = Vec::new();
    report.write(&mut body);
    bench.frame(3, REPORT, &body);
    assert_eq!(bench.fill(), Some((REPORT, body)));
    // The MAC hears no acknowledgment, and that is the end of it.
    let result = TxResult::Failed;
    let airtime = PACKET_TIME;
    let report = TxReport { result, airtime, heard_by: None };
    bench.with(|e, cx| e.handle_tx_report(cx, report));
    bench.now = bench.now + Duration::from_secs(1);
    assert_eq!(bench.fill(), None);
}

// ---- liars

#[test]
fn a_next_hop_cannot_have_more_than_there_is() {
    let mut bench = Bench::new(2);
    bench.data(1, 2, header(0), &plain(0));
    bench.report(3, 1, state(1_000_000, 0));
    assert_eq!(bench.counters.dropped(DropReason::Malformed), 1);
    assert_eq!(bench.drain(), [(0, 1)]);
    bench.data(1, 2, header(0), &plain(500));
    assert_eq!(bench.counters.dropped(DropReason::Full), 1);
}

#[test]
fn a_jump_to_the_last_number_takes_no_time() {
    let mut bench = Bench::new(4);
    bench.data(3, 4, header(0), &plain(0));
    bench.data(3, 4, header(frame::LAST), &plain(frame::LAST));
    bench.with(Braid::handle_timeout);
    assert_eq!(bench.packets(), [vec![b'I', 0], vec![b'I', 0]]);
}

#[test]
fn settings_out_of_range_are_named() {
    for backlog in [0, 33] {
        let error = BraidConfig { backlog, ..BraidConfig::default() }.check().unwrap_err();
        let text = format!("backlog = {backlog}: allowed is 1 to 32 packets");
        assert_eq!(error.to_string(), text);
    }
    for deadline_ms in [9, 2001] {
        let error = BraidConfig { deadline_ms, ..BraidConfig::default() }.check().unwrap_err();
        let text = format!("deadline_ms = {deadline_ms}: allowed is 10 to 2000 ms");
        assert_eq!(error.to_string(), text);
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(body in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok((header, coded)) = Header::parse(&body) {
            let mut again = Vec::new();
            header.write(&coded, &mut again);
            prop_assert_eq!(&again, &body);
        }
        if let Ok(report) = Report::parse(&body) {
            let mut again = Vec::new();
            report.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
        if let Ok(pair) = Pair::parse(&body) {
            let mut again = Vec::new();
            pair.write(&mut again);
            prop_assert_eq!(again, body);
        }
    }

    /// Whatever a node hears, it neither fails nor keeps more than it may, and what it sends is
    /// well-formed.
    #[test]
    fn no_frame_upsets_it(
        me in 2..5u16,
        frames in prop::collection::vec(
            (1..5u16, 1..5u16, 0..400u32, any::<u8>(), any::<u32>(), 0..8u8, 0..300u64),
            1..150,
        ),
    ) {
        let mut bench = Bench::new(me);
        for (sender, other, oldest, byte, leads, what, wait) in frames {
            bench.now = bench.now + Duration::from_millis(wait);
            if sender == me {
                continue;
            }
            let (turn, collides) = (Some(byte).filter(|byte| *byte < 200), leads & 1 == 1);
            let needs = oldest / 2;
            let backlog = byte;
            let feeds = true;
            let ends = false;
            let more = byte & 1 == 1;
            let ago = Duration::from_micros(16 * wait);
            let handled = Handled { number: (oldest >> 1) as u16, ago };
            let state = State { needs, leads, backlog, turn, collides, feeds, ends, more, handled };
            let number = (leads >> 8) as u16;
            let change = Header { state, number, poll: byte > 99, ..header(oldest) };
            match what {
                0..3 => bench.data(sender, other, change, &plain(oldest + u32::from(byte % 9))),
                3..5 => {
                    let coefficients = [&[1], &vec![byte; usize::from(byte % 64)][..]].concat();
                    let coded = Coded { coefficients, ..plain(oldest) };
                    bench.data(sender, other, change, &coded);
                }
                5 => bench.report(sender, number, state),
                6 => bench.with(Braid::handle_timeout),
                _ => {
                    let next_hop = NodeId(1 + leads as u16 % 4);
                    let of_back = Header { flow: BACK, next_hop, ..change };
                    let coded = plain(oldest + u32::from(byte % 9));
                    let parts = [(change, coded.clone()), (of_back, coded)];
                    bench.pair(sender, parts);
                }
            }
            if let Some((kind, body)) = bench.fill() {
                prop_assert!(summary(kind, &body).is_some());
            }
            for flow in bench.engine.flows.values() {
                prop_assert!(flow.kept() <= 4 * usize::from(frame::WIDTH), "{}", flow.kept());
            }
        }
    }
}
