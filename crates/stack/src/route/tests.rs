//! Frames of link state, the order in which states go out, and ageing.

use super::*;
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng::stream;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::Duration;
use std::collections::VecDeque;

fn state(seq: u32, hears: &[(u16, f64)]) -> LinkState {
    LinkState {
        version: (1, seq),
        name: format!("s{seq}"),
        hears: hears.iter().map(|(node, d)| (NodeId(*node), *d)).collect(),
    }
}

#[test]
fn states_that_are_not_repeated_are_forgotten() {
    let mut route =
        Route::new(RouteConfig::default(), NodeId(1), "n1", 1, 1439, Instant::default());
    for (node, at) in [(2, 0), (3, 1000)] {
        route.known().learn(NodeId(node), state(1, &[(1, 0.8)]));
        route.learned.insert(NodeId(node), Instant::from_nanos(at));
    }
    route.forget_before(Instant::from_nanos(500));
    assert_eq!(route.topology().nodes().collect::<Vec<_>>(), [NodeId(3)]);
}

#[test]
fn states_survive_the_wire_and_truncation_is_noticed() {
    let sent = state(7, &[(2, 1.0), (9, 0.2)]);
    let mut out = Vec::new();
    frame::write(&mut out, NodeId(4), &sent);
    assert_eq!(out.len(), frame::encoded_len(&sent));
    let (origin, read) = frame::read(&mut Reader::new(&out)).unwrap();
    assert_eq!((origin, read.version, read.name.as_str()), (NodeId(4), (1, 7), "s7"));
    assert!((read.hears[&NodeId(9)] - 0.2).abs() < 0.002);
    for cut in 0..out.len() {
        assert!(frame::read(&mut Reader::new(&out[..cut])).is_err());
    }
}

#[test]
fn what_is_due_goes_before_what_is_due_soon() {
    let mut rng = stream(1, NodeId(1), "test", "route");
    let mut route =
        Route::new(RouteConfig::default(), NodeId(1), "n1", 1, 1439, Instant::default());
    let hears: Vec<(u16, f64)> = (500..508).map(|node| (node, 0.8)).collect();
    for id in 2..202 {
        route.known().learn(NodeId(id), state(1, &hears));
        route.flood.publish(NodeId(id), (1, 1), Instant::default(), &mut rng);
    }
    let (mut counters, mut events) = (Counters::default(), VecDeque::new());
    let (mut storage, topology) = (MemoryStorage::default(), Topology::default());
    let mut now = Instant::from_nanos(20_000_000);
    let mut sent: BTreeMap<NodeId, u32> = BTreeMap::new();
    for _ in 0..7 {
        let (me, epoch, mtu) = (NodeId(1), 1, 1439);
        let (topology, rng, counters) = (&topology, &mut rng, &mut counters);
        let (events, storage) = (&mut events, &mut storage);
        let mut cx = Context { now, me, epoch, mtu, topology, rng, counters, events, storage };
        let mut out = Vec::new();
        route.fill(&mut cx, &mut out).unwrap();
        let mut reader = Reader::new(&out);
        while reader.remaining() > 0 {
            *sent.entry(frame::read(&mut reader).unwrap().0).or_default() += 1;
        }
        // About what such a frame takes on the air.
        now = now + Duration::from_millis(6);
    }
    assert_eq!(sent.len(), 200, "states that went out in seven frames");
}
