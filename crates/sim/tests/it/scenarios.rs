//! The shipped scenarios can be loaded and have the properties that their documents claim.

use std::path::Path;

use ncmesh_medium::{Medium, RadioId};
use ncmesh_sim::scenario::Scenario;

fn shipped(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    Scenario::load(&path).unwrap()
}

/// Returns ETX and hops of the shortest ETX path between all pairs (Floyd and Warshall). The ETX of
/// a link is 1 / (d_f d_r).
fn shortest_paths(scenario: &Scenario) -> Vec<Vec<(f64, usize)>> {
    let n = scenario.nodes.len();
    let delivery = |a, b| 1.0 - scenario.loss().loss(RadioId(a), RadioId(b));
    let link = |a: usize, b| {
        if a == b { (0.0, 0) } else { (1.0 / (delivery(a, b) * delivery(b, a)), 1) }
    };
    let mut paths: Vec<Vec<_>> = (0..n).map(|a| (0..n).map(|b| link(a, b)).collect()).collect();
    for via in 0..n {
        for a in 0..n {
            for b in 0..n {
                let (first, second): ((f64, usize), (f64, usize)) = (paths[a][via], paths[via][b]);
                if first.0 + second.0 < paths[a][b].0 {
                    paths[a][b] = (first.0 + second.0, first.1 + second.1);
                }
            }
        }
    }
    paths
}

#[test]
fn every_shipped_scenario_makes_a_medium_and_its_receivers_can_be_reached() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut scenarios = 0;
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let scenario = Scenario::load(&path).unwrap();
        assert_eq!(Some(scenario.name.as_str()), path.file_stem().unwrap().to_str());
        Medium::new(scenario.medium_config()).unwrap();
        let paths = shortest_paths(&scenario);
        let files = scenario.traffic.iter().flat_map(|t| t.to.iter().map(|to| (t.from, *to)));
        let flows = scenario.flows.iter().map(|flow| (flow.from, flow.to));
        let streams = scenario.streams.iter();
        let streams = streams.flat_map(|s| s.receivers.iter().map(|r| (s.from, r.node)));
        let ends: Vec<_> = files.chain(flows).chain(streams).collect();
        assert!(!ends.is_empty(), "{path:?}");
        assert!(ends.iter().all(|&(from, to)| paths[from][to].0.is_finite()), "{path:?}");
        scenarios += 1;
    }
    assert!(scenarios >= 9, "{scenarios}");
}

#[test]
fn the_building_is_like_the_testbed() {
    // Pacifier V-C: shortest ETX paths of 1 to 6 hops, losses from 0 to 88 %, 29 % on average.
    let building = shipped("building.toml");
    assert_eq!(building.nodes.len(), 22);
    assert!(building.nodes.iter().all(|node| node.position.is_some()));
    let losses: Vec<f64> = building.loss().links().map(|link| link.loss).collect();
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    assert!((mean - 0.29).abs() < 0.01, "mean loss {mean}");
    assert_eq!(losses.iter().copied().fold(1.0, f64::min), 0.0);
    assert_eq!(losses.iter().copied().fold(0.0, f64::max), 0.88);
    let paths = shortest_paths(&building);
    let hops: Vec<usize> = paths.iter().flatten().map(|path| path.1).collect();
    assert_eq!(hops.iter().max(), Some(&6));
    assert!(paths.iter().flatten().all(|path| path.0.is_finite()));
    let source = building.node_index("n01").unwrap();
    let distance = |name| paths[source][building.node_index(name).unwrap()].1;
    assert_eq!(["n05", "n09", "n14", "n20"].map(distance), [1, 2, 4, 6]);
}

#[test]
fn freifunk_is_one_component_of_87_routers() {
    let freifunk = shipped("freifunk.toml");
    assert_eq!(freifunk.nodes.len(), 87);
    let mut reached = vec![false; 87];
    let mut edge = vec![0];
    while let Some(node) = edge.pop() {
        if !std::mem::replace(&mut reached[node], true) {
            let all = freifunk.deliveries().into_iter();
            let near = all.filter(|link| link.from == node || link.to == node);
            edge.extend(near.map(|link| link.from + link.to - node));
        }
    }
    assert!(reached.into_iter().all(|reached| reached));
    let losses: Vec<f64> = freifunk.loss().links().map(|link| link.loss).collect();
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    assert!((0.1..0.25).contains(&mean), "mean loss {mean}");
}
