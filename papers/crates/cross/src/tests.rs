//! Compares trials with numbers derived by hand, and checks properties of every trial.

use super::*;
use crate::span::{Span, recode};
use ncmesh_code::draw;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

fn cross(scheme: Scheme, e_x: f64, e_oh: f64, generation: usize, field: Field) -> Cross {
    Cross::new(scheme, e_x, e_oh, generation, field).unwrap()
}

/// A mean over trials, and its standard error.
#[derive(Clone, Copy)]
struct Mean {
    value: f64,
    error: f64,
}

/// Returns the mean transmissions per packet and its standard error.
fn mean(cross: Cross, until: Until, trials: u64) -> Mean {
    let packets = 2.0 * cross.generation as f64;
    let each: Vec<f64> =
        (0..trials).map(|k| cross.transmissions(until, 1, k).unwrap() as f64 / packets).collect();
    let n = trials as f64;
    let value = each.iter().sum::<f64>() / n;
    let variance = each.iter().map(|v| (v - value) * (v - value)).sum::<f64>() / (n - 1.0);
    Mean { value, error: (variance / n).sqrt() }
}

#[track_caller]
fn assert_near(mean: Mean, expected: f64) {
    let Mean { value, error } = mean;
    assert!((value - expected).abs() <= 4.0 * error + 1e-12, "{value} +- {error}, not {expected}");
}

#[test]
fn without_loss_forwarding_takes_two_and_coding_one_and_a_half() {
    for until in [Until::Both, Until::One] {
        let count =
            |scheme| cross(scheme, 0.0, 0.0, 8, Field::Gf256).transmissions(until, 1, 0).unwrap();
        assert_eq!(count(Scheme::ForwardingUnconstrained), 32);
        assert_eq!(count(Scheme::Cope), 24);
        // Seed 1: no packet is a combination of those before it.
        assert_eq!(count(Scheme::CoreNoFeedbackNoRecoding), 24);
        assert_eq!(count(Scheme::CoreNoFeedback), 24);
        assert_eq!(count(Scheme::Core), 24);
    }
}

#[test]
fn forwarding_repeats_each_hop_and_what_the_relay_drops() {
    let e = 0.4;
    let free = cross(Scheme::ForwardingUnconstrained, e, 1.0, 16, Field::Gf2);
    assert_near(mean(free, Until::Both, 2000), 2.0 / (1.0 - e));
    let fair = cross(Scheme::ForwardingConstrained, e, 1.0, 16, Field::Gf2);
    assert_near(mean(fair, Until::Both, 2000), 3.0 / (1.0 - e));
}

#[test]
fn a_pair_of_cope_takes_what_its_links_take() {
    // Half of all packets are overheard and the relay's link has no loss: three transmissions give
    // D1 its packet in every other pair.
    let half = cross(Scheme::Cope, 0.0, 0.5, 16, Field::Gf2);
    assert_near(mean(half, Until::One, 2000), 3.0);
    // One packet in each flow: with 1/4 a pair gives both destinations their packet; with 1/2 one
    // packet is left and takes two more transmissions; else it starts again. n = 3 + 1/2 * 2 + 1/4
    // * n.
    let single = cross(Scheme::Cope, 0.0, 0.5, 1, Field::Gf2);
    assert_near(mean(single, Until::Both, 4000), 16.0 / 3.0 / 2.0);
}

#[test]
fn a_destination_that_overhears_nothing_needs_both_flows_from_the_relay() {
    // No loss: the relay gains two dimensions in a round and passes on one. D1 needs the rank of 16
    // packets, and the sources are stopped after 8.
    let core = cross(Scheme::Core, 0.0, 1.0, 8, Field::Gf256);
    assert_eq!(core.transmissions(Until::Both, 1, 0), Some(8 * 3 + 8));
    let without = cross(Scheme::CoreNoFeedback, 0.0, 1.0, 8, Field::Gf256);
    assert_eq!(without.transmissions(Until::Both, 1, 0), Some(16 * 3));
}

