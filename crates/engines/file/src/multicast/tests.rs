//! The parts by themselves: a receiver that meets forged data, a forwarder's credit and buffer.

use super::data::{Coding, Data, DataHeader};
use super::relay::{Relayed, Relays};
use super::routing::{Forwarder, Forwarding, Routing, Upstream};
use super::sink::{Sink, SinkPhase, Sunk, make_memory};
use ncmesh_engine::file::merkle::{MerkleTree, digest};
use ncmesh_engine::file::{BatchSet, Geometry, Manifest};
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::Instant;
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };
/// Room in a frame for any header here.
const MTU: usize = 1500;
const AT: Instant = Instant::from_nanos(0);

/// A file of two batches of two packets of 100 bytes, and its manifest.
fn file() -> (Vec<u8>, Manifest, MerkleTree) {
    let contents: Vec<u8> = (0..300u16).map(|i| (i % 251) as u8).collect();
    let geometry = Geometry::new(300, 2, 100).unwrap();
    assert_eq!((geometry.batches(), geometry.depth()), (2, 1));
    let digest = digest(contents.as_slice(), &geometry).unwrap();
    let tree = MerkleTree::new(digest.leaves, geometry.depth());
    let (root, hash) = (tree.root(), digest.whole);
    (contents, Manifest { flow: FLOW, name: "f".into(), geometry, root, hash }, tree)
}

/// The packets of a batch as they are, branch included.
fn packets(batch: u32) -> Vec<Vec<u8>> {
    let (contents, manifest, tree) = file();
    let g = manifest.geometry;
    let start = g.offset(batch) as usize;
    let mut bytes = contents[start..start + g.data_len(batch)].to_vec();
    tree.write_branch(batch, &mut bytes);
    bytes.resize(usize::from(g.packets(batch)) * 100, 0);
    bytes.chunks(100).map(<[u8]>::to_vec).collect()
}

fn header(visit: u32, batch: u32) -> DataHeader {
    let forwarder = |node, credit| Forwarder::new(NodeId(node), credit);
    DataHeader {
        flow: FLOW,
        incarnation: 7,
        visit,
        batch,
        packets: 2,
        routing: Routing::Ordered(vec![forwarder(2, 1.5), forwarder(3, 0.5)]),
        revision: 0,
        poll: None,
        piggyback: None,
    }
}

fn data<'a>(header: &DataHeader, i: u8, payload: &'a [u8]) -> Data<'a> {
    Data { header: header.clone(), coding: Coding::Systematic(i), payload }
}

#[test]
fn a_forged_batch_is_never_written_and_the_true_one_is_taken_afterwards() {
    let (contents, manifest, _) = file();
    let mut storage = MemoryStorage::default();
    let mut sink = Sink::new(manifest, AT);
    sink.accept(BatchSet::none(2));
    let forged = [9; 100];
    assert_eq!(sink.handle_data(&data(&header(1, 0), 0, &forged), AT, &mut storage), Sunk::Quiet);
    let second = &packets(0)[1];
    assert_eq!(sink.handle_data(&data(&header(1, 0), 1, second), AT, &mut storage), Sunk::BatchBad);
    assert!(storage.received(FLOW).is_empty());
    assert!(!sink.have.contains(0));
    for batch in [1, 0] {
        let last = packets(batch).len() - 1;
        for (i, packet) in packets(batch).iter().enumerate() {
            let sunk =
                sink.handle_data(&data(&header(2, batch), i as u8, packet), AT, &mut storage);
            assert_eq!(sunk, if i == last { Sunk::BatchDone } else { Sunk::Quiet });
        }
    }
    assert_eq!(sink.phase, SinkPhase::Verifying);
    assert_eq!(storage.received(FLOW), contents);
    assert_eq!(sink.bad_batches, 1);
}

#[test]
fn a_batch_of_another_place_does_not_pass() {
    let (_, manifest, _) = file();
    let mut storage = MemoryStorage::default();
    let mut sink = Sink::new(manifest, AT);
    sink.accept(BatchSet::none(2));
    let outcomes: Vec<Sunk> = packets(1)
        .iter()
        .enumerate()
        .map(|(i, p)| sink.handle_data(&data(&header(1, 0), i as u8, p), AT, &mut storage))
        .collect();
    assert_eq!(outcomes.last(), Some(&Sunk::BatchBad));
}

