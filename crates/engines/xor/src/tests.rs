//! Frames by their bytes; what one node does with packets that cross. Whole meshes: `tests/tests/xor.rs`.

use super::frame::{Heard, parse_report, parse_request, write_report, write_request};
use super::*;
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::topology::Topology;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Packet 7 of node 1, from node 2 to node 3.
fn tag() -> Tag {
    let id = PacketId { source: NodeId(1), number: 7 };
    Tag { id, order: 0, at: 1, route: vec![NodeId(2), NodeId(3)], more: false }
}

/// Packet 9 of node 3, from node 2 to node 1.
fn tag_back() -> Tag {
    let id = PacketId { source: NodeId(3), number: 9 };
    Tag { id, route: vec![NodeId(2), NodeId(1)], ..tag() }
}

/// What node 2 sends.
fn parse(body: &[u8]) -> Result<Data<'_>, ncmesh_engine::Malformed> {
    Data::parse(body, NodeId(2))
}

fn part(tag: Tag, packet: &[u8]) -> Part {
    Part { tag, length: packet.len() as u16, check: check_of(packet) }
}

/// The golden vectors of docs/wire-format.md.
#[test]
fn golden_frames() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let (one, other) = (Tag { order: 5, ..tag() }, tag_back());
    let mut body = Vec::new();
    Data::write_one(&one, b"IP", &mut body);
    assert_eq!(hex(&body), "0111000000070005000100034950");
    assert_eq!(parse(&body), Ok(Data::One(one.clone(), b"IP")));
    body.clear();
    Data::write_one(&Tag { at: 0, ..one.clone() }, b"IP", &mut body);
    assert_eq!(hex(&body), "01010000000700050001000200034950");
    body.clear();
    Data::write_two((&one, b"IP"), (&other, b"ACK"), &mut body);
    let coded = "0200010003000211000000090000ce6bb2c91100000007000564f2c448";
    assert_eq!(hex(&body), format!("{coded}08134b"));
    assert_eq!(body.len(), Data::len_of_two(&one, &other) + 3);
    let parts = [part(other.clone(), b"ACK"), part(one.clone(), b"IP")];
    assert_eq!(parse(&body), Ok(Data::Two(parts, &[8, 0x13, b'K'])));
    // More will follow to the next hop of the longer packet, of the shorter one, of a packet alone.
    let more = |tag: &Tag, more| Tag { more, ..tag.clone() };
    for (bits, of_other, of_one) in [(0x80, true, false), (0x40, false, true)] {
        let mut flagged = Vec::new();
        let (one, other) = (more(&one, of_one), more(&other, of_other));
        Data::write_two((&one, b"IP"), (&other, b"ACK"), &mut flagged);
        assert_eq!((flagged[0], &flagged[1..]), (2 | bits, &body[1..]));
        let parts = [part(other, b"ACK"), part(one, b"IP")];
        assert_eq!(parse(&flagged), Ok(Data::Two(parts, &[8, 0x13, b'K'])));
    }
    let mut flagged = Vec::new();
    Data::write_one(&more(&one, true), b"IP", &mut flagged);
    assert_eq!((flagged[0], parse(&flagged)), (0x81, Ok(Data::One(more(&one, true), b"IP"))));
    for wrong in [0x41, 0xC1, 0x82 | 0x20, 0x80] {
        flagged[0] = wrong;
        assert!(parse(&flagged).is_err(), "{wrong:x}");
    }
    for end in 0..body.len() {
        assert!(parse(&body[..end]).is_err() || end > 29, "{end}");
    }
    body.clear();
    let heard = [(NodeId(2), Heard { coded: 40, decoded: 39 })];
    write_report(&heard, &mut body);
    assert_eq!(hex(&body), "00020000002800000027");
    assert_eq!(parse_report(&body), Ok(heard.to_vec()));
    body.clear();
    write_request(NodeId(2), &[5, 9], &mut body);
    assert_eq!(hex(&body), "000200050009");
    assert_eq!(parse_request(&body), Ok((NodeId(2), vec![5, 9])));
    assert!(parse_request(&body[..2]).is_err() && parse_request(&body[..3]).is_err());
}

