//! Shortest paths and ageing.

use super::*;
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng::stream;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::Metric;
use std::collections::VecDeque;

fn state(seq: u32, hears: &[(u16, f64)]) -> LinkState {
    LinkState {
        version: (1, seq),
        name: format!("s{seq}"),
        hears: hears.iter().map(|(node, d)| (NodeId(*node), *d)).collect(),
    }
}

/// 1 -> 2 -> 3 at 0.8 each way, and a direct 1 -> 3 of 0.3.
fn triangle() -> Topology {
    let mut t = Topology::new(0.05);
    let at = Instant::default();
    t.learn(NodeId(1), state(1, &[(2, 0.8), (3, 0.5)]), at);
    t.learn(NodeId(2), state(1, &[(1, 0.8), (3, 0.8)]), at);
    t.learn(NodeId(3), state(1, &[(1, 0.3), (2, 0.8)]), at);
    t
}

#[test]
fn paths_take_the_fewest_expected_transmissions() {
    let paths = triangle().paths_from(NodeId(1), Metric::Broadcast);
    assert_eq!(paths.path_to(NodeId(3)), [NodeId(2), NodeId(3)]);
    assert!((paths.etx(NodeId(3)).unwrap() - 2.5).abs() < 1e-6);
    assert_eq!(paths.etx(NodeId(9)), None);
    let back = triangle().paths_from(NodeId(3), Metric::Unicast);
    assert!((back.etx(NodeId(1)).unwrap() - 3.125).abs() < 1e-6);
}

#[test]
fn in_a_mesh_known_from_elsewhere_every_link_counts() {
    let hears = [vec![], vec![(1, 1e-15)], vec![(1, 1e-16), (2, 1.0)], vec![(3, 0.0)]];
    let hears = hears.map(|links| links.iter().map(|(n, d)| (NodeId(*n), *d)).collect());
    let t = Topology::known(hears.into());
    let paths = t.paths_from(NodeId(1), Metric::Broadcast);
    assert_eq!(paths.path_to(NodeId(3)), [NodeId(2), NodeId(3)]);
    assert!((paths.etx(NodeId(3)).unwrap() / (1e15 + 1.0) - 1.0).abs() < 1e-15);
    assert!(!paths.reaches(NodeId(4)));
    assert_eq!(t.nodes().count(), 4);
}

#[test]
fn a_node_nobody_hears_is_not_a_hop() {
    let mut t = triangle();
    t.learn(NodeId(1), state(2, &[(3, 0.5)]), Instant::default());
    t.learn(NodeId(3), state(2, &[(1, 0.3)]), Instant::default());
    assert_eq!(t.delivery(NodeId(1), NodeId(2)), 0.0);
    let paths = t.paths_from(NodeId(1), Metric::Broadcast);
    assert_eq!(paths.path_to(NodeId(3)), [NodeId(3)]);
    assert!(!paths.reaches(NodeId(2)));
}

#[test]
fn older_states_do_not_replace_newer_and_the_old_is_forgotten() {
    let mut t = triangle();
    assert!(!t.learn(NodeId(1), state(1, &[]), Instant::default()));
    let later = Instant::from_nanos(1000);
    assert!(t.learn(NodeId(1), state(5, &[(2, 0.8)]), later));
    let version = t.version();
    t.age(Instant::from_nanos(500));
    assert_eq!(t.nodes().collect::<Vec<_>>(), [NodeId(1)]);
    assert_ne!(t.version(), version);
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
        route.known().learn(NodeId(id), state(1, &hears), Instant::default());
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
