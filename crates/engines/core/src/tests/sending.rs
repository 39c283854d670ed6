//! Credits, surcharges and polls.

use super::{TestNode, at, cross, generation_id};
use crate::sending::{Missing, Sending};
use crate::{Core, CoreConfig};
use ncmesh_engine::TunnelEngine;
use ncmesh_engine::tunnel::DATA;
use ncmesh_wire::NodeId;

/// Spends all credit. Returns the number of transmissions.
fn spend_all(sending: &mut Sending, combined: bool, ms: u64) -> u32 {
    let mut sent = 0;
    while sending.credits.has_credit() {
        sending.spend(combined, at(ms));
        sent += 1;
    }
    sent
}

#[test]
fn credits_come_with_packets_and_go_with_transmissions() {
    let parameters = CoreConfig::default().parameters();
    let mut sending = Sending::new(at(0));
    assert!(!sending.credits.has_credit());

    // x / r with r = 0.5: two packets are worth 4.24 transmissions.
    (0..2).for_each(|_| sending.earn(1.06 / 0.5, at(1)));
    assert_eq!(spend_all(&mut sending, false, 2), 4);

    // It polls at once, and then after a pause that doubles.
    assert_eq!(sending.polling.due_at(true, &parameters), Some(at(2)));
    sending.polling.note_poll(None, 1, at(3));
    assert_eq!(sending.polling.due_at(true, &parameters), Some(at(3 + 2 * 50)));

    // The next hop asks for more, then for a stop: now the pause is longer.
    sending.handle_more(Missing { alone: 2.0, surcharge: None }, 5, at(10));
    assert!(sending.credits.has_credit());
    sending.handle_stop(6, at(11));
    assert!(!sending.credits.has_credit());
    assert_eq!(sending.polling.due_at(true, &parameters), Some(at(11 + 4 * 50)));
}

#[test]
fn a_generation_times_out_after_polls_without_progress() {
    let parameters = CoreConfig::default().parameters();
    let mut sending = Sending::new(at(0));
    sending.handle_stop(6, at(11));
    for polls in 1..=parameters.max_polls {
        assert!(!sending.polling.has_timed_out(&parameters, at(1_000_000)), "{polls}");
        sending.polling.note_poll(None, 1, at(20));
    }
    assert_eq!(sending.polling.due_at(true, &parameters), None);
    assert!(sending.polling.is_silent());
    assert!(sending.polling.has_timed_out(&parameters, at(1_000_000)));
    sending.polling.handle_answer(7, at(30));
    assert!(!sending.polling.is_silent(), "there is progress again");
}

#[test]
fn a_combined_packet_costs_more_the_less_the_other_flow_is_known() {
    let partner = generation_id(2, 5, 0);
    let mut sending = Sending::new(at(0));
    sending.earn(10.0, at(0));
    assert!((sending.credits.combined(&partner, 0.3) - 13.0).abs() < 1e-9);
    sending.credits.pair(partner, 0.3);
    sending.earn(10.0, at(0));
    assert_eq!(spend_all(&mut sending, true, 0), 26);

    // Apart from its partner a packet costs one again.
    sending.earn(1.5, at(0));
    sending.credits.unpair();
    assert!((sending.credits.alone() - 1.5).abs() < 1e-9);
}

#[test]
fn a_poll_in_copies_has_one_number_and_its_repetition_another() {
    let parameters = CoreConfig::default().parameters();
    let mut polling = Sending::new(at(0)).polling;
    assert_eq!([(); 3].map(|()| polling.note_poll(Some(3), 4, at(1))), [4; 3]);
    assert!(polling.is_unanswered());
    assert_eq!(polling.due_at(true, &parameters), Some(at(1 + 2 * 50)));
    assert_eq!(polling.note_poll(Some(3), 9, at(200)), 9);
    assert_eq!(polling.due_at(true, &parameters), Some(at(1)), "the next copy goes at once");

    polling.handle_answer(1, at(210));
    assert!(!polling.is_unanswered());
    assert_eq!(polling.note_poll(Some(3), 12, at(300)), 12);
}

#[test]
fn a_requested_poll_is_due_at_once_until_it_is_sent() {
    let parameters = CoreConfig::default().parameters();
    let mut polling = Sending::new(at(0)).polling;
    assert_eq!(polling.due_at(false, &parameters), None, "nobody asks");
    polling.request();
    assert_eq!(polling.due_at(false, &parameters), Some(at(0)));
    polling.note_poll(Some(2), 1, at(5));
    assert_eq!(polling.due_at(false, &parameters), Some(at(0)), "the second copy");
    polling.note_poll(Some(2), 2, at(6));
    assert_eq!(polling.due_at(false, &parameters), None);
}

/// 60 packets over a link of 0.7 take 85.7 transmissions on average, and 90.9 with x = 1.06. By eq.
/// 35 they arrive with 94 transmissions with a probability of 0.92, and with 101 with one of 0.99.
#[test]
fn a_source_sends_as_much_as_equation_35_asks_for() {
    for (decode_probability, expected) in [(None, 90), (Some(0.919), 94), (Some(0.99), 101)] {
        let config = CoreConfig { generation: 60, decode_probability, ..CoreConfig::default() };
        let mut node = TestNode::new(1, Core::new(&config));
        node.topology = cross(0.7, [0.7, 0.7]);
        for packet in 0..60 {
            let taken = node.with(|engine, cx| engine.handle_packet(cx, NodeId(4), &[packet]));
            assert_eq!(taken, Ok(()));
        }
        let mut sent = 0;
        while let Some((DATA, _)) = node.fill() {
            sent += 1;
        }
        assert_eq!(sent, expected);
    }
}
