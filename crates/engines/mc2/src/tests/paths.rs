//! Choice of a flow's paths.

use super::{best_paths, diamond};
use crate::choice::PathChoice;
use crate::paths::PathSet;
use ncmesh_engine::testing::{directed, symmetric};
use ncmesh_wire::{NodeId, Record, Writer};

fn ids(nodes: &[u16]) -> Vec<NodeId> {
    nodes.iter().copied().map(NodeId).collect()
}

#[test]
fn the_best_paths_are_joined() {
    let mesh = diamond(0.5, 0.8);
    let one = best_paths(&mesh, 1, 4, 1).unwrap();
    assert_eq!((one.next_hops(NodeId(1)).len(), one.next_hops(NodeId(4))), (1, vec![]));
    let two = best_paths(&mesh, 1, 4, 2).unwrap();
    let mut hops = two.next_hops(NodeId(1));
    hops.sort();
    assert_eq!((hops, two.next_hops(NodeId(3))), (ids(&[2, 3]), ids(&[4])));
    assert!(two.leads(NodeId(2), NodeId(4)) && !two.leads(NodeId(4), NodeId(2)));
    assert_eq!(best_paths(&mesh, 1, 9, 4), None);
    // The best path to a neighbour is the link, although a detour exists.
    assert_eq!(best_paths(&mesh, 1, 2, 1).unwrap().next_hops(NodeId(1)), ids(&[2]));
}

#[test]
fn a_link_that_brings_nothing_back_is_the_last_resort() {
    let both = |a, b, d| [(a, b, d), (b, a, d)];
    let around = [both(1, 3, 0.5), both(3, 2, 0.5)].concat();
    let direct = vec![(1, 2, 0.9)];
    let mesh = directed(&[around, direct.clone()].concat());
    assert_eq!(best_paths(&mesh, 1, 2, 1).unwrap().next_hops(NodeId(1)), ids(&[3]));
    // Where the MAC knows who received a frame, nobody need answer.
    let choice = PathChoice { most: 1, least_gain: 0.0, needs_reports: false };
    let slotted = choice.paths(&mesh, NodeId(1), NodeId(2)).unwrap();
    assert_eq!(slotted.next_hops(NodeId(1)), ids(&[2]));
    let mesh = directed(&[direct, vec![(2, 3, 0.9), (3, 1, 0.9)]].concat());
    assert_eq!(best_paths(&mesh, 1, 2, 1).unwrap().next_hops(NodeId(1)), ids(&[2]));
}

#[test]
fn paths_that_swap_ranks_give_the_same_set() {
    assert_eq!(best_paths(&diamond(0.5, 0.8), 1, 4, 2), best_paths(&diamond(0.8, 0.5), 1, 4, 2));
    let mesh = |p, q| symmetric(&[(1, 2, p), (1, 3, q), (2, 4, p), (3, 4, q)]);
    let one = best_paths(&mesh(0.9, 0.5), 1, 4, 2).unwrap();
    let other = best_paths(&mesh(0.5, 0.9), 1, 4, 2).unwrap();
    assert_eq!(one, other);
    assert_eq!(one.next_hops(NodeId(1)), ids(&[2, 3]));
    assert_eq!(one.next_hops(NodeId(3)), ids(&[4]));
}

#[test]
fn paths_that_would_make_a_cycle_are_left_out_and_refused() {
    // 1-2-3-5 and 1-3-2-5 are both among the best.
    let links = [(1, 2, 0.9), (1, 3, 0.8), (2, 3, 0.9), (2, 5, 0.5), (3, 5, 0.5)];
    let set = best_paths(&symmetric(&links), 1, 5, 4).unwrap();
    assert!(set.leads(NodeId(2), NodeId(3)) != set.leads(NodeId(3), NodeId(2)));
    let mut bytes = Vec::new();
    set.put(&mut Writer::new(&mut bytes));
    assert_eq!(PathSet::from_body(&bytes), Ok(set));
    // Nodes 1, 2, 3; 1 and 3 lead to each other.
    let cycle = [3, 0, 1, 0, 0b100, 0, 2, 0, 0, 0, 3, 0, 0b011];
    assert!(PathSet::from_body(&cycle).is_err());
    let line = [3, 0, 1, 0, 0b100, 0, 2, 0, 0, 0, 3, 0, 0b010];
    assert!(PathSet::from_body(&line).is_ok());
}
