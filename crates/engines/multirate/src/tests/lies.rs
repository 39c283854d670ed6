//! Neighbours that lie do bounded harm.

use super::node::{FLOW, Node, announcement, announcement_of, config, entry, utility};
use crate::frame::ReportEntry;
use ncmesh_engine::StreamEngine;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::stream::NewStream;
use ncmesh_engine::toolkit::live::{
    ANNOUNCEMENT, Announcement, MAX_CHILDREN, MAX_STREAMS, Untimed,
};
use ncmesh_wire::{FlowId, NodeId};

#[test]
fn reports_are_clamped_to_what_can_be_true() {
    let mut node = Node::new(config());
    node.announce();
    node.report(3, ReportEntry { pressure: 1e30, ..entry(2, u16::MAX, -1e30) });
    let queue = node.engine.streams()[0].queues[0].clone();
    // No more receivers than nodes, no more urgency than a queue can hold, no more pressure than
    // V theta of each.
    assert_eq!((queue.receivers, queue.downstream, queue.place_holders), (5, -80.0, 40.0));
    node.report(3, ReportEntry { pressure: -1e30, ..entry(2, 1, 0.0) });
    assert_eq!(node.engine.streams()[0].queues[0].place_holders, 0.0);
    node.report(3, entry(2, 1, 1e30));
    assert_eq!(node.engine.streams()[0].queues[0].downstream, 160.0);
    // One that calls itself full is not served.
    node.data(1, 0, 0);
    assert_eq!(node.next_data(), None);
    // A parent cannot be the child of its child.
    node.report(1, entry(2, 1, 0.0));
    assert_eq!(node.dropped(DropReason::Stale), 1);
    // A packet that is not from the parent, a repeated one, one of a layer that does not exist, and
    // a report of an unknown stream.
    node.data(3, 0, 1);
    node.data(1, 0, 0);
    assert_eq!(node.dropped(DropReason::Stale), 3);
    node.data(1, 2, 0);
    assert_eq!(node.dropped(DropReason::Malformed), 1);
    node.report(3, ReportEntry { flow: FlowId { serial: 8, ..FLOW }, ..entry(2, 1, 0.0) });
    assert_eq!(node.dropped(DropReason::UnknownFlow), 1);
}

#[test]
fn the_source_supersedes_a_false_end() {
    let mut node = Node::new(config());
    node.with(|e, cx| e.join(cx, "tv", utility("linear"))).unwrap();
    node.announce();
    let handle_announcement = |node: &mut Node, flow, version, layers: &[String]| {
        let mut body = Vec::new();
        let heard = announcement_of(version, layers, &vec![0; layers.len()]);
        Announcement { flow, ..heard }.write(&mut body);
        node.handle_frame(1, ANNOUNCEMENT, &body);
    };
    handle_announcement(&mut node, FLOW, 9, &[]);
    assert!(node.engine.streams().is_empty());
    handle_announcement(&mut node, FLOW, 10, &announcement().contents.layers);
    assert_eq!(node.engine.streams()[0].receivers, 1);
    // The same of its own stream, whose first version was 1.
    let own = node
        .with(|e, cx| {
            let layers = &announcement().contents.layers;
            e.open(cx, NewStream { group: "own", layers, deadline: None })
        })
        .unwrap();
    handle_announcement(&mut node, own, 7, &[]);
    node.wait(30);
    let sent = std::iter::from_fn(|| node.fill()).filter(|(kind, _)| *kind == ANNOUNCEMENT);
    let versions: Vec<_> = sent
        .map(|(_, body)| Untimed::parse(&body).unwrap())
        .filter(|announced| announced.flow == own)
        .map(|announced| (announced.version, announced.contents.layers.len()))
        .collect();
    assert_eq!(versions, [(8, 2)]);
}

#[test]
fn floods_of_streams_and_of_children_are_bounded() {
    let mut node = Node::new(config());
    for serial in 0..100 {
        let flow = FlowId { source: NodeId(9), serial };
        let mut body = Vec::new();
        Announcement { flow, ..announcement() }.write(&mut body);
        node.handle_frame(1, ANNOUNCEMENT, &body);
    }
    assert_eq!(node.engine.streams().len(), MAX_STREAMS);
    assert_eq!(node.dropped(DropReason::Full), 100 - MAX_STREAMS as u64);
    // Streams that are not announced any more are forgotten.
    node.wait(30_000);
    assert_eq!(node.engine.streams().len(), 0);
    node.announce();
    for sender in 100..300 {
        node.report(sender, entry(2, 1, 0.0));
    }
    assert_eq!(node.engine.streams()[0].queues.len(), MAX_CHILDREN);
}
