//! Benchmark of setting up large meshes: `cargo bench -p ncmesh-sim --bench setup`.
//!
//! Prints time and peak memory for meshes of 50 to 10,000 nodes. Nothing is sent in them.

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Simulation, SimulationConfig};
use std::path::Path;
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    // `cargo test` runs benchmarks too, to check that they work.
    let sizes: &[u32] =
        if std::env::args().any(|arg| arg == "--test") { &[50] } else { &[50, 200, 1_000, 10_000] };
    for nodes in sizes {
        let begun = Instant::now();
        let scenario = Scenario::parse(&mesh(*nodes), "mesh", Path::new(""))?;
        let simulation = Simulation::new(SimulationConfig::from_scenario(&scenario)?)?;
        let seconds = begun.elapsed().as_secs_f64();
        let peak = peak_mib()?;
        println!("{} nodes set up in {seconds:.3} s, peak memory {peak} MiB", simulation.len());
    }
    Ok(())
}

/// Returns a scenario with 50 radios per square kilometre, two-ray ground and Rayleigh fading.
fn mesh(nodes: u32) -> String {
    let side_m = 1_000.0 * (f64::from(nodes) / 50.0).sqrt();
    format!(
        r#"
        name = "mesh"
        [topology]
        uniform = {{ nodes = {nodes}, width_m = {side_m:.1}, height_m = {side_m:.1} }}
        [medium]
        phy = "802.11b"
        bit_rate = "2M"
        [medium.propagation]
        model = "two_ray"
        range_m = 250
        sensing_range_m = 460
        fading = "rayleigh"
        "#
    )
}

/// Returns the peak memory of this process, MiB.
fn peak_mib() -> Result<u64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no VmHWM")?;
    Ok(kib.trim().parse::<u64>()? / 1_024)
}
