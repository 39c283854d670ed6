//! Properties of any network, any traffic and any order of calls.

use crate::drive::{links, saturate};
use ncmesh_medium::{
    Access, Conflict, Fading, MacConfig, Medium, MediumConfig, Output, PathLoss, Phy, RadioConfig,
    RadioId, ReceptionModel, SlotOrder,
};
use proptest::prelude::*;

const RADIOS: usize = 6;

fn network() -> impl Strategy<Value = MediumConfig> {
    let links = proptest::collection::vec((0..RADIOS, 0..RADIOS, 0.0..1.0f64), 0..20);
    (links, any::<u64>()).prop_map(|(pairs, seed)| {
        let pairs: Vec<_> = pairs.into_iter().filter(|pair| pair.0 != pair.1).collect();
        let mut config = MediumConfig::dot11b(crate::drive::links(RADIOS, &pairs), 2_000_000);
        config.seed = seed;
        config
    })
}

/// Returns radios in a square of 600 m with random settings.
fn radios() -> impl Strategy<Value = MediumConfig> {
    let places = proptest::collection::vec((0.0..600.0f64, 0.0..600.0f64), RADIOS);
    let knobs = (any::<bool>(), any::<bool>(), proptest::option::of(0usize..300), any::<u64>());
    (places, 0.5..4.0f64, knobs).prop_map(|(places, m, (bits, capture, rts, seed))| {
        let positions = places.into_iter().map(|(x, y)| [x, y, 0.0]).collect();
        let path_loss = PathLoss::LogDistance { frequency_hz: 2.4e9, exponent: 3.0 };
        let fading = Fading::Nakagami { m };
        let mut radios = RadioConfig::with_ranges(positions, path_loss, fading, 250.0, 460.0);
        radios.shadowing_db = 4.0;
        let mut config = MediumConfig::with_radios(Phy::DOT11A, radios, 6_000_000);
        if bits {
            config.reception.model = ReceptionModel::BitErrors;
        }
        config.reception.capture_db = capture.then_some(10.0);
        config.mac = MacConfig::Dcf { rts_threshold_bytes: rts, long_retry_limit: None };
        config.seed = seed;
        config
    })
}

fn slotted() -> impl Strategy<Value = MediumConfig> {
    (network(), 1_000u64..5_000_000).prop_map(|(mut config, slot_ns)| {
        config.mac = MacConfig::Slotted {
            slot_ns,
            conflict: Conflict::SharedHearer,
            order: SlotOrder::Weight,
        };
        config
    })
}

/// A call with any time and any radio.
#[derive(Clone, Debug)]
enum Call {
    Request(u64, usize),
    Withdraw(u64, usize),
    Supply(u64, usize, Option<usize>, usize),
    Decline(u64, usize),
    Timeout(u64),
    SetUp(usize, bool),
    SetLoss(usize, usize, f64),
}

fn call() -> impl Strategy<Value = Call> {
    let time = prop_oneof![20 => 0u64..10_000_000, 1 => any::<u64>()];
    let radio = 0..RADIOS + 1;
    let bytes = prop_oneof![20 => 0usize..200, 1 => Just(3_000usize)];
    prop_oneof![
        4 => (time.clone(), radio.clone()).prop_map(|(t, r)| Call::Request(t, r)),
        1 => (time.clone(), radio.clone()).prop_map(|(t, r)| Call::Withdraw(t, r)),
        4 => (time.clone(), radio.clone(), proptest::option::of(radio.clone()), bytes)
            .prop_map(|(t, r, to, n)| Call::Supply(t, r, to, n)),
        1 => (time.clone(), radio.clone()).prop_map(|(t, r)| Call::Decline(t, r)),
        4 => time.prop_map(Call::Timeout),
        1 => (radio.clone(), any::<bool>()).prop_map(|(r, up)| Call::SetUp(r, up)),
        1 => (radio.clone(), radio, -0.5..1.5f64).prop_map(|(a, b, p)| Call::SetLoss(a, b, p)),
    ]
}

