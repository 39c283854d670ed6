//! One node alone: what it hears, when it wakes, what it will not send.

use super::*;
use crate::file::frame::{Announce, Phase};
use crate::file::storage::MemoryStorage;
use ncmesh_wire::Writer;

fn stack() -> Stack {
    let config = StackConfig {
        node: NodeId(1),
        name: "n1".into(),
        epoch: 1,
        seed: 1,
        mtu: 1500,
        cipher: Cipher::Null,
        link: LinkConfig::default(),
        route: RouteConfig::default(),
        engines: toml::Table::new(),
        file: FileLimits::default(),
    };
    Stack::new(config, Instant::default()).unwrap()
}

#[test]
fn a_kind_that_does_not_exist_is_counted_and_not_read() {
    let mut stack = stack();
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), 1);
    let mut hear = |service, kind| {
        let mut datagram = Vec::new();
        Sealer::begin(&mut datagram, service, kind);
        // Read as a probe: number 0, periods of 1 ms. As link state: node 0, ending early.
        Writer::new(&mut datagram).u32(0).u16(0).u16(1).u16(1);
        sealer.seal(&mut datagram);
        stack.handle_datagram(&datagram, &mut MemoryStorage::default(), Instant::default());
        (stack.counters.dropped(DropReason::Malformed), stack.link.neighbor_count())
    };
    assert_eq!(hear(link::SERVICE, 1), (1, 0));
    assert_eq!(hear(link::SERVICE, 255), (2, 0));
    assert_eq!(hear(route::SERVICE, 1), (3, 0));
    assert_eq!(hear(link::SERVICE, link::PROBE), (3, 1));
}

#[test]
fn link_state_of_another_kind_is_not_learned() {
    let mut stack = stack();
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), 1);
    for (kind, known) in [(1, false), (route::LINK_STATE, true)] {
        let mut datagram = Vec::new();
        Sealer::begin(&mut datagram, route::SERVICE, kind);
        Writer::new(&mut datagram).node(NodeId(2)).u64(1).u32(1).short_bytes(b"n2").u16(0);
        sealer.seal(&mut datagram);
        stack.handle_datagram(&datagram, &mut MemoryStorage::default(), Instant::default());
        assert_eq!(stack.topology().state(NodeId(2)).is_some(), known);
    }
    assert_eq!(stack.counters.dropped(DropReason::Malformed), 1);
}

/// A frame of node 2, as heard here.
fn heard(sealer: &mut Sealer, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut datagram = Vec::new();
    Sealer::begin(&mut datagram, ServiceId(16), kind);
    write(&mut datagram);
    sealer.seal(&mut datagram);
    datagram
}

fn announced(serial: u32, version: (u64, u32), phase: Phase) -> Announce {
    let flow = FlowId { source: NodeId(2), serial };
    let geometry = Geometry::new(100_000, 32, 1300).unwrap();
    let (root, hash) = ([0; 32], [0; 32]);
    let manifest = crate::file::Manifest { flow, name: "f".into(), geometry, root, hash };
    let receivers = vec![(NodeId(1), crate::file::ReceiverState::Invited)];
    Announce { version, phase, open: true, manifest, receivers }
}

#[test]
fn what_cannot_be_sent_on_within_the_mtu_is_not_forwarded() {
    let (mut stack, mut storage) = (stack(), MemoryStorage::default());
    stack.pin_topology(Topology::new(0.05).into());
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), 1);
    // Systematic: one byte stands for 32 coefficients, and there is no piggyback.
    let datagram = heard(&mut sealer, 1, |out| {
        let mut w = Writer::new(out);
        w.node(NodeId(2)).u32(1).u16(1).u32(1).u32(0).u8(32).u8(1);
        w.u8(1).node(NodeId(1)).u16(256).u8(0).bytes(&[1; 1440]);
    });
    assert!(datagram.len() <= 1500);
    stack.handle_datagram(&datagram, &mut storage, Instant::default());
    assert!(stack.fill(&mut Vec::new(), &mut storage, Instant::default()).is_none());
    assert_eq!(stack.counters.dropped(DropReason::Malformed), 1);
}

#[test]
fn a_timer_overtaken_by_a_datagram_is_not_lost() {
    let (mut stack, mut storage) = (stack(), MemoryStorage::default());
    stack.handle_timeout(&mut storage, Instant::default());
    let next = stack.poll_timeout().unwrap();
    let late = next + crate::time::Duration::from_millis(1);
    stack.handle_datagram(&[1, 2, 3], &mut storage, late);
    assert_eq!(stack.poll_timeout(), Some(late));
    stack.handle_timeout(&mut storage, late);
    assert!(stack.poll_timeout() > Some(late));
}

#[test]
fn an_end_that_comes_too_early_leaves_no_reception_open() {
    let (mut stack, mut storage) = (stack(), MemoryStorage::default());
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), 1);
    for (n, phase) in [(1, Phase::Open), (2, Phase::Ended)] {
        let announce = announced(1, (1, n), phase);
        let datagram = heard(&mut sealer, 0, |out| announce.write(out));
        stack.handle_datagram(&datagram, &mut storage, Instant::default());
        let none = BatchSet::none(announce.manifest.geometry.batches());
        stack.accept(announce.manifest.flow, &none, &mut storage, Instant::default());
    }
    assert_eq!(stack.transfers()[0].stage, crate::file::Stage::Withdrawn);
}

#[test]
fn a_source_that_starts_again_is_told_again_that_there_is_no_room() {
    let (mut stack, mut storage) = (stack(), MemoryStorage::default());
    let mut topology = Topology::new(0.05);
    for (node, heard) in [(1, 2), (2, 1)] {
        let hears = [(NodeId(heard), 1.0)].into();
        let state = route::LinkState { version: (0, 1), name: "x".into(), hears };
        topology.learn(NodeId(node), state, Instant::default());
    }
    stack.pin_topology(topology.into());
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), 1);
    let full = FileLimits::default().kept as u32;
    let mut acks_after = |serial, version| {
        let announce = announced(serial, version, Phase::Open);
        let datagram = heard(&mut sealer, 0, |out| announce.write(out));
        stack.handle_datagram(&datagram, &mut storage, Instant::default());
        let mut acks = 0;
        while let Some(sent) = stack.fill(&mut Vec::new(), &mut storage, Instant::default()) {
            acks += u32::from(sent.kind == crate::file::frame::ACK);
        }
        acks
    };
    for serial in 0..full {
        assert_eq!(acks_after(serial, (1, 1)), 0);
    }
    assert_eq!(acks_after(full, (1, 1)), 1);
    assert_eq!(acks_after(full, (2, 1)), 1);
}
