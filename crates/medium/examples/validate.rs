//! Runs all measurements that validate the medium, and prints them as one JSON document:
//!
//!     cargo run --release -p ncmesh-medium --example validate -- POSITIONS.csv
//!
//! - `cells`: saturated stations in a single collision domain, on the medium and by an exact Monte
//!   Carlo simulation;
//! - `rts`: the same with RTS and CTS before unicast frames;
//! - `meshes`: radios at POSITIONS with two-ray ground and Rayleigh fading, at three loads;
//! - `floors`: the same mesh, saturated, with several interference floors.

#![allow(clippy::unwrap_used, reason = "a measurement fails where it unwraps")]

#[path = "../tests/it/cell.rs"]
mod cell;
#[path = "../tests/it/monte_carlo.rs"]
mod monte_carlo;
#[path = "../tests/it/traffic.rs"]
mod traffic;

use std::error::Error;
use std::io::Write;

use monte_carlo::Saturation;
use ncmesh_medium::{ChannelConfig, Medium, Phy};
use traffic::Tally;

/// Medium time of a cell, s.
const CELL_SECONDS: u64 = 2_000;
/// Medium time of a mesh, s.
const MESH_SECONDS: f64 = 200.0;
/// Transmissions of a Monte Carlo simulation.
const FRAMES: u64 = 3_000_000;
/// Physical layers with their rates, bit/s.
const PHYS: [(&str, Phy, u64); 2] =
    [("802.11b", Phy::DOT11B, 2_000_000), ("802.11a", Phy::DOT11A, 6_000_000)];
const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("argument: POSITIONS.csv")?;
    let positions = traffic::positions(&std::fs::read_to_string(file)?)?;
    let mut out = std::io::stdout();
    let cells = cells();
    let rts = rts();
    let meshes = meshes(&positions);
    let floors = floors(&positions);
    writeln!(
        out,
        "{{\"cells\": [{cells}], \"rts\": [{rts}], \"meshes\": [{meshes}], \
         \"floors\": [{floors}]}}"
    )?;
    Ok(())
}

/// Measures broadcast, and unicast with the usual seven attempts and with the eight of ns-3.
fn cells() -> String {
    let mut rows = Vec::new();
    for (name, phy, rate_bps) in PHYS {
        for attempts in [None, Some(7), Some(8)] {
            for stations in [1, 2, 5, 10, 20, 50] {
                let ours = cell::measure(phy, rate_bps, stations, attempts, CELL_SECONDS);
                let exact =
                    monte_carlo::Cell::new(phy, rate_bps, attempts).saturate(stations, FRAMES);
                rows.push(row(name, attempts.unwrap_or(0), stations, ours, exact));
            }
        }
    }
    rows.join(", ")
}

/// Measures unicast with RTS and CTS, with the eight attempts of ns-3.
fn rts() -> String {
    let mut rows = Vec::new();
    for (name, phy, rate_bps) in PHYS {
        for stations in [1, 2, 5, 10, 20, 50] {
            let ours = cell::measure_rts(phy, rate_bps, stations, 8, CELL_SECONDS);
            let cell = monte_carlo::Cell::new(phy, rate_bps, Some(8)).with_rts(rate_bps);
            rows.push(row(name, 8, stations, ours, cell.saturate(stations, FRAMES)));
        }
    }
    rows.join(", ")
}

/// Writes one measurement as JSON.
fn row(phy: &str, attempts: u32, stations: usize, ours: Saturation, exact: Saturation) -> String {
    format!(
        "{{\"phy\": \"{phy}\", \"attempts\": {attempts}, \"stations\": {stations}, \
         \"p\": {:.5}, \"mbps\": {:.5}, \"exact_p\": {:.5}, \"exact_mbps\": {:.5}}}",
        ours.collided, ours.mbps, exact.collided, exact.mbps,
    )
}

fn meshes(positions: &[[f64; 3]]) -> String {
    let rows = [0.0, 20.0, 2.0].map(|rate| mesh(positions, rate, None));
    rows.join(", ")
}

fn floors(positions: &[[f64; 3]]) -> String {
    let floors = [-74.97, -80.0, -85.0, -90.0, -95.0, f64::NEG_INFINITY];
    floors.map(|floor_dbm| mesh(positions, 0.0, Some(floor_dbm))).join(", ")
}

/// Measures one load with all seeds: transmissions per second, and receptions and strong receptions
/// per transmission.
fn mesh(positions: &[[f64; 3]], rate: f64, floor_dbm: Option<f64>) -> String {
    let mut columns: [Vec<String>; 3] = Default::default();
    for seed in SEEDS {
        let mut config = traffic::mesh(positions.to_vec(), seed);
        if let (ChannelConfig::Radio(radios), Some(floor)) = (&mut config.channel, floor_dbm) {
            radios.interference_floor_dbm = floor;
        }
        let mut medium = Medium::new(config).unwrap();
        let Tally { sent, received, strong } =
            traffic::broadcast(&mut medium, MESH_SECONDS, rate, seed);
        let of = sent as f64;
        columns[0].push(format!("{:.2}", of / MESH_SECONDS));
        columns[1].push(format!("{:.4}", received as f64 / of));
        columns[2].push(format!("{:.4}", strong as f64 / of));
    }
    let floor =
        floor_dbm.filter(|floor| floor.is_finite()).map_or("null".into(), |f| f.to_string());
    let [sent, received, strong] = columns.map(|column| column.join(", "));
    format!(
        "{{\"rate\": {rate}, \"floor_dbm\": {floor}, \"tx_per_s\": [{sent}], \
         \"received_per_tx\": [{received}], \"strong_per_tx\": [{strong}]}}"
    )
}
