//! Neighbours that lie do bounded harm.

use super::node::{FLOW, Node, announcement, has, state};
use crate::frame::{Have, LAST, State};
use crate::lane::CAPACITY;
use ncmesh_engine::StreamEngine;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::stream::NewStream;
use ncmesh_engine::toolkit::live::{Announcement, Contents, MAX_CHILDREN, MAX_STREAMS};
use ncmesh_wire::{FlowId, NodeId};

#[test]
fn floods_of_streams_and_of_next_hops_are_bounded() {
    let mut node = Node::new();
    for serial in 0..100 {
        let flow = FlowId { source: NodeId(9), serial };
        node.announce_as(1, &Announcement { flow, ..announcement() });
    }
    assert_eq!(node.engine.streams.known.len(), MAX_STREAMS);
    assert_eq!(node.dropped(DropReason::Full), 100 - MAX_STREAMS as u64);
    // Streams that are not announced any more are forgotten.
    node.wait(30_000);
    assert_eq!(node.engine.streams.known.len(), 0);
    node.announce();
    for sender in 100..300 {
        node.report(sender, &state(2, 1, 0, [has(0), has(0)]));
    }
    assert_eq!(node.status().queues.len(), MAX_CHILDREN);
}

#[test]
fn a_node_that_announces_any_number_of_streams_leaves_places_to_others() {
    let mut node = Node::new();
    node.join();
    node.announce();

    // All but one are of node 9. The streams of others find places all the same.
    for serial in 0..100 {
        let flow = FlowId { source: NodeId(9), serial };
        node.announce_as(1, &Announcement { flow, ..announcement() });
    }
    let count = |node: &Node, source| {
        let flows = node.engine.streams.known.keys();
        flows.filter(|flow| flow.source == NodeId(source)).count()
    };
    assert_eq!((count(&node, 1), count(&node, 9)), (1, MAX_STREAMS - 1));
    for serial in 0..100 {
        let flow = FlowId { source: NodeId(8), serial };
        node.announce_as(1, &Announcement { flow, ..announcement() });
    }
    assert_eq!(node.engine.streams.known.len(), MAX_STREAMS);
    assert_eq!((count(&node, 1), count(&node, 8), count(&node, 9)), (1, 15, 16));

    // Nor do they take the place of what this node receives, and a stream of its own finds one.
    assert!(node.engine.streams.known[&FLOW].part.receiver.is_some());
    let new = NewStream { group: "own", layers: &["base".to_owned()], deadline: None };
    assert!(node.with(|engine, cx| engine.open(cx, new)).is_ok());
    assert_eq!(node.engine.streams.known.len(), MAX_STREAMS);
}

#[test]
fn a_parent_is_no_next_hop_and_receivers_are_no_more_than_nodes() {
    let mut node = Node::relay();
    node.report(1, &state(2, 1, 0, [has(0), has(0)]));
    assert_eq!(node.dropped(DropReason::Stale), 1);
    node.report(4, &state(2, u16::MAX, 0, [has(0), has(0)]));
    assert_eq!(node.status().receivers, 1 + 5);
    let unknown = FlowId { serial: 8, ..FLOW };
    node.report(3, &State { flow: unknown, ..state(2, 1, 0, [has(0), has(0)]) });
    assert_eq!(node.dropped(DropReason::UnknownFlow), 1);
    // One that tells of other layers than the stream has.
    node.report(5, &State { layers: vec![has(0)], ..state(2, 1, 0, [has(0), has(0)]) });
    assert_eq!(node.dropped(DropReason::Stale), 2);
}

#[test]
fn a_next_hop_that_claims_what_was_never_sent_gets_nothing_and_stops_none() {
    let mut node = Node::relay();
    let all = Have { oldest: LAST, needs: u32::MAX - 1, map: vec![0xff; 32] };
    node.report(4, &state(2, 1, 0, [all.clone(), all]));
    node.data(0, 0);
    assert_eq!(node.next_data().unwrap().packets(), [0, 0, 1]);
}

#[test]
fn the_first_next_hop_of_a_relay_cannot_stop_it_by_a_far_number() {
    let mut node = Node::new();
    node.announce();
    node.report(4, &state(2, 1, 0, [has(LAST - 1), has(LAST - 1)]));
    node.report(3, &state(2, 1, 0, [has(0), has(0)]));
    // The parent's packets count.
    node.data(0, 5);
    node.data(0, 6);
    let sent = [node.next_data().unwrap().packets(), node.next_data().unwrap().packets()];
    assert_eq!(sent, [[0, 5, 1], [0, 6, 1]]);
}

#[test]
fn a_far_packet_of_another_node_than_the_parent_is_dropped() {
    let mut node = Node::relay();
    node.data(0, 0);
    let mut far = Node::relay();
    far.data(0, 4 * CAPACITY);
    let (kind, body) = std::iter::from_fn(|| far.fill()).find(|(kind, _)| *kind == 1).unwrap();
    node.handle_frame(5, kind, &body);
    assert_eq!(node.dropped(DropReason::Full), 1);
    assert_eq!(node.next_data().unwrap().packets(), [0, 0, 1]);
}

#[test]
fn the_source_supersedes_a_false_end() {
    let mut node = Node::new();
    node.join();
    node.announce();
    assert_eq!(node.status().receivers, 1);
    let contents = Contents { group: "tv".into(), layers: vec![], sent: vec![] };
    let end = Announcement { version: 9, contents, ..announcement() };
    node.announce_as(1, &end);
    assert!(node.engine.streams.known[&FLOW].part.has_ended());
    node.announce_as(1, &Announcement { version: 10, ..announcement() });
    assert_eq!(node.status().receivers, 1);
}