#[test]
fn over_gf2_single_packets_need_luck() {
    // A generation of one packet: the relay sends p1, p2 or their sum, each with 1/3, and D1 has
    // overheard p2. A round is useful with 2/3, so 3/2 rounds are needed. Without feedback the
    // sources send in each.
    let single = cross(Scheme::CoreNoFeedback, 0.0, 0.0, 1, Field::Gf2);
    assert_near(mean(single, Until::One, 4000), 3.0 * 1.5 / 2.0);
    let stopped = cross(Scheme::Core, 0.0, 0.0, 1, Field::Gf2);
    assert_near(mean(stopped, Until::One, 4000), (2.0 + 1.5) / 2.0);
}

#[test]
fn a_trial_that_cannot_end_is_given_up() {
    for scheme in Scheme::ALL {
        let dead = cross(scheme, 1.0, 0.0, 2, Field::Gf256);
        assert_eq!(dead.transmissions(Until::Both, 1, 0), None, "{scheme:?}");
    }
    assert_eq!(cross(Scheme::Cope, 0.0, 1.0, 2, Field::Gf2).transmissions(Until::Both, 1, 0), None);
}

#[test]
fn invalid_crosses_are_refused() {
    let made = |e_x, e_oh, k| Cross::new(Scheme::Core, e_x, e_oh, k, Field::Gf2).unwrap_err();
    assert_eq!(made(1.5, 0.0, 2).to_string(), "e_x = 1.5: allowed is 0 to 1");
    assert!(matches!(made(0.0, f64::NAN, 2), CrossError::Loss { name: "e_oh", .. }));
    assert_eq!(made(0.0, 0.0, 0), CrossError::Generation(0));
    assert_eq!(made(0.0, 0.0, 257).to_string(), "generation = 257: allowed is 1 to 256 packets");
}

#[test]
fn larger_fields_waste_less_on_the_same_losses() {
    let of = |field| mean(cross(Scheme::Core, 0.3, 0.5, 16, field), Until::Both, 200).value;
    let [two, sixteen, many] = Field::ALL.map(of);
    assert!(two > sixteen && sixteen > many, "{two} {sixteen} {many}");
}

fn any_field() -> impl Strategy<Value = Field> {
    prop::sample::select(&Field::ALL[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn trials_end_the_same_each_time_and_never_below_what_is_needed(
        scheme in prop::sample::select(&Scheme::ALL[..]),
        field in any_field(),
        e_x in 0.0..0.7,
        e_oh in 0.0..0.9,
        generation in 1usize..20,
        seed: u64,
        trial: u64,
    ) {
        let cross = cross(scheme, e_x, e_oh, generation, field);
        let both = cross.transmissions(Until::Both, seed, trial).unwrap();
        prop_assert_eq!(Some(both), cross.transmissions(Until::Both, seed, trial));
        prop_assert!(both >= 3 * generation as u64);
        if !matches!(scheme, Scheme::Cope) {
            prop_assert!(cross.transmissions(Until::One, seed, trial).unwrap() <= both);
        }
    }

    #[test]
    fn a_span_has_the_rank_of_what_it_was_given(
        field in any_field(),
        width in 2usize..24,
        held in 1usize..24,
        seed: u64,
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut flows = [0, 1].map(|_| Span::new(field, width));
        let mut vector = vec![0; width];
        for _ in 0..held {
            draw(field, &mut rng, &mut vector);
            flows[0].absorb(&vector);
        }
        let rank = flows[0].rank();
        prop_assert!((1..=held.min(width)).contains(&rank));
        prop_assert_eq!(flows[0].rank_from(0), rank);
        // A recoded packet is not innovative.
        let mut nothing = vec![0; width];
        recode(field, &flows, &mut rng, [&mut vector, &mut nothing]);
        prop_assert!(vector.iter().any(|c| *c != 0) && nothing.iter().all(|c| *c == 0));
        flows[0].absorb(&vector);
        prop_assert_eq!(flows[0].rank(), rank);
        // Unit vectors complete the span.
        for column in 0..width {
            vector.fill(0);
            vector[column] = 1;
            flows[0].absorb(&vector);
        }
        prop_assert!(flows[0].is_full());
        prop_assert_eq!(flows[0].rank_from(width - 1), 1);
    }
}
