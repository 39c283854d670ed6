//! Credits as in the paper's figure 3, paths, frames by their bytes. Whole meshes: the tunnels' tests.

mod requests;

use super::credits::Credits;
use super::frame::{Heard, Standing};
use super::generation::Generation;
use super::ledger::{HopSet, Reception};
use super::log::Log;
use super::upstream::Upstream;
use super::*;
use ncmesh_engine::rng;
use ncmesh_engine::testing::directed;
use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::Reader;
use proptest::prelude::*;

/// 1 to 4 over 2 or over 3.
fn diamond(p: f64, q: f64) -> Topology {
    let both = |a, b, d: f64| [(a, b, d), (b, a, d)];
    directed(&[both(1, 2, p), both(1, 3, p), both(2, 4, q), both(3, 4, q)].concat())
}

fn best(topology: &Topology, from: u16, to: u16, k: usize) -> Option<PathSet> {
    PathSet::best(topology, NodeId(from), NodeId(to), k)
}

fn ids(nodes: &[u16]) -> Vec<NodeId> {
    nodes.iter().copied().map(NodeId).collect()
}

#[test]
fn the_best_paths_are_joined() {
    let mesh = diamond(0.5, 0.8);
    let one = best(&mesh, 1, 4, 1).unwrap();
    assert_eq!((one.next_hops(NodeId(1)).len(), one.next_hops(NodeId(4))), (1, vec![]));
    let two = best(&mesh, 1, 4, 2).unwrap();
    let mut hops = two.next_hops(NodeId(1));
    hops.sort();
    assert_eq!((hops, two.next_hops(NodeId(3))), (ids(&[2, 3]), ids(&[4])));
    assert!(two.leads(NodeId(2), NodeId(4)) && !two.leads(NodeId(4), NodeId(2)));
    assert_eq!(best(&mesh, 1, 9, 4), None);
    // A neighbour needs nobody, even where a detour exists.
    assert_eq!(best(&mesh, 1, 2, 1).unwrap().next_hops(NodeId(1)), ids(&[2]));
}

#[test]
fn paths_that_change_places_are_the_same() {
    assert_eq!(best(&diamond(0.5, 0.8), 1, 4, 2), best(&diamond(0.8, 0.5), 1, 4, 2));
    let both = |a, b, d: f64| [(a, b, d), (b, a, d)];
    let mesh =
        |p, q| directed(&[both(1, 2, p), both(1, 3, q), both(2, 4, p), both(3, 4, q)].concat());
    let (one, other) =
        (best(&mesh(0.9, 0.5), 1, 4, 2).unwrap(), best(&mesh(0.5, 0.9), 1, 4, 2).unwrap());
    assert_eq!(one, other);
    assert_eq!(one.next_hops(NodeId(1)), ids(&[2, 3]));
    assert_eq!(one.next_hops(NodeId(3)), ids(&[4]));
}

#[test]
fn paths_that_would_lead_in_circles_are_left_out() {
    // 1-2-3-5 and 1-3-2-5 are both among the best.
    let both = |a, b, d: f64| [(a, b, d), (b, a, d)];
    let links =
        [both(1, 2, 0.9), both(1, 3, 0.8), both(2, 3, 0.9), both(2, 5, 0.5), both(3, 5, 0.5)];
    let set = best(&directed(&links.concat()), 1, 5, 4).unwrap();
    assert!(set.leads(NodeId(2), NodeId(3)) != set.leads(NodeId(3), NodeId(2)));
    let mut bytes = Vec::new();
    set.write(&mut bytes);
    assert_eq!(PathSet::parse(&mut Reader::new(&bytes)), Ok(set));
    // Nodes 1, 2, 3 of which 1 and 3 lead to each other.
    let circle = [3, 0, 1, 0, 0b100, 0, 2, 0, 0, 0, 3, 0, 0b011];
    assert!(PathSet::parse(&mut Reader::new(&circle)).is_err());
    let line = [3, 0, 1, 0, 0b100, 0, 2, 0, 0, 0, 3, 0, 0b010];
    assert!(PathSet::parse(&mut Reader::new(&line)).is_ok());
}