#[test]
fn packets_that_do_not_fit_the_file_are_refused() {
    let (_, manifest, _) = file();
    let mut storage = MemoryStorage::default();
    let mut sink = Sink::new(manifest, AT);
    let good = packets(0).remove(0);
    let early = sink.handle_data(&data(&header(1, 0), 0, &good), AT, &mut storage);
    assert_eq!(early, Sunk::Quiet, "before it is accepted nothing is taken");
    sink.accept(BatchSet::none(2));
    for (header, payload) in [
        (header(1, 2), &good[..]),
        (header(1, u32::MAX), &good[..]),
        (header(1, 0), &good[..99]),
        (DataHeader { packets: 3, ..header(1, 0) }, &good[..]),
    ] {
        assert_eq!(sink.handle_data(&data(&header, 0, payload), AT, &mut storage), Sunk::Malformed);
    }
}

/// A receiver of transfer `serial`, in batches of 8 packets of 100 bytes.
fn large(serial: u32) -> (FlowId, Sink) {
    let flow = FlowId { serial, ..FLOW };
    let geometry = Geometry::new(1_000_000, 8, 100).unwrap();
    let (root, hash) = ([0; 32], [0; 32]);
    let mut sink = Sink::new(Manifest { flow, name: "f".into(), geometry, root, hash }, AT);
    sink.accept(BatchSet::none(geometry.batches()));
    (flow, sink)
}

#[test]
fn memory_is_bounded_and_the_transfer_that_uses_most_gives_back() {
    let each = 8 * 164;
    let limit = 3 * each;
    let mut sinks = BTreeMap::from([large(1), large(2)]);
    let mut storage = MemoryStorage::default();
    let mut hear = |sinks: &mut BTreeMap<FlowId, Sink>, serial, batch| {
        let flow = FlowId { serial, ..FLOW };
        let header = DataHeader { packets: 8, ..header(1, batch) };
        let needs = sinks[&flow].needs(batch);
        assert!(make_memory(sinks, needs, limit));
        let sink = sinks.get_mut(&flow).unwrap();
        assert_eq!(sink.handle_data(&data(&header, 0, &[1; 100]), AT, &mut storage), Sunk::Quiet);
        assert!(sinks.values().map(Sink::memory).sum::<usize>() <= limit);
    };
    for batch in 0..200 {
        hear(&mut sinks, 1, batch);
    }
    hear(&mut sinks, 2, 0);
    let under_way: Vec<usize> = sinks.values().map(Sink::batches_under_way).collect();
    assert_eq!(under_way, [2, 1]);
    assert!(!make_memory(&mut sinks, limit + 1, limit));
}

#[test]
fn credit_comes_from_upstream_only() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let (h, payload) = (header(1, 0), [1; 100]);
    let heard = |relays: &mut Relays, sender, i| {
        relays.handle_data(NodeId(3), NodeId(sender), &data(&h, i, &payload), MTU, AT)
    };
    assert_eq!(heard(&mut relays, 9, 0), Relayed::Taken);
    assert_eq!(relays.ready(AT), None, "a node outside the list is not upstream");
    assert_eq!(heard(&mut relays, 2, 0), Relayed::Taken);
    assert!(relays.ready(AT).is_some(), "credit 0.5 is positive");
    let mut rng = rng::stream(1, NodeId(3), "test", "relay");
    let mut out = Vec::new();
    assert!(relays.fill(FLOW, None, AT, &mut rng, &mut out).is_some());
    assert_eq!(out.len(), 19 + 2 * 4 + 102);
    assert_eq!(relays.ready(AT), None);
    // Half a packet is owed: one more reception only settles it, the second lets it send again.
    heard(&mut relays, 1, 1);
    assert_eq!(relays.ready(AT), None);
    heard(&mut relays, 1, 1);
    assert!(relays.ready(AT).is_some());
    assert_eq!(
        relays.handle_data(NodeId(5), NodeId(1), &data(&h, 0, &payload), MTU, AT),
        Relayed::NotOurs
    );
}

