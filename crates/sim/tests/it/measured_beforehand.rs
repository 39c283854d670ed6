//! Links measured before the run, with the result given to all nodes.

use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::Metric;
use ncmesh_medium::{LossMatrix, LossyLink, MediumConfig, RadioId};
use ncmesh_sim::scenario::{Measure, Scenario};
use ncmesh_sim::{Simulation, SimulationConfig, measure, node_id};
use std::path::Path;

const HOW: Measure =
    Measure { duration: Duration::from_secs(600), bytes: 1_500, period: Duration::from_secs(1) };

#[test]
fn the_measured_loss_is_the_loss_of_the_link() {
    let mut loss = LossMatrix::new(3);
    for (from, to, p) in [(0, 1, 0.3), (1, 0, 0.0), (1, 2, 0.9)] {
        loss.set(RadioId(from), RadioId(to), p).unwrap();
    }
    let measured = measure(&MediumConfig::dot11b(loss.clone(), 11_000_000), HOW).unwrap();
    for LossyLink { from, to, loss: p } in loss.links() {
        let off = (measured.loss(from, to) - p).abs();
        // Four standard deviations of 600 probes, and a margin for the few collisions.
        assert!(off < 4.0 * (p * (1.0 - p) / 600.0).sqrt() + 0.01, "{from} to {to}: off by {off}");
    }
    assert_eq!(measured.loss(RadioId(0), RadioId(2)), 1.0);
}

#[test]
fn a_second_run_measures_the_same_and_another_seed_differs() {
    let mut loss = LossMatrix::new(2);
    loss.set(RadioId(0), RadioId(1), 0.5).unwrap();
    let with_seed = |seed| {
        let config = MediumConfig { seed, ..MediumConfig::dot11b(loss.clone(), 2_000_000) };
        measure(&config, HOW).unwrap()
    };
    assert_eq!(with_seed(1), with_seed(1));
    assert_ne!(with_seed(1), with_seed(2));
}

#[test]
fn every_node_knows_the_links_from_the_start_and_sends_no_probes() {
    let text = r#"
        name = "measured"
        nodes = ["a", "b", "c"]
        link = [{ from = "a", to = "b", loss = 0.2 }, { from = "b", to = "c", loss = 0.2 }]
        measure = { seconds = 100, bytes = 1500, period_s = 1 }
        medium = { phy = "802.11b", bit_rate = "2M" }
    "#;
    let scenario = Scenario::parse(text, "measured", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let mut simulation = Simulation::new(config).unwrap();
    simulation.run_for(Duration::from_secs(30));
    for node in 0..3 {
        let topology = simulation.host(node).stack().unwrap().topology();
        let etx = topology.paths_from(node_id(0), Metric::Broadcast).etx(node_id(2)).unwrap();
        assert!((2.0..3.2).contains(&etx), "node {node}: {etx}");
    }
    assert_eq!(simulation.medium_statistics().total().frames_sent, 0);
}