/// Credits that hops are told of, the nominee of a next frame left out.
fn told(credits: &Credits, generation: u32) -> Vec<u16> {
    let (announced, nominee) = credits.announce(generation, [0; 6], 1);
    let mut told = announced.into_iter().next().map_or_else(Vec::new, |(_, told)| told);
    nominee.iter().for_each(|hop| told[*hop] -= 1);
    told
}

fn land(credits: &mut Credits, generation: u32, serial: u16, new: HopSet, taken: u32) {
    let (before, nominee) = (0, None);
    credits.receive(&Reception { generation, serial, before, new, taken, nominee });
}

/// Figure 3: one credit each to nodes 2 and 3; a packet that both receive leaves one owed to either of them.
#[test]
fn figure_3() {
    let mut credits = Credits::new(&[0.5, 0.5], None);
    let mut draws = rng::stream(1, NodeId(1), NAME, "test");
    credits.add(7, 2);
    // Both hops hold as many as this node: nothing is transferred until they say they have fewer.
    (0..2).for_each(|hop| credits.hear(hop, 2));
    assert!(!credits.transfer(&mut draws));
    (0..2).for_each(|hop| credits.hear(hop, 0));
    assert!(credits.transfer(&mut draws));
    // After the first, |C| = 1 is no more than what is on its way to that hop; the other takes the second only once
    // nothing is owed to it: |C| = 1 > 0 + 1 does not hold.
    assert_eq!((credits.held(), told(&credits, 7)), (1, vec![0, 0]));
    credits.add(7, 2);
    credits.transfer(&mut draws);
    assert_eq!(credits.held(), 2, "one each is on its way");
    assert_eq!(credits.due().map(|(generation, _)| generation), Some(7));
    land(&mut credits, 7, 0, 0b11, 4);
    // Each set has received one; the two together were given two.
    let (_, weight) = credits.due().unwrap();
    assert!((weight - 0.75).abs() < 1e-12, "only TC({{2, 3}}), by Q = 1 - 0.5^2: {weight}");
    assert_eq!(told(&credits, 7).iter().sum::<u16>(), 1, "one packet backs one credit");
    land(&mut credits, 7, 1, 0b10, 4);
    assert_eq!(credits.due(), None);
    assert_eq!(told(&credits, 7), [1, 1]);
}

/// Credits towards two hops, of which each was given one, two are held, and the first says that it holds `first`.
fn one_each(first: u32) -> Credits {
    let mut credits = Credits::new(&[0.5, 0.5], None);
    credits.add(7, 4);
    credits.transfer(&mut rng::stream(1, NodeId(1), NAME, "test"));
    assert_eq!(credits.held(), 2);
    credits.hear(0, first);
    credits
}

/// Of two packets the first hop received both, the second neither.
#[test]
fn a_credit_is_taken_over_only_by_who_holds_no_more_than_the_node() {
    for (first, expected) in [(2, [2, 0]), (3, [1, 0])] {
        let mut credits = one_each(first);
        (0..2).for_each(|serial| land(&mut credits, 7, serial, 0b01, 2));
        assert_eq!(told(&credits, 7), expected, "{first}");
    }
}

/// What the second hop receives then is a combination of what the first has, and as good as one of it.
#[test]
fn a_packet_that_is_not_new_to_all_hops_backs_a_credit_in_the_place_of_one_that_was() {
    let mut credits = one_each(3);
    (0..2).for_each(|serial| land(&mut credits, 7, serial, 0b01, 2));
    land(&mut credits, 7, 2, 0b10, 2);
    assert_eq!(told(&credits, 7), [1, 1]);
    assert_eq!(credits.due(), None);
    // Two packets, two credits: nothing backs another.
    credits.hear(0, 0);
    credits.transfer(&mut rng::stream(1, NodeId(1), NAME, "test"));
    land(&mut credits, 7, 3, 0b11, 2);
    assert_eq!(told(&credits, 7), [1, 1]);
}

#[test]
fn a_hop_that_hears_nothing_is_left_out_and_what_it_does_not_know_of_comes_back() {
    let mut credits = Credits::new(&[0.9, 0.9], None);
    let mut draws = rng::stream(1, NodeId(1), NAME, "test");
    (0..400).for_each(|_| credits.observe(1, false));
    credits.hear(0, 1000);
    credits.add(1, 8);
    assert!(!credits.transfer(&mut draws), "one is full, the other gone");
    credits.hear(0, 0);
    assert!(credits.transfer(&mut draws));
    let held = credits.held();
    assert!(held < 8);
    credits.follow(&[0.5], None);
    assert_eq!(credits.held(), 8);
    assert_eq!(credits.forget(2), 8);
    assert_eq!(credits.held(), 0);
}

