//! One node alone: what it hears, when it wakes, what it will not send.

use crate::link::{self, LinkConfig};
use crate::route::{self, RouteConfig};
use crate::{Stack, StackConfig};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::registry::Registry;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{Cipher, NodeId, Sealer, Writer};

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
    Stack::new(config, Registry(&[]), Instant::default()).unwrap()
}

#[test]
fn a_kind_that_does_not_exist_is_counted_and_not_read() {
    let mut stack = stack();
    let mut sealer = Sealer::new(Cipher::Null, NodeId(2), 1);
    let mut hear = |service, kind| {
        // Read as probes: numbers 0 to 7, periods of 1 ms. As link state: node 0, ending early.
        for number in 0..8 {
            let mut datagram = Vec::new();
            Sealer::begin(&mut datagram, service, kind);
            Writer::new(&mut datagram).u32(number).u16(0).u16(1).u16(1);
            sealer.seal(&mut datagram);
            stack.at(Instant::default(), &mut MemoryStorage::default()).handle_datagram(&datagram);
        }
        (stack.counters.dropped(DropReason::Malformed), stack.inbound().count())
    };
    assert_eq!(hear(link::SERVICE, 1), (8, 0));
    assert_eq!(hear(link::SERVICE, 255), (16, 0));
    assert_eq!(hear(route::SERVICE, 1), (24, 0));
    assert_eq!(hear(link::SERVICE, link::PROBE), (24, 1));
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
        stack.at(Instant::default(), &mut MemoryStorage::default()).handle_datagram(&datagram);
        assert_eq!(stack.topology().state(NodeId(2)).is_some(), known);
    }
    assert_eq!(stack.counters.dropped(DropReason::Malformed), 1);
}

#[test]
fn a_timer_overtaken_by_a_datagram_is_not_lost() {
    let (mut stack, mut storage) = (stack(), MemoryStorage::default());
    stack.at(Instant::default(), &mut storage).handle_timeout();
    let next = stack.poll_timeout().unwrap();
    let late = next + Duration::from_millis(1);
    stack.at(late, &mut storage).handle_datagram(&[1, 2, 3]);
    assert_eq!(stack.poll_timeout(), Some(late));
    stack.at(late, &mut storage).handle_timeout();
    assert!(stack.poll_timeout() > Some(late));
}
