//! Measures broadcast over a mesh of radios with positions: two-ray ground, Rayleigh fading,
//! 802.11b at 2 Mbit/s. `bench/ns3` runs ns-3 on the same network.
//!
//!     cargo run --release -p ncmesh-medium --example mesh -- POSITIONS.csv SECONDS RATE [SEED]
//!
//! RATE is the rate of a Poisson process of 1500-byte packets at each radio, 1/s; 0 saturates all
//! radios. Prints one line of JSON.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::error::Error;
use std::io::Write;

#[path = "../tests/it/traffic.rs"]
mod traffic;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, seconds, rate, seed @ ..] = arguments.as_slice() else {
        return Err("arguments: POSITIONS.csv SECONDS RATE [SEED]".into());
    };
    let positions = traffic::positions(&std::fs::read_to_string(file)?)?;
    let seconds = seconds.parse::<f64>()?;
    let rate = rate.parse::<f64>()?;
    let seed = seed.first().map_or(Ok(1), |seed| seed.parse())?;
    let config = traffic::mesh(positions, seed);
    let started = std::time::Instant::now();
    let mut medium = ncmesh_medium::Medium::new(config)?;
    let setup_s = started.elapsed().as_secs_f64();
    let started = std::time::Instant::now();
    let tally = traffic::broadcast(&mut medium, seconds, rate, seed);
    let run_s = started.elapsed().as_secs_f64();
    let sent = tally.sent as f64;
    writeln!(
        std::io::stdout(),
        "{{\"radios\": {}, \"rate\": {rate}, \"seed\": {seed}, \"tx_per_s\": {:.1}, \
         \"received_per_tx\": {:.4}, \"strong_per_tx\": {:.4}, \"setup_s\": {setup_s:.3}, \
         \"run_s\": {run_s:.4}, \"us_per_tx\": {:.3}}}",
        medium.radios(),
        sent / seconds,
        tally.received as f64 / sent,
        tally.strong as f64 / sent,
        run_s * 1e6 / sent,
    )?;
    Ok(())
}
