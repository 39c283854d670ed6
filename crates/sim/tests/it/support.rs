//! Whole runs of scenarios that are written in a test.

use ncmesh_engine::time::Duration;
use ncmesh_sim::scenario::{DirectedLink, Scenario};
use ncmesh_sim::{Outcome, SimulationConfig};
use std::ops::ControlFlow;
use std::path::Path;

/// A line of three at 11 Mbit/s with losses of a tenth, whose ends do not hear each other.
pub(crate) const HIDDEN_LINE: &str = r#"
name = "line"
sealed = false
nodes = ["a", "b", "c"]
medium = { phy = "802.11b", bit_rate = "11M" }
link = [{ from = "a", to = "b", loss = 0.1 }, { from = "b", to = "c", loss = 0.1 }]
protocol.link = { quick_hello_s = 0.1 }
"#;

/// Runs a scenario by `schemes`. Virtual time ends after `limit_s` seconds.
pub(crate) fn outcome_of(scenario: &str, schemes: &str, limit_s: u64) -> Outcome {
    let scenario = Scenario::parse(scenario, "", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let limit = Duration::from_secs(limit_s);
    ncmesh_sim::run(&scenario, config, schemes, limit, vec![], |_| ControlFlow::Continue(()))
        .unwrap()
}

/// Returns the links of a scenario as (from, to, delivery).
pub(crate) fn by_ends(scenario: &Scenario) -> Vec<(usize, usize, f64)> {
    let ends = |link: DirectedLink| (link.from, link.to, link.delivery);
    scenario.deliveries().into_iter().map(ends).collect()
}