fn apply(medium: &mut Medium, call: &Call) {
    // Errors are permitted. No call may panic.
    let _ = match *call {
        Call::Request(t, r) => medium.request(t, RadioId(r)),
        Call::Withdraw(t, r) => medium.withdraw(t, RadioId(r)),
        Call::Supply(t, r, to, n) => {
            let access = to.map_or(Access::Broadcast, |to| Access::Unicast(RadioId(to)));
            medium.supply(t, RadioId(r), access, vec![0; n].into())
        }
        Call::Decline(t, r) => medium.decline(t, RadioId(r)),
        Call::Timeout(t) => {
            medium.handle_timeout(t);
            Ok(())
        }
        Call::SetUp(r, up) => medium.set_up(RadioId(r), up),
        Call::SetLoss(a, b, p) => medium.set_loss(RadioId(a), RadioId(b), p),
    };
}

/// Returns sender, start and end of every transmission from its report. All frames are broadcasts.
fn transmissions(trace: &[Output]) -> Vec<(usize, u64, u64)> {
    let report = |output: &Output| match *output {
        Output::Report { radio, airtime_ns, at_ns, .. } => {
            Some((radio.0, at_ns - airtime_ns, at_ns))
        }
        _ => None,
    };
    trace.iter().filter_map(report).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hostile_calls_never_panic_and_time_never_runs_back(
        config in prop_oneof![network(), radios(), slotted()],
        calls in proptest::collection::vec(call(), 0..300),
    ) {
        let mut medium = Medium::new(config).unwrap();
        let mut last_ns = 0;
        for call in calls {
            let before = medium.now_ns();
            apply(&mut medium, &call);
            prop_assert!(medium.now_ns() >= before);
            while let Some(output) = medium.poll_output() {
                let (Output::Grant { at_ns, .. }
                | Output::Deliver { at_ns, .. }
                | Output::Report { at_ns, .. }) = output;
                prop_assert!(at_ns >= last_ns);
                last_ns = at_ns;
            }
        }
    }

    #[test]
    fn no_reception_overlaps_what_its_receiver_senses(config in network()) {
        let loss = config.expected_loss(0).unwrap();
        let delivers = |a, b| loss.loss(RadioId(a), RadioId(b)) < 1.0;
        let senses = |a, b| delivers(a, b) || delivers(b, a);
        let mut medium = Medium::new(config).unwrap();
        let trace = saturate(&mut medium, 200_000_000, 0..RADIOS, |_| Access::Broadcast, 300);
        let flights = transmissions(&trace);
        for output in &trace {
            let Output::Deliver { to, from, at_ns, .. } = output else { continue };
            prop_assert!(loss.loss(*from, *to) < 1.0);
            let own = flights.iter().find(|f| f.0 == from.0 && f.2 == *at_ns);
            prop_assert!(own.is_some());
            for other in &flights {
                let near = other.0 == to.0 || (other.0 != from.0 && senses(other.0, to.0));
                let overlaps = own.is_some_and(|own| other.1 < own.2 && own.1 < other.2);
                prop_assert!(!(near && overlaps), "{output:?} despite {other:?}");
            }
        }
    }

    #[test]
    fn every_request_ends_in_one_grant(
        config in network(),
        asks in proptest::collection::vec((0u64..50_000_000, 0..RADIOS), 1..60),
    ) {
        let mut medium = Medium::new(config).unwrap();
        let mut asks = asks;
        asks.sort_unstable();
        let mut open = [false; RADIOS];
        let mut asks = asks.into_iter().peekable();
        loop {
            let due = medium.poll_timeout();
            if let Some((at_ns, radio)) = asks.next_if(|ask| due.is_none_or(|due| ask.0 < due)) {
                medium.request(at_ns, RadioId(radio)).unwrap();
                open[radio] = true;
            } else if let Some(due) = due {
                medium.handle_timeout(due);
            } else {
                break;
            }
            while let Some(output) = medium.poll_output() {
                if let Output::Grant { radio, at_ns } = output {
                    prop_assert!(std::mem::take(&mut open[radio.0]));
                    let access = Access::Unicast(RadioId((radio.0 + 1) % RADIOS));
                    medium.supply(at_ns, radio, access, vec![0; 50].into()).unwrap();
                }
            }
        }
        prop_assert_eq!(open, [false; RADIOS]);
    }

    #[test]
    fn a_radio_that_dies_holds_up_nobody(
        config in prop_oneof![network(), radios(), slotted()],
        switches in proptest::collection::vec((0u64..30_000_000, RADIOS / 2..RADIOS), 1..40),
    ) {
        let mut medium = Medium::new(config).unwrap();
        let mut switches = switches;
        switches.sort_unstable();
        let mut switches = switches.into_iter().peekable();
        let mut open = [0; RADIOS];
        (0..RADIOS).for_each(|radio| medium.request(0, RadioId(radio)).unwrap());
        while let Some(due) = medium.poll_timeout() {
            if let Some((_, radio)) = switches.next_if(|switch| switch.0 < due) {
                let up = !medium.is_up(RadioId(radio));
                medium.set_up(RadioId(radio), up).unwrap();
                open[radio] = 0;
                medium.request(medium.now_ns(), RadioId(radio)).unwrap();
            } else {
                medium.handle_timeout(due);
            }
            while let Some(output) = medium.poll_output() {
                match output {
                    Output::Grant { radio, at_ns } => {
                        if at_ns < 30_000_000 {
                            medium.request(at_ns, radio).unwrap();
                        }
                        let access = Access::Unicast(RadioId((radio.0 + 3) % RADIOS));
                        medium.supply(at_ns, radio, access, vec![0; 50].into()).unwrap();
                        open[radio.0] += 1;
                    }
                    Output::Report { radio, .. } => open[radio.0] -= 1,
                    Output::Deliver { .. } => {}
                }
            }
        }
        prop_assert_eq!(open, [0; RADIOS]);
    }

    #[test]
    fn one_seed_gives_one_trace(config in prop_oneof![network(), radios(), slotted()]) {
        let trace = |seed| {
            let mut medium = Medium::new(MediumConfig { seed, ..config.clone() }).unwrap();
            saturate(&mut medium, 50_000_000, 0..RADIOS, |_| Access::Broadcast, 300)
        };
        prop_assert_eq!(trace(config.seed), trace(config.seed));
    }
}

