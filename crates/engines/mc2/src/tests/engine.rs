//! The engine at one node, frame by frame.

use super::{best_paths, credits_of, diamond, header};
use crate::frame::{Acknowledgment, Data, FlowState, GenerationHeader, REPORT, Report};
use crate::paths::PathSet;
use crate::{ID, Mc2, Mc2Config, NAME};
use ncmesh_engine::counters::{Counters, DropReason};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::topology::Topology;
use ncmesh_engine::tunnel::{DATA, PacketError};
use ncmesh_engine::{Class, Context, Engine, Frame, TunnelEngine, rng};
use ncmesh_wire::{NodeId, StartId};
use std::collections::{BTreeMap, VecDeque};

/// One node's engine in the diamond, with its counters.
struct Node {
    me: u16,
    mtu: usize,
    topology: Topology,
    engine: Mc2,
    counters: Counters,
}

impl Node {
    fn new(me: u16, mtu: usize) -> Self {
        let engine = Mc2::new(Mc2Config::default());
        Self { me, mtu, topology: diamond(0.5, 0.8), engine, counters: Counters::default() }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Mc2, &mut Context<'_>) -> T) -> T {
        self.at(Instant::default(), act)
    }

    fn at<T>(&mut self, now: Instant, act: impl FnOnce(&mut Mc2, &mut Context<'_>) -> T) -> T {
        let me = NodeId(self.me);
        let mut cx = Context {
            now,
            me,
            epoch: 1,
            mtu: self.mtu,
            at: ncmesh_engine::At::ONLY,
            topology: &self.topology,
            rng: &mut rng::stream(1, me, NAME, "test"),
            counters: &mut self.counters,
            events: &mut VecDeque::new(),
            storage: &mut MemoryStorage::default(),
        };
        act(&mut self.engine, &mut cx)
    }

    fn handle_frame(&mut self, sender: u16, kind: u8, body: &[u8]) {
        let frame = Frame { sender: NodeId(sender), start: StartId(1), service: ID, kind, body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    /// Handles a frame of node 1 for node 4 with one packet, which announces `credits` to this
    /// node.
    fn handle_announcement(&mut self, credits: u16, payload: usize) {
        let paths = best_paths(&self.topology, 1, 4, 2).unwrap();
        self.handle_data(1, paths, 2, credits, payload);
    }

    /// Handles such a frame of a node over the paths of a revision.
    fn handle_data(
        &mut self,
        sender: u16,
        paths: PathSet,
        revision: u8,
        credits: u16,
        payload: usize,
    ) {
        let hops = paths.next_hops(NodeId(sender));
        let by_hop: Vec<u16> =
            hops.iter().map(|hop| if hop.0 == self.me { credits } else { 0 }).collect();
        let announced = vec![credits_of(6, &by_hop)];
        let mut body = Vec::new();
        let symbol_size = payload as u16;
        GenerationHeader { announced, symbol_size, revision, ..header(paths) }.write(&mut body);
        body.extend_from_slice(&[1, 0]);
        body.resize(body.len() + payload, 1);
        self.handle_frame(sender, DATA, &body);
    }
}

/// Returns how many frames were dropped as malformed and whether data is sent on, where node 2, a
/// relay whose frames have room for `mtu` bytes, hears a frame of node 1 for node 4.
fn relay(mtu: usize, payload: usize) -> (u64, bool) {
    let mut node = Node::new(2, mtu);
    node.handle_announcement(1, payload);
    let mut out = Vec::new();
    let filled = node.with(|engine, cx| engine.fill(cx, &mut out));
    assert!(out.len() <= mtu);
    (node.counters.dropped(DropReason::Malformed), filled.is_some_and(|f| f.kind == DATA))
}

#[test]
fn a_relay_sends_on_what_fits_its_frames() {
    assert_eq!(relay(1400, 1000), (0, true));
    assert_eq!(relay(1100, 1000), (1, false));
}

/// A node that lies about credits gets no more sent on than packets came from it. A count that
/// cannot be true is dropped as malformed.
#[test]
fn a_lie_about_credits_does_bounded_harm() {
    for (credits, dropped) in [(16, 0), (17, 1), (u16::MAX, 1)] {
        let mut node = Node::new(2, 1400);
        node.handle_announcement(credits, 100);
        assert_eq!(node.counters.dropped(DropReason::Malformed), dropped, "{credits}");
        let held: u64 = node.engine.flows().iter().map(|flow| flow.credits).sum();
        assert!(held <= 1, "{held} credits for one packet");
    }
}

/// The destination would wait for what it has, and ask it in vain.
#[test]
fn a_relay_that_is_on_the_paths_no_more_sends_on_what_it_has_by_the_old_ones() {
    let mut node = Node::new(2, 1400);
    node.handle_announcement(1, 100);
    let by_node_3 = [1, 3, 4].map(NodeId);
    let other = PathSet::between(NodeId(1), NodeId(4)).with(&by_node_3).unwrap();
    node.handle_data(1, other, 3, 0, 100);

    let mut out = Vec::new();
    node.with(|engine, cx| engine.fill(cx, &mut out)).unwrap();
    let data = Data::parse(&out).unwrap();
    assert!(data.header.paths.leads(NodeId(2), NodeId(4)));
    assert_eq!(data.header.announced, vec![credits_of(6, &[1])]);
}

/// A report has room for four previous hops. More wait for one, some of them for a repetition.
#[test]
fn a_node_with_many_previous_hops_reports_to_each_and_falls_silent() {
    let relays = [2, 3, 5, 6, 7];
    let among = |all: PathSet, relay: u16| all.with(&[1, relay, 4].map(NodeId)).unwrap();
    let paths = relays.into_iter().fold(PathSet::between(NodeId(1), NodeId(4)), among);
    let mut node = Node::new(4, 1400);
    for relay in relays {
        node.handle_data(relay, paths.clone(), 2, 1, 100);
    }

    let mut reported = BTreeMap::new();
    for step in 0..1000 {
        let mut out = Vec::new();
        let now = Instant::default() + Duration::from_millis(step);
        let filled = node.at(now, |engine, cx| engine.fill(cx, &mut out));
        if filled.is_some_and(|filled| filled.kind == REPORT) {
            for ack in Report::parse(&out).unwrap().state.acks {
                *reported.entry(ack.of.0).or_insert(0) += 1;
            }
        }
    }
    assert!(reported.keys().copied().eq(relays));
    assert!(reported.values().all(|count| *count <= 40), "{reported:?}");
}

#[test]
fn reports_of_flows_that_pass_by_do_not_count_as_dropped() {
    let flow = FlowInstance { source: NodeId(7), destination: NodeId(8), incarnation: 1 };
    let report = |of| {
        let mut body = Vec::new();
        let acks = vec![Acknowledgment { of: NodeId(of), latest: 1, before: 0 }];
        Report { flow, state: FlowState { acks, ..FlowState::default() } }.write(&mut body);
        body
    };
    let mut node = Node::new(2, 1400);
    node.handle_frame(3, REPORT, &report(9));
    assert_eq!(node.counters.drops().count(), 0);
    node.handle_frame(3, REPORT, &report(2));
    assert_eq!(node.counters.dropped(DropReason::UnknownFlow), 1);
}

/// A relay sent its packet once, which nobody acknowledged. A frame of another flow, which passes
/// by, makes it go first once it has waited for the time of 64 frames of 2 ms.
#[test]
fn a_flow_that_waited_too_long_beside_others_goes_first() {
    let at_ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let mut node = Node::new(2, 1400);
    node.handle_announcement(1, 100);
    let mut out = Vec::new();
    assert_eq!(node.with(|engine, cx| engine.fill(cx, &mut out)).map(|f| f.kind), Some(DATA));
    node.at(at_ms(100), Engine::handle_timeout);
    let is_first = |node: &Node, ms| {
        let offer = node.engine.offer(at_ms(ms)).expect("the packet is due again");
        assert_eq!(offer.class, Class::Data);
        offer.weight == u32::MAX
    };
    assert!(!is_first(&node, 500), "it is alone");

    let passing = best_paths(&node.topology, 3, 4, 1).unwrap();
    let mut body = Vec::new();
    GenerationHeader { symbol_size: 100, ..header(passing) }.write(&mut body);
    body.extend_from_slice(&[1, 0]);
    body.resize(body.len() + 100, 1);
    let sender = NodeId(3);
    let start = StartId(1);
    let frame = Frame { sender, start, service: ID, kind: DATA, body: &body };
    node.at(at_ms(101), |engine, cx| engine.handle_frame(cx, &frame));
    assert!(!is_first(&node, 127));
    assert!(is_first(&node, 128));
    assert_eq!(node.engine.poll_timeout(at_ms(127)), Some(at_ms(128)));
}

#[test]
fn packets_that_fit_no_frame_are_refused_and_all_are_where_headers_do_not_fit() {
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
