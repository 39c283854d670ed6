//! Most that paths carry, against the closed forms of section 2, and the choice that follows.

use super::{best_paths, diamond};
use crate::NAME;
use crate::choice::PathChoice;
use crate::paths::PathSet;
use crate::prediction::rate;
use crate::simplex::Program;
use ncmesh_engine::rng;
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use proptest::prelude::*;

const EVEN: f64 = f64::INFINITY;

fn promised(topology: &Topology, to: u16, k: usize) -> f64 {
    rate(&best_paths(topology, 1, to, k).unwrap(), topology, EVEN).unwrap()
}

/// Returns the number of paths' first hops that a source chooses from two.
fn chosen(topology: &Topology, to: u16, least_gain: f64) -> usize {
    let choice = PathChoice { most: 2, least_gain, needs_reports: false };
    let set = choice.paths(topology, NodeId(1), NodeId(to)).unwrap();
    set.next_hops(NodeId(1)).len()
}

/// Returns the hexagon of figure 1 (a): 1-2-3-6 and 1-4-5-6.
fn hexagon(p: f64, q: f64) -> Topology {
    symmetric(&[(1, 2, p), (1, 4, p), (2, 3, q), (4, 5, q), (3, 6, q), (5, 6, q)])
}

#[test]
fn a_program_has_the_maximum_of_a_textbook() {
    // 3 x + 5 y with x <= 4, 2 y <= 12, 3 x + 2 y <= 18 is 36, at (2, 6).
    let program = || {
        let mut program = Program::new(vec![3.0, 5.0]);
        program.limit([(0, 1.0)], 4.0);
        program.limit([(1, 2.0)], 12.0);
        program.limit([(0, 3.0), (1, 2.0)], 18.0);
        program
    };
    assert!((program().maximum(EVEN).unwrap() - 36.0).abs() < 1e-6);
    // It ends as soon as there is enough.
    let enough = program().maximum(10.0).unwrap();
    assert!((10.0..36.0).contains(&enough), "{enough}");
    assert_eq!(Program::new(vec![1.0]).maximum(EVEN), Some(f64::INFINITY));
}

proptest! {
    #[test]
    fn rates_are_those_of_the_closed_forms(p in 0.05..1.0f64, q in 0.05..1.0f64) {
        let both = 1.0 - (1.0 - p) * (1.0 - p);
        let coded = both * q / (both + q);
        let single = p * q / (p + q);
        prop_assert!((promised(&diamond(p, q), 4, 2) - coded).abs() < 1e-6);
        prop_assert!((promised(&diamond(p, q), 4, 1) - single).abs() < 1e-6);
        prop_assert!((promised(&hexagon(p, q), 6, 2) - coded).abs() < 1e-6);
        // Three nodes of one path take turns.
        let line = 1.0 / (1.0 / p + 2.0 / q);
        prop_assert!((promised(&hexagon(p, q), 6, 1) - line).abs() < 1e-6);
    }
}

#[test]
fn further_paths_are_used_where_they_promise_enough() {
    // The diamond gains 23 % at p = 0.5 and 4 % at p = 0.9 (q = 0.8).
    assert_eq!(chosen(&diamond(0.5, 0.8), 4, 0.1), 2);
    assert_eq!(chosen(&diamond(0.9, 0.8), 4, 0.1), 1);
    assert_eq!(chosen(&diamond(0.9, 0.8), 4, 0.02), 2);
    assert_eq!(chosen(&diamond(1.0, 0.8), 4, 0.0), 2);
    // Without loss two paths of the hexagon take turns where nodes of one have to wait.
    assert_eq!(chosen(&hexagon(1.0, 1.0), 6, 0.1), 2);
}

/// Returns sixteen nodes, each with links to the `width` that follow, and paths over all of these.
fn widest(width: usize, mut p: impl FnMut(usize) -> f64) -> (Topology, PathSet) {
    let links: Vec<(u16, u16, f64)> = (1..=16u16)
        .flat_map(|from| (from + 1..=16.min(from + width as u16)).map(move |to| (from, to)))
        .enumerate()
        .map(|(at, (from, to))| (from, to, p(at)))
        .collect();
    let all = PathSet::between(NodeId(1), NodeId(16));
    let paths = links.iter().fold(all, |set, (from, to, _)| {
        set.with(&[NodeId(*from), NodeId(*to)]).expect("sixteen nodes with six next hops each")
    });
    (symmetric(&links), paths)
}

/// No set of paths poses a larger program: 16 nodes with 6 next hops each give 89 variables and 702
/// limits. By Bland's rule 2,000 pivots do not bring some of them above 0.
#[test]
fn the_largest_programs_are_solved_to_the_end() {
    for width in 2..=6 {
        for seed in 0..20 {
            let mut draw = rng::stream(seed, NodeId(1), NAME, "test");
            let (topology, all) = widest(width, |_| 0.05 + 0.9 * rng::unit(&mut draw));
            let (_, line) = widest(1, |_| 0.5);
            let [best, one] = [&all, &line].map(|paths| rate(paths, &topology, EVEN).unwrap());
            assert!(best >= one && best < 1.0, "width {width}, seed {seed}: {best} after {one}");
        }
    }
}
