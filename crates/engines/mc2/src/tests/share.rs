//! The least share of the slots that a flow gets beside others.

use crate::share::RecentFlows;
use ncmesh_engine::time::Instant;
use ncmesh_wire::NodeId;

fn flow(source: u16) -> (NodeId, NodeId) {
    (NodeId(source), NodeId(9))
}

#[test]
fn a_flow_that_is_alone_has_none_beside_it() {
    let mut recent = RecentFlows::default();
    for at in 1..5 {
        recent.note(flow(1), Instant::from_nanos(at));
    }
    assert_eq!(recent.beside(flow(1)), None);
    assert_eq!(recent.beside(flow(2)), Some(Instant::from_nanos(4)));
}

#[test]
fn the_latest_frame_of_any_other_flow_counts() {
    let mut recent = RecentFlows::default();
    for (at, source) in [(1, 1), (2, 2), (3, 1), (4, 3), (5, 3)] {
        recent.note(flow(source), Instant::from_nanos(at));
    }
    assert_eq!(recent.beside(flow(3)), Some(Instant::from_nanos(3)));
    assert_eq!(recent.beside(flow(2)), Some(Instant::from_nanos(5)));
}