/// Nodes 2 and 3 are upstream of each other, node 4 of nobody and nobody of it.
fn belts(revision: u8, listed: &[u16]) -> DataHeader {
    let mut upstream = Upstream::none(listed.len());
    upstream.insert(0, 1);
    upstream.insert(1, 0);
    let forwarders = listed.iter().map(|node| Forwarder::new(NodeId(*node), 1.0)).collect();
    DataHeader { routing: Routing::Belts(forwarders, upstream), revision, ..header(1, 0) }
}

#[test]
fn in_belts_a_forwarder_is_told_who_is_upstream() {
    let payload = [1; 100];
    for (me, sender, gets_credit) in
        [(2, 3, true), (3, 2, true), (2, 4, false), (4, 2, false), (4, 1, true), (2, 9, false)]
    {
        let (mut relays, h) = (Relays::new(Forwarding::Ordered), belts(0, &[2, 3, 4]));
        relays.handle_data(NodeId(me), NodeId(sender), &data(&h, 0, &payload), MTU, AT);
        assert_eq!(relays.ready(AT).is_some(), gets_credit, "{me} hears {sender}");
    }
}

#[test]
fn a_newer_plan_is_followed_and_an_older_one_is_not() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let payload = [1; 100];
    let mut hear = |h: &DataHeader| {
        relays.handle_data(NodeId(3), NodeId(1), &data(h, 0, &payload), MTU, AT);
        (relays.ready(AT).is_some(), relays.header(FLOW).map(|h| h.revision))
    };
    assert_eq!(hear(&belts(254, &[2, 3])), (true, Some(254)));
    // The revision wraps. The new plan has no use for node 3, and what others still send by the old one
    // does not bring it back.
    assert_eq!(hear(&belts(1, &[2, 4])), (false, Some(1)));
    assert_eq!(hear(&belts(254, &[2, 3])), (false, Some(1)));
    assert_eq!(hear(&belts(2, &[2, 3])), (true, Some(2)));
}

#[test]
fn a_new_visit_flushes_the_buffer_and_old_packets_do_not_bring_it_back() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let payload = [1; 100];
    let heard = |relays: &mut Relays, h: &DataHeader| {
        relays.handle_data(NodeId(2), NodeId(1), &data(h, 0, &payload), MTU, AT)
    };
    heard(&mut relays, &header(5, 0));
    heard(&mut relays, &header(6, 1));
    assert_eq!(relays.header(FLOW).map(|h| (h.visit, h.batch)), Some((6, 1)));
    assert_eq!(heard(&mut relays, &header(5, 0)), Relayed::Stale);
    // Another start of the source counts from the beginning.
    let restarted = DataHeader { incarnation: 8, ..header(1, 0) };
    assert_eq!(heard(&mut relays, &restarted), Relayed::Taken);
    assert_eq!(relays.header(FLOW).map(|h| h.visit), Some(1));
    // The visit number wraps.
    heard(&mut relays, &DataHeader { incarnation: 9, ..header(u32::MAX, 0) });
    let wrapped = DataHeader { incarnation: 9, ..header(0, 1) };
    assert_eq!(heard(&mut relays, &wrapped), Relayed::Taken);
    assert_eq!(relays.header(FLOW).map(|h| h.visit), Some(0));
}

#[test]
fn forwarded_transfers_are_bounded() {
    let mut relays = Relays::new(Forwarding::Ordered);
    for serial in 0..500 {
        let flow = FlowId { source: NodeId(1), serial };
        let h = DataHeader { flow, ..header(1, 0) };
        let at = Instant::from_nanos(u64::from(serial));
        relays.handle_data(NodeId(2), NodeId(1), &data(&h, 0, &[1; 100]), MTU, at);
        assert!(relays.len() <= 32);
    }
    assert!(relays.header(FlowId { source: NodeId(1), serial: 499 }).is_some());
}

#[test]
fn a_packet_of_another_length_does_not_change_the_forwarders() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let h = header(1, 0);
    relays.handle_data(NodeId(2), NodeId(1), &data(&h, 0, &[1; 100]), MTU, AT);
    let routing = Routing::Ordered(vec![Forwarder::new(NodeId(2), 1.0); 200]);
    let longer = DataHeader { routing, ..header(1, 0) };
    let heard = relays.handle_data(NodeId(2), NodeId(1), &data(&longer, 0, &[1; 50]), MTU, AT);
    assert_eq!(heard, Relayed::Malformed);
    assert_eq!(relays.header(FLOW).map(|h| h.routing), Some(h.routing));
}
