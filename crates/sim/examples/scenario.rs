//! A scenario made in code, run by two schemes on the same channel.
//!
//! `cargo run -p ncmesh-sim --example scenario`

use ncmesh_engine::time::Duration;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Outcome, SimulationConfig, Step, run};
use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;

/// Returns the text of a line of nodes whose links lose `loss` of the frames.
fn line(nodes: usize, loss: f64) -> String {
    let names: Vec<String> = (0..nodes).map(|i| format!("\"n{i}\"")).collect();
    let links: String = (1..nodes)
        .map(|i| {
            let before = i - 1;
            format!("[[link]]\nfrom = \"n{before}\"\nto = \"n{i}\"\nloss = {loss}\n")
        })
        .collect();
    format!(
        "name = \"line\"\nnodes = [{}]\n\
         medium = {{ phy = \"802.11b\", bit_rate = \"11M\" }}\n\
         traffic = {{ from = \"n0\", to = [\"n{}\"], size = \"100kB\" }}\n{links}",
        names.join(", "),
        nodes - 1
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    // Files that a scenario names are looked for in a folder; this one names none.
    let scenario = Scenario::parse(&line(4, 0.2), "line in code", Path::new("."))?;
    for scheme in ["tree_flood", "cascade"] {
        let config = SimulationConfig::from_scenario(&scenario)?;
        let limit = Duration::from_secs(60);
        let go_on = |_: &Step<'_>| ControlFlow::Continue(());
        let outcome: Outcome = run(&scenario, config, scheme, limit, Vec::new(), go_on)?;
        println!("{scheme}: {} frames, {:.2} s", outcome.transmissions, outcome.seconds);
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