#[test]
fn tags_that_contradict_themselves_are_malformed() {
    let refused = |one: &Tag, other: Option<&Tag>| {
        let mut body = Vec::new();
        match other {
            None => Data::write_one(one, b"IP", &mut body),
            Some(other) => Data::write_two((one, b"IP"), (other, b"ACK"), &mut body),
        }
        parse(&body).is_err()
    };
    let (one, other) = (tag(), tag_back());
    let nodes = |ids: &[u16]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
    assert!(!refused(&one, None) && !refused(&one, Some(&other)));
    assert!(refused(&Tag { at: 2, ..one.clone() }, None));
    assert!(refused(&Tag { route: nodes(&[2, 1]), ..one.clone() }, None));
    // One without a packet, two at the first hop, two of a packet.
    let mut empty = Vec::new();
    Data::write_one(&one, b"", &mut empty);
    assert!(parse(&empty).is_err());
    assert!(refused(&Tag { at: 0, ..one.clone() }, Some(&Tag { at: 0, ..other.clone() })));
    assert!(refused(&one, Some(&one)));
    // A second packet that is empty, or longer than the first.
    for length in [0, 4] {
        let mut body = Vec::new();
        Data::write_two((&one, b"IP"), (&other, b"ACK"), &mut body);
        body[6] = length;
        assert!(parse(&body).is_err(), "{length}");
    }
}

#[test]
fn frames_are_left_room_for() {
    let long = |hops: u16, source: u16| Tag {
        id: PacketId { source: NodeId(source), number: 1 },
        route: (source + 1..=source + hops).map(NodeId).collect(),
        at: 0,
        ..tag()
    };
    let mut body = Vec::new();
    Data::write_one(&long(16, 1), b"", &mut body);
    assert!(body.len() <= Data::RESERVED, "{}", body.len());
    assert_eq!(Data::len_of_two(&long(8, 1), &long(4, 1)), Data::RESERVED);
}

