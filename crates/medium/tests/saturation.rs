//! One collision domain with saturated stations, against closed forms and an exact slot-level Monte Carlo
//! (frozen counters in whole slots, resumption at DIFS). 1500-byte frames.

#![allow(clippy::unwrap_used)] // Tests may.

mod drive;

use drive::{links, saturate};
use ncmesh_medium::{Access, Medium, MediumConfig, RadioId};

const S: u64 = 1_000_000_000;

/// Share of collided frames and throughput in Mbit/s of successful frames.
fn measure(
    config: MediumConfig,
    access: impl Fn(RadioId) -> Access,
    stations: usize,
    seconds: u64,
) -> (f64, f64) {
    let mut medium = Medium::new(config).unwrap();
    saturate(&mut medium, seconds * S, 0..stations, access, 1_500);
    let total = medium.statistics().total();
    let collided = total.frames_collided as f64 / total.frames_sent as f64;
    let good = (total.frames_sent - total.frames_collided) as f64;
    (collided, good * 12_000.0 / seconds as f64 / 1e6)
}

/// `stations` and a listener, so that even a lone station is heard.
fn cell(stations: usize) -> ncmesh_medium::LossMatrix {
    let n = stations + 1;
    let pairs: Vec<_> = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b, 0.0))).collect();
    links(n, &pairs)
}

#[test]
fn broadcast_802_11b_matches_the_closed_form_and_monte_carlo() {
    for (stations, p, mbps) in
        [(1, 0.0, 1.7921), (2, 0.0606, 1.7759), (5, 0.2199, 1.6357), (10, 0.4272, 1.3924)]
    {
        let config = MediumConfig::dot11b(cell(stations), 2_000_000);
        let (collided, rate) = measure(config, |_| Access::Broadcast, stations, 200);
        assert!((collided - p).abs() < 0.008, "{stations} stations: {collided} collided, not {p}");
        assert!((rate / mbps - 1.0).abs() < 0.01, "{stations} stations: {rate} Mbit/s, not {mbps}");
    }
}

#[test]
fn broadcast_802_11a_matches_monte_carlo() {
    for (stations, mbps) in [(1, 5.5210), (2, 5.2521), (10, 3.1485)] {
        let config = MediumConfig::dot11a(cell(stations), 6_000_000);
        let (_, rate) = measure(config, |_| Access::Broadcast, stations, 100);
        assert!((rate / mbps - 1.0).abs() < 0.01, "{stations} stations: {rate} Mbit/s, not {mbps}");
    }
}

#[test]
fn unicast_802_11b_is_near_bianchi() {
    for (stations, p, mbps) in [(1, 0.0, 1.7256), (2, 0.057, 1.7137), (5, 0.178, 1.6219)] {
        let config = MediumConfig::dot11b(cell(stations), 2_000_000);
        let (collided, rate) =
            measure(config, |_| Access::Unicast(RadioId(stations)), stations, 200);
        assert!((collided - p).abs() < 0.02, "{stations} stations: {collided} collided, not {p}");
        assert!((rate / mbps - 1.0).abs() < 0.02, "{stations} stations: {rate} Mbit/s, not {mbps}");
    }
}
