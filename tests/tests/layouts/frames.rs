//! Frames of every kind: sent in simulations, and from the golden vectors of the wire format.

use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::time::Duration;
use ncmesh_engines::REGISTRY;
use ncmesh_sim::{Event, Observer, Simulation, SimulationConfig, What};
use ncmesh_tests::{contents, links, mesh};
use ncmesh_wire::{Cipher, NodeId, ServiceId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// Frame without its outer header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Body {
    pub sender: NodeId,
    pub service: ServiceId,
    pub kind: u8,
    pub bytes: Vec<u8>,
}

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
            let (service, kind, bytes) = (opened.service, opened.kind, opened.body.to_vec());
            alike.push(Body { sender: opened.header.sender, service, kind, bytes });
        }
        Ok(())
    }
}

/// Returns frames that the engines of every service sent.
pub(crate) fn simulated() -> Vec<Body> {
    let collected = Rc::new(RefCell::new(Collected::default()));
    for entry in REGISTRY.entries() {
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
    for entry in REGISTRY.of(ServiceKind::Tunnel) {
        let mut s = Simulation::new(line_with_detour()).unwrap();
        s.observe(Box::new(Rc::clone(&collected)));
        one_way(&mut s, entry.name);
    }
    // In a crowd with poor links some node misses something, and compares.
    let mut s = Simulation::new(crowd()).unwrap();
    s.observe(Box::new(Rc::clone(&collected)));
    s.run_for(Duration::from_secs(40));
    let collected = std::mem::take(&mut collected.borrow_mut().0);
    collected.into_values().flatten().collect()
}

/// Two ways from node 0 to node 3, which a direct path overhears.
fn line_with_detour() -> SimulationConfig {
    let links = links(4, &[(0, 1, 0.2), (1, 3, 0.2), (0, 2, 0.3), (2, 3, 0.3), (1, 2, 0.3)]);
    SimulationConfig { sealed: false, ..mesh(links, 5) }
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
    let utility = UtilityConfig { name: "linear".into(), ..UtilityConfig::default() };
    for node in [1, 3] {
        s.join(scheme, node, "tv", utility.clone()).unwrap();
    }
    let flow = s.open_stream(scheme, 0, "tv", &["base".into(), "enh".into()]).unwrap();
    for n in 0..100 {
        for layer in 0..2 {
            let _ = s.send_stream_packet(scheme, 0, (flow, layer), &contents(100 + n)).unwrap();
        }
        s.run_for(Duration::from_millis(20));
    }
    assert!(s.leave(scheme, 1, "tv"));
    assert!(s.close_stream(scheme, 0, "tv"));
    s.run_for(Duration::from_secs(2));
}

/// Titles of the golden vectors in the wire format: sender, service and kind.
const GOLDEN: [(&str, u16, u8, u8); 35] = [
    ("Hello.", 3, 0, 0),
    ("Hello with states.", 3, 0, 0),
    ("Hello with profiles.", 3, 0, 0),
    ("Probe.", 3, 0, 1),
    ("Comparison.", 3, 0, 2),
    ("Versions.", 3, 0, 3),
    ("Request.", 3, 0, 4),
    ("Announcement.", 3, 16, 0),
    ("Data.", 3, 16, 1),
    ("Data with belts.", 3, 17, 1),
    ("Data in a tree.", 3, 19, 1),
    ("Report.", 9, 18, 3),
    ("Acknowledgment.", 5, 16, 2),
    ("`cascade` data.", 8, 26, 1),
    ("`cascade` data, systematic.", 3, 26, 1),
    ("`cascade` report.", 9, 26, 3),
    ("`forward` data.", 1, 20, 1),
    ("`forward` queue.", 2, 20, 2),
    ("`braid` data.", 2, 27, 1),
    ("`braid` report.", 4, 27, 2),
    ("`braid` pair.", 2, 27, 3),
    ("`mc2` data.", 2, 22, 1),
    ("`mc2` report.", 4, 22, 2),
    ("`mc2` request.", 4, 22, 3),
    ("`core_nc` data, combined.", 3, 23, 1),
    ("`core_nc` count.", 1, 23, 2),
    ("`core_nc` feedback.", 4, 23, 3),
    ("`core_nc` relayed feedback.", 4, 23, 4),
    ("xor, one packet.", 2, 21, 1),
    ("xor, two packets.", 2, 21, 1),
    ("xor, report.", 1, 21, 2),
    ("xor, request.", 1, 21, 3),
    ("multirate, data.", 1, 24, 1),
    ("multirate, report.", 2, 24, 2),
    ("multirate, announcement.", 1, 24, 3),
];

/// Returns the golden vectors of the wire format.
///
/// # Panics
/// If the document has another vector, or lacks one.
pub(crate) fn golden() -> Vec<Body> {
    let document = include_str!("../../../docs/reference/wire-format.md");
    let section = document.split("## Golden vectors").nth(1).unwrap();
    let mut bodies = Vec::new();
    // The first paragraph introduces them; the first vector is that of the outer frame.
    for paragraph in section.split("\n**").skip(2) {
        let title = paragraph.split("**").next().unwrap();
        let (_, sender, service, kind) =
            GOLDEN.iter().find(|(known, ..)| *known == title).expect(title);
        let block = paragraph.split("```").nth(1).unwrap();
        // A packet of xor at its second hop, and the same at its first, are two bodies.
        let first_hop = block.find("\n01 01 ").unwrap_or(block.len());
        let (one, other) = block.split_at(first_hop);
        for (text, sender) in [(one, *sender), (other, 1)] {
            if !text.trim().is_empty() {
                let (service, sender) = (ServiceId(*service), NodeId(sender));
                bodies.push(Body { sender, service, kind: *kind, bytes: hex(text) });
            }
        }
    }
    assert_eq!(bodies.len(), GOLDEN.len() + 1);
    bodies
}

/// Returns the bytes of hexadecimal digits between white space.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}
