//! Live streams over the mesh: every receiver at the rate its links allow, the base first.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use ncmesh_proto::time::Duration;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Carried, RunError, SimulationConfig, StreamsOutcome, run};
use std::ops::ControlFlow;
use std::path::Path;

const STAR: &str = r#"
name = "star"
sealed = false
nodes = ["s", "b", "c", "d"]
medium = { phy = "802.11a", bit_rate = "6M", sense = "everyone" }
protocol.link = { probe_size = 100, fast_probes = 40, fast_period_s = 0.1 }
"#;

fn streams(text: &str) -> Result<StreamsOutcome, RunError> {
    let scenario = Scenario::parse(text, "star.toml", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let limit = Duration::from_secs(1000);
    let outcome =
        run(&scenario, config, "multirate", limit, vec![], |_| ControlFlow::Continue(()))?;
    match outcome.carried {
        Carried::Streams(streams) => Ok(streams),
        other => panic!("streams were sent, not {other:?}"),
    }
}

#[test]
fn explore() {
    let links = r#"link = [{ from = "s", to = "b", loss = 0.0 }, { from = "b", to = "c", loss = 0.0 }, { from = "b", to = "d", loss = 0.3 }]
"#;
    let stream = r#"
[[stream]]
group = "a"
from = "s"
layers = [{ name = "base", rate = "400k" }, { name = "enh", rate = "4M" }]
receivers = [{ node = "b" }, { node = "c" }, { node = "d", min_rate = "400k" }]
warm_up_s = 40
seconds = 60
"#;
    let out = streams(&format!("{STAR}{links}{stream}")).unwrap();
    for s in &out.streams {
        println!("{} taken {:?} refused {}", s.group, s.taken, s.refused);
        for r in &s.receivers {
            println!(
                "{} {:.0} {:?} corrupt {} delay {:?}",
                r.node, r.rate_bps, r.layers, r.corrupt, r.mean_delay_s
            );
            println!(
                "   {:?}",
                r.series.rate_bps.iter().map(|x| (x / 1e3) as u32).collect::<Vec<_>>()
            );
        }
    }
    for q in &out.queues {
        println!("{q:?}");
    }
}

#[test]
fn explore2() {
    let mut scenario = Scenario::load(Path::new("../../scenarios/stream.toml")).unwrap();
    for s in std::env::var("SETS").unwrap_or_default().split_whitespace() {
        scenario.set(s).unwrap();
    }
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let outcome = run(&scenario, config, "multirate", Duration::from_secs(1000), vec![], |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let Carried::Streams(out) = outcome.carried else { panic!() };
    for s in &out.streams {
        println!("{} taken {:?} refused {}", s.group, s.taken, s.refused);
        for r in &s.receivers {
            println!("{} {:.2} Mbit/s delay {:?}", r.node, r.rate_bps / 1e6, r.mean_delay_s);
            println!(
                "   {:?}",
                r.series.rate_bps.iter().map(|x| (x / 1e5).round() / 10.0).collect::<Vec<_>>()
            );
        }
    }
    for q in &out.queues {
        println!("{q:?}");
    }
    println!("{:?}", outcome.node_transmissions);
}
