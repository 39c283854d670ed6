//! How packets travel, and what neighbours that lie can do.

use super::node::{FLOW, Node, Sent, announcement, got, report};
use crate::engine::Rule;
use crate::frame::{Got, Report};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::toolkit::live::{Announcement, MAX_CHILDREN, MAX_STREAMS};
use ncmesh_wire::FlowId;

fn sent(layer: u8, number: u32, to: Option<u16>) -> Option<Sent> {
    Some(Sent { layer, number, to })
}

/// Returns a relay of a tree with these children, none of which has a packet.
fn relay(children: &[u16]) -> Node {
    let mut node = Node::new(Rule::Tree);
    for child in children {
        node.report(*child, &report(2, 1, Got::default()));
    }
    node
}

#[test]
fn one_child_gets_packets_by_unicast_until_one_is_acknowledged() {
    let mut node = relay(&[3]);
    node.data(1, 0, 0, 0);
    node.acks = false;
    assert_eq!(node.next_data(), sent(0, 0, Some(3)));
    assert_eq!(node.next_data(), None);
    node.wait(10);
    node.acks = true;
    assert_eq!(node.next_data(), sent(0, 0, Some(3)));
    node.wait(900);
    assert_eq!(node.next_data(), None);
    assert_eq!(node.streams()[0].queues[0].lost, 1);
}

#[test]
fn several_children_share_a_broadcast_and_what_one_lacks_goes_again() {
    let mut node = relay(&[3, 4]);
    node.data(1, 0, 0, 0);
    node.data(1, 0, 1, 0);
    assert_eq!(node.next_data(), sent(0, 0, None));
    assert_eq!(node.next_data(), sent(0, 1, None));
    node.report(3, &report(2, 1, got(2)));
    node.report(4, &report(2, 1, Got { end: 2, before: 0 }));
    assert_eq!(node.next_data(), sent(0, 0, Some(4)));
    node.wait(900);
    assert_eq!(node.next_data(), None);
}

#[test]
fn a_broadcast_that_no_report_confirms_is_repeated() {
    let mut node = relay(&[3, 4]);
    node.data(1, 0, 0, 0);
    assert_eq!(node.next_data(), sent(0, 0, None));
    node.report(3, &report(2, 1, got(1)));
    assert_eq!(node.next_data(), None);
    node.wait(400);
    assert_eq!(node.next_data(), sent(0, 0, Some(4)));
}

#[test]
fn the_base_goes_first_and_late_packets_do_not_go() {
    let mut node = relay(&[3]);
    node.data(1, 1, 0, 0);
    node.data(1, 0, 7, 980);
    node.data(1, 0, 8, 500);
    node.wait(30);
    assert_eq!(node.next_data(), sent(0, 8, Some(3)));
    assert_eq!(node.next_data(), sent(1, 0, Some(3)));
    assert_eq!(node.next_data(), None);
    assert_eq!(node.streams()[0].queues[0].dropped, [1, 0, 0, 0]);
}

#[test]
fn a_receiver_reports_what_it_has_of_packets_of_its_parent() {
    let mut node = Node::new(Rule::Tree);
    node.join();
    for number in [0, 1, 3] {
        node.data(1, 0, number, 0);
    }
    node.data(3, 0, 2, 0);
    node.data(1, 0, 3, 0);
    assert_eq!((node.received(), node.dropped(DropReason::Stale)), (vec![0, 1, 3], 1));
    node.wait(60);
    let said = node.next_report().unwrap();
    let base = Got { end: 4, before: 0b110 };
    assert_eq!(said, Report { layers: vec![base, Got::default()], ..report(1, 1, base) });
}

#[test]
fn a_relay_without_children_leaves_the_tree_and_sends_nothing() {
    let mut node = relay(&[3]);
    assert_eq!(node.next_report().map(|said| said.receivers), None);
    node.wait(30);
    assert_eq!(node.next_report().map(|said| said.receivers), Some(1));
    node.report(3, &report(1, 1, Got::default()));
    node.data(1, 0, 0, 0);
    for _ in 0..3 {
        node.wait(60);
        assert_eq!(node.next_report().map(|said| said.receivers), Some(0));
    }
    node.wait(2000);
    assert_eq!((node.next_report(), node.next_data()), (None, None));
}

#[test]
fn a_silent_child_is_forgotten() {
    let mut node = relay(&[3]);
    node.wait(5100);
    assert_eq!(node.streams()[0].receivers, 0);
}

#[test]
fn a_relay_floods_each_packet_once_after_a_neighbour_that_chose_it() {
    let mut node = Node::new(Rule::Flood);
    node.join();
    // Node 3 reaches 1, 4 and 5 through this node alone; node 9 is not known.
    node.data(9, 0, 0, 0);
    node.wait(5);
    assert_eq!((node.received(), node.next_data()), (vec![0], None));
    node.data(1, 0, 0, 0);
    node.data(3, 0, 0, 0);
    node.wait(5);
    assert_eq!((node.received(), node.next_data()), (vec![], sent(0, 0, None)));
    node.wait(500);
    assert_eq!((node.next_report(), node.next_data()), (None, None));
}

#[test]
fn floods_of_streams_children_and_packets_are_bounded() {
    let mut node = relay(&[]);
    for serial in 0..100 {
        let flow = FlowId { serial: 100 + serial, ..FLOW };
        node.announce(&Announcement { flow, ..announcement() });
    }
    assert_eq!(node.dropped(DropReason::Full), 101 - MAX_STREAMS as u64);
    for child in 100..300 {
        node.report(child, &report(2, u16::MAX, Got::default()));
    }
    let children = |node: &Node| node.streams()[0].queues.len();
    assert_eq!((children(&node), node.streams()[0].receivers), (MAX_CHILDREN, 64 * 5));
    let before = node.dropped(DropReason::Full);
    for number in 0..3000 {
        node.data(1, 0, number, 0);
    }
    assert_eq!(node.dropped(DropReason::Full) - before, 3000 - 2048);
    let queue = &node.streams()[0].queues[0];
    assert_eq!([queue.dropped[0], queue.no_room[0]], [3000 - 2048; 2]);
    // A report of the parent is not one of a child.
    node.report(1, &report(2, 1, Got::default()));
    assert_eq!(node.dropped(DropReason::Stale), 1);
    // The stream has no third layer.
    node.data(1, 2, 0, 0);
    assert_eq!(node.dropped(DropReason::Malformed), 1);
}
