//! Fading as GloMoSim 2.02 has it, and fading that lasts for an exchange, compared with a Monte
//! Carlo simulation in decibels and with closed forms.

use ncmesh_medium::{
    Access, ChannelConfig, Fading, MacConfig, Medium, MediumConfig, PathLoss, Phy, RadioConfig,
    RadioId, RadioStatistics,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use crate::drive::{run, saturate};

const SECOND: u64 = 1_000_000_000;

/// Returns two radios that are `metres` apart, with the fading of GloMoSim and a range of 250 m.
/// There is no noise, so the reception threshold alone decides.
fn pair(metres: f64) -> (RadioConfig, MediumConfig) {
    let positions = vec![[0.0; 3], [metres, 0.0, 0.0]];
    let two_ray = PathLoss::TwoRay { frequency_hz: 2.4e9, antenna_height_m: 1.5 };
    let radios = RadioConfig::with_ranges(positions, two_ray, Fading::Glomosim, 250.0, 460.0);
    let mut config = MediumConfig::with_radios(Phy::DOT11B, radios.clone(), 2_000_000);
    config.reception.noise_figure_db = None;
    (radios, config)
}

/// Returns the two-ray loss with antennas at 1.5 m and 2.4 GHz, as the larger of plane-earth and
/// free-space loss, dB.
fn two_ray_db(metres: f64) -> f64 {
    let wavelength = 299_792_458.0 / 2.4e9;
    let plane_earth: f64 = metres * metres / (1.5 * 1.5);
    let free_space: f64 = 4.0 * std::f64::consts::PI * metres / wavelength;
    20.0 * libm::log10(plane_earth.max(free_space))
}

#[test]
fn delivery_over_distance_is_that_of_glomosim() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for (metres, stated) in [(150.0, 0.93), (200.0, 0.81), (250.0, 0.46), (300.0, 0.03)] {
        // A Monte Carlo of its own, in decibels.
        let margin_db = two_ray_db(250.0) - two_ray_db(metres);
        let draws = 200_000;
        let reach = (0..draws).filter(|_| {
            let u = (f64::from(rng.next_u32()) + 0.5) / 4_294_967_296.0;
            5.0 * libm::log10(-2.0 * std::f64::consts::FRAC_2_PI * libm::log(u)) + margin_db >= 0.0
        });
        let expected = reach.count() as f64 / f64::from(draws);
        assert!((expected - stated).abs() < 0.01, "{metres} m: {expected}");

        let (_, config) = pair(metres);
        let loss = config.expected_loss(1_500).unwrap().loss(RadioId(0), RadioId(1));
        assert!((1.0 - loss - expected).abs() < 0.005, "{metres} m: {loss}");
        let mut medium = Medium::new(config).unwrap();
        saturate(&mut medium, 100 * SECOND, 0..1, |_| Access::Broadcast, 1_500);
        let radios = &medium.statistics().radios;
        let share = radios[1].deliveries as f64 / radios[0].frames_sent as f64;
        assert!((share - expected).abs() < 0.015, "{metres} m: {share}, expected {expected}");
    }
}

/// Sends `frames` of 500 bytes with `access`, 20 ms apart and by both radios in turn. Returns the
/// sums of all counters.
fn spaced(
    config: MediumConfig,
    frames: u64,
    access: impl Fn(RadioId) -> Access,
) -> RadioStatistics {
    let mut medium = Medium::new(config).unwrap();
    for frame in 0..frames {
        let radio = RadioId((frame % 2) as usize);
        medium.handle_timeout(frame * 20_000_000);
        medium.request(frame * 20_000_000, radio).unwrap();
        run(&mut medium, (frame + 1) * 20_000_000 - 1, |_, radio, _| {
            Some((access(radio), vec![0; 500]))
        });
    }
    medium.statistics().total()
}

/// Sends unicast frames over 200 m, once each. Returns the sums of all counters.
fn exchanges(rts_threshold_bytes: Option<usize>, coherence_ns: u64) -> RadioStatistics {
    let (mut radios, config) = pair(200.0);
    radios.fading_coherence_ns = coherence_ns;
    let config = MediumConfig {
        channel: ChannelConfig::Radio(radios),
        mac: MacConfig::Dcf { rts_threshold_bytes, long_retry_limit: None },
        retry_limit: 1,
        ..config
    };
    spaced(config, 20_000, |radio| Access::Unicast(RadioId(1 - radio.0)))
}

#[test]
fn an_exchange_within_the_coherence_time_has_one_fading() {
    // A factor is above f with probability exp(-(pi / 4) f^2).
    let margin_db = two_ray_db(250.0) - two_ray_db(200.0);
    let p = libm::exp(-std::f64::consts::FRAC_PI_4 * libm::pow(10.0, -margin_db / 5.0));
    // With a fading of its own every frame of the exchange must arrive: data and ACK, or RTS, CTS,
    // data and ACK. With one fading they all do, or none.
    let ms = 1_000_000;
    for (rts, coherence_ns, expected) in [
        (None, 0, libm::pow(p, 2.0)),
        (None, ms, p),
        (Some(0), 0, libm::pow(p, 4.0)),
        (Some(0), ms, p),
        // SIFS has not passed when the coherence ends.
        (Some(0), 10_000, libm::pow(p, 4.0)),
        (Some(0), 10_001, p),
    ] {
        let total = exchanges(rts, coherence_ns);
        let tried = total.frames_acked + total.frames_failed;
        let share = total.frames_acked as f64 / tried as f64;
        let deviation = (expected * (1.0 - expected) / tried as f64).sqrt();
        let text = format!("{rts:?}, {coherence_ns} ns: {share}, expected {expected}");
        assert!((share - expected).abs() < 4.0 * deviation, "{text}");
    }
}

#[test]
fn frames_that_answer_nothing_have_a_fading_of_their_own() {
    // Broadcasts of two radios in turn: whether one arrives does not depend on the one before.
    let (mut radios, config) = pair(250.0);
    radios.fading_coherence_ns = SECOND;
    let config = MediumConfig { channel: ChannelConfig::Radio(radios), ..config };
    let total = spaced(config, 20_000, |_| Access::Broadcast);
    let sent = total.frames_sent as f64;
    let p = libm::exp(-std::f64::consts::FRAC_PI_4);
    let share = total.deliveries as f64 / sent;
    assert!((share - p).abs() < 4.0 * (p * (1.0 - p) / sent).sqrt(), "{share}, expected {p}");
}
