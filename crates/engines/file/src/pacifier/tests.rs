//! Trees and credits worked out by hand.

use super::*;
use ncmesh_engine::testing::{directed, symmetric};
use ncmesh_engine::topology::Metric;

fn tree(t: &Topology, receivers: &[u16], knob: f64) -> Tree {
    let receivers: Vec<NodeId> = receivers.iter().map(|r| NodeId(*r)).collect();
    Tree::new(t, NodeId(1), &receivers, knob, Metric::Broadcast)
}

fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

#[test]
fn on_a_line_each_hop_is_repaired_once() {
    // z_1 = 1/0.8. Node 2 receives 1 packet; node 3 has overheard 1.25 * 0.1 of it and needs the
    // rest over a link of 0.5.
    let t = symmetric(&[(1, 2, 0.8), (2, 3, 0.5), (1, 3, 0.1)]);
    let tree = tree(&t, &[3], 1.0);
    assert_eq!(tree.forwarders, [NodeId(2)]);
    assert_close(tree.z[&NodeId(1)], 1.25);
    assert_close(tree.z[&NodeId(2)], (1.0 - 0.125) / 0.5);
    assert_close(tree.tx_credit[&NodeId(2)], 1.75);
}

#[test]
fn the_knob_moves_between_the_best_and_the_worst_child() {
    let t = symmetric(&[(1, 2, 0.8), (1, 3, 0.4)]);
    assert_close(tree(&t, &[2, 3], 1.0).z[&NodeId(1)], 2.5);
    assert_close(tree(&t, &[2, 3], 0.0).z[&NodeId(1)], 1.25);
    assert_close(tree(&t, &[2, 3], 0.5).z[&NodeId(1)], 1.875);
}

#[test]
fn a_forwarder_that_hears_more_than_one_packet_owes_one() {
    // Node 1 sends 1/0.4 = 2.5 for node 3; node 2 receives 2.25 of them but owes its child only
    // one.
    let t = symmetric(&[(1, 2, 0.9), (1, 3, 0.4), (2, 4, 0.5)]);
    let tree = tree(&t, &[3, 4], 1.0);
    assert_close(tree.z[&NodeId(2)], 1.0 / 0.5);
    assert_close(tree.tx_credit[&NodeId(2)], 2.0 / 2.25);
}

#[test]
fn a_child_that_overheard_enough_does_not_starve_its_siblings() {
    // Node 1 sends 2.5 per packet for node 5; node 3 overhears 0.45 * 2.5 > 1 of them directly.
    let t = directed(&[
        (1, 2, 0.9),
        (2, 1, 0.9),
        (2, 3, 0.99),
        (3, 2, 0.9),
        (1, 3, 0.45),
        (2, 4, 0.5),
        (4, 2, 0.5),
        (1, 5, 0.4),
        (5, 1, 0.4),
    ]);
    for knob in [0.0, 1.0] {
        let tree = tree(&t, &[3, 4, 5], knob);
        assert_eq!(tree.parent[&NodeId(3)], NodeId(2));
        assert!(tree.z[&NodeId(2)] > 0.0, "knob {knob}");
    }
}

#[test]
fn receivers_out_of_reach_are_named() {
    let t = symmetric(&[(1, 2, 0.8), (8, 9, 0.8)]);
    let tree = tree(&t, &[2, 9], 1.0);
    assert_eq!(tree.unreachable, [NodeId(9)]);
    assert_eq!(tree.parent.len(), 1);
}

#[test]
fn a_plan_waits_only_for_children_that_forward() {
    let t = symmetric(&[(1, 2, 0.8), (2, 3, 0.5), (1, 4, 0.8)]);
    let plan = Pacifier::default().plan(&t, NodeId(1), &[NodeId(3), NodeId(4)]);
    assert_eq!(plan.children, [NodeId(2)]);
    assert_close(plan.children_credit, 2.0);
    assert_eq!(plan.routing, Routing::Ordered(vec![Forwarder::new(NodeId(2), 2.0)]));
}

#[test]
fn settings_out_of_range_are_named() {
    let bad = PacifierConfig { knob: 1.5, ..Default::default() };
    assert_eq!(bad.check().unwrap_err().to_string(), "knob = 1.5: allowed is 0 to 1");
    assert!(PacifierConfig { generation: 0, ..Default::default() }.check().is_err());
    assert!(PacifierConfig { knob: f64::NAN, ..Default::default() }.check().is_err());
    let waits = |timeout_factor| PacifierConfig { timeout_factor, ..Default::default() };
    assert!(waits(-1.0).check().unwrap_err().to_string().contains("0 to 1000"));
    assert!(waits(f64::NAN).check().is_err() && waits(0.0).check().is_ok());
    assert!(PacifierConfig::default().check().is_ok());
}