proptest! {
    #[test]
    fn parsing_never_panics(mut body in prop::collection::vec(any::<u8>(), 0..90)) {
        // So that some of it comes further than the count and the way.
        for (i, few) in [(0, 0xC3), (1, 0x3F)] {
            if let Some(byte) = body.get_mut(i) {
                *byte &= few;
            }
        }
        let mut again = Vec::new();
        if let Ok(Data::One(tag, packet)) = parse(&body) {
            Data::write_one(&tag, packet, &mut again);
            prop_assert_eq!(again, body.clone());
        }
        if let Ok(entries) = parse_report(&body) {
            let mut again = Vec::new();
            write_report(&entries, &mut again);
            prop_assert_eq!(again, body);
        }
    }

    #[test]
    fn either_packet_comes_back_out_of_two(
        one in prop::collection::vec(any::<u8>(), 1..60),
        other in prop::collection::vec(any::<u8>(), 1..60),
        (before, behind, other_before, other_behind) in (1..5_u8, 1..5_u16, 1..5_u8, 1..5_u16),
    ) {
        // Both ways lead over 102, from and to 101 and 103; other nodes of theirs are anywhere.
        let way = |[previous, next]: [u16; 2], base: u16, before: u8, behind: u16| {
            let mut nodes: Vec<NodeId> = (1..u16::from(before)).map(|i| NodeId(base + i)).collect();
            nodes.extend([previous, 102, next].map(NodeId));
            nodes.extend((1..behind).map(|i| NodeId(base + 50 + i)));
            let id = PacketId { source: nodes[0], number: 7 };
            Tag { id, order: 3, at: before, route: nodes[1..].to_vec(), more: false }
        };
        let tags = [way([101, 103], 200, before, behind), way([103, 101], 300, other_before, other_behind)];
        let mut body = Vec::new();
        Data::write_two((&tags[0], &one), (&tags[1], &other), &mut body);
        prop_assert_eq!(body.len(), Data::len_of_two(&tags[0], &tags[1]) + one.len().max(other.len()));
        let Data::Two(parts, payload) = Data::parse(&body, NodeId(102)).unwrap() else {
            panic!("it has two packets")
        };
        let [first, second] = if one.len() < other.len() {
            [(&tags[1], &other, &one), (&tags[0], &one, &other)]
        } else {
            [(&tags[0], &one, &other), (&tags[1], &other, &one)]
        };
        for (part, (tag, packet, known)) in parts.into_iter().zip([first, second]) {
            prop_assert_eq!(&part, &self::part(tag.clone(), packet));
            let mut decoded = payload.to_vec();
            frame::xor(&mut decoded, known);
            decoded.truncate(usize::from(part.length));
            prop_assert_eq!(&decoded, packet);
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

const MS: Duration = Duration::from_millis(1);

impl Bench {
    fn new(me: u16, settings: &str) -> Self {
        let config: XorConfig = toml::from_str(settings).unwrap();
        config.check().unwrap();
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
            topology: &self.topology,
            rng: &mut rng::stream(1, self.me, "xor", "test"),
            counters: &mut self.counters,
            events: &mut self.events,
            storage: &mut MemoryStorage::default(),
        };
        call(&mut self.engine, &mut cx)
    }

    fn send(&mut self, to: u16, packet: &[u8]) -> Result<(), PacketError> {
        self.with(|engine, cx| engine.handle_packet(cx, NodeId(to), packet))
    }

    /// Fills a granted frame, reports it sent, and gives its kind, receiver and body.
    fn fill(&mut self) -> Option<(u8, Option<NodeId>, Vec<u8>)> {
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out))?;
        let report = TxReport { result: TxResult::Sent, airtime: MS, heard_by: None };
        self.with(|engine, cx| engine.handle_tx_report(cx, report));
        Some((filled.kind, filled.to, out))
    }

    /// Fills a granted frame, which takes 1 ms.
    fn fill_slowly(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.with(|engine, cx| engine.fill(cx, &mut out))?;
        self.now = self.now + MS;
        let report = TxReport { result: TxResult::Sent, airtime: MS, heard_by: None };
        self.with(|engine, cx| engine.handle_tx_report(cx, report));
        Some(out)
    }

    fn hear(&mut self, sender: u16, kind: u8, body: &[u8]) {
        let frame = Frame { sender: NodeId(sender), epoch: 1, service: ID, kind, body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    fn packet(&mut self) -> Option<(NodeId, Vec<u8>)> {
        match self.events.pop_front()? {
            Event::Packet { from, packet } => Some((from, packet)),
            other => panic!("{other:?}"),
        }
    }

    fn status(&self) -> CodingStatus {
        self.engine.coding(self.now).unwrap()
    }
}

/// Nodes 1, 2 and 3; packets of 1 and 3 for each other have come to 2.
fn crossing(settings: &str) -> [Bench; 3] {
    let mut nodes = [1, 2, 3].map(|me| Bench::new(me, settings));
    nodes[0].send(3, b"from one to three").unwrap();
    nodes[2].send(1, b"from three").unwrap();
    for sender in [0, 2] {
        let (kind, _, body) = nodes[sender].fill().unwrap();
        nodes[1].hear(sender as u16 + 1, kind, &body);
    }
    nodes
}

#[test]
fn a_relay_codes_what_crosses_and_both_ends_decode() {
    let mut nodes = crossing("hold_time_s = 0.002\nmin_overlap = 0.0");
    let (kind, to, body) = nodes[1].fill().unwrap();
    assert_eq!((kind, to, body[0]), (DATA, None, 2));
    assert_eq!(nodes[1].fill(), None);
    for node in [0, 2] {
        nodes[node].hear(2, kind, &body);
    }
    assert_eq!(nodes[0].packet(), Some((NodeId(3), b"from three".to_vec())));
    assert_eq!(nodes[2].packet(), Some((NodeId(1), b"from one to three".to_vec())));
    assert_eq!(nodes[0].status().decoded, 1);
    assert_eq!((nodes[1].status().sent, nodes[1].status().coded), (1, 1));
    // Heard again by other means, it is not delivered again.
    nodes[0].hear(2, kind, &body);
    assert_eq!((nodes[0].packet(), nodes[0].counters.dropped(DropReason::Stale)), (None, 1));
}

#[test]
fn without_coding_everything_goes_as_it_is() {
    let mut nodes = crossing("coding = false\nunicast = false");
    for to in [3, 1] {
        let (kind, at_mac, body) = nodes[1].fill().unwrap();
        assert_eq!((kind, at_mac, body[0]), (DATA, None, 1));
        assert_eq!(parse(&body).unwrap().first().next(), NodeId(to));
    }
    assert_eq!(nodes[1].fill(), None);
    let mut unicast = crossing("coding = false");
    assert_eq!(unicast[1].fill().map(|(_, to, _)| to), Some(Some(NodeId(3))));
    let mut held = crossing("coding = false\nhold_time_s = 0.002");
    assert_eq!(held[1].fill(), None);
    held[1].now = held[1].now + 2 * MS;
    assert_eq!(held[1].fill().map(|(_, _, body)| body[0]), Some(1));
}

#[test]
fn a_packet_that_meets_none_is_sent_when_its_hold_time_is_over() {
    let mut nodes = crossing("hold_time_s = 0.002\nqueue = 3\nunicast = false");
    let relay = &mut nodes[1];
    relay.fill().unwrap();
    let mut body = Vec::new();
    let more = |number| Tag { id: PacketId { source: NodeId(1), number }, at: 0, ..tag() };
    for number in 8..13 {
        body.clear();
        Data::write_one(&more(number), b"IP", &mut body);
        relay.hear(1, DATA, &body);
    }
    // The queue holds three.
    assert_eq!(relay.counters.dropped(DropReason::Full), 2);
    assert_eq!((relay.engine.offer(relay.now), relay.fill()), (None, None));
    let due = relay.now + 2 * MS;
    assert_eq!(relay.engine.poll_timeout(relay.now), Some(due));
    relay.now = due;
    assert!(relay.engine.offer(due).is_some());
    relay.with(Engine::handle_timeout);
    assert_eq!(relay.engine.poll_timeout(due), None);
    let sent: Vec<_> = core::iter::from_fn(|| relay.fill()).collect();
    assert_eq!(sent.len(), 3);
    let flows = relay.engine.flows();
    let flow = flows.iter().find(|flow| flow.source == NodeId(1)).unwrap();
    assert_eq!((flow.heard, flow.lost, flow.credits), (6, 2, 0));
}

#[test]
fn what_cannot_be_decoded_or_decodes_to_nonsense_is_discarded() {
    let mut nodes = crossing("hold_time_s = 0.002\nmin_overlap = 0.0");
    let (kind, _, body) = nodes[1].fill().unwrap();
    let mut stranger = Bench::new(1, "");
    stranger.hear(2, kind, &body);
    assert_eq!((stranger.packet(), stranger.status().undecodable), (None, 1));
    // A wrong packet under the name of the right one.
    let name = parse(&body).unwrap().first().id;
    stranger.engine.cache.keep(name, Arc::from(*b"something else"));
    stranger.hear(2, kind, &body);
    assert_eq!((stranger.packet(), stranger.status().undecodable), (None, 2));
    assert_eq!(stranger.counters.dropped(DropReason::Undecodable), 2);
    // From an end of the way, which sends nothing on; for others; of no kind.
    nodes[0].hear(3, kind, &body);
    assert_eq!(nodes[0].counters.dropped(DropReason::Malformed), 1);
    let mut other = Bench::new(4, "");
    other.hear(2, kind, &body);
    assert_eq!((other.packet(), other.counters.drops().count()), (None, 0));
    other.hear(2, 9, &body);
    assert_eq!(other.counters.dropped(DropReason::Malformed), 1);
}

#[test]
fn flows_that_cross_only_here_are_coded_too() {
    let mut relay = Bench::new(2, "hold_time_s = 0.002\nunicast = false");
    // 4 -> 3 -> 2 -> 1 and 1 -> 2 -> 3: neither ends where the other begins.
    let far = PacketId { source: NodeId(4), number: 1 };
    let long = Tag { id: far, at: 1, route: vec![NodeId(3), NodeId(2), NodeId(1)], ..tag() };
    for (sender, tag) in [(3, long), (1, Tag { at: 0, ..tag() })] {
        let mut body = Vec::new();
        Data::write_one(&tag, b"IP", &mut body);
        relay.hear(sender, DATA, &body);
    }
    assert_eq!(relay.fill().map(|(_, _, body)| body[0]), Some(2));
}

#[test]
fn a_relay_stops_coding_for_who_does_not_decode() {
    let mut relay = Bench::new(2, "hold_time_s = 0.002");
    let mut coded = 0;
    for number in 0..200 {
        relay.now = relay.now + 100 * MS;
        let id = |source| PacketId { source: NodeId(source), number };
        for (sender, route) in [(1, [2, 3]), (3, [2, 1])] {
            let route = route.map(NodeId).to_vec();
            let mut body = Vec::new();
            let tag = Tag { id: id(sender), at: 0, route, ..tag() };
            Data::write_one(&tag, b"IP", &mut body);
            relay.hear(sender, DATA, &body);
        }
        relay.now = relay.now + 5 * MS;
        while let Some((kind, _, body)) = relay.fill() {
            coded += u32::from(kind == DATA && body[0] == 2);
        }
        let mut report = Vec::new();
        for (node, decoded) in [(1, coded), (3, coded / 2)] {
            report.clear();
            write_report(&[(NodeId(2), Heard { coded, decoded })], &mut report);
            relay.hear(node, REPORT, &report);
        }
    }
    assert!((32..80).contains(&coded), "{coded}");
    let stopped = relay.status().stopped;
    assert_eq!((stopped.len(), stopped[0].0), (1, NodeId(3)));
    assert!(stopped[0].1.starts_with("decoded only "), "{stopped:?}");
}

#[test]
fn what_is_lost_between_two_nodes_is_asked_for_and_comes_in_its_place() {
    let mut nodes = crossing("hold_time_s = 0.002\nmin_overlap = 0.0\nmin_decoded = 0.0");
    // The coded frame reaches node 1 alone; node 3 hears the next one.
    let (kind, _, lost) = nodes[1].fill().unwrap();
    nodes[0].hear(2, kind, &lost);
    nodes[0].send(3, b"another").unwrap();
    let (kind, _, body) = nodes[0].fill().unwrap();
    nodes[1].hear(1, kind, &body);
    nodes[1].now = nodes[1].now + 2 * MS;
    let (kind, _, body) = nodes[1].fill().unwrap();
    assert_eq!(parse(&body).unwrap().first().order, 2);
    // Node 3 had heard of node 2 before: from nothing it could not know that one is missing.
    let mut first = Vec::new();
    let id = PacketId { source: NodeId(1), number: 1 };
    let route = vec![NodeId(2), NodeId(3)];
    let old = Tag { id, order: u16::MAX, route, ..tag() };
    Data::write_one(&old, b"old", &mut first);
    nodes[2].hear(2, DATA, &first);
    assert_eq!(nodes[2].packet(), Some((NodeId(1), b"old".to_vec())));
    nodes[2].hear(2, kind, &body);
    assert_eq!(nodes[2].packet(), None);
    let (kind, to, request) = nodes[2].fill().unwrap();
    assert_eq!(
        (kind, to, parse_request(&request)),
        (REQUEST, Some(NodeId(2)), Ok((NodeId(2), vec![1])))
    );
    nodes[1].hear(3, kind, &request);
    nodes[1].hear(3, kind, &request);
    // Coded again, for who missed one may well not be the only one.
    let (kind, to, again) = nodes[1].fill().unwrap();
    assert_eq!((to, again[0], nodes[1].status().repeated), (None, 2, 1));
    nodes[0].hear(2, kind, &again);
    assert_eq!(nodes[0].counters.dropped(DropReason::Stale), 1);
    nodes[2].hear(2, kind, &again);
    assert_eq!(nodes[2].packet(), Some((NodeId(1), b"from one to three".to_vec())));
    assert_eq!(nodes[2].packet(), Some((NodeId(1), b"another".to_vec())));
    assert_eq!(nodes[1].fill(), None);
}

#[test]
fn a_packet_is_taken_at_its_first_hop_from_its_source_alone() {
    let mut node = Bench::new(2, "");
    let mut body = Vec::new();
    Data::write_one(&Tag { at: 0, ..tag() }, b"IP", &mut body);
    node.hear(3, DATA, &body);
    assert_eq!((node.fill(), node.counters.dropped(DropReason::Malformed)), (None, 1));
    node.hear(1, DATA, &body);
    assert!(node.engine.buffer.packets().count() == 1);
}

#[test]
fn a_relay_waits_for_a_partner_that_was_promised() {
    let first = |more: bool| {
        let mut relay = Bench::new(2, "max_hold_time_s = 0.0");
        // What node 3 sends tells that it has more, or has not; that one is sent on after 1 ms.
        for (sender, tag) in [(3, Tag { more, ..tag_back() }), (1, tag())] {
            let mut body = Vec::new();
            Data::write_one(&Tag { at: 0, ..tag }, b"IP", &mut body);
            relay.hear(sender, DATA, &body);
            if sender == 3 {
                assert!(relay.fill_slowly().is_some());
            }
        }
        relay
    };
    assert_eq!(first(false).fill().map(|(_, to, _)| to), Some(Some(NodeId(3))));
    let mut relay = first(true);
    assert_eq!(relay.fill(), None);
    let mut body = Vec::new();
    let id = PacketId { source: NodeId(3), number: 10 };
    Data::write_one(&Tag { id, at: 0, ..tag_back() }, b"IP", &mut body);
    relay.hear(3, DATA, &body);
    assert_eq!(relay.fill().map(|(_, _, body)| body[0]), Some(2));
    // One that does not keep its word is waited for once.
    let mut relay = first(true);
    let until = relay.engine.poll_timeout(relay.now).unwrap();
    assert!(until > relay.now && until - relay.now < 20 * MS);
    relay.now = until;
    relay.with(Engine::handle_timeout);
    assert_eq!(relay.fill().map(|(_, to, _)| to), Some(Some(NodeId(3))));
    body.clear();
    let id = PacketId { source: NodeId(1), number: 8 };
    Data::write_one(&Tag { id, at: 0, ..tag() }, b"IP", &mut body);
    relay.hear(1, DATA, &body);
    assert!(relay.fill().is_some());
}

#[test]
fn after_a_leap_of_the_clock_nothing_is_held_and_coding_goes_on() {
    let mut nodes = crossing("hold_time_s = 0.002\nmin_overlap = 0.0");
    nodes[1].fill().unwrap();
    for (sender, tag) in [(1, tag()), (3, tag_back())] {
        for number in [20, 21] {
            let id = PacketId { number, ..tag.id };
            let mut body = Vec::new();
            Data::write_one(&Tag { id, at: 0, ..tag.clone() }, b"IP", &mut body);
            // A machine that slept: an hour passes between two packets of a direction.
            nodes[1].hear(sender, DATA, &body);
            nodes[1].now = nodes[1].now + Duration::from_secs(3600);
            nodes[1].with(Engine::handle_timeout);
            while nodes[1].fill().is_some() {}
            assert_eq!(nodes[1].engine.buffer.packets().count(), 0);
        }
    }
    assert_eq!(nodes[1].status().coded, 1);
    let (one, other) = (Tag { at: 0, ..tag() }, Tag { at: 0, ..tag_back() });
    for (sender, tag) in [(1, one), (3, other)] {
        let id = PacketId { number: 30, ..tag.id };
        let mut body = Vec::new();
        Data::write_one(&Tag { id, ..tag }, b"IP", &mut body);
        nodes[1].hear(sender, DATA, &body);
    }
    assert_eq!(nodes[1].fill().map(|(_, _, body)| body[0]), Some(2));
}

#[test]
fn what_does_not_come_is_not_waited_for_long() {
    let mut node = Bench::new(3, "");
    for (number, order) in [(1, 1), (3, 3)] {
        let id = PacketId { source: NodeId(1), number };
        let mut body = Vec::new();
        Data::write_one(&Tag { id, order, ..tag() }, b"IP", &mut body);
        node.hear(2, DATA, &body);
    }
    assert!(node.packet().is_some() && node.packet().is_none());
    assert_eq!(node.fill().map(|(kind, ..)| kind), Some(REQUEST));
    assert_eq!((node.fill(), node.engine.poll_timeout(node.now)), (None, Some(node.now + 25 * MS)));
    node.now = node.now + 60 * MS;
    node.with(Engine::handle_timeout);
    assert!(node.packet().is_some());
    assert_eq!(node.engine.poll_timeout(node.now), None);
    // Requests for what this node never sent, and nonsense.
    node.hear(2, REQUEST, &[0, 3, 0, 9]);
    node.hear(2, REQUEST, &[0, 3, 0]);
    assert_eq!((node.fill(), node.counters.dropped(DropReason::Malformed)), (None, 1));
}

#[test]
fn packets_that_cannot_be_carried_are_refused() {
    let mut node = Bench::new(1, "queue = 1\nroutes = [[5, 9, 1]]");
    let longest = 1400 - Data::RESERVED;
    assert_eq!(node.send(1, b"p"), Err(PacketError::Oneself));
    assert_eq!(node.send(8, b"p"), Err(PacketError::NoPath(NodeId(8))));
    assert_eq!(
        node.send(4, &vec![0; longest + 1]),
        Err(PacketError::TooLong { bytes: longest + 1, longest })
    );
    assert_eq!(node.send(5, &vec![0; longest]), Ok(()));
    assert_eq!(node.send(4, b"p"), Err(PacketError::Full));
    // By the route that was given, though node 9 is not in the link state.
    let (_, to, body) = node.fill().unwrap();
    assert_eq!(
        (to, Data::parse(&body, NodeId(1)).unwrap().first().destination()),
        (Some(NodeId(9)), NodeId(5))
    );
}

#[test]
fn settings_out_of_range_are_named() {
    let check = |text: &str| toml::from_str::<XorConfig>(text).unwrap().check().unwrap_err();
    assert_eq!(check("hold_time_s = -1.0"), "hold_time_s = -1: allowed is 0 to 1 s");
    assert_eq!(check("max_hold_time_s = 2.0"), "max_hold_time_s = 2: allowed is 0 to 1 s");
    assert_eq!(check("min_overlap = -0.5"), "min_overlap = -0.5: allowed is 0 to 1");
    assert_eq!(check("min_decoded = 1.5"), "min_decoded = 1.5: allowed is 0 to 1");
    assert_eq!(check("queue = 0"), "queue = 0: allowed is 1 to 10000 packets");
    assert_eq!(check("cache = 0"), "cache = 0: allowed is 1 to 100000 packets");
    for route in ["[1]", "[1, 2, 1]"] {
        let said = check(&format!("routes = [{route}]"));
        assert_eq!(said, format!("routes: {route} must be 2 to 17 nodes, none of them twice"));
    }
}
