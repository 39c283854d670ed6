//! Multipoint relays of small meshes.

use crate::relays::{Selectors, relays};
use ncmesh_engine::testing::symmetric;
use ncmesh_wire::NodeId;

#[test]
fn the_fewest_neighbours_that_reach_all_nodes_two_hops_away_are_relays() {
    // 1 reaches 5 and 6 through 3, 5 through 2 as well, and 7 through 4 alone.
    let links = [(1, 2), (1, 3), (1, 4), (2, 5), (3, 5), (3, 6), (4, 7)];
    let mesh = symmetric(&links.map(|(a, b)| (a, b, 1.0)));
    let chosen: Vec<u16> = relays(&mesh, NodeId(1)).into_iter().map(|node| node.0).collect();
    assert_eq!(chosen, [3, 4]);
}

#[test]
fn a_poor_link_is_none_and_a_full_mesh_needs_no_relay() {
    let mesh = symmetric(&[(1, 2, 1.0), (2, 3, 0.1)]);
    assert!(relays(&mesh, NodeId(1)).is_empty());
    let mesh = symmetric(&[(1, 2, 1.0), (2, 3, 1.0), (1, 3, 1.0)]);
    assert!(relays(&mesh, NodeId(1)).is_empty());
}

#[test]
fn a_neighbour_that_is_not_known_chose_none() {
    let mesh = symmetric(&[(1, 2, 1.0), (2, 3, 1.0)]);
    let mut selectors = Selectors::default();
    assert!(selectors.contains(&mesh, NodeId(1), NodeId(2)));
    assert!(!selectors.contains(&mesh, NodeId(9), NodeId(2)));
}
