//! Ranges, hidden terminals, interference and capture, compared with powers and times calculated by
//! hand.

use ncmesh_medium::{
    Access, ChannelConfig, Fading, LinkPower, Medium, MediumConfig, Output, PathLoss, Phy,
    RadioConfig, RadioId, ReceptionModel,
};

use crate::drive::{broadcast_from, links};

const US: u64 = 1_000;
/// Airtime of 1000 bytes and 36 bytes of overhead at 2 Mbit/s: 192 + 4144 us.
const FRAME: u64 = 4_336 * US;

/// Returns radios on a line at `metres`. They receive up to 250 m and sense up to 460 m, power
/// falls with the fourth power of the distance, and a frame needs an SINR of 10 dB.
fn line(metres: &[f64]) -> MediumConfig {
    let positions = metres.iter().map(|x| [*x, 0.0, 0.0]).collect();
    let two_ray = PathLoss::TwoRay { frequency_hz: 914e6, antenna_height_m: 1.5 };
    let radios = RadioConfig::with_ranges(positions, two_ray, Fading::None, 250.0, 460.0);
    let mut config = MediumConfig::with_radios(Phy::DOT11B, radios, 2_000_000);
    config.reception.noise_figure_db = None;
    config
}

/// Broadcasts a frame for each (instant in us, radio). Returns the receptions (from, to), and the
/// instants at which transmissions began.
fn play(config: MediumConfig, begins: &[(u64, usize)]) -> (Vec<(usize, usize)>, Vec<u64>) {
    let mut medium = Medium::new(config).unwrap();
    let mut heard = Vec::new();
    let mut began = Vec::new();
    let mut begins = begins.iter().peekable();
    loop {
        let request_ns = begins.peek().map(|(us, _)| us * US);
        let Some(now_ns) = medium.poll_timeout().into_iter().chain(request_ns).min() else {
            return (heard, began);
        };
        medium.handle_timeout(now_ns);
        while let Some((_, radio)) = begins.next_if(|(us, _)| us * US == now_ns) {
            medium.request(now_ns, RadioId(*radio)).unwrap();
        }
        medium.handle_timeout(now_ns);
        while let Some(output) = medium.poll_output() {
            match output {
                Output::Grant { radio, at_ns } => {
                    began.push(at_ns);
                    let frame = vec![0; 1_000].into();
                    medium.supply(at_ns, radio, Access::Broadcast, frame).unwrap();
                }
                Output::Deliver { to, from, .. } => heard.push((from.0, to.0)),
                Output::Report { .. } => {}
            }
        }
    }
}

#[test]
fn ranges_are_where_they_were_asked_for() {
    // Received at 249 m, not at 251 m.
    assert_eq!(play(line(&[0.0, 249.0, 251.0]), &[(0, 0)]).0, [(0, 1)]);
    // At 459 m the second radio senses the first, waits and backs off. At 461 m it begins at once.
    let (_, began) = play(line(&[0.0, 459.0]), &[(0, 0), (100, 1)]);
    let wait = began[1] - FRAME - 50 * US;
    assert!(wait.is_multiple_of(20 * US) && wait <= 31 * 20 * US, "{began:?}");
    assert_eq!(play(line(&[0.0, 461.0]), &[(0, 0), (100, 1)]).1, [0, 100 * US]);
}

#[test]
fn a_hidden_terminal_spoils_a_frame_if_it_is_near_enough() {
    // 0 sends to 1 over 200 m. 2, which 0 does not hear, begins later. At 1 the ratio of powers is
    // (d / 200)^4: 12.9 dB at 420 m, 9.7 dB at 350 m.
    let spare = play(line(&[0.0, 200.0, 620.0]), &[(0, 0), (1_000, 2)]).0;
    assert_eq!(spare, [(0, 1)]);
    let spoilt = play(line(&[0.0, 200.0, 550.0]), &[(0, 0), (1_000, 2)]).0;
    assert_eq!(spoilt, []);
}

