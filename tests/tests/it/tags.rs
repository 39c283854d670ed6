//! Tunnelled packets between nodes with identities: a member that writes them in the name of
//! another node.

use ncmesh_engine::counters::DropReason;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::Duration;
use ncmesh_engines::registry;
use ncmesh_sim::{Event, Observer, Simulation, SimulationConfig, What, node_id};
use ncmesh_stack::trust::TrustMode;
use ncmesh_tests::{contents, links, mesh, settled};
use ncmesh_wire::identity::TAG_LEN;
use ncmesh_wire::{Cipher, NodeId, Salt, Sealer, ServiceId, Versions, Writer};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Kind of the data frames of tunnel schemes.
const DATA: u8 = 1;
/// Node that the member writes as. It is not in the mesh.
const MEMBER: NodeId = NodeId(77);
const TRUSTS: [TrustMode; 2] = [TrustMode::FirstUse, TrustMode::Network];

fn line(trust: TrustMode, seed: u64) -> Simulation {
    let mesh = mesh(links(3, &[(0, 1, 0.1), (1, 2, 0.1)]), seed);
    settled(SimulationConfig { trust, ..mesh })
}

fn service(scheme: &str) -> ServiceId {
    registry().entries().find(|e| e.name == scheme).unwrap().id
}

/// Header of a data frame of `forward` from the last node to the first one, which takes it.
fn from_last_to_first() -> Vec<u8> {
    let mut body = Vec::new();
    let mut w = Writer::new(&mut body);
    w.node(node_id(0)).node(node_id(2)).node(node_id(0)).u8(9);
    body
}

#[test]
fn packets_arrive_as_they_were_sent_in_every_scheme() {
    for trust in TRUSTS {
        for scheme in registry().of(ServiceKind::Tunnel).map(|entry| entry.name) {
            let mut s = line(trust, 1);
            let longest = s.host(0).stack().unwrap();
            let longest = longest.longest_packet(longest.scheme(scheme).unwrap()).unwrap();
            let mut sent = 0;
            for number in 0..40 {
                let len = if number % 8 == 0 { longest } else { 100 + number };
                for (from, to) in [(0, 2), (2, 0)] {
                    sent += usize::from(s.send_packet(scheme, from, to, &contents(len)).is_ok());
                }
                s.run_for(Duration::from_millis(100));
            }
            s.run_for(Duration::from_secs(5));
            let arrived = s.take_packets();
            for arrival in &arrived {
                let packet = &arrival.packet;
                assert_eq!(*packet, contents(packet.len()), "{trust:?}, {scheme}");
                assert!(packet.len() == longest || (100..140).contains(&packet.len()));
            }
            assert!(sent >= 40, "{trust:?}, {scheme}: {sent} sent");
            assert!(
                arrived.len() * 10 >= sent * 8,
                "{trust:?}, {scheme}: {} of {sent}",
                arrived.len()
            );
        }
    }
}

#[test]
fn a_packet_in_the_name_of_another_node_is_dropped() {
    for trust in [TrustMode::Key, TRUSTS[0], TRUSTS[1]] {
        let mut s = line(trust, 2);
        s.trust_all();
        let untrusted =
            |s: &Simulation| s.host(0).stack().unwrap().counters().dropped(DropReason::Untrusted);
        let before = untrusted(&s);
        let mut sealer = Sealer::new(s.config().cipher(), MEMBER, Salt([1; 16]));
        for len in [1, TAG_LEN - 1, TAG_LEN, TAG_LEN + 1, 300] {
            let mut frame = Vec::new();
            Sealer::begin(&mut frame, service("forward"), DATA);
            frame.extend(from_last_to_first());
            frame.extend(contents(len));
            sealer.seal(&mut frame, Versions::OWN.newest);
            s.inject(0, &frame);
        }
        s.run_for(Duration::from_millis(100));
        let dropped = untrusted(&s) - before;
        let arrived = s.take_packets().len();
        let expected = if trust == TrustMode::Key { (5, 0) } else { (0, 5) };
        assert_eq!((arrived, dropped), expected, "{trust:?}");
    }
}

/// The last data frame of `forward` that node 0 heard.
struct Tap {
    cipher: Cipher,
    last: Option<Vec<u8>>,
}

impl Observer for Tap {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Heard { frame, .. } = event.what {
            let mut scratch = Vec::new();
            if let Ok(o) = self.cipher.open(frame, &mut scratch)
                && event.node == 0
                && (o.service, o.kind) == (service("forward"), DATA)
            {
                self.last = Some(o.body.to_vec());
            }
        }
        Ok(())
    }
}

/// A relay takes a packet that was sent to it, and tells it as one of another node.
#[test]
fn a_packet_of_one_node_does_not_pass_for_one_of_another() {
    for trust in TRUSTS {
        let mut s = line(trust, 3);
        let tap = Tap { cipher: s.config().cipher(), last: None };
        let tap = Rc::new(RefCell::new(tap));
        s.observe(Box::new(Rc::clone(&tap)));
        s.trust_all();
        s.send_packet("forward", 1, 0, &contents(200)).unwrap();
        s.run_for(Duration::from_secs(1));
        assert_eq!(s.take_packets().len(), 1, "{trust:?}");

        let body = tap.borrow_mut().last.take().expect("a frame was heard");
        let mut frame = Vec::new();
        Sealer::begin(&mut frame, service("forward"), DATA);
        let header = from_last_to_first();
        frame.extend(&header);
        frame.extend(&body[header.len()..]);
        Sealer::new(s.config().cipher(), MEMBER, Salt([1; 16]))
            .seal(&mut frame, Versions::OWN.newest);
        s.inject(0, &frame);
        s.run_for(Duration::from_secs(1));
        assert_eq!(s.take_packets().len(), 0, "{trust:?}");
    }
}
