//! Feedback of both sides: the log of sent frames, and acknowledgments to a previous hop.

use super::credits::announced;
use super::{credits_of, header, one_hop};
use crate::NAME;
use crate::credits::{Announcement, Credits};
use crate::frame::{Acknowledgment, GenerationHeader};
use crate::frame_log::FrameLog;
use crate::generation::{Generation, GenerationShape};
use crate::hops::HopSet;
use crate::upstream::Upstream;
use ncmesh_engine::Malformed;
use ncmesh_engine::rng;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{NodeId, StartId};

/// Returns eight credits of generation 1 towards one hop, transferred as far as it takes them.
fn eight_credits() -> Credits {
    let mut credits = Credits::new(&[0.9], None);
    credits.add(1, 8);
    credits.transfer(&mut rng::stream(1, NodeId(1), NAME, "test"));
    credits
}

#[test]
fn a_frame_assigns_a_credit_that_counts_if_it_arrives() {
    let mut credits = Credits::new(&[0.9], None);
    let mut rng = rng::stream(1, NodeId(1), NAME, "test");
    credits.add(1, 8);
    let mut log = FrameLog::default();
    for frame in 0..3 {
        credits.transfer(&mut rng);
        assert_eq!(log.assigned_in_flight(1)[0], frame);
        let announcement = credits.announce(1, log.assigned_in_flight(1), 3);
        // A hop that hears one of them has one packet, and reads of one credit: not of those in
        // frames that it missed.
        let expected = Announcement { credits: vec![credits_of(1, &[1])], assigned_hop: Some(0) };
        assert_eq!(announcement, expected);
        log.push(1, 8, announcement, Instant::from_nanos(0));
    }
    log.update_pending(&mut credits, None);
    // The hop has received frames 0 and 2.
    let ack = Acknowledgment { of: NodeId(1), latest: 2, before: 0b10 };
    log.handle_ack(0, ack, &mut credits);
    assert_eq!(announced(&credits, 1), [2]);
    // The same again is no news.
    log.handle_ack(0, ack, &mut credits);
    assert_eq!((announced(&credits, 1), log.assigned_in_flight(1)[0]), (vec![2], 0));
    let announcement = credits.announce(1, log.assigned_in_flight(1), 3);
    let expected = Announcement { credits: vec![credits_of(1, &[3])], assigned_hop: Some(0) };
    assert_eq!(announcement, expected);
    log.push(1, 8, announcement, Instant::from_nanos(0));
    assert_eq!(log.assigned_in_flight(1)[0], 1);
    log.expire(Duration::from_secs(1), 1, Instant::from_nanos(2_000_000_000), &mut credits);
    assert_eq!(log.assigned_in_flight(1)[0], 0);
}

/// A set of next hops has eight bits, and a node has at most six next hops.
#[test]
fn a_reception_by_a_hop_that_cannot_exist_is_ignored() {
    let mut credits = eight_credits();
    let mut log = FrameLog::default();
    let announcement = Announcement { credits: vec![credits_of(1, &[1; 8])], assigned_hop: None };
    log.push(1, 8, announcement, Instant::from_nanos(0));
    let receivers: HopSet = [6, 7].into_iter().collect();
    log.handle_mac_report(receivers, 1, &mut credits);
    assert_eq!(announced(&credits, 1), [0]);
}

/// Over a link of one half, one of four reports is heard with a probability of 0.94.
#[test]
fn a_sender_that_waits_is_answered_again_until_it_goes_on() {
    let numbered = |serial, waits_for_ack| {
        let header = header(one_hop());
        GenerationHeader { serial, waits_for_ack, ..header }
    };
    let me = NodeId(4);
    let start = Instant::default();
    let mut upstream = Upstream::new(NodeId(2), StartId(1), &numbered(1, true), me, 0.5, start);
    let mut reports = 0;
    while let Some(at) = upstream.report_at() {
        assert!(upstream.is_report_due(at));
        upstream.acknowledge(at);
        reports += 1;
    }
    assert_eq!(reports, 4);
    upstream.note_frame(&numbered(2, true), me, start);
    let soon = upstream.report_at().unwrap();
    upstream.acknowledge(soon);
    upstream.note_frame(&numbered(3, false), me, soon);
    assert!(upstream.report_at().unwrap() > soon + Duration::from_millis(40), "it goes on");
}

#[test]
fn frames_are_acknowledged_in_any_order() {
    let numbered = |serial| GenerationHeader { serial, ..header(one_hop()) };
    let me = NodeId(4);
    let now = Instant::default();
    let mut upstream = Upstream::new(NodeId(2), StartId(1), &numbered(10), me, 0.5, now);
    let first = [12, 11, 12, 10, 40].map(|serial| upstream.note_frame(&numbered(serial), me, now));
    assert_eq!(first, [true, true, false, false, true]);
    let ack = upstream.acknowledge(now);
    assert_eq!((ack.latest, ack.before), (40, 0b111 << 27));
}

#[test]
fn an_announcement_beyond_what_can_be_true_is_refused_and_others_wait_for_packets() {
    let shape = GenerationShape { generation_size: 2, symbol_size: 3 };
    let mut generations = [(6, Generation::new(shape, false).unwrap())].into();
    let first = header(one_hop());
    let mut upstream =
        Upstream::new(NodeId(2), StartId(1), &first, NodeId(4), 0.5, Instant::default());

    let bold = GenerationHeader { announced: vec![credits_of(6, &[17])], ..header(one_hop()) };
    let result = upstream.handle_announcement(&bold, 0, &mut generations);
    assert_eq!(result, Err(Malformed), "17 credits for 2 packets");

    let modest = GenerationHeader { announced: vec![credits_of(6, &[3])], ..header(one_hop()) };
    assert_eq!(upstream.handle_announcement(&modest, 0, &mut generations), Ok(()));
    let generation = generations.get_mut(&6).unwrap();
    assert_eq!((generation.announced, generation.accept_credits()), (3, 0), "no packet yet");
    generation.absorb(&[1, 0], &[0, 1, 9]).unwrap();
    assert_eq!((generation.accept_credits(), generation.accept_credits()), (1, 0));
}

/// A request that went another way is answered at the source, with a credit but no new packet.
#[test]
fn a_relay_with_the_complete_generation_accepts_the_credits_of_answers() {
    let shape = GenerationShape { generation_size: 2, symbol_size: 3 };
    let mut generation = Generation::new(shape, false).unwrap();
    generation.packets = 2;
    for vector in [[1, 0], [1, 1]] {
        generation.announced += 1;
        generation.absorb(&vector, &[0, 1, 9]).unwrap();
        assert_eq!(generation.accept_credits(), 1);
    }
    generation.announced += 1;
    assert_eq!(generation.absorb(&[2, 1], &[0, 1, 9]), Some(false));
    assert_eq!(generation.accept_credits(), 1);
    generation.announced += 100;
    assert_eq!(generation.accept_credits(), 5, "four times two in all");
}
