//! The shipped scenarios give the traces that are recorded in `data/traces.txt`.
//!
//! A trace hash covers every frame sent, heard and reported. A change that only moves code leaves
//! all hashes as they are. A change of a protocol changes some of them; the new ones belong in the
//! same commit, with the reason in its message.

#![allow(clippy::unwrap_used)] // Tests may.

use ncmesh_engine::time::Duration;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{SimulationConfig, Step, run};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

/// Mesh time at which a run is cut off, so that long scenarios take little time here.
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn shipped_scenarios_give_their_recorded_traces() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recorded = std::fs::read_to_string(root.join("data/traces.txt")).unwrap();
    let mut found = String::new();
    for line in recorded.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap();
        let scheme = words.next().unwrap();
        let path = root.join(format!("../scenarios/{name}.toml"));
        let mut scenario = Scenario::load(&path).unwrap();
        scenario.set("seed=7").unwrap();
        let config = SimulationConfig::from_scenario(&scenario).unwrap();
        let go_on = |_: &Step<'_>| ControlFlow::Continue(());
        let outcome = run(&scenario, config, scheme, LIMIT, vec![], go_on).unwrap();
        let trace = outcome.trace.unwrap();
        writeln!(found, "{name} {scheme} {} {}", trace.events, trace.trace_hash).unwrap();
    }
    assert!(found == recorded, "recorded:\n{recorded}\nfound:\n{found}");
}