/// A hop says rarely how many credits it holds; what it learned of since counts all the same.
#[test]
fn a_hop_is_given_no_more_before_it_says_that_it_holds_fewer() {
    let mut credits = Credits::new(&[0.9], None);
    let mut draws = rng::stream(1, NodeId(1), NAME, "test");
    credits.add(1, 64);
    credits.transfer(&mut draws);
    // 22 given count twice, as owed and as not known of.
    assert_eq!(credits.held(), 42);
    for serial in 0..22 {
        land(&mut credits, 1, serial, 0b1, 64);
    }
    let told = told(&credits, 1);
    assert_eq!(told, [22]);
    credits.learn(0, &[(1, told)]);
    // It holds 20 of them, should two of its frames have been missed.
    credits.transfer(&mut draws);
    assert_eq!(credits.held(), 34);
    credits.hear(0, 10);
    assert!(credits.transfer(&mut draws));
}

/// Over a link that goes one way a hop never says how many it holds: what it learned of it may have sent on.
#[test]
fn a_hop_that_is_never_heard_is_not_shut_out() {
    let mut credits = Credits::new(&[0.9], None);
    credits.hears(&[0.0]);
    let mut draws = rng::stream(1, NodeId(1), NAME, "test");
    credits.add(1, 64);
    credits.transfer(&mut draws);
    assert_eq!(credits.held(), 42);
    (0..22).for_each(|serial| land(&mut credits, 1, serial, 0b1, 64));
    let told = told(&credits, 1);
    credits.learn(0, &[(1, told)]);
    credits.transfer(&mut draws);
    assert_eq!(credits.held(), 28, "as if it held none");
}

#[test]
fn a_hop_that_hears_little_is_not_gone() {
    let mut credits = Credits::new(&[0.1], None);
    let mut draws = rng::stream(1, NodeId(1), NAME, "test");
    (0..100).for_each(|_| credits.observe(0, false));
    credits.add(1, 2);
    assert!(credits.transfer(&mut draws));
    assert!(credits.due().is_some());
    (0..28).for_each(|_| credits.observe(0, false));
    assert_eq!(credits.due(), None);
    assert!(credits.owing().is_some_and(|(_, weight)| weight > 0.0), "it is tried all the same");
    credits.observe(0, true);
    assert!(credits.due().is_some());
}

/// Over a link of one half one of four answers is heard with a chance of 0.94.
#[test]
fn who_waits_is_answered_again_until_it_goes_on() {
    let paths = best(&diamond(0.5, 0.8), 2, 4, 1).unwrap();
    let numbered = |serial, waits| Header { serial, waits, ..header(paths.clone()) };
    let me = (NodeId(4), 0.5);
    let mut upstream = Upstream::new((NodeId(2), 1), &numbered(1, true), me, Instant::default());
    let mut answered = 0;
    while let Some(at) = upstream.reports_at() {
        assert!(upstream.owes_report(at));
        upstream.report(at);
        answered += 1;
    }
    assert_eq!(answered, 4);
    upstream.note(&numbered(2, true), me.0, Instant::default());
    let soon = upstream.reports_at().unwrap();
    upstream.report(soon);
    upstream.note(&numbered(3, false), me.0, soon);
    assert!(upstream.reports_at().unwrap() > soon + Duration::from_millis(40), "it goes on");
}

fn header(paths: PathSet) -> Header {
    Header {
        incarnation: 0x0001_0001,
        paths,
        revision: 2,
        serial: 0x0304,
        asks: true,
        waits: true,
        standing: Standing {
            credits: 5,
            done: 0,
            heard: vec![Heard { of: NodeId(1), latest: 9, before: 0b11 }],
        },
        announced: vec![(6, vec![7])],
        generation: 6,
        room: 2,
        size: 0,
        size_before: 2,
        symbol: 3,
    }
}

