//! Links with bit rates of their own, and cables (802.11b, 2 Mbit/s).

use crate::drive::{links, run};
use ncmesh_medium::{
    Access, Conflict, LinkKind, MacConfig, Medium, MediumConfig, MediumError, Output, RadioId,
    SlotOrder, TxResult,
};
use std::collections::BTreeMap;

const US: u64 = 1_000;

/// Returns the chain of radios 0, 1 and 2, and radio 3 out of reach. `a` and `b` have a link of
/// `kind` in both directions.
fn config(a: usize, b: usize, kind: LinkKind) -> MediumConfig {
    let a = RadioId(a);
    let b = RadioId(b);
    let pairs = [(0, 1, 0.0), (1, 0, 0.0), (1, 2, 0.0), (2, 1, 0.0)];
    let links = links(4, &pairs);
    let kinds = BTreeMap::from([((a, b), kind), ((b, a), kind)]);
    MediumConfig { links: kinds, ..MediumConfig::dot11b(links, 2_000_000) }
}

/// Sends one frame of 100 bytes from radio 1 and returns all outputs.
fn one_frame(medium: &mut Medium, access: Access) -> Vec<Output> {
    let now_ns = medium.now_ns();
    medium.request(now_ns, RadioId(1)).unwrap();
    run(medium, now_ns + 100_000 * US, |_, _, _| Some((access, vec![7; 100])))
}

/// Returns the radios that received a frame.
fn heard(trace: &[Output]) -> Vec<usize> {
    let to = |output: &Output| match output {
        Output::Deliver { to, .. } => Some(to.0),
        _ => None,
    };
    trace.iter().filter_map(to).collect()
}

/// Returns the result and the airtime of the first report.
fn report(trace: &[Output]) -> (TxResult, u64) {
    let report = |output: &Output| match *output {
        Output::Report { result, airtime_ns, .. } => Some((result, airtime_ns)),
        _ => None,
    };
    trace.iter().find_map(report).unwrap()
}

#[test]
fn a_link_has_its_own_rate_for_unicast_only() {
    let mut medium = Medium::new(config(1, 2, LinkKind::Air { bit_rate_bps: 11_000_000 })).unwrap();
    // 136 bytes: 192 us and 544 at 2 Mbit/s, 99 at 11.
    let fast = one_frame(&mut medium, Access::Unicast(RadioId(2)));
    assert_eq!((heard(&fast), report(&fast)), (vec![2], (TxResult::Acked, 291 * US)));
    let slow = one_frame(&mut medium, Access::Unicast(RadioId(0)));
    assert_eq!((heard(&slow), report(&slow)), (vec![0], (TxResult::Acked, 736 * US)));
    let all = one_frame(&mut medium, Access::Broadcast);
    assert_eq!((heard(&all), report(&all)), (vec![0, 2], (TxResult::Sent, 736 * US)));
}

#[test]
fn a_radio_has_a_rate_of_its_own_from_when_it_is_set() {
    let mut medium = Medium::new(config(1, 2, LinkKind::Air { bit_rate_bps: 1_000_000 })).unwrap();
    let airtime = |medium: &mut Medium, access| report(&one_frame(medium, access)).1;
    // 136 bytes: 192 us and 544 at 2 Mbit/s, 99 at 11, 1,088 at 1.
    assert_eq!(airtime(&mut medium, Access::Broadcast), 736 * US);
    medium.set_rate(RadioId(1), 11_000_000).unwrap();
    assert_eq!(airtime(&mut medium, Access::Broadcast), 291 * US);
    assert_eq!(airtime(&mut medium, Access::Unicast(RadioId(0))), 291 * US);
    // A link's own rate stays.
    assert_eq!(airtime(&mut medium, Access::Unicast(RadioId(2))), 1_280 * US);

    let slow = medium.set_rate(RadioId(1), 10).unwrap_err();
    assert_eq!(slow, MediumError::BadBitRate { bit_rate_bps: 10 });
    let unknown = MediumError::UnknownRadio { radio: RadioId(4), radios: 4 };
    assert_eq!(medium.set_rate(RadioId(4), 2_000_000), Err(unknown));
}

#[test]
fn a_cable_delivers_to_its_end_alone_and_broadcasts_go_by_it_too() {
    let mut medium =
        Medium::new(config(1, 3, LinkKind::Wire { bit_rate_bps: 100_000_000 })).unwrap();
    let wired = one_frame(&mut medium, Access::Unicast(RadioId(3)));
    // 1,088 bits.
    assert_eq!((heard(&wired), report(&wired)), (vec![3], (TxResult::Acked, 10_880)));
    assert_eq!(heard(&one_frame(&mut medium, Access::Broadcast)), [0, 2, 3]);
    medium.set_up(RadioId(3), false).unwrap();
    let gone = one_frame(&mut medium, Access::Unicast(RadioId(3)));
    assert_eq!((heard(&gone), report(&gone).0), (vec![], TxResult::Failed));
    assert_eq!(heard(&one_frame(&mut medium, Access::Broadcast)), [0, 2]);
}

#[test]
fn a_cable_counts_as_a_link_without_loss() {
    let config = config(1, 3, LinkKind::Wire { bit_rate_bps: 100_000_000 });
    let loss = config.expected_loss(1500).unwrap();
    assert_eq!((loss.loss(RadioId(1), RadioId(3)), loss.loss(RadioId(0), RadioId(3))), (0.0, 1.0));
}

#[test]
fn kinds_that_cannot_be_are_refused() {
    let kind = LinkKind::Wire { bit_rate_bps: 1_000_000 };
    let refused = |config: MediumConfig| config.validate().unwrap_err();
    let unknown = MediumError::UnknownRadio { radio: RadioId(4), radios: 4 };
    assert_eq!(refused(config(1, 4, kind)), unknown);
    assert_eq!(refused(config(1, 1, kind)), MediumError::SelfLink { radio: RadioId(1) });
    let slow = LinkKind::Air { bit_rate_bps: 10 };
    assert_eq!(refused(config(1, 2, slow)), MediumError::BadBitRate { bit_rate_bps: 10 });
    let conflict = Conflict::Audible;
    let order = SlotOrder::Random;
    let mac = MacConfig::Slotted { slot_ns: 1_000_000, conflict, order };
    let slotted = refused(MediumConfig { mac, ..config(1, 2, kind) });
    assert!(slotted.to_string().contains("need DCF"), "{slotted}");
}
