//! Frames of every kind, sent in simulations.

use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::stream::NewStream;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::time::Duration;
use ncmesh_engines::registry;
use ncmesh_sim::{Event, Observer, Simulation, SimulationConfig, What, node_id};
use ncmesh_stack::control::SERVICE;
use ncmesh_stack::trust::{KEYS_WANTED, KNOWN_LISTS, REVOCATIONS, TrustMode};
use ncmesh_tests::frames::Body;
use ncmesh_tests::{contents, links, mesh};
use ncmesh_wire::identity::Revocations;
use ncmesh_wire::{Cipher, Sealer, ServiceId, Versions, Writer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// Most frames that are kept of each service, kind and length.
const KEPT: usize = 3;

#[derive(Default)]
struct Collected(BTreeMap<(ServiceId, u8, usize), Vec<Body>>);

impl Observer for Collected {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        let What::Sent { frame, .. } = event.what else { return Ok(()) };
        let mut scratch = Vec::new();
        let opened = Cipher::Null.open(frame, &mut scratch).unwrap();
        let key = (opened.service, opened.kind, opened.body.len());
        let alike = self.0.entry(key).or_default();
        if alike.len() < KEPT {
            let service = opened.service;
            let kind = opened.kind;
            let bytes = opened.body.to_vec();
            alike.push(Body { sender: opened.header.sender, service, kind, bytes });
        }
        Ok(())
    }
}

/// Returns frames that the engines of every service sent.
pub(crate) fn simulated() -> Vec<Body> {
    let collected = Rc::new(RefCell::new(Collected::default()));
    for entry in registry().entries() {
        let mut s = Simulation::new(line_with_detour()).unwrap();
        s.observe(Box::new(Rc::clone(&collected)));
        s.run_for(Duration::from_secs(6));
        match entry.service() {
            ServiceKind::File => {
                s.send_file(entry.name, 0, Some(&[1, 3]), contents(60_000)).unwrap();
                s.run_for(Duration::from_secs(8));
            }
            ServiceKind::Tunnel => cross(&mut s, entry.name),
            ServiceKind::Stream => stream(&mut s, entry.name),
        }
    }
    for entry in registry().of(ServiceKind::Tunnel) {
        let mut s = Simulation::new(line_with_detour()).unwrap();
        s.observe(Box::new(Rc::clone(&collected)));
        one_way(&mut s, entry.name);
    }
    // In a crowd with poor links some node misses something, and compares.
    let mut s = Simulation::new(crowd()).unwrap();
    s.observe(Box::new(Rc::clone(&collected)));
    s.run_for(Duration::from_secs(40));
    for trust in [TrustMode::FirstUse, TrustMode::Network] {
        let config = SimulationConfig { trust, ..line_with_detour() };
        let mut s = Simulation::new(config).unwrap();
        s.observe(Box::new(Rc::clone(&collected)));
        s.run_for(Duration::from_secs(6));
        ask_and_revoke(&mut s);
    }
    let collected = std::mem::take(&mut collected.borrow_mut().0);
    collected.into_values().flatten().collect()
}

/// Asks node 0 for a key and for the lists that it has, and tells it a list of revocations, as its
/// neighbour does. Lets it answer and pass the list on.
fn ask_and_revoke(s: &mut Simulation) {
    let mut wanted = Vec::new();
    Writer::new(&mut wanted).node(node_id(0)).node(node_id(2));
    let mut list = Vec::new();
    Revocations::issue(&s.config().network(), 1, 1, vec![77]).write(&mut list);
    let mut known = vec![0];
    Writer::new(&mut known).node(node_id(0));
    let salt = s.host(1).stack().unwrap().salt();
    let mut sealer = Sealer::resume(s.config().cipher(), node_id(1), salt, 20_000);
    for (kind, body) in [(KEYS_WANTED, wanted), (REVOCATIONS, list), (KNOWN_LISTS, known)] {
        let mut frame = Vec::new();
        Sealer::begin(&mut frame, SERVICE, kind);
        frame.extend_from_slice(&body);
        sealer.seal(&mut frame, Versions::OWN.newest);
        s.inject(0, &frame);
    }
    s.run_for(Duration::from_secs(4));
}

/// Two ways from node 0 to node 3, which a direct path overhears.
fn line_with_detour() -> SimulationConfig {
    let links = links(4, &[(0, 1, 0.2), (1, 3, 0.2), (0, 2, 0.3), (2, 3, 0.3), (1, 2, 0.3)]);
    SimulationConfig { sealed: false, ..mesh(links, 7) }
}

/// More nodes than one list of versions holds, all of which hear each other.
fn crowd() -> SimulationConfig {
    let pairs = (0..40).flat_map(|a| (0..a).map(move |b| (b, a, 0.5)));
    SimulationConfig { sealed: false, ..mesh(links(40, &pairs.collect::<Vec<_>>()), 5) }
}

/// Sends packets both ways between the ends, so that they cross at the relays.
fn cross(s: &mut Simulation, scheme: &str) {
    for n in 0..200 {
        for (from, to) in [(0, 3), (3, 0)] {
            // A full queue refuses packets.
            let _ = s.send_packet(scheme, from, to, &contents(60 + (n * 37 + from * 5) % 900));
        }
        s.run_for(Duration::from_millis(15));
    }
    // So many that the relays' queues fill up.
    for n in 0..600 {
        for (from, to) in [(0, 3), (3, 0)] {
            let _ = s.send_packet(scheme, from, to, &contents(200 + n % 100));
        }
        s.run_for(Duration::from_millis(1));
    }
    s.run_for(Duration::from_secs(3));
}

/// Sends packets over node 1, to which node 3 can answer over node 2 only.
fn one_way(s: &mut Simulation, scheme: &str) {
    s.set_loss(3, 1, 1.0).unwrap();
    s.run_for(Duration::from_secs(20));
    for _ in 0..100 {
        let _ = s.send_packet(scheme, 0, 3, &contents(200));
        s.run_for(Duration::from_millis(15));
    }
}

/// Streams two layers to two nodes, and ends the stream.
fn stream(s: &mut Simulation, scheme: &str) {
    let scheme = registry().scheme(scheme).unwrap();
    let utility = UtilityConfig { name: "linear".into(), ..UtilityConfig::default() };
    for node in [1, 3] {
        s.join(scheme, node, "tv", utility.clone()).unwrap();
    }
    let flow = s
        .open_stream(
            scheme,
            0,
            NewStream { group: "tv", layers: &["base".into(), "enh".into()], deadline: None },
        )
        .unwrap();
    for n in 0..100 {
        for layer in 0..2 {
            let _ = s.send_stream_packet(scheme, 0, flow, layer, &contents(100 + n)).unwrap();
        }
        s.run_for(Duration::from_millis(20));
    }
    assert!(s.leave(scheme, 1, "tv"));
    assert!(s.close_stream(scheme, 0, "tv"));
    s.run_for(Duration::from_secs(2));
}
