//! Slotted access: the senders of a slot are a maximal set without conflict.

use std::collections::BTreeMap;

use ncmesh_medium::{
    Access, Conflict, LossMatrix, MacConfig, Medium, MediumConfig, Output, RadioId, SlotOrder,
    TxResult,
};
use proptest::prelude::*;

use crate::drive::{links, run, saturate};

const SLOT: u64 = 1_000_000;

fn medium(loss: LossMatrix, conflict: Conflict, seed: u64) -> Medium {
    let mut config = MediumConfig::dot11b(loss, 11_000_000);
    config.mac = MacConfig::Slotted { slot_ns: SLOT, conflict, order: SlotOrder::Weight };
    config.seed = seed;
    Medium::new(config).unwrap()
}

/// Returns the senders of each slot. All radios are saturated with short frames.
fn slots(medium: &mut Medium, radios: usize, count: u64) -> BTreeMap<u64, Vec<usize>> {
    let trace = saturate(medium, count * SLOT - 1, 0..radios, |_| Access::Broadcast, 100);
    let mut slots: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for output in trace {
        if let Output::Grant { radio, at_ns } = output {
            assert_eq!(at_ns % SLOT, 0);
            slots.entry(at_ns / SLOT).or_default().push(radio.0);
        }
    }
    slots
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn senders_of_a_slot_are_a_maximal_set_without_conflict(
        pairs in proptest::collection::vec((0usize..8, 0usize..8, 0.0..1.0f64), 0..20),
        shared in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut loss = LossMatrix::new(8);
        for (from, to, p) in pairs.into_iter().filter(|pair| pair.0 != pair.1) {
            loss.set(RadioId(from), RadioId(to), p).unwrap();
        }
        let conflict = if shared { Conflict::SharedHearer } else { Conflict::Audible };
        let hears = |a: usize, b: usize| loss.loss(RadioId(a), RadioId(b)) < 1.0;
        let conflicts = |a: usize, b: usize| {
            hears(a, b) || hears(b, a) || (shared && (0..8).any(|c| hears(a, c) && hears(b, c)))
        };
        let slots = slots(&mut medium(loss.clone(), conflict, seed), 8, 20);
        prop_assert_eq!(slots.len(), 20);
        for senders in slots.values() {
            for a in 0..8 {
                let others = senders.iter().filter(|b| **b != a);
                let blocked = others.clone().any(|b| conflicts(a, *b));
                prop_assert_eq!(senders.contains(&a), !blocked, "{} of {:?}", a, senders);
            }
        }
    }
}

#[test]
fn everyone_gets_a_fair_share() {
    let loss = links(3, &[(0, 1, 0.5), (1, 2, 0.5), (0, 2, 0.5)]);
    let slots = slots(&mut medium(loss, Conflict::Audible, 1), 3, 9_000);
    for radio in 0..3 {
        let share = slots.values().filter(|senders| **senders == [radio]).count() as f64 / 9_000.0;
        // Four standard deviations.
        assert!((share - 1.0 / 3.0).abs() < 0.02, "{radio}: {share}");
    }
}

#[test]
fn unicast_is_repeated_in_later_slots_up_to_the_limit() {
    let mut medium = medium(links(2, &[(0, 1, 0.5)]), Conflict::Audible, 1);
    let trace = saturate(&mut medium, 20_000 * SLOT, 0..1, |_| Access::Unicast(RadioId(1)), 100);
    let attempts = trace.iter().filter_map(|output| match output {
        Output::Report { attempts, .. } => Some(f64::from(*attempts)),
        _ => None,
    });
    let attempts: Vec<f64> = attempts.collect();
    let mean = attempts.iter().sum::<f64>() / attempts.len() as f64;
    // The number of attempts is geometric with p = 1/2, cut off at 7, with the mean 2 - 2^-6.
    assert!((mean - 1.984).abs() < 0.05, "{mean}");
    let failed = trace.iter().filter(|output| {
        matches!(output, Output::Report { result: TxResult::Failed, attempts: 7, .. })
    });
    // One in 2^7.
    let share = failed.count() as f64 / attempts.len() as f64;
    assert!((share - 1.0 / 128.0).abs() < 0.004, "{share}");
    assert_eq!(medium.statistics().radios[1].duplicates, 0);
}

#[test]
fn a_sender_learns_which_radios_decoded_its_broadcast() {
    let loss = links(4, &[(0, 1, 0.5), (0, 2, 0.0), (2, 3, 0.0)]);
    let mut medium = medium(loss, Conflict::Audible, 1);
    let trace = saturate(&mut medium, 100 * SLOT, 0..1, |_| Access::Broadcast, 100);
    let mut readers = Vec::new();
    let mut sent = 0;
    for output in trace {
        match output {
            Output::Deliver { to, .. } => readers.push(to),
            Output::Report { heard_by, .. } => {
                assert_eq!(heard_by, Some(std::mem::take(&mut readers)));
                sent += 1;
            }
            Output::Grant { .. } => {}
        }
    }
    assert_eq!(sent, 100);
}

/// A radio without a link from a sender does not conflict with it, so the sender's frames must not
/// disturb it either, even with a link in the other direction.
#[test]
fn a_link_of_one_way_disturbs_nobody() {
    let mut loss = links(4, &[(0, 1, 0.0), (2, 3, 0.0)]);
    loss.set(RadioId(1), RadioId(2), 0.0).unwrap();
    let mut medium = medium(loss, Conflict::SharedHearer, 1);
    [0, 2].into_iter().for_each(|radio| medium.request(0, RadioId(radio)).unwrap());
    let trace = run(&mut medium, 100 * SLOT - 1, |medium, radio, at_ns| {
        medium.request(at_ns, radio).unwrap();
        Some((Access::Broadcast, vec![0; 100]))
    });
    let read =
        |by| trace.iter().filter(|o| matches!(o, Output::Deliver { to, .. } if to.0 == by)).count();
    assert_eq!((read(1), read(3)), (100, 100));
}

#[test]
fn a_declined_grant_leaves_the_slot_to_others() {
    let mut medium = medium(links(2, &[(0, 1, 0.0)]), Conflict::Audible, 1);
    for slot in 0..20 {
        (0..2).for_each(|radio| medium.request(slot * SLOT, RadioId(radio)).unwrap());
        let trace = run(&mut medium, (slot + 1) * SLOT - 1, |_, radio, _| {
            (radio.0 == 1).then(|| (Access::Broadcast, vec![0; 100]))
        });
        let sent = trace.iter().filter(|output| matches!(output, Output::Report { .. })).count();
        assert_eq!(sent, 1, "slot {slot}");
    }
}

#[test]
fn a_frame_longer_than_a_slot_takes_the_next_one_too() {
    let mut medium = medium(links(2, &[(0, 1, 0.0)]), Conflict::Audible, 1);
    let trace = saturate(&mut medium, 30 * SLOT, 0..2, |_| Access::Broadcast, 2_000);
    let begins: Vec<u64> = trace
        .iter()
        .filter_map(|output| match output {
            Output::Grant { at_ns, .. } => Some(at_ns / SLOT),
            _ => None,
        })
        .collect();
    // 2036 bytes at 11 Mbit/s last 1673 us.
    assert!(begins.windows(2).all(|pair| pair[1] == pair[0] + 2), "{begins:?}");
}