#[test]
fn interference_adds_up() {
    // Each of two interferers is 12.9 dB below the frame, both together are 9.9 dB below it. They
    // do not hear 0.
    let config = line(&[0.0, 200.0, 620.0, 620.0]);
    let one = play(config.clone(), &[(0, 0), (1_000, 2)]).0;
    assert_eq!(one, [(0, 1), (2, 3)]);
    assert_eq!(play(config, &[(0, 0), (1_000, 2), (1_000, 3)]).0, []);
}

#[test]
fn signals_below_the_floor_are_not_added_up() {
    // 1 receives 0 over 240 m. 2 and 3, 470 m from it and beyond its sensing range, are 11.7 dB
    // weaker each, 8.7 dB together. They do not sense each other or 0.
    let mut config = line(&[0.0; 4]);
    let places = [[-240.0, 0.0], [0.0, 0.0], [332.4, 332.4], [332.4, -332.4]];
    let ChannelConfig::Radio(radios) = &mut config.channel else { panic!("no positions") };
    radios.positions = places.map(|[x, y]| [x, y, 0.0]).into();
    let sensing_dbm = radios.cs_threshold_dbm;
    let begins = [(0, 0), (1_000, 2), (1_000, 3)];
    assert_eq!(play(config.clone(), &begins).0, [(0, 1)]);
    let with_floor = |below_db: f64, begins: &[(u64, usize)]| {
        let mut config = config.clone();
        if let ChannelConfig::Radio(radios) = &mut config.channel {
            radios.interference_floor_dbm = sensing_dbm - below_db;
        }
        play(config, begins).0
    };
    assert_eq!(with_floor(20.0, &begins), []);
    assert_eq!(with_floor(20.0, &begins[..2]), [(0, 1)]);
    // 40 log10(470 / 460) = 0.37 dB below the sensing threshold.
    assert_eq!(with_floor(0.3, &begins), [(0, 1)]);
    assert_eq!(with_floor(0.4, &begins), []);
}

#[test]
fn of_frames_that_begin_together_the_strongest_is_received() {
    // 1 receives 0 from 100 m and 2 from 240 m, a difference of 15.2 dB. 0 and 2 sense each other,
    // but begin at the same instant.
    let config = line(&[0.0, 100.0, 340.0]);
    assert_eq!(play(config, &[(0, 0), (0, 2)]).0, [(0, 1)]);
    // The difference is 10.2 dB from 180 m. From 170 m it is 9.2 dB, too little to decode.
    assert_eq!(play(line(&[0.0, 100.0, 280.0]), &[(0, 0), (0, 2)]).0, [(0, 1)]);
    assert_eq!(play(line(&[0.0, 100.0, 270.0]), &[(0, 0), (0, 2)]).0, []);
}

#[test]
fn a_late_strong_frame_is_received_only_with_capture() {
    // 1 is receiving 0 over 240 m when 2 begins on the other side, 100 m from 1. With a sensing
    // range of 300 m, 2 is hidden from 0.
    let positions = vec![[0.0, 0.0, 0.0], [240.0, 0.0, 0.0], [340.0, 0.0, 0.0]];
    let two_ray = PathLoss::TwoRay { frequency_hz: 914e6, antenna_height_m: 1.5 };
    let radios = RadioConfig::with_ranges(positions, two_ray, Fading::None, 250.0, 300.0);
    let mut config = MediumConfig::with_radios(Phy::DOT11B, radios, 2_000_000);
    let late = [(0, 0), (1_000, 2)];
    assert_eq!(play(config.clone(), &late).0, []);
    // 40 log10(2.4) = 15.2 dB.
    config.reception.capture_db = Some(15.0);
    assert_eq!(play(config.clone(), &late).0, [(2, 1)]);
    config.reception.capture_db = Some(15.5);
    assert_eq!(play(config, &late).0, []);
}

