//! Fifty radios with two-ray ground and Rayleigh fading, compared with ns-3.48 on the same
//! positions, and with closed forms without interference.

use ncmesh_medium::{ChannelConfig, Medium, MediumConfig, RadioId};

use crate::drive::broadcast_from;
use crate::traffic::{self, Tally};

fn positions() -> Vec<[f64; 3]> {
    traffic::positions(include_str!("../data/pos50.csv")).unwrap()
}

/// Returns transmissions per second, receptions per transmission, and strong receptions per
/// transmission, over three seeds.
fn measure(rate: f64, seconds: f64, change: impl Fn(&mut MediumConfig)) -> [f64; 3] {
    let mut all = Tally::default();
    for seed in 1..=3 {
        let mut config = traffic::mesh(positions(), seed);
        change(&mut config);
        let mut medium = Medium::new(config).unwrap();
        let tally = traffic::broadcast(&mut medium, seconds, rate, seed);
        all.sent += tally.sent;
        all.received += tally.received;
        all.strong += tally.strong;
    }
    let sent = all.sent as f64;
    [sent / (3.0 * seconds), all.received as f64 / sent, all.strong as f64 / sent]
}

#[test]
fn traffic_and_reception_are_those_of_ns_3() {
    // Packets/s of each radio (0 is saturated); tx/s, received/tx and strong/tx of ns-3.48; the
    // tolerance of the last two.
    let known = [
        (0.0, [1050.0, 3.36, 2.66], 0.05),
        (20.0, [871.0, 4.18, 3.04], 0.05),
        (2.0, [100.6, 14.28, 4.86], 0.02),
    ];
    for (rate, ns3, tolerance) in known {
        let ours = measure(rate, 200.0, |_| {});
        let off = |i: usize| (ours[i] / ns3[i] - 1.0).abs();
        let ok = off(0) < 0.02 && off(1) < tolerance && off(2) < tolerance;
        assert!(ok, "{rate} packets/s: {ours:?}, ns-3 {ns3:?}");
    }
}

#[test]
fn without_interference_reception_is_what_the_distribution_says() {
    // P(exponential power > threshold) summed over all pairs, per sender.
    let received = |config: &MediumConfig| {
        let loss = config.expected_loss(1_500).unwrap();
        loss.links().map(|link| 1.0 - link.loss).sum::<f64>() / 50.0
    };
    let config = traffic::mesh(positions(), 1);
    assert!((received(&config) / 16.68 - 1.0).abs() < 0.005, "{}", received(&config));
    let mut strong = config.clone();
    let ChannelConfig::Radio(radio) = &mut strong.channel else { panic!("radios were asked for") };
    radio.rx_threshold_dbm = -64.37;
    assert!((received(&strong) / 5.275 - 1.0).abs() < 0.005, "{}", received(&strong));

    // The same by transmissions of one radio after the other.
    let mut tally = Tally::default();
    for radio in 0..50 {
        let mut medium = Medium::new(config.clone()).unwrap();
        let alone = broadcast_from(&mut medium, RadioId(radio), 1_500, 4_000);
        tally.sent += alone.sent;
        tally.received += alone.received;
        tally.strong += alone.strong;
    }
    let share = |count: u64, known: f64| (count as f64 / tally.sent as f64 / known - 1.0).abs();
    assert!(
        share(tally.received, 16.68) < 0.005 && share(tally.strong, 5.275) < 0.005,
        "{tally:?}"
    );
}

#[test]
fn signals_far_below_carrier_sense_can_be_left_out() {
    let with_floor = |floor_dbm: f64| {
        measure(0.0, 50.0, |config| {
            let ChannelConfig::Radio(radio) = &mut config.channel else { panic!("radios") };
            radio.interference_floor_dbm = floor_dbm;
        })
    };
    let all = with_floor(f64::NEG_INFINITY);
    let cut = with_floor(-95.0);
    let same = |i: usize| (cut[i] / all[i] - 1.0).abs() < 0.02;
    assert!(same(0) && same(1) && same(2), "{cut:?} with the cut, {all:?} without");
}
