//! Trees by reports: joining, leaving, silence.

use super::node::{Node, config, entry, utility};
use ncmesh_engine::time::Duration;
use ncmesh_engine::{Engine, StreamEngine};
use ncmesh_wire::NodeId;

#[test]
fn reports_make_a_tree_and_packets_go_down_it() {
    let mut node = Node::new(config());
    node.announce();
    assert_eq!(node.next_report(), None);
    node.report(3, entry(2, 1, 0.0));
    node.report(4, entry(2, 2, 0.0));
    node.wait(200);
    let report = node.next_report().unwrap();
    assert_eq!((report.len(), report[0].parent, report[0].receivers), (1, NodeId(1), 3));
    node.data(1, 0, 0);
    let mut next: Vec<_> = [node.next_data(), node.next_data()].map(|h| h.unwrap().next.0).to_vec();
    next.sort_unstable();
    assert_eq!((next, node.next_data()), (vec![3, 4], None));
    // Both have the packet; the queues that this node reports are empty again.
    node.wait(1000);
    assert_eq!(node.next_report().unwrap()[0].backlog, 0.0);
    // One chooses another parent, the other leaves.
    node.report(3, entry(5, 1, 0.0));
    node.report(4, entry(2, 0, 0.0));
    node.wait(200);
    assert_eq!(node.next_report().unwrap()[0].receivers, 0);
    node.data(1, 0, 1);
    assert_eq!(node.next_data(), None);
}

#[test]
fn a_node_that_leaves_a_tree_says_so_three_times() {
    let mut node = Node::new(config());
    node.announce();
    node.with(|e, cx| e.join(cx, "tv", utility("linear"))).unwrap();
    assert_eq!(node.engine.streams()[0].receivers, 1);
    assert!(node.with(|e, cx| e.leave(cx, "tv")));
    assert!(!node.with(|e, cx| e.leave(cx, "tv")));
    assert_eq!(node.engine.streams()[0].receivers, 0);
    // Three reports have a leave notice, then there are none.
    let reports: Vec<_> = (0..6)
        .filter_map(|_| {
            node.wait(200);
            node.next_report()
        })
        .collect();
    assert_eq!(reports, vec![vec![entry(1, 0, 0.0)]; 3]);
    // Its parent has missed them: the next packet is answered with another leave notice.
    node.data(1, 0, 0);
    node.wait(200);
    assert_eq!(node.next_report(), Some(vec![entry(1, 0, 0.0)]));
    assert!(node.events.is_empty());
}

#[test]
fn a_silent_child_is_removed_and_slots_stop() {
    let mut node = Node::new(config());
    node.announce();
    node.report(3, entry(2, 1, 0.0));
    node.data(1, 0, 0);
    for _ in 0..49 {
        node.wait(100);
    }
    assert_eq!(node.engine.streams()[0].queues.len(), 1);
    node.wait(100);
    assert_eq!(node.engine.streams()[0].queues.len(), 0);
    // No child takes the stream now: slots stop.
    node.wait(100);
    let next = node.engine.poll_timeout(node.now).unwrap();
    assert!(next.since(node.now) > Duration::from_secs(1), "{next:?}");
}
