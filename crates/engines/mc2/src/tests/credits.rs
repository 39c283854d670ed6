//! Transfer of credits, transmission credits and announcements (3.4).

use crate::NAME;
use crate::credits::Credits;
use crate::hops::HopSet;
use crate::ledger::Reception;
use ncmesh_engine::rng;
use ncmesh_wire::NodeId;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;

fn test_rng() -> ChaCha8Rng {
    rng::stream(1, NodeId(1), NAME, "test")
}

/// Returns the credits that are announced to each hop, less the one that a next frame assigns.
pub(super) fn announced(credits: &Credits, generation: u32) -> Vec<u16> {
    let announcement = credits.announce(generation, [0; 6], 1);
    let own = announcement.credits.into_iter().next();
    let mut totals = own.map_or_else(Vec::new, |credits| credits.by_hop);
    announcement.assigned_hop.iter().for_each(|hop| totals[*hop] -= 1);
    totals
}

/// Lets `hops` receive a frame that assigns nothing.
fn receive(credits: &mut Credits, generation: u32, serial: u16, hops: &[usize], total: u32) {
    credits.handle_reception(&Reception {
        generation,
        serial,
        already: HopSet::default(),
        new: hops.iter().copied().collect(),
        total_when_sent: total,
        assigned_hop: None,
    });
}

/// One credit each to nodes 2 and 3; a packet that both receive leaves one owed to either of them.
#[test]
fn transmission_credits_are_those_of_figure_3() {
    let mut credits = Credits::new(&[0.5, 0.5], None);
    let mut rng = test_rng();
    credits.add(7, 2);
    // Both hops hold as many as this node: nothing is transferred until they report fewer.
    (0..2).for_each(|hop| credits.handle_backlog(hop, 2));
    assert!(!credits.transfer(&mut rng));
    (0..2).for_each(|hop| credits.handle_backlog(hop, 0));
    assert!(credits.transfer(&mut rng));
    // After the first, |C| = 1 is no more than what is on its way to that hop. The other takes the
    // second only once nothing is owed to it: |C| = 1 > 0 + 1 does not hold.
    assert_eq!((credits.held(), announced(&credits, 7)), (1, vec![0, 0]));
    credits.add(7, 2);
    credits.transfer(&mut rng);
    assert_eq!(credits.held(), 2, "one each is on its way");
    assert_eq!(credits.due().map(|due| due.generation), Some(7));
    receive(&mut credits, 7, 0, &[0, 1], 4);
    // Each set has received one; the two together were given two.
    let weight = credits.due().unwrap().weight;
    assert!((weight - 0.75).abs() < 1e-12, "only TC({{2, 3}}), by Q = 1 - 0.5^2: {weight}");
    assert_eq!(announced(&credits, 7).iter().sum::<u16>(), 1, "one packet backs one credit");
    receive(&mut credits, 7, 1, &[1], 4);
    assert_eq!(credits.due(), None);
    assert_eq!(announced(&credits, 7), [1, 1]);
}

/// Returns credits towards two hops: each was given one, two are held, and the first hop reports
/// that it holds `first`.
fn one_each(first: u32) -> Credits {
    let mut credits = Credits::new(&[0.5, 0.5], None);
    credits.add(7, 4);
    credits.transfer(&mut test_rng());
    assert_eq!(credits.held(), 2);
    credits.handle_backlog(0, first);
    credits
}

/// The first hop received both packets, the second neither.
#[test]
fn a_credit_moves_only_to_a_hop_that_holds_no_more_than_the_node() {
    for (first, expected) in [(2, [2, 0]), (3, [1, 0])] {
        let mut credits = one_each(first);
        (0..2).for_each(|serial| receive(&mut credits, 7, serial, &[0], 2));
        assert_eq!(announced(&credits, 7), expected, "{first}");
    }
}

/// The packet of the second hop is a combination of those of the first, and as good as one of them.
#[test]
fn a_redundant_packet_backs_a_credit_in_place_of_an_innovative_one() {
    let mut credits = one_each(3);
    (0..2).for_each(|serial| receive(&mut credits, 7, serial, &[0], 2));
    receive(&mut credits, 7, 2, &[1], 2);
    assert_eq!(announced(&credits, 7), [1, 1]);
    assert_eq!(credits.due(), None);
    // Two packets, two credits: nothing backs another.
    credits.handle_backlog(0, 0);
    credits.transfer(&mut test_rng());
    receive(&mut credits, 7, 3, &[0, 1], 2);
    assert_eq!(announced(&credits, 7), [1, 1]);
}