/// The golden vectors of docs/wire-format.md.
#[test]
fn golden_frames() {
    let paths = best(&diamond(0.5, 0.8), 2, 4, 1).unwrap();
    let mut data = Vec::new();
    header(paths.clone()).write(&mut data);
    data.extend_from_slice(&[1, 0, 0, 1, 0xaa]);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let expected = "00010001 02 0002 0002 0004 0000 02 0304 03 0005 00000000 01 0001 0009 00000003 01 01 00000006 \
                    0007 00000006 02 00 02 0003 0100 0001aa";
    assert_eq!(hex(&data), expected.replace(' ', ""));
    let parsed = Data::parse(&data).unwrap();
    assert_eq!(parsed.header, header(paths));
    assert_eq!((parsed.coefficients, parsed.payload), (&[1, 0][..], &[0, 1, 0xaa][..]));
    for end in 0..data.len() {
        assert!(Data::parse(&data[..end]).is_err(), "{end}");
    }
    let start = FlowInstance { source: NodeId(2), destination: NodeId(4), incarnation: 1 };
    let mut report = Vec::new();
    Report { start, standing: Standing { credits: 0, done: 7, heard: vec![] } }.write(&mut report);
    assert_eq!(hex(&report), "0002000400000001 0000 00000007 00".replace(' ', ""));
    let mut request = Vec::new();
    let next = NodeId(2);
    Request { start, next, generation: 6, serial: 1, missing: 3 }.write(&mut request);
    assert_eq!(hex(&request), "00020004000000010002000000060103");
}

proptest! {
    #[test]
    fn parsing_never_panics_and_what_is_read_is_written_alike(body in prop::collection::vec(any::<u8>(), 0..90)) {
        if let Ok(data) = Data::parse(&body) {
            let mut again = Vec::new();
            data.header.write(&mut again);
            again.extend_from_slice(data.coefficients);
            again.extend_from_slice(data.payload);
            prop_assert_eq!(Data::parse(&again), Ok(data));
        }
        let _ = (Report::parse(&body), Request::parse(&body));
    }

    /// Whatever happens, credits are neither made nor lost, and no more is told than was received.
    #[test]
    fn credits_are_conserved(
        added in prop::collection::vec((0u32..4, 1u32..20), 1..8),
        landings in prop::collection::vec((0u32..4, 0u8..8), 0..60),
        theirs in prop::collection::vec(0u32..6, 3),
    ) {
        let mut credits = Credits::new(&[0.7, 0.4, 0.9], None);
        let mut draws = rng::stream(3, NodeId(1), NAME, "test");
        let all: u32 = added.iter().map(|(_, credits)| credits).sum();
        added.iter().for_each(|(generation, number)| credits.add(*generation, *number));
        theirs.iter().enumerate().for_each(|(hop, held)| credits.hear(hop, *held));
        for (serial, (generation, heard)) in landings.iter().enumerate() {
            credits.transfer(&mut draws);
            if *heard != 0 {
                land(&mut credits, *generation, serial as u16, *heard, 64);
            }
        }
        for generation in 0..4 {
            let told: u16 = told(&credits, generation).iter().sum();
            let received = landings.iter().filter(|(g, heard)| *g == generation && *heard != 0).count();
            prop_assert!(usize::from(told) <= received);
        }
        credits.follow(&[0.5], None);
        prop_assert_eq!(credits.held(), all);
    }
}

#[test]
fn a_frame_tells_its_nominee_of_a_credit_if_it_is_heard() {
    let mut credits = Credits::new(&[0.9], None);
    let mut draws = rng::stream(1, NodeId(1), NAME, "test");
    credits.add(1, 8);
    let mut log = Log::default();
    for i in 0..3u16 {
        credits.transfer(&mut draws);
        let announcement = credits.announce(1, log.nominated(1), 3);
        // Whoever hears one of them has one packet, and is told of one credit, not of those in frames that it missed.
        assert_eq!((&announcement, log.nominated(1)[0]), (&(vec![(1, vec![1])], Some(0)), i));
        log.push(1, 8, announcement, Instant::from_nanos(0));
    }
    log.expect(&mut credits, None);
    // Of frames 0, 1 and 2 the hop has heard 0 and 2.
    let heard = Heard { of: NodeId(1), latest: 2, before: 0b10 };
    log.report(0, heard, &mut credits);
    assert_eq!(told(&credits, 1), [2]);
    // Again says nothing new.
    log.report(0, heard, &mut credits);
    assert_eq!((told(&credits, 1), log.nominated(1)[0]), (vec![2], 0));
    let announcement = credits.announce(1, log.nominated(1), 3);
    assert_eq!(announcement, (vec![(1, vec![3])], Some(0)));
    log.push(1, 8, announcement, Instant::from_nanos(0));
    assert_eq!(log.nominated(1)[0], 1);
    log.expire(Duration::from_secs(1), 1, Instant::from_nanos(2_000_000_000), &mut credits);
    assert_eq!(log.nominated(1)[0], 0);
}

