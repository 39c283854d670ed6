//! Runs a scenario's file transfer on the virtual clock: `cargo run --release --example run -- FILE [key=value]...`

use ncmesh_proto::time::Duration;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{SimulationConfig, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("name a scenario file")?;
    let mut scenario = Scenario::load(file.as_ref())?;
    for assignment in args {
        scenario.set(&assignment)?;
    }
    let config = SimulationConfig::from_scenario(&scenario)?;
    let outcome = run(&scenario, config, "pacifier", Duration::from_secs(36_000), |_| {})?;
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    Ok(())
}