#[test]
fn a_frame_that_is_not_decoded_is_followed_by_eifs() {
    // 1 hears 0. Neither senses 2, which spoils the frame at 1 (9.7 dB) and ends later.
    let (heard, began) = play(line(&[0.0, 200.0, 550.0]), &[(0, 0), (1_000, 2), (2_000, 1)]);
    assert_eq!(heard, [(1, 0)]);
    // 1 is busy until 2 ends at 1000 + 4336 us. EIFS runs from the end of the frame of 0 at 4336 us
    // and ends 364 us later, before DIFS after 5336 us.
    let slots = began[2] - (5_336 + 50) * US;
    assert!(slots.is_multiple_of(20 * US) && slots <= 31 * 20 * US, "{began:?}");
    // If 2 begins earlier, it ends 36 us after 0, and 1 waits for EIFS.
    let (_, began) = play(line(&[0.0, 200.0, 550.0]), &[(0, 0), (36, 2), (2_000, 1)]);
    let slots = began[2] - (4_336 + 364) * US;
    assert!(slots.is_multiple_of(20 * US) && slots <= 31 * 20 * US, "{began:?}");
}

#[test]
fn bit_errors_come_with_noise() {
    // A noise figure that gives an SINR of 1.9 dB at 250 m. Thermal noise in the 22 MHz of 802.11b
    // is -100.6 dBm.
    let mut config = line(&[0.0, 249.99]);
    config.reception.model = ReceptionModel::BitErrors;
    config.reception.preamble_sinr_db = 0.0;
    config.reception.noise_figure_db = Some(-64.37 + 100.56 - 1.5);
    let loss = config.expected_loss(1_000).unwrap().loss(RadioId(0), RadioId(1));
    assert!((0.02..0.98).contains(&loss), "{loss}");
    let mut medium = Medium::new(config).unwrap();
    let sent = 4_000;
    let received = broadcast_from(&mut medium, RadioId(0), 1_000, sent).received;
    let share = 1.0 - received as f64 / sent as f64;
    assert!(
        (share - loss).abs() < 4.0 * (loss * (1.0 - loss) / sent as f64).sqrt(),
        "{share} {loss}"
    );
}

/// Returns a medium where 0 and 2 reach 1 with this loss and do not hear each other.
fn hidden(loss: f64, power: LinkPower) -> MediumConfig {
    let mut config = MediumConfig::dot11b(links(3, &[(0, 1, loss), (2, 1, loss)]), 2_000_000);
    if let ChannelConfig::Links(links) = &mut config.channel {
        links.power = power;
    }
    config
}

#[test]
fn without_overlap_powers_change_no_loss() {
    let alone: Vec<_> = (0..1_000).map(|i| (i * 10_000, 0)).collect();
    let heard = |power| play(hidden(0.4, power), &alone).0.len();
    assert_eq!(heard(LinkPower::Rayleigh), heard(LinkPower::Equal));
}

#[test]
fn of_two_frames_with_rayleigh_powers_the_stronger_is_decoded() {
    // A frame with power a is decoded if it has the needed power (a >= 1) and ten times the power
    // of the other frame. Both powers are exponential with rate r = -ln(1 - loss), so the
    // probability is the integral of r e^(-ra) (1 - e^(-ra/10)) over a from 1.
    let rounds = 5_000;
    let together: Vec<_> = (0..rounds).flat_map(|i| [(i * 10_000, 0), (i * 10_000, 2)]).collect();
    for loss in [0.05, 0.3, 0.7] {
        let r = -libm::log(1.0 - loss);
        let p = libm::exp(-r) - libm::exp(-1.1 * r) / 1.1;
        let mean = 2.0 * rounds as f64 * p;
        let deviation = (2.0 * rounds as f64 * p).sqrt();
        let read = play(hidden(loss, LinkPower::Rayleigh), &together).0.len() as f64;
        assert!((read - mean).abs() < 4.0 * deviation, "{loss}: {read}, expected {mean}");
        assert_eq!(play(hidden(loss, LinkPower::Equal), &together).0, []);
    }
}