#[test]
fn another_seed_gives_another_trace() {
    let trace = |seed| {
        let config = MediumConfig::dot11b(links(3, &[(0, 1, 0.3), (1, 2, 0.5)]), 2_000_000);
        let mut medium = Medium::new(MediumConfig { seed, ..config }).unwrap();
        saturate(&mut medium, 50_000_000, 0..3, |_| Access::Broadcast, 300)
    };
    assert_ne!(trace(1), trace(2));
}

#[test]
fn the_trace_of_a_seed_is_the_same_on_every_machine() {
    let mut config = MediumConfig::dot11b(links(3, &[(0, 1, 0.3), (1, 2, 0.5)]), 2_000_000);
    config.seed = 42;
    let mut medium = Medium::new(config).unwrap();
    let trace = saturate(&mut medium, 10_000_000_000, 0..3, |_| Access::Broadcast, 1_000);
    let total = medium.statistics().total();
    let known =
        (trace.len(), total.frames_sent, total.frames_collided, total.deliveries, total.losses);
    assert_eq!(known, (8_488, 4_193, 4_110, 104, 76));
}

#[test]
fn powers_of_a_seed_are_the_same_on_every_machine() {
    let positions = (0..12).map(|i| [f64::from(i % 4) * 150.0, f64::from(i / 4) * 170.0, 0.0]);
    let path_loss = PathLoss::LogDistance { frequency_hz: 2.4e9, exponent: 3.3 };
    let known = [
        (Fading::Rayleigh, (3_776, 2_548, 9_174)),
        (Fading::Nakagami { m: 1.7 }, (3_463, 2_706, 8_935)),
    ];
    for (fading, counts) in known {
        let positions = positions.clone().collect();
        let mut radios = RadioConfig::with_ranges(positions, path_loss, fading, 250.0, 460.0);
        radios.shadowing_db = 6.0;
        let mut config = MediumConfig::with_radios(Phy::DOT11A, radios, 6_000_000);
        config.reception.model = ReceptionModel::BitErrors;
        config.seed = 42;
        let mut medium = Medium::new(config).unwrap();
        saturate(&mut medium, 2_000_000_000, 0..12, |_| Access::Broadcast, 1_000);
        let total = medium.statistics().total();
        assert_eq!((total.frames_sent, total.deliveries, total.collisions), counts, "{fading:?}");
    }
}