#[test]
fn what_was_heard_is_noted_in_any_order_and_lies_are_told() {
    let paths = best(&diamond(0.5, 0.8), 2, 4, 1).unwrap();
    let numbered = |serial| Header { serial, ..header(paths.clone()) };
    let me = (NodeId(4), 0.5);
    let mut upstream = Upstream::new((NodeId(2), 1), &numbered(10), me, Instant::default());
    let fresh = [12, 11, 12, 10, 40]
        .map(|serial| upstream.note(&numbered(serial), NodeId(4), Instant::default()));
    assert_eq!(fresh, [true, true, false, false, true]);
    let heard = upstream.report(Instant::default());
    assert_eq!((heard.latest, heard.before), (40, 0b111 << 27));

    let mut generations = [(6, Generation::new(2, 3, false).unwrap())].into();
    let bold = Header { announced: vec![(6, vec![17])], ..header(paths.clone()) };
    assert!(!upstream.learn(&bold, 0, &mut generations), "17 credits for 2 packets");
    let modest = Header { announced: vec![(6, vec![3])], ..header(paths) };
    assert!(upstream.learn(&modest, 0, &mut generations));
    let generation = generations.get_mut(&6).unwrap();
    assert_eq!((generation.announced, generation.accept()), (3, 0), "nothing backs them yet");
    generation.absorb(&[1, 0], &[0, 1, 9]).unwrap();
    assert_eq!((generation.accept(), generation.accept()), (1, 0));
}

/// A request that went another way is answered at the source, with a credit that no new packet comes with.
#[test]
fn a_relay_with_the_whole_generation_takes_in_the_credits_of_answers() {
    let mut generation = Generation::new(2, 3, false).unwrap();
    generation.size = 2;
    for vector in [[1, 0], [1, 1]] {
        generation.announced += 1;
        generation.absorb(&vector, &[0, 1, 9]).unwrap();
        assert_eq!(generation.accept(), 1);
    }
    generation.announced += 1;
    assert_eq!(generation.absorb(&[2, 1], &[0, 1, 9]), Some(false));
    assert_eq!(generation.accept(), 1);
    generation.announced += 100;
    assert_eq!(generation.accept(), 5, "four times two in all");
}

/// One node's engine in a mesh, with what it counts.
struct Node {
    me: u16,
    mtu: usize,
    topology: Topology,
    engine: Mc2,
    counters: ncmesh_engine::counters::Counters,
}

impl Node {
    fn new(me: u16, mtu: usize) -> Self {
        let (engine, counters) = (Mc2::new(Mc2Config::default()), Default::default());
        Self { me, mtu, topology: diamond(0.5, 0.8), engine, counters }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Mc2, &mut Context<'_>) -> T) -> T {
        let me = NodeId(self.me);
        let mut cx = Context {
            now: Instant::default(),
            me,
            epoch: 1,
            mtu: self.mtu,
            topology: &self.topology,
            rng: &mut rng::stream(1, me, NAME, "test"),
            counters: &mut self.counters,
            events: &mut VecDeque::new(),
            storage: &mut ncmesh_engine::storage::MemoryStorage::default(),
        };
        act(&mut self.engine, &mut cx)
    }

