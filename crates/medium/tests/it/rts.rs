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
    config.mac =
        MacConfig::Dcf { rts_threshold_bytes: Some(rts_threshold_bytes), long_retry_limit: None };
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
                let access = Access::Unicast(RadioId(1));
                let frame = vec![7; 1_000].into();
                medium.supply(at_ns, radio, access, frame).unwrap();
            }
        }
    }
    let wait = begins[1].1 - end - DIFS;
    assert!(begins[1].0 == 2 && wait.is_multiple_of(SLOT) && wait <= 31 * SLOT, "{begins:?}");
    assert_eq!(medium.statistics().total().frames_acked, 2);
}

#[test]
fn who_hears_only_the_rts_waits_for_the_end_of_the_exchange() {
    // 2 hears 0 but not 1. It requests the medium during the CTS, which it does not hear. The
    // channel is idle for it, and would be for longer than any backoff if 0 did not go on.
    let mut medium = medium(3, &[(0, 1, 0.0), (0, 2, 0.0)], 0);
    medium.request(0, RadioId(0)).unwrap();
    let end = RTS + SIFS + RESPONSE + SIFS + DATA + SIFS + RESPONSE;
    let asks_at = RTS + SIFS + 100 * US;
    let mut begins = Vec::new();
    let mut asked = false;
    while let Some(at_ns) = medium.poll_timeout() {
        if !asked && at_ns > asks_at {
            medium.request(asks_at, RadioId(2)).unwrap();
            asked = true;
            continue;
        }
        medium.handle_timeout(at_ns);
        while let Some(output) = medium.poll_output() {
            if let Output::Grant { radio, at_ns } = output {
                begins.push((radio.0, at_ns));
                let access = Access::Unicast(RadioId(0));
                let frame = vec![7; 1_000].into();
                let to_one = if radio.0 == 0 { Access::Unicast(RadioId(1)) } else { access };
                medium.supply(at_ns, radio, to_one, frame).unwrap();
            }
        }
    }
    // It hears the data frame of 0, but neither the CTS nor the ACK of 1.
    let wait = begins[1].1 - end - DIFS;
    assert!(begins[1].0 == 2 && wait.is_multiple_of(SLOT) && wait <= 31 * SLOT, "{begins:?}");
    assert_eq!(medium.statistics().total().frames_acked, 2);
}

/// Sends a frame whose first `lost_rts` RTSs are lost, and every data frame. Returns the report.
fn with_losses(retry_limit: u32, long_retry_limit: Option<u32>, lost_rts: u64) -> (TxResult, u32) {
    let mut config = MediumConfig::dot11b(links(2, &[(0, 1, 0.0)]), 2_000_000);
    config.mac = MacConfig::Dcf { rts_threshold_bytes: Some(0), long_retry_limit };
    config.retry_limit = retry_limit;
    let mut medium = Medium::new(config).unwrap();
    medium.request(0, RadioId(0)).unwrap();
    loop {
        // Between a CTS and the data frame that follows it, the link breaks.
        let radios = &medium.statistics().radios;
        let data_is_next = radios[1].cts_sent > radios[0].frames_sent;
        let lost = data_is_next || radios[0].rts_sent < lost_rts;
        medium.set_loss(RadioId(0), RadioId(1), f64::from(u8::from(lost))).unwrap();
        medium.handle_timeout(medium.poll_timeout().unwrap());
        while let Some(output) = medium.poll_output() {
            match output {
                Output::Grant { radio, at_ns } => {
                    let access = Access::Unicast(RadioId(1));
                    medium.supply(at_ns, radio, access, vec![7; 1_000].into()).unwrap();
                }
                Output::Report { result, attempts, .. } => return (result, attempts),
                Output::Deliver { .. } => panic!("the data frame arrived"),
            }
        }
    }
}

#[test]
fn retries_of_rts_and_of_data_have_limits_of_their_own() {
    // One limit for both together: three RTSs and four data frames.
    assert_eq!(with_losses(7, None, 3), (TxResult::Failed, 7));
    // Four data frames, however many RTSs were lost before, up to the short limit.
    assert_eq!(with_losses(7, Some(4), 0), (TxResult::Failed, 4));
    assert_eq!(with_losses(7, Some(4), 6), (TxResult::Failed, 10));
    assert_eq!(with_losses(7, Some(4), 7), (TxResult::Failed, 7));
    assert_eq!(with_losses(4, Some(9), 2), (TxResult::Failed, 11));
    let mut config = MediumConfig::dot11b(links(2, &[]), 2_000_000);
    config.mac = MacConfig::Dcf { rts_threshold_bytes: Some(0), long_retry_limit: Some(0) };
    assert!(config.validate().is_err());
}

#[test]
fn a_frame_below_the_threshold_has_the_short_limit() {
    let mut config = MediumConfig::dot11b(links(2, &[]), 2_000_000);
    config.mac = MacConfig::Dcf { rts_threshold_bytes: Some(2_000), long_retry_limit: Some(2) };
    let mut medium = Medium::new(config).unwrap();
    medium.request(0, RadioId(0)).unwrap();
    let trace = run(&mut medium, u64::MAX, unicast(1));
    assert_eq!(report(&trace).1, 7);
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
    let with = collided(0);
    let without = collided(9_999);
    assert!(with < 0.01 && without > 0.2, "{with} with RTS, {without} without");
}
