//! One collision domain with saturated stations, against an exact slot-level Monte Carlo. 1500-byte frames.

use crate::drive::links;
use crate::monte_carlo::{Cell, Saturation};
use ncmesh_medium::{Access, Medium, MediumConfig, Output, Phy, RadioId};

/// Medium time of one measurement, s; enough for the tolerances to be three standard deviations or more.
const SECONDS: u64 = 2_000;

/// Frames of 1500 bytes from `stations` to one listener, all in reach of each other.
fn measure(phy: Phy, rate_bps: u64, stations: usize, attempts: Option<u32>) -> Saturation {
    let n = stations + 1;
    let pairs: Vec<_> = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b, 0.0))).collect();
    let mut config = MediumConfig::with_links(phy, links(n, &pairs), rate_bps);
    config.retry_limit = attempts.unwrap_or(1);
    let access = attempts.map_or(Access::Broadcast, |_| Access::Unicast(RadioId(stations)));
    let mut medium = Medium::new(config).unwrap();
    for radio in 0..stations {
        medium.request(0, RadioId(radio)).unwrap();
    }
    let frame: std::sync::Arc<[u8]> = vec![0; 1_500].into();
    while let Some(at_ns) = medium.poll_timeout().filter(|&at_ns| at_ns < SECONDS * 1_000_000_000) {
        medium.handle_timeout(at_ns);
        while let Some(output) = medium.poll_output() {
            if let Output::Grant { radio, at_ns } = output {
                medium.request(at_ns, radio).unwrap();
                medium.supply(at_ns, radio, access, frame.clone()).unwrap();
            }
        }
    }
    let total = medium.statistics().total();
    let whole = total.frames_sent - total.frames_collided;
    Saturation {
        collided: total.frames_collided as f64 / total.frames_sent as f64,
        mbps: whole as f64 * 12_000.0 / SECONDS as f64 / 1e6,
    }
}

/// Compares medium and Monte Carlo: p within `p_tolerance`, S within 1 %.
fn compare(phy: Phy, rate_bps: u64, attempts: Option<u32>, p_tolerance: f64) {
    for stations in [1, 2, 5, 10, 20, 50] {
        let expected = Cell::new(phy, rate_bps, attempts).saturate(stations, 3_000_000);
        let measured = measure(phy, rate_bps, stations, attempts);
        let (p, s) = (measured.collided - expected.collided, measured.mbps / expected.mbps - 1.0);
        let ok = p.abs() <= p_tolerance && s.abs() <= 0.01;
        assert!(ok, "{stations} stations: {measured:?}, Monte Carlo {expected:?}");
    }
}

#[test]
fn broadcast_802_11b_matches_monte_carlo() {
    compare(Phy::DOT11B, 2_000_000, None, 0.005);
}

#[test]
fn broadcast_802_11a_matches_monte_carlo() {
    compare(Phy::DOT11A, 6_000_000, None, 0.005);
}

#[test]
fn unicast_802_11b_matches_monte_carlo() {
    compare(Phy::DOT11B, 2_000_000, Some(7), 0.005);
}

#[test]
fn unicast_802_11a_matches_monte_carlo() {
    compare(Phy::DOT11A, 6_000_000, Some(7), 0.005);
}

/// The Monte Carlo itself, against what an independent one gave (p, S in Mbit/s).
#[test]
fn monte_carlo_agrees_with_another() {
    let known = [(1, 0.0, 1.7921), (2, 0.0606, 1.7759), (5, 0.2199, 1.6357), (10, 0.4272, 1.3924)];
    for (stations, p, mbps) in known.into_iter().chain([(20, 0.6856, 0.9927), (50, 0.9304, 0.3978)])
    {
        let ours = Cell::new(Phy::DOT11B, 2_000_000, None).saturate(stations, 3_000_000);
        assert!((ours.collided - p).abs() < 0.002, "{stations}: {ours:?}");
        assert!((ours.mbps / mbps - 1.0).abs() < 0.005, "{stations}: {ours:?}");
    }
    let known = [(1, 5.5210), (2, 5.2521), (5, 4.3550), (10, 3.1485), (20, 1.7927), (50, 1.2676)];
    for (stations, mbps) in known {
        let ours = Cell::new(Phy::DOT11A, 6_000_000, None).saturate(stations, 3_000_000);
        assert!((ours.mbps / mbps - 1.0).abs() < 0.005, "{stations}: {ours:?}");
    }
}