#[test]
fn a_deaf_hop_gets_no_credits_and_unacknowledged_ones_come_back() {
    let mut credits = Credits::new(&[0.9, 0.9], None);
    let mut rng = test_rng();
    (0..400).for_each(|_| credits.note_outcome(1, false));
    credits.handle_backlog(0, 1000);
    credits.add(1, 8);
    assert!(!credits.transfer(&mut rng), "one is full, the other gone");
    credits.handle_backlog(0, 0);
    assert!(credits.transfer(&mut rng));
    let held = credits.held();
    assert!(held < 8);
    credits.reroute(&[0.5], None);
    assert_eq!(credits.held(), 8);
    assert_eq!(credits.drop_before(2), 8);
    assert_eq!(credits.held(), 0);
}

/// A hop reports rarely how many credits it holds. What it learned of since counts all the same.
#[test]
fn a_hop_gets_no_more_credits_before_it_reports_that_it_holds_fewer() {
    let mut credits = Credits::new(&[0.9], None);
    let mut rng = test_rng();
    credits.add(1, 64);
    credits.transfer(&mut rng);
    // The 22 transferred count twice, as owed and as not known of.
    assert_eq!(credits.held(), 42);
    for serial in 0..22 {
        receive(&mut credits, 1, serial, &[0], 64);
    }
    let totals = announced(&credits, 1);
    assert_eq!(totals, [22]);
    credits.acknowledge(0, &[super::credits_of(1, &totals)]);
    // It holds 20 of them, should two of its frames have been missed.
    credits.transfer(&mut rng);
    assert_eq!(credits.held(), 34);
    credits.handle_backlog(0, 10);
    assert!(credits.transfer(&mut rng));
}

/// Over a link that goes one way a hop never reports. It may have sent on all that it learned of.
#[test]
fn a_hop_that_is_never_heard_is_not_shut_out() {
    let mut credits = Credits::new(&[0.9], None);
    credits.set_quality_back(&[0.0]);
    let mut rng = test_rng();
    credits.add(1, 64);
    credits.transfer(&mut rng);
    assert_eq!(credits.held(), 42);
    (0..22).for_each(|serial| receive(&mut credits, 1, serial, &[0], 64));
    let totals = announced(&credits, 1);
    credits.acknowledge(0, &[super::credits_of(1, &totals)]);
    credits.transfer(&mut rng);
    assert_eq!(credits.held(), 28, "as if it held none");
}

#[test]
fn a_hop_that_hears_little_is_not_gone() {
    let mut credits = Credits::new(&[0.1], None);
    (0..100).for_each(|_| credits.note_outcome(0, false));
    credits.add(1, 2);
    assert!(credits.transfer(&mut test_rng()));
    assert!(credits.due().is_some());
    (0..28).for_each(|_| credits.note_outcome(0, false));
    assert_eq!(credits.due(), None);
    assert!(credits.stalled().is_some_and(|probe| probe.weight > 0.0), "it is probed");
    credits.note_outcome(0, true);
    assert!(credits.due().is_some());
}

proptest! {
    /// Whatever happens, credits are neither made nor lost, and no more are announced than packets
    /// were received.
    #[test]
    fn credits_are_conserved(
        added in prop::collection::vec((0u32..4, 1u32..20), 1..8),
        receptions in prop::collection::vec((0u32..4, 0u8..8), 0..60),
        backlogs in prop::collection::vec(0u32..6, 3),
    ) {
        let mut credits = Credits::new(&[0.7, 0.4, 0.9], None);
        let mut rng = rng::stream(3, NodeId(1), NAME, "test");
        let all: u32 = added.iter().map(|(_, credits)| credits).sum();
        added.iter().for_each(|(generation, number)| credits.add(*generation, *number));
        for (hop, held) in backlogs.iter().enumerate() {
            credits.handle_backlog(hop, *held);
        }
        for (serial, (generation, receivers)) in receptions.iter().enumerate() {
            credits.transfer(&mut rng);
            let hops: Vec<usize> = (0..3).filter(|hop| receivers >> hop & 1 == 1).collect();
            if !hops.is_empty() {
                receive(&mut credits, *generation, serial as u16, &hops, 64);
            }
        }
        for generation in 0..4 {
            let announced: u16 = announced(&credits, generation).iter().sum();
            let received =
                receptions.iter().filter(|(g, hops)| *g == generation && *hops != 0).count();
            prop_assert!(usize::from(announced) <= received);
        }
        credits.reroute(&[0.5], None);
        prop_assert_eq!(credits.held(), all);
    }
}
