//! CSMA/CA, compared with timings calculated by hand (802.11b, 2 Mbit/s, long preamble).

use crate::drive::{links, run, saturate};
use ncmesh_medium::{
    Access, ChannelConfig, LinkPower, LinksConfig, Medium, MediumConfig, Output, RadioId, Sense,
    TxResult,
};

const US: u64 = 1_000;
/// Airtime of 100 bytes and 36 bytes of MAC overhead: 192 + 544 us.
const FRAME: u64 = 736 * US;
const DIFS: u64 = 50 * US;
const SIFS: u64 = 10 * US;
const SLOT: u64 = 20 * US;
const ACK: u64 = 248 * US;

fn config(n: usize, pairs: &[(usize, usize, f64)]) -> MediumConfig {
    MediumConfig::dot11b(links(n, pairs), 2_000_000)
}

fn medium(n: usize, pairs: &[(usize, usize, f64)]) -> Medium {
    Medium::new(config(n, pairs)).unwrap()
}

fn broadcast(_: &mut Medium, radio: RadioId, _: u64) -> Option<(Access, Vec<u8>)> {
    Some((Access::Broadcast, vec![radio.0 as u8; 100]))
}

/// Returns all deliveries: receiver, sender, instant in ns.
fn deliveries(trace: &[Output]) -> Vec<(usize, usize, u64)> {
    let delivery = |output: &Output| match output {
        Output::Deliver { to, from, at_ns, .. } => Some((to.0, from.0, *at_ns)),
        _ => None,
    };
    trace.iter().filter_map(delivery).collect()
}

/// Returns all reports: result, attempts, airtime in ns, instant in ns.
fn reports(trace: &[Output]) -> Vec<(TxResult, u32, u64, u64)> {
    let report = |output: &Output| match *output {
        Output::Report { result, attempts, airtime_ns, at_ns, .. } => {
            Some((result, attempts, airtime_ns, at_ns))
        }
        _ => None,
    };
    trace.iter().filter_map(report).collect()
}

#[test]
fn an_idle_channel_is_granted_at_once_and_a_second_frame_backs_off() {
    let mut medium = medium(2, &[(0, 1, 0.0)]);
    medium.request(5 * US, RadioId(0)).unwrap();
    let mut left = 1;
    let trace = run(&mut medium, u64::MAX, |medium, radio, at_ns| {
        if left > 0 {
            left -= 1;
            medium.request(at_ns, radio).unwrap();
        }
        broadcast(medium, radio, at_ns)
    });
    assert_eq!(trace[0], Output::Grant { radio: RadioId(0), at_ns: 5 * US });
    let first_end = 5 * US + FRAME;
    assert_eq!(deliveries(&trace)[0], (1, 0, first_end));
    assert_eq!(reports(&trace)[0], (TxResult::Sent, 1, FRAME, first_end));
    let Some(Output::Grant { at_ns, .. }) =
        trace.iter().skip(1).find(|o| matches!(o, Output::Grant { .. }))
    else {
        panic!("no second grant in {trace:?}");
    };
    let wait = at_ns - first_end - DIFS;
    assert_eq!(wait % SLOT, 0);
    assert!(wait / SLOT <= 31);
    assert_eq!(medium.statistics().busy_ns, 2 * FRAME);
    assert_eq!(medium.statistics().radios[1].busy_ns, 2 * FRAME);
}

#[test]
fn requests_of_one_instant_collide_and_half_duplex_radios_hear_nothing() {
    let mut medium = medium(3, &[(0, 1, 0.0), (0, 2, 0.0), (1, 2, 0.0)]);
    medium.request(0, RadioId(0)).unwrap();
    medium.request(0, RadioId(1)).unwrap();
    let trace = run(&mut medium, u64::MAX, broadcast);
    assert_eq!(deliveries(&trace), []);
    let total = medium.statistics().total();
    assert_eq!((total.frames_sent, total.frames_collided), (2, 2));
    // Each sender missed the frame of the other, and radio 2 missed both.
    assert_eq!(total.collisions, 4);
    assert_eq!(medium.statistics().busy_ns, FRAME);
}

/// Begins a broadcast of radio 0 at instant 0.
fn begin_frame(medium: &mut Medium) {
    medium.request(0, RadioId(0)).unwrap();
    medium.handle_timeout(0);
    medium.poll_output().unwrap();
    medium.supply(0, RadioId(0), Access::Broadcast, vec![0; 100].into()).unwrap();
}

