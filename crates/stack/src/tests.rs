//! One node alone: what it hears, when it wakes, what it will not send.

use crate::control;
use crate::link::LinkConfig;
use crate::route::RouteConfig;
use crate::{Stack, StackConfig, trust};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::registry::Registry;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{Cipher, Key, NodeId, Salt, Sealer, Versions, Writer};

fn stack() -> Stack {
    let mut stack = stack_with(Cipher::Null);
    stack.trust_all();
    stack
}

fn stack_with(cipher: Cipher) -> Stack {
    let config = StackConfig {
        node: NodeId(1),
        name: "n1".into(),
        profile: Default::default(),
        salt: Salt([1; 16]),
        epoch: 1,
        seed: 1,
        mtu: 1500,
        versions: Versions::OWN,
        cipher,
        trust: Default::default(),
        link: LinkConfig::default(),
        route: RouteConfig::default(),
        share: Default::default(),
        engines: toml::Table::new(),
        file: FileLimits::default(),
    };
    Stack::new(config, Registry(&[]), Instant::default()).unwrap()
}

/// Returns a hello frame of node 2 that tells its own state, without links.
fn hello(sealer: &mut Sealer, kind: u8) -> Vec<u8> {
    let mut datagram = Vec::new();
    Sealer::begin(&mut datagram, control::SERVICE, kind);
    let mut w = Writer::new(&mut datagram);
    w.u16(1000).u16(0).u16(0).u16(1).u64(0).u8(0).u8(0).u16(0);
    w.node(NodeId(2)).u8(0xFF).u32(1).u16(0).u64(1).short_bytes(b"n2").u8(0);
    sealer.seal(&mut datagram, Versions::OWN.newest);
    datagram
}

#[test]
fn a_kind_that_does_not_exist_is_counted_and_not_read() {
    let mut stack = stack();
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), Salt([2; 16]));
    for (kind, malformed, known) in
        [(trust::KNOWN_LISTS + 1, 1, false), (63, 2, false), (control::HELLO, 2, true)]
    {
        let datagram = hello(&mut sealer, kind);
        stack.at(Instant::default(), &mut MemoryStorage::default()).handle_datagram(&datagram);
        assert_eq!(stack.counters.dropped(DropReason::Malformed), malformed);
        assert_eq!(stack.topology().state(NodeId(2)).is_some(), known);
    }
}

/// Whoever lacks the key makes a node keep nothing, and blocks no genuine frame.
#[test]
fn garbage_leaves_no_state() {
    let key = |byte| Cipher::new(&Key::new([byte; 32]));
    let mut stack = stack_with(key(1));
    let mut storage = MemoryStorage::default();
    for i in 0..2000u32 {
        let salt = Salt([i as u8; 16]);
        let datagram = hello(&mut Sealer::resume(key(2), NodeId(2), salt, 5000), control::HELLO);
        stack.at(Instant::default(), &mut storage).handle_datagram(&datagram);
    }
    assert_eq!(stack.counters.dropped(DropReason::Unauthentic), 2000);
    assert!(stack.control.peers.is_empty());
    let datagram = hello(&mut Sealer::new(key(1), NodeId(2), Salt([7; 16])), control::HELLO);
    stack.at(Instant::default(), &mut storage).handle_datagram(&datagram);
    assert_eq!(stack.counters.dropped(DropReason::Unproven), 1);
    assert!(!stack.control.peers.is_empty());
}

#[test]
fn a_timer_overtaken_by_a_datagram_is_not_lost() {
    let mut stack = stack();
    let mut storage = MemoryStorage::default();
    stack.at(Instant::default(), &mut storage).handle_timeout();
    let next = stack.poll_timeout().unwrap();
    let late = next + Duration::from_millis(1);
    stack.at(late, &mut storage).handle_datagram(&[1, 2, 3]);
    assert_eq!(stack.poll_timeout(), Some(late));
    stack.at(late, &mut storage).handle_timeout();
    assert!(stack.poll_timeout() > Some(late));
}
