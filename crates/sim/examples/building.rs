//! Generator of the network of `scenarios/building.toml`.
//!
//! `cargo run -p ncmesh-sim --example building -- matrix` prints `scenarios/data/building.csv`.
//! With `nodes` it prints the `[[node]]` tables of the scenario.
//!
//! The network has 22 offices on two floors of two buildings, which are end to end and 20 m apart.
//! Received power is transmit power minus these losses:
//!
//! - `40 + 33 log10(d)` dB for the distance d in metres,
//! - 9 dB between floors,
//! - 7 dB for the outer wall of each building, between buildings,
//! - shadowing, drawn once for each pair (normal, 5 dB),
//! - a difference drawn for each direction (normal, 1.5 dB), because radios differ.
//!
//! Delivery is a logistic function of the margin over the receiver's sensitivity, with a width of
//! 2.5 dB. Links that lose more than 88 % are unusable and omitted.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// Seed of all draws. It gives statistics like those of the paper's testbed: 1 to 6 hops, losses of
/// 0 to 88 % with a mean of 29 %. `tests/scenarios.rs` checks them.
const SEED: u64 = 75;
/// Transmit power minus receiver sensitivity, dB.
const BUDGET_DB: f64 = 91.0;
const FLOOR_M: f64 = 4.0;

/// Offices by number: building (0 or 1), floor (0 or 1), metres along and across the corridor. Like
/// in a testbed that grew, neighbours do not have consecutive numbers.
const OFFICES: [(usize, usize, f64, f64); 22] = [
    (0, 0, 2.0, 3.0),
    (0, 0, 24.0, 12.0),
    (0, 0, 41.0, 3.0),
    (0, 1, 8.0, 12.0),
    (0, 0, 13.0, 11.0),
    (0, 1, 21.0, 3.0),
    (0, 1, 47.0, 11.0),
    (0, 0, 55.0, 12.0),
    (0, 1, 34.0, 3.0),
    (0, 0, 33.0, 4.0),
    (0, 1, 58.0, 3.0),
    (1, 0, 4.0, 4.0),
    (1, 1, 3.0, 11.0),
    (1, 0, 14.0, 12.0),
    (1, 1, 16.0, 3.0),
    (1, 0, 27.0, 3.0),
    (1, 1, 29.0, 12.0),
    (1, 0, 38.0, 11.0),
    (1, 1, 43.0, 4.0),
    (1, 0, 58.0, 3.0),
    (1, 1, 56.0, 12.0),
    (1, 0, 48.0, 11.0),
];

/// Returns the position of an office: metres east, north and up.
fn place(office: usize) -> [f64; 3] {
    let (building, floor, along, across) = OFFICES[office];
    [building as f64 * 80.0 + along, across, floor as f64 * FLOOR_M]
}

/// Draws a standard normal value (Box and Muller).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let mut uniform = || (f64::from(rng.next_u32()) + 0.5) / 4_294_967_296.0;
    let radius = (-2.0 * libm::log(uniform())).sqrt();
    let angle = uniform() * std::f64::consts::TAU;
    radius * libm::cos(angle)
}

/// Returns the mean margin over the sensitivity between two offices, dB.
fn margin_db(a: usize, b: usize) -> f64 {
    let from = place(a);
    let to = place(b);
    let distance = (0..3).map(|axis| libm::pow(from[axis] - to[axis], 2.0)).sum::<f64>().sqrt();
    let floors = if OFFICES[a].1 == OFFICES[b].1 { 0.0 } else { 9.0 };
    let walls = if OFFICES[a].0 == OFFICES[b].0 { 0.0 } else { 14.0 };
    BUDGET_DB - 40.0 - 33.0 * libm::log10(distance) - floors - walls
}

/// Returns the loss from row to column, rounded to hundredths; `None` for an unusable link.
fn losses(seed: u64) -> Vec<Vec<Option<f64>>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut losses = vec![vec![None; OFFICES.len()]; OFFICES.len()];
    for a in 0..OFFICES.len() {
        for b in a + 1..OFFICES.len() {
            let shadowed = margin_db(a, b) + 5.0 * normal(&mut rng);
            for (from, to) in [(a, b), (b, a)] {
                let margin = shadowed + 1.5 * normal(&mut rng);
                let loss = 1.0 / (1.0 + libm::exp(margin / 2.5));
                let loss = (loss * 100.0).round() / 100.0;
                losses[from][to] = (loss <= 0.88).then_some(loss);
            }
        }
    }
    losses
}

fn name(office: usize) -> String {
    format!("n{:02}", office + 1)
}

fn print_matrix() {
    println!(
        "# Synthetic: made by the example program `building` of ncmesh-sim. MIT OR Apache-2.0."
    );
    let names: Vec<_> = (0..OFFICES.len()).map(name).collect();
    println!("from\\to,{}", names.join(","));
    for (from, row) in losses(SEED).into_iter().enumerate() {
        let cells: Vec<_> = row
            .into_iter()
            .map(|loss| loss.map_or(String::new(), |loss| loss.to_string()))
            .collect();
        println!("{},{}", name(from), cells.join(","));
    }
}

fn print_nodes() {
    for office in 0..OFFICES.len() {
        let [x, y, z] = place(office);
        println!("\n[[node]]\nname = \"{}\"\nx = {x:.1}\ny = {y:.1}\nz = {z:.1}", name(office));
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("matrix") => print_matrix(),
        Some("nodes") => print_nodes(),
        _ => eprintln!("usage: building matrix | nodes"),
    }
}
