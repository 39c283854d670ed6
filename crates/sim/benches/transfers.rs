//! Benchmark of file transfers: throughput over the simulated channel, and time to simulate them.
//!
//! Run it with `cargo bench -p ncmesh-sim --bench transfers`. The throughput is simulated and the
//! same on every machine. Only the last column is measured.

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use ncmesh_engine::time::Duration;
use ncmesh_medium::{Access, Medium, MediumConfig, Output, RadioId};
use ncmesh_sim::outcome::TransferOutcome;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Outcome, SimulationConfig, Step, run};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

const SECOND_NS: u64 = 1_000_000_000;
const SEEDS: [u64; 3] = [1, 2, 3];

fn main() -> Result<(), Error> {
    // `cargo test` runs benchmarks too. The tests of transfers already cover this one.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }

    // One link without loss, against the most that the medium carries.
    let pair = scenario("pair.toml", &["traffic.size=12MB"])?;
    let ceiling = saturated(pair.medium_config(), pair.mtu, 60)?;
    println!("pair, {} Mbit/s of saturated broadcast:", round(ceiling / 1e6));
    for seed in SEEDS {
        let (outcome, _) = simulate("pair.toml", &["traffic.size=12MB"], seed)?;
        let got = transfer(&outcome)?.receivers[0].throughput_bps.unwrap_or(0.0);
        println!("  seed {seed}: {} Mbit/s, {:.1} %", round(got / 1e6), 100.0 * got / ceiling);
    }

    // A mesh of 22 nodes with several receivers.
    for settings in [&["traffic.size=1MB"][..], &["traffic.size=12MB", "medium.bit_rate=2M"]] {
        println!("building, {}:", settings.join(", "));
        for seed in SEEDS {
            let (outcome, wall_s) = simulate("building.toml", settings, seed)?;
            let t = transfer(&outcome)?;
            let each = t.receivers.iter().map(|r| {
                let kbit = r.throughput_bps.map_or("-".into(), |b| format!("{:.0}", b / 1e3));
                format!("{} {kbit}", r.node)
            });
            println!(
                "  seed {seed}: kbit/s {}; {:.0} s, {} data transmissions, \
                 source redundancy {:.2}; simulated in {wall_s:.1} s",
                each.collect::<Vec<_>>().join(", "),
                outcome.seconds,
                outcome.transmissions,
                t.source_redundancy,
            );
        }
    }
    Ok(())
}

fn transfer(outcome: &Outcome) -> Result<&TransferOutcome, Error> {
    outcome.transfer().ok_or_else(|| "no file was carried".into())
}

fn scenario(name: &str, settings: &[&str]) -> Result<Scenario, Error> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let mut scenario = Scenario::load(&file)?;
    for setting in settings {
        scenario.set(setting)?;
    }
    Ok(scenario)
}

/// Returns the outcome, and the time that the simulation took, s.
fn simulate(name: &str, settings: &[&str], seed: u64) -> Result<(Outcome, f64), Error> {
    let mut scenario = scenario(name, settings)?;
    scenario.set(&format!("seed={seed}"))?;
    let config = SimulationConfig::from_scenario(&scenario)?;
    let begun = Instant::now();
    let limit = Duration::from_secs(100_000);
    let show = |_: &Step<'_>| ControlFlow::Continue(());
    let outcome = run(&scenario, config, "pacifier", limit, vec![], show)?;
    Ok((outcome, begun.elapsed().as_secs_f64()))
}

/// Returns the rate at which one radio broadcasts if it always has a frame of `bytes` bytes, bit/s.
fn saturated(config: MediumConfig, bytes: usize, seconds: u64) -> Result<f64, Error> {
    let mut medium = Medium::new(config)?;
    let radio = RadioId(0);
    medium.request(0, radio)?;
    while let Some(now) = medium.poll_timeout().filter(|now| *now < seconds * SECOND_NS) {
        medium.handle_timeout(now);
        while let Some(output) = medium.poll_output() {
            if matches!(output, Output::Grant { .. }) {
                medium.supply(now, radio, Access::Broadcast, vec![0; bytes].into())?;
                medium.request(now, radio)?;
            }
        }
    }
    let sent = medium.statistics().total().frames_sent;
    Ok((sent * bytes as u64 * 8) as f64 / seconds as f64)
}

fn round(x: f64) -> String {
    format!("{x:.2}")
}