#[test]
fn a_busy_channel_is_deferred_to() {
    let mut medium = medium(2, &[(0, 1, 0.0)]);
    begin_frame(&mut medium);
    medium.request(US, RadioId(1)).unwrap();
    let hits = deliveries(&run(&mut medium, u64::MAX, broadcast));
    assert_eq!(hits[0], (1, 0, FRAME));
    assert_eq!(hits[1].1, 1);
    let wait = hits[1].2 - 2 * FRAME - DIFS;
    assert_eq!(wait % SLOT, 0);
    assert!(wait / SLOT <= 31);
}

#[test]
fn a_withdrawn_request_is_not_granted() {
    let mut medium = medium(2, &[(0, 1, 0.0)]);
    begin_frame(&mut medium);
    medium.request(US, RadioId(1)).unwrap();
    medium.withdraw(2 * US, RadioId(1)).unwrap();
    assert_eq!(deliveries(&run(&mut medium, u64::MAX, broadcast)), [(1, 0, FRAME)]);
}

#[test]
fn hidden_terminals_collide_where_both_are_heard() {
    // 0 and 2 do not sense each other; 1 hears both.
    let pairs = [(0, 1, 0.0), (1, 2, 0.0)];
    let mut hidden = medium(3, &pairs);
    begin_frame(&mut hidden);
    hidden.request(FRAME - 1, RadioId(2)).unwrap();
    assert_eq!(deliveries(&run(&mut hidden, u64::MAX, broadcast)), []);
    assert_eq!(hidden.statistics().total().frames_collided, 2);

    // One nanosecond later the first has ended, and both come through.
    let mut hidden = medium(3, &pairs);
    begin_frame(&mut hidden);
    hidden.request(FRAME, RadioId(2)).unwrap();
    let trace = run(&mut hidden, u64::MAX, broadcast);
    assert_eq!(deliveries(&trace), [(1, 0, FRAME), (1, 2, 2 * FRAME)]);

    // With everyone sensing everyone the second defers.
    let mut config = config(3, &pairs);
    config.channel = ChannelConfig::Links(LinksConfig {
        loss: links(3, &pairs),
        sense: Sense::Everyone,
        bursts: None,
        power: LinkPower::Equal,
    });
    let mut sensed = Medium::new(config).unwrap();
    let trace = saturate(&mut sensed, 1_000_000 * US, 0..3, |_| Access::Broadcast, 100);
    let total = sensed.statistics().total();
    assert!(deliveries(&trace).len() > 1_000);
    assert!(total.frames_collided * 4 < total.frames_sent);
}

#[test]
fn unicast_is_acknowledged_after_sifs_and_not_overheard() {
    let mut medium = medium(3, &[(0, 1, 0.0), (0, 2, 0.0), (1, 2, 0.0)]);
    medium.request(0, RadioId(0)).unwrap();
    let trace =
        run(&mut medium, u64::MAX, |_, _, _| Some((Access::Unicast(RadioId(1)), vec![7; 100])));
    assert_eq!(deliveries(&trace), [(1, 0, FRAME)]);
    assert_eq!(reports(&trace), [(TxResult::Acked, 1, FRAME, FRAME + SIFS + ACK)]);
    assert_eq!(medium.statistics().radios[1].acks_sent, 1);
    assert_eq!(medium.statistics().radios[1].airtime_ns, ACK);

    let mut config = config(3, &[(0, 1, 0.0), (0, 2, 0.0)]);
    config.overhear_unicast = true;
    let mut monitor = Medium::new(config).unwrap();
    monitor.request(0, RadioId(0)).unwrap();
    let trace =
        run(&mut monitor, u64::MAX, |_, _, _| Some((Access::Unicast(RadioId(1)), vec![7; 100])));
    assert_eq!(deliveries(&trace), [(1, 0, FRAME), (2, 0, FRAME)]);
}

#[test]
fn unicast_into_the_void_is_given_up_at_the_retry_limit() {
    let mut medium = medium(2, &[]);
    medium.request(0, RadioId(0)).unwrap();
    let trace =
        run(&mut medium, u64::MAX, |_, _, _| Some((Access::Unicast(RadioId(1)), vec![7; 100])));
    let [(TxResult::Failed, 7, airtime_ns, at_ns)] = reports(&trace)[..] else {
        panic!("{trace:?}");
    };
    assert_eq!(airtime_ns, 7 * FRAME);
    // Seven frames and timeouts (SIFS + slot + preamble), with the six windows 63 to 1023 between
    // them. The channel is idle from the end of the frame, so DIFS passes within the timeout.
    let timeouts = 7 * (FRAME + SIFS + SLOT + 192 * US);
    let slots = at_ns - timeouts;
    assert_eq!(slots % SLOT, 0);
    assert!(slots / SLOT <= 63 + 127 + 255 + 511 + 1023 + 1023);
}

