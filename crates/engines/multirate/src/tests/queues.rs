//! Queues towards children: what is served, dropped and bounded.

use super::node::{Node, config, entry};
use crate::MultirateConfig;
use crate::frame::ReportEntry;
use ncmesh_engine::StreamEngine;
use ncmesh_engine::counters::DropReason;
use ncmesh_wire::NodeId;

#[test]
fn the_base_is_served_first_and_the_enhancement_dropped_first() {
    let mut node = Node::new(config());
    node.announce();
    node.report(3, entry(2, 1, 0.0));
    for seq in 0..30 {
        node.data(1, 1, seq);
        node.data(1, 0, seq);
    }
    // V theta is 40 packets: above it, in the slot after, d_max = 20 are dropped.
    node.wait(100);
    node.wait(100);
    let queue = &node.engine.streams()[0].queues[0];
    assert_eq!((queue.held, queue.dropped), ([30, 10, 0, 0], [0, 20, 0, 0]));
    let sent: Vec<u8> =
        std::iter::from_fn(|| node.next_data()).map(|header| header.layer).collect();
    assert_eq!(sent, [vec![0; 30], vec![1; 10]].concat());
    // The oldest were dropped.
    assert_eq!(node.engine.streams()[0].queues[0].sent, [30, 10, 0, 0]);
}

#[test]
fn place_holders_stand_for_virtual_pressure() {
    let mut node = Node::new(config());
    node.announce();
    node.report(3, ReportEntry { pressure: 50.0, ..entry(2, 2, 0.0) });
    node.report(4, ReportEntry { pressure: 7.0, ..entry(2, 1, 0.0) });
    node.wait(200);
    // Its parent is told all of the pressure at once, and that there are no packets.
    let report = ReportEntry { pressure: 57.0, ..entry(1, 3, 0.0) };
    assert_eq!(node.next_report(), Some(vec![report]));
    // A packet is sent at once: place-holders are no packets.
    node.data(1, 1, 0);
    assert!(node.next_data().is_some() && node.next_data().is_some());
    // With 25 of them, half of 50 for two receivers, and 16 packets Q is above V theta = 40.
    (1..17).for_each(|seq| node.data(1, 1, seq));
    node.wait(100);
    node.wait(100);
    let queues = node.engine.streams()[0].queues.clone();
    let state = |i: usize| (queues[i].place_holders, queues[i].held[1], queues[i].dropped[1]);
    assert_eq!((state(0), state(1)), ((25.0, 0, 16), (7.0, 16, 0)));
}

#[test]
fn a_queue_is_bounded_and_has_room_for_the_base() {
    let mut node = Node::new(config());
    node.announce();
    node.report(3, entry(2, 1, 0.0));
    for seq in 0..5000 {
        node.data(1, 1, seq);
    }
    // V theta + 2 d_max (Lemma 2).
    assert_eq!(node.engine.streams()[0].queues[0].held[1], 80);
    assert_eq!(node.dropped(DropReason::Full), 4920);
    // The base replaces enhancement packets.
    (0..30).for_each(|seq| node.data(1, 0, seq));
    assert_eq!(node.engine.streams()[0].queues[0].held, [30, 50, 0, 0]);
}

#[test]
fn the_radio_serves_rate_times_backlog_and_wired_links_take_turns_with_it() {
    let mut node = Node::new(config());
    node.announce();
    node.report(3, entry(2, 1, 0.0));
    node.report(5, entry(2, 1, 0.0));
    for seq in 0..10 {
        node.data(1, 0, seq);
    }
    // A quarter of the packets to 5 and their acknowledgments arrive: 3 is served first, for the
    // whole slot.
    let first: Vec<u16> = (0..10).map(|_| node.next_data().unwrap().next.0).collect();
    assert_eq!(first, [3; 10]);
    assert_eq!(node.next_data().unwrap().next, NodeId(5));
    let wired = MultirateConfig { wired: vec!["n5".into(), "4".into()], ..config() };
    let mut node = Node::new(wired);
    node.announce();
    for child in [3, 4, 5] {
        node.report(child, entry(2, 1, 0.0));
    }
    for seq in 0..3 {
        node.data(1, 0, seq);
    }
    let all: Vec<u16> = (0..9).map(|_| node.next_data().unwrap().next.0).collect();
    assert_eq!(all, [4, 5, 3, 4, 5, 3, 4, 5, 3]);
}
