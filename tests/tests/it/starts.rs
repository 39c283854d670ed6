//! Nodes that restart, and recordings of their frames that somebody without the key sends again.

use ncmesh_engine::counters::DropReason;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engines::registry;
use ncmesh_sim::{Event, Observer, Simulation, SimulationConfig, What, node_id};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_tests::{contents, links, mesh, settled};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// How often a source restarts.
const RESTARTS: u32 = 100;
/// Time after a restart in which a packet arrives.
const SOON: Duration = Duration::from_secs(2);
/// Time between two packets that a source offers.
const PAUSE: Duration = Duration::from_millis(10);

/// A mesh with the settings of daemons.
fn daemons(nodes: usize, with: &[(usize, usize, f64)], seed: u64) -> SimulationConfig {
    let mut config = mesh(links(nodes, with), seed);
    config.link = LinkConfig::default();
    config.route = RouteConfig::default();
    config
}

/// Offers packets, numbered from `first`, until one of them arrives. Returns when.
fn first_arrival(s: &mut Simulation, scheme: &str, first: u32, limit: Instant) -> Option<Instant> {
    let mut number = first;
    while s.now() < limit {
        let packet = [&number.to_be_bytes()[..], &contents(200)].concat();
        number += u32::from(s.send_packet(scheme, 0, 2, &packet).is_ok());
        s.run_for(PAUSE);
        let arrived = s.take_packets().into_iter().find(|arrival| {
            let number = u32::from_be_bytes(arrival.packet[..4].try_into().unwrap());
            arrival.to == 2 && number >= first
        });
        if let Some(arrival) = arrived {
            return Some(arrival.at);
        }
    }
    None
}

#[test]
fn a_source_that_restarts_carries_packets_again_soon() {
    for engine in registry().of(ServiceKind::Tunnel) {
        let mut s = settled(daemons(3, &[(0, 1, 0.0), (1, 2, 0.0)], 1));
        let limit = s.now() + Duration::from_secs(10);
        first_arrival(&mut s, engine.name, 0, limit).unwrap();
        let mut latest = Duration::ZERO;
        for restart in 1..=RESTARTS {
            s.switch_off(0);
            // Some are down for a moment, and some for longer than it takes to notice.
            s.run_for(Duration::from_millis(u64::from(restart * 37 % 50) * 100));
            s.take_packets();
            s.switch_on(0).unwrap();
            let start = s.now();
            let arrived = first_arrival(&mut s, engine.name, restart << 16, start + 2 * SOON);
            let took = arrived.map(|at| at.since(start));
            assert!(took.is_some_and(|t| t <= SOON), "{} {restart}: {took:?}", engine.name);
            latest = latest.max(took.unwrap());
            s.run_for(Duration::from_millis(500));
        }
        println!("{}: {latest:?} at most", engine.name);
    }
}

/// Frames that node 0 heard.
#[derive(Default)]
struct Recording(Vec<Vec<u8>>);

impl Observer for Recording {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Heard { frame, .. } = event.what
            && event.node == 0
        {
            self.0.push(frame.to_vec());
        }
        Ok(())
    }
}

/// Somebody without the key records the frames that a node hears. The node restarts, and its
/// neighbours die. The recording neither brings them back nor delivers packets again.
#[test]
fn a_recording_revives_no_dead_node_and_delivers_nothing_twice() {
    let mut s = settled(daemons(3, &[(0, 1, 0.0), (0, 2, 0.0), (1, 2, 0.0)], 2));
    let recording = Rc::new(RefCell::new(Recording::default()));
    s.observe(Box::new(Rc::clone(&recording)));
    for engine in registry().of(ServiceKind::Tunnel) {
        s.send_packet(engine.name, 1, 0, &contents(300)).unwrap();
        s.run_for(Duration::from_secs(1));
    }
    let delivered = s.take_packets().len();
    assert_eq!(delivered, registry().of(ServiceKind::Tunnel).count());
    let recorded = recording.take().0;
    for node in 0..3 {
        s.switch_off(node);
    }
    s.run_for(Duration::from_secs(1));
    s.switch_on(0).unwrap();

    for frame in &recorded {
        s.run_for(Duration::from_millis(20));
        s.inject(0, frame);
        let stack = s.host(0).stack().unwrap();
        assert_eq!(stack.inbound().count(), 0, "a dead node is heard");
        assert_eq!(stack.topology().nodes().filter(|node| *node != node_id(0)).count(), 0);
    }
    assert!(s.take_packets().is_empty(), "a packet was delivered twice");
    let unproven = s.host(0).stack().unwrap().counters().dropped(DropReason::Unproven);
    assert_eq!(unproven, recorded.len() as u64);

    // When one of them is back, its frames from before are still worth nothing.
    s.switch_on(1).unwrap();
    s.run_for(Duration::from_secs(4));
    for frame in &recorded {
        s.inject(0, frame);
    }
    s.run_for(Duration::from_secs(4));
    let stack = s.host(0).stack().unwrap();
    assert_eq!(stack.inbound().map(|(node, _)| node).collect::<Vec<_>>(), [node_id(1)]);
    assert!(s.take_packets().is_empty(), "a packet was delivered twice");
    assert_eq!(stack_duplicates(&s), 0, "a recording is no second node");
}

fn stack_duplicates(s: &Simulation) -> usize {
    s.host(0).stack().unwrap().duplicates().count()
}

/// A recording of the present start of a neighbour that lives: only the node that hears restarts.
#[test]
fn a_restart_does_not_make_frames_of_living_neighbours_new_again() {
    for engine in registry().of(ServiceKind::Tunnel) {
        let mut s = settled(daemons(2, &[(0, 1, 0.0)], 3));
        let recording = Rc::new(RefCell::new(Recording::default()));
        s.observe(Box::new(Rc::clone(&recording)));
        (0..20).for_each(|_| {
            let _ = s.send_packet(engine.name, 1, 0, &contents(300));
            s.run_for(Duration::from_millis(100));
        });
        assert!(!s.take_packets().is_empty());
        let recorded = recording.take().0;
        s.switch_off(0);
        s.switch_on(0).unwrap();
        s.run_for(Duration::from_secs(3));
        assert_eq!(s.host(0).stack().unwrap().inbound().count(), 1);
        s.take_packets();
        recorded.iter().for_each(|frame| s.inject(0, frame));
        s.run_for(Duration::from_secs(2));
        assert!(s.take_packets().is_empty(), "{}: a packet was delivered twice", engine.name);
    }
}
