//! Nodes that move while the simulation runs.

use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::Metric;
use ncmesh_sim::scenario::{Position, Scenario};
use ncmesh_sim::{Simulation, SimulationConfig, Step, run};
use std::ops::ControlFlow;
use std::path::Path;

/// Returns a scenario of nodes that move by a file `m`, or its error.
fn moving(key: &str, file: &str, more: &str) -> Result<Scenario, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("m"), file).unwrap();
    let text = format!(
        r#"
        name = "moving"
        topology = {{ {key} = "m"{more}
        [medium]
        phy = "802.11b"
        bit_rate = "11M"
        [medium.propagation]
        model = "two_ray"
        range_m = 100
        sensing_range_m = 200
        "#
    );
    Scenario::parse(&text, "s.toml", directory.path()).map_err(|error| error.to_string())
}

#[test]
fn a_neighbour_that_walks_away_is_no_neighbour() {
    let walk = "0 0 0\n0 50 0 30 50 0 40 500 0 80 500 0 90 50 0\n";
    let scenario = moving("bonnmotion", walk, " }").unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let mut simulation = Simulation::new(config).unwrap();
    let mut is_apart = |seconds| {
        simulation.run_for(Duration::from_secs(seconds));
        simulation.lacks_path(0, 1, Metric::Unicast)
    };
    // At 25 s, 75 s and 125 s.
    assert_eq!([25, 50, 50].map(&mut is_apart), [false, true, false]);
}

#[test]
fn a_run_with_moves_repeats_exactly() {
    let walk = "0 0 0\n0 90 0 30 150 0 60 90 0\n0 60 0\n";
    let scenario = moving("bonnmotion", walk, ", step_s = 0.1 }").unwrap();
    let hash = || {
        let config = SimulationConfig::from_scenario(&scenario).unwrap();
        let mut simulation = Simulation::new(config).unwrap();
        simulation.run_for(Duration::from_secs(60));
        simulation.trace_hash()
    };
    assert_eq!(hash(), hash());
}

#[test]
fn mistakes_are_named_with_their_place() {
    let walk = "0 0 0\n";
    for (key, file, more, message) in [
        ("fcd", walk, " }", "m:1: no XML"),
        ("ns2", walk, " }", "m:1: `0 0 0`: allowed are"),
        ("bonnmotion", walk, ", step_s = 0 }", "s.toml:3: step_s = 0: allowed is 0.01 to 60 s"),
        ("positions", "0,0\n", ", step_s = 1 }", "s.toml:3: `step_s` belongs to nodes that move"),
        ("bonnmotion", walk, ", fcd = \"m\" }", "s.toml:3: give one of"),
        ("bonnmotion", walk, " }\nnodes = [\"n1\"]", "s.toml:3: the nodes are those of this file"),
    ] {
        let error = moving(key, file, more).unwrap_err();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn nodes_that_move_need_propagation_without_shadowing() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let text = std::fs::read_to_string(directory.join("patrol.toml")).unwrap();
    let error = |text: &str| {
        Scenario::parse(text, "s.toml", &directory).map(|_| ()).unwrap_err().to_string()
    };
    let without = text.split("[medium.propagation]").next().unwrap();
    assert!(error(without).contains("need [medium.propagation]"), "{}", error(without));
    let shadowed = text.replace("range_m = 180\n", "range_m = 180\nshadowing_db = 4\n");
    assert!(error(&shadowed).contains("have no `shadowing_db`"), "{}", error(&shadowed));
}

#[test]
fn the_shipped_scenarios_move_and_arrive() {
    for (name, nodes, scheme) in
        [("walkers", 8, "cascade"), ("cars", 6, "forward"), ("patrol", 5, "braid")]
    {
        let scenario = Scenario::load(Path::new(name)).unwrap();
        assert_eq!(scenario.nodes.len(), nodes, "{name}");
        let mobility = scenario.mobility.as_ref().unwrap();
        let is_moving = mobility.paths.iter().filter(|path| path.at(0.0) != path.at(50.0));
        assert!(is_moving.count() > 0, "{name}");
        let Some(Position { x, y, z }) = scenario.nodes[0].position else { panic!("{name}") };
        assert_eq!([x, y, z], mobility.paths[0].at(0.0), "{name}");

        let config = SimulationConfig::from_scenario(&scenario).unwrap();
        let limit = Duration::from_secs(120);
        let go_on = |_: &Step<'_>| ControlFlow::Continue(());
        let outcome = run(&scenario, config, scheme, limit, vec![], go_on).unwrap();
        let json = serde_json::to_value(&outcome).unwrap();
        let arrived = match scheme {
            "cascade" => {
                let receivers = json["receivers"].as_array().unwrap();
                receivers.iter().all(|receiver| receiver["verified"] == true)
            }
            _ => json["flows"][0]["delivered"].as_u64().unwrap() > 1000,
        };
        assert!(arrived, "{name}: {json:#}");
    }
}