    fn hear(&mut self, sender: u16, kind: u8, body: &[u8]) {
        let frame = Frame { sender: NodeId(sender), epoch: 1, service: ID, kind, body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    /// A frame of node 1 for node 4 that tells this node of `credits`, of one packet.
    fn is_told(&mut self, credits: u16, payload: usize) {
        let paths = best(&self.topology, 1, 4, 2).unwrap();
        let hops = paths.next_hops(NodeId(1));
        let told = hops.iter().map(|hop| if hop.0 == self.me { credits } else { 0 }).collect();
        let announced = vec![(6, told)];
        let mut body = Vec::new();
        Header { announced, symbol: payload as u16, ..header(paths) }.write(&mut body);
        body.extend_from_slice(&[1, 0]);
        body.resize(body.len() + payload, 1);
        self.hear(1, DATA, &body);
    }
}

/// What node 2, a relay whose frames have room for `mtu` bytes, makes of a frame of node 1 for node 4.
fn relayed(mtu: usize, payload: usize) -> (u64, bool) {
    let mut node = Node::new(2, mtu);
    node.is_told(1, payload);
    let mut out = Vec::new();
    let filled = node.with(|engine, cx| engine.fill(cx, &mut out));
    assert!(out.len() <= mtu);
    (node.counters.dropped(DropReason::Malformed), filled.is_some_and(|f| f.kind == DATA))
}

#[test]
fn a_relay_sends_on_what_fits_its_frames() {
    assert_eq!(relayed(1400, 1000), (0, true));
    assert_eq!(relayed(1100, 1000), (1, false));
}

/// Who lies about credits gets no more sent on than packets came from it; a lie that nobody could tell in earnest is counted.
#[test]
fn a_lie_about_credits_does_bounded_harm() {
    for (credits, counted) in [(16, 0), (17, 1), (u16::MAX, 1)] {
        let mut node = Node::new(2, 1400);
        node.is_told(credits, 100);
        assert_eq!(node.counters.dropped(DropReason::Malformed), counted, "{credits}");
        let held: u64 = node.engine.flows().iter().map(|flow| flow.credits).sum();
        assert!(held <= 1, "{held} credits for one packet");
    }
}

/// What is said to others of flows that pass by is nothing that was dropped.
#[test]
fn what_is_not_for_a_node_is_not_counted() {
    let start = FlowInstance { source: NodeId(7), destination: NodeId(8), incarnation: 1 };
    let report = |of| {
        let mut body = Vec::new();
        let heard = vec![Heard { of: NodeId(of), latest: 1, before: 0 }];
        Report { start, standing: Standing { heard, ..Standing::default() } }.write(&mut body);
        body
    };
    let mut node = Node::new(2, 1400);
    node.hear(3, REPORT, &report(9));
    assert_eq!(node.counters.drops().count(), 0);
    node.hear(3, REPORT, &report(2));
    assert_eq!(node.counters.dropped(DropReason::UnknownFlow), 1);
}

#[test]
fn packets_that_fit_no_frame_are_refused_and_so_are_all_where_headers_do_not_fit() {
    let mut node = Node::new(1, 1400);
    let longest = node.engine.longest(1400);
    let mut offer = |mtu, bytes: usize, to: u16| {
        node.mtu = mtu;
        node.with(|engine, cx| engine.handle_packet(cx, NodeId(to), &vec![1; bytes]))
    };
    assert_eq!(offer(1400, longest, 4), Ok(()));
    let too_long = |bytes, longest| Err(PacketError::TooLong { bytes, longest });
    assert_eq!(offer(1400, longest + 1, 4), too_long(longest + 1, longest));
    assert_eq!(offer(150, 1, 3), too_long(1, 0));
    assert_eq!(offer(1400, 1, 9), Err(PacketError::NoPath(NodeId(9))));
    assert_eq!(offer(1400, 1, 1), Err(PacketError::Oneself));
}

#[test]
fn settings_out_of_range_are_named() {
    let check = |config: Mc2Config| config.check().unwrap_err();
    assert_eq!(check(Mc2Config { paths: 0, ..Default::default() }), "paths = 0: allowed is 1 to 8");
    let bad = [
        Mc2Config { generation: 0, ..Default::default() },
        Mc2Config { k: f64::NAN, ..Default::default() },
        Mc2Config { queue: 0, ..Default::default() },
        Mc2Config { flush_ms: 0, ..Default::default() },
        Mc2Config { request_ms: 1, ..Default::default() },
        Mc2Config { requests: 101, ..Default::default() },
    ];
    for (config, name) in
        bad.into_iter().zip(["generation", "k", "queue", "flush_ms", "request_ms", "requests"])
    {
        assert!(check(config).starts_with(name), "{name}");
    }
}