#[test]
fn a_lost_acknowledgment_brings_a_filtered_duplicate() {
    // Data frames always arrive, and half of the ACKs are lost.
    let mut matrix = links(2, &[]);
    matrix.set(RadioId(0), RadioId(1), 0.0).unwrap();
    matrix.set(RadioId(1), RadioId(0), 0.5).unwrap();
    let mut medium = Medium::new(MediumConfig::dot11b(matrix, 2_000_000)).unwrap();
    let trace = saturate(&mut medium, 10_000_000 * US, 0..1, |_| Access::Unicast(RadioId(1)), 100);
    let sent = reports(&trace);
    let frames = sent.len();
    let arrivals = deliveries(&trace).len();
    assert!(arrivals == frames || arrivals == frames + 1, "{arrivals} of {frames}");
    let mean = sent.iter().map(|report| f64::from(report.1)).sum::<f64>() / frames as f64;
    // The number of attempts is geometric with p = 1/2, cut off at 7, with the mean 2 - 2^-6.
    assert!((mean - 1.984).abs() < 0.1, "{mean} over {frames}");
    assert!(medium.statistics().radios[1].duplicates > 100);
}

#[test]
fn losses_follow_the_matrix_by_direction() {
    let mut matrix = links(3, &[]);
    for (from, to, loss) in [(0, 1, 0.3), (0, 2, 0.9), (1, 0, 0.0)] {
        matrix.set(RadioId(from), RadioId(to), loss).unwrap();
    }
    let mut medium = Medium::new(MediumConfig::dot11b(matrix, 11_000_000)).unwrap();
    saturate(&mut medium, 20_000_000 * US, 0..1, |_| Access::Broadcast, 10);
    let radios = &medium.statistics().radios;
    let sent = radios[0].frames_sent as f64;
    let share = |radio: usize| radios[radio].deliveries as f64 / sent;
    // Three standard deviations.
    let within = |p: f64| 3.0 * (p * (1.0 - p) / sent).sqrt();
    assert!((share(1) - 0.7).abs() < within(0.7), "{}", share(1));
    assert!((share(2) - 0.1).abs() < within(0.1), "{}", share(2));
    assert_eq!(radios[1].losses + radios[1].deliveries, radios[0].frames_sent);
}

#[test]
fn a_radio_switched_off_is_silent_and_forgets() {
    let mut medium = medium(2, &[(0, 1, 0.0)]);
    medium.request(0, RadioId(0)).unwrap();
    medium.handle_timeout(0);
    medium.poll_output().unwrap();
    assert_eq!(medium.poll_timeout(), None);
    medium.set_up(RadioId(0), false).unwrap();
    assert!(medium.decline(0, RadioId(0)).is_err());
    medium.request(0, RadioId(0)).unwrap();
    assert_eq!(medium.poll_timeout(), None);

    // A radio that is switched off during its frame delivers nothing, but the energy lasts.
    medium.set_up(RadioId(0), true).unwrap();
    begin_frame(&mut medium);
    medium.set_up(RadioId(0), false).unwrap();
    medium.set_up(RadioId(0), true).unwrap();
    medium.request(0, RadioId(0)).unwrap();
    let trace = run(&mut medium, u64::MAX, broadcast);
    let hits = deliveries(&trace);
    assert_eq!(hits.len(), 1);
    assert!(hits[0].2 >= 2 * FRAME + DIFS);
}

#[test]
fn links_change_under_way() {
    let mut medium = medium(2, &[(0, 1, 0.0)]);
    medium.request(0, RadioId(0)).unwrap();
    let trace = run(&mut medium, 100_000 * US, |medium, radio, at_ns| {
        medium.request(at_ns, radio).unwrap();
        if at_ns > 50_000 * US {
            medium.set_loss(RadioId(0), RadioId(1), 1.0).unwrap();
        }
        broadcast(medium, radio, at_ns)
    });
    let last = deliveries(&trace).last().unwrap().2;
    assert!((50_000 * US - FRAME..50_000 * US + FRAME).contains(&last), "{last}");
}
