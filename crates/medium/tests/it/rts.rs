//! RTS, CTS and NAV, compared with timings calculated by hand (802.11b, 2 Mbit/s, long preamble).

use ncmesh_medium::{Access, MacConfig, Medium, MediumConfig, Output, RadioId, TxResult};

use crate::drive::{links, run, saturate};

const US: u64 = 1_000;
/// Airtime of 20 bytes.
const RTS: u64 = 272 * US;
/// Airtime of a CTS or ACK, 14 bytes.
const RESPONSE: u64 = 248 * US;
/// Airtime of 1000 bytes and 36 bytes of overhead.
const DATA: u64 = 4_336 * US;
const SIFS: u64 = 10 * US;
const DIFS: u64 = 50 * US;
const SLOT: u64 = 20 * US;

fn medium(n: usize, pairs: &[(usize, usize, f64)], rts_threshold_bytes: usize) -> Medium {
    let mut config = MediumConfig::dot11b(links(n, pairs), 2_000_000);
    config.mac = MacConfig::Dcf { rts_threshold_bytes: Some(rts_threshold_bytes) };
    Medium::new(config).unwrap()
}

fn unicast(to: usize) -> impl FnMut(&mut Medium, RadioId, u64) -> Option<(Access, Vec<u8>)> {
    move |_, _, _| Some((Access::Unicast(RadioId(to)), vec![7; 1_000]))
}

fn report(trace: &[Output]) -> (TxResult, u32, u64, u64) {
    let report = trace.iter().find_map(|output| match *output {
        Output::Report { result, attempts, airtime_ns, at_ns, .. } => {
            Some((result, attempts, airtime_ns, at_ns))
        }
        _ => None,
    });
    report.unwrap()
}

#[test]
fn long_frames_are_announced_and_short_ones_are_not() {
    let exchange = RTS + SIFS + RESPONSE + SIFS + DATA + SIFS + RESPONSE;
    for (threshold, airtime, end) in
        [(1_036, RTS + DATA, exchange), (1_037, DATA, DATA + SIFS + RESPONSE)]
    {
        let mut medium = medium(2, &[(0, 1, 0.0)], threshold);
        medium.request(0, RadioId(0)).unwrap();
        let trace = run(&mut medium, u64::MAX, unicast(1));
        assert_eq!(report(&trace), (TxResult::Acked, 1, airtime, end));
        let announced = u64::from(threshold == 1_036);
        let radios = &medium.statistics().radios;
        assert_eq!((radios[0].rts_sent, radios[1].cts_sent), (announced, announced));
        assert_eq!((radios[0].frames_sent, radios[1].acks_sent), (1, 1));
    }
}

#[test]
fn a_request_nobody_clears_costs_no_data() {
    let mut medium = medium(2, &[], 0);
    medium.request(0, RadioId(0)).unwrap();
    let trace = run(&mut medium, u64::MAX, unicast(1));
    let (result, attempts, airtime_ns, _) = report(&trace);
    assert_eq!((result, attempts, airtime_ns), (TxResult::Failed, 7, 7 * RTS));
    assert_eq!(medium.statistics().radios[0].frames_sent, 0);
}

#[test]
fn a_hidden_terminal_that_hears_the_cts_waits_for_the_acknowledgment() {
    // 2 hears 1 but not 0. It requests the medium during the data of 0, which it does not hear.
    let mut medium = medium(3, &[(0, 1, 0.0), (1, 2, 0.0)], 0);
    medium.request(0, RadioId(0)).unwrap();
    let data_at = RTS + SIFS + RESPONSE + SIFS;
    let end = data_at + DATA + SIFS + RESPONSE;
    let mut begins = Vec::new();
    let mut asked = false;
    while let Some(at_ns) = medium.poll_timeout() {
        if !asked && at_ns > data_at {
            medium.request(data_at + 100 * US, RadioId(2)).unwrap();
            asked = true;
            continue;
        }
        medium.handle_timeout(at_ns);
        while let Some(output) = medium.poll_output() {
            if let Output::Grant { radio, at_ns } = output {
                begins.push((radio.0, at_ns));
                let (access, frame) = (Access::Unicast(RadioId(1)), vec![7; 1_000].into());
                medium.supply(at_ns, radio, access, frame).unwrap();
            }
        }
    }
    let wait = begins[1].1 - end - DIFS;
    assert!(begins[1].0 == 2 && wait.is_multiple_of(SLOT) && wait <= 31 * SLOT, "{begins:?}");
    assert_eq!(medium.statistics().total().frames_acked, 2);
}

#[test]
fn hidden_terminals_lose_less_data_with_rts() {
    let collided = |threshold| {
        let mut medium = medium(3, &[(0, 1, 0.0), (1, 2, 0.0)], threshold);
        let to_the_middle = |_| Access::Unicast(RadioId(1));
        for radio in [0, 2] {
            medium.request(0, RadioId(radio)).unwrap();
        }
        saturate(&mut medium, 20_000_000 * US, 0..1, to_the_middle, 1_000);
        let total = medium.statistics().total();
        total.frames_collided as f64 / total.frames_sent as f64
    };
    let (with, without) = (collided(0), collided(9_999));
    assert!(with < 0.01 && without > 0.2, "{with} with RTS, {without} without");
}
