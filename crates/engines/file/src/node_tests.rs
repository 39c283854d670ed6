//! The engine in a whole node: frames as the stack hands them over.

use crate::PACIFIER;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{FileLimits, GenerationSet, Geometry, Manifest, ReceiverState, Stage};
use ncmesh_engine::registry::Registry;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::Instant;
use ncmesh_engine::topology::{LinkState, Links, Topology};
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_transfer::frame::{self, Announcement, TransferPhase, Version};
use ncmesh_wire::{Cipher, FlowId, NodeId, Salt, Sealer, ServiceId, Versions, Writer};

fn stack() -> Stack {
    let config = StackConfig {
        node: NodeId(1),
        name: "n1".into(),
        profile: Default::default(),
        salt: Salt([1; 16]),
        epoch: 1,
        seed: 1,
        mtu: 1500,
        versions: Versions::OWN,
        cipher: Cipher::Null,
        trust: Default::default(),
        link: Default::default(),
        route: Default::default(),
        share: Default::default(),
        engines: toml::Table::new(),
        file: FileLimits::default(),
    };
    let mut stack = Stack::new(config, Registry(&[PACIFIER]), Instant::default()).unwrap();
    stack.trust_all();
    stack
}

/// A frame of node 2, as heard here.
fn heard(sealer: &mut Sealer, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut datagram = Vec::new();
    Sealer::begin(&mut datagram, ServiceId(16), kind);
    write(&mut datagram);
    sealer.seal(&mut datagram, Versions::OWN.newest);
    datagram
}

/// An announcement of node 2, for node 1.
fn announcement(serial: u32, version: Version, phase: TransferPhase) -> Announcement {
    let flow = FlowId { source: NodeId(2), serial };
    let geometry = Geometry::new(100_000, 32, 1300).unwrap();
    let root = [0; 32];
    let hash = [0; 32];
    let manifest = Manifest { flow, name: "f".into(), geometry, root, hash };
    let receivers = vec![(NodeId(1), ReceiverState::Invited)];
    Announcement { version, phase, open_to_all: true, background: None, manifest, receivers }
}

#[test]
fn a_packet_that_would_not_fit_a_frame_when_sent_on_is_malformed() {
    let mut stack = stack();
    let mut storage = MemoryStorage::default();
    stack.pin_topology(Topology::new(0.05).into());
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), Salt([1; 16]));
    // Systematic and without a piggyback. Sent on it would have 32 coefficients instead of one
    // byte, and perhaps a piggyback.
    let datagram = heard(&mut sealer, 1, |out| {
        let mut w = Writer::new(out);
        w.node(NodeId(2)).u32(1).u16(1).u32(1).u32(0).u8(32).u8(1);
        w.u8(1).node(NodeId(1)).u16(256).u8(0).bytes(&[1; 1432]);
    });
    assert!(datagram.len() <= 1500);
    stack.at(Instant::default(), &mut storage).handle_datagram(&datagram);
    assert!(stack.at(Instant::default(), &mut storage).fill(&mut Vec::new()).is_none());
    assert_eq!(stack.counters().dropped(DropReason::Malformed), 1);
}

#[test]
fn an_end_before_acceptance_leaves_no_reception_open_for_long() {
    let mut stack = stack();
    let mut storage = MemoryStorage::default();
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), Salt([1; 16]));
    for (number, phase) in [(1, TransferPhase::Open), (2, TransferPhase::Ended)] {
        let announcement = announcement(1, Version { epoch: 1, number }, phase);
        let datagram = heard(&mut sealer, 0, |out| announcement.write(out));
        stack.at(Instant::default(), &mut storage).handle_datagram(&datagram);
        let none = GenerationSet::none(announcement.manifest.geometry.generations());
        stack.at(Instant::default(), &mut storage).accept(announcement.manifest.flow, &none);
    }
    assert_eq!(stack.transfers()[0].stage, Stage::Open);
    for second in 0..20 {
        stack.at(Instant::from_nanos(second * 1_000_000_000), &mut storage).handle_timeout();
    }
    assert_eq!(stack.transfers()[0].stage, Stage::Withdrawn);
}

#[test]
fn a_source_that_restarts_is_refused_again_when_the_table_is_full() {
    let mut stack = stack();
    let mut storage = MemoryStorage::default();
    let mut topology = Topology::new(0.05);
    for (node, heard) in [(1, 2), (2, 1)] {
        let hears = Links::from_iter([(NodeId(heard), 1.0)]);
        let state =
            LinkState { version: (0, 1), base: 1, name: "x".into(), hears, ..Default::default() };
        topology.learn(NodeId(node), state);
    }
    stack.pin_topology(topology.into());
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), Salt([1; 16]));
    let full = FileLimits::default().kept as u32;
    // Acknowledgments that an announcement in this epoch of its source causes.
    let mut acks_after = |serial, epoch| {
        let version = Version { epoch, number: 1 };
        let announcement = announcement(serial, version, TransferPhase::Open);
        let datagram = heard(&mut sealer, 0, |out| announcement.write(out));
        stack.at(Instant::default(), &mut storage).handle_datagram(&datagram);
        let mut acks = 0;
        while let Some(sent) = stack.at(Instant::default(), &mut storage).fill(&mut Vec::new()) {
            acks += u32::from(sent.kind == frame::ACK);
        }
        acks
    };
    for serial in 0..full {
        assert_eq!(acks_after(serial, 1), 0);
    }
    assert_eq!(acks_after(full, 1), 1);
    assert_eq!(acks_after(full, 2), 1);
}
