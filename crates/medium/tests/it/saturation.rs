//! A single collision domain with saturated stations and 1500-byte frames, compared with an exact
//! slot-level Monte Carlo simulation.

use crate::cell::{measure, measure_rts};
use crate::monte_carlo::Cell;
use ncmesh_medium::Phy;

/// Medium time of one measurement, s. The tolerances are then three standard deviations or more.
const SECONDS: u64 = 2_000;

/// Compares medium and Monte Carlo. The collision probability p must agree within `p_tolerance`,
/// the throughput S within 1 %.
fn compare(phy: Phy, rate_bps: u64, attempts: Option<u32>, p_tolerance: f64) {
    for stations in [1, 2, 5, 10, 20, 50] {
        let expected = Cell::new(phy, rate_bps, attempts).saturate(stations, 3_000_000);
        let measured = measure(phy, rate_bps, stations, attempts, SECONDS);
        let p = measured.collided - expected.collided;
        let s = measured.mbps / expected.mbps - 1.0;
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

/// Compares medium and Monte Carlo with RTS and CTS. The collision probability is that of RTSs.
fn compare_rts(phy: Phy, rate_bps: u64) {
    for stations in [1, 2, 5, 10, 20, 50] {
        let cell = Cell::new(phy, rate_bps, Some(7)).with_rts(rate_bps);
        let expected = cell.saturate(stations, 3_000_000);
        let measured = measure_rts(phy, rate_bps, stations, 7, SECONDS);
        let p = measured.collided - expected.collided;
        let s = measured.mbps / expected.mbps - 1.0;
        let ok = p.abs() <= 0.005 && s.abs() <= 0.01;
        assert!(ok, "{stations} stations: {measured:?}, Monte Carlo {expected:?}");
    }
}

#[test]
fn rts_and_cts_802_11b_match_monte_carlo() {
    compare_rts(Phy::DOT11B, 2_000_000);
}

#[test]
fn rts_and_cts_802_11a_match_monte_carlo() {
    compare_rts(Phy::DOT11A, 6_000_000);
}

/// Compares the Monte Carlo with the results of an independent one (p, S in Mbit/s).
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
