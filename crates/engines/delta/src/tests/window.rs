//! One layer: what is known, and what is given up when.

use super::node::{FLOW, Node, announcement, has, state};
use crate::frame::{DATA, State};
use crate::lane::{CAPACITY, Decoded, Lane, Times};
use ncmesh_code::Coded;
use ncmesh_engine::StreamEngine;
use ncmesh_engine::stream::{LAYERS, NewStream};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::coder::pack;
use ncmesh_engine::toolkit::live::Announcement;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(0) + Duration::from_millis(ms)
}

fn packet(number: u32) -> Coded {
    Coded { first: number, coefficients: vec![1], symbol: pack(&[number as u8; 9]) }
}

fn until(ms: u64) -> Times {
    Times { first: at(ms), last: at(ms) }
}

#[test]
fn a_missing_packet_is_given_up_with_the_one_behind_it() {
    let mut lane = Lane::default();
    assert_eq!(lane.absorb(packet(5), until(100)), Some(true));
    assert_eq!(lane.absorb(packet(7), until(120)), Some(true));
    let have = lane.have(4);
    assert_eq!((have.oldest, have.needs, have.map), (5, 6, vec![1]));
    assert!(!lane.expire(at(99)) && lane.expire(at(100)));
    assert_eq!((lane.oldest(), lane.have(4).needs), (6, 6));
    // Packet 6 is no younger than 7.
    assert!(lane.expire(at(120)));
    assert_eq!((lane.oldest(), lane.end()), (8, 8));
    assert_eq!(lane.absorb(packet(6), until(300)), Some(false));
}

#[test]
fn a_combination_repairs_and_its_packets_are_as_old_as_those_around_them() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut sender = Lane::default();
    (0..4).for_each(|n| sender.push(pack(&[n; 9]), at(100 + 10 * u64::from(n))));
    let coded = sender.combine(&[0, 1, 2, 3], 64, &mut random).unwrap();
    assert!((0..4).all(|n| sender.is_sent(n)));

    let mut lane = Lane::default();
    lane.absorb(packet(0), until(100));
    lane.absorb(packet(1), until(110));
    lane.absorb(packet(3), until(130));
    assert_eq!(lane.take_decoded().len(), 3);
    let times = Times { first: at(100), last: at(130) };
    assert_eq!(lane.absorb(coded.clone(), times), Some(true));
    assert_eq!(lane.take_decoded(), [Decoded { number: 2, packet: vec![2; 9] }]);
    assert_eq!(lane.until(2), Some(at(120)));
    assert_eq!(lane.absorb(coded, times), Some(false));
    assert!(lane.take_decoded().is_empty(), "none is handed up twice");
}

#[test]
fn packets_that_are_given_up_are_counted_by_their_reason() {
    let mut node = Node::relay();
    let all = CAPACITY + 100;
    (0..all).for_each(|number| node.data(0, number));
    node.wait(2_000);
    let status = node.status();
    let queue = &status.queues[0];
    assert_eq!([queue.dropped[0], queue.no_room[0]], [u64::from(all), 100]);
}

#[test]
fn a_receiver_knows_delays_and_whole_seconds_of_what_it_got() {
    let mut node = Node::new();
    node.join();
    node.announce();
    // Ten packets a second for ten seconds, of which one is lost.
    for number in (0..100).filter(|number| *number != 55) {
        node.data(0, number);
        node.wait(100);
    }
    node.wait(6_000);
    node.announce_as(1, &Announcement { version: 2, ..announcement() });
    let timely = node.status().receiving.unwrap().timeliness.unwrap();
    assert!((8..=10).contains(&timely.base_s), "{timely:?}");
    assert_eq!(timely.base_s - timely.whole_base_s, 1, "{timely:?}");
    assert!(timely.delay_p99_s[0] < 0.002, "{timely:?}");
    assert_eq!(timely.out_of_order, [0; LAYERS]);
}

#[test]
fn clocks_that_differ_by_hours_give_a_packet_the_same_time() {
    let mut early = Node::relay();
    early.data(0, 0);
    early.now = early.now + Duration::from_millis(200);
    let (kind, body) = std::iter::from_fn(|| early.fill()).find(|(kind, _)| *kind == DATA).unwrap();

    // The clock of the node that hears it is five hours ahead, or just starts.
    for clock in [Duration::from_secs(5 * 3600), Duration::ZERO] {
        let mut other = Node::new();
        other.now = Instant::default() + clock;
        other.announce();
        other.join();
        other.handle_frame(1, kind, &body);
        assert_eq!(other.received(), [0]);
        let delay = other.status().receiving.unwrap().timeliness.unwrap().delay_p50_s[0];
        assert!((0.19..0.22).contains(&delay), "{delay}");
        let oldest = |node: &Node| node.engine.streams.known[&FLOW].lanes[0].oldest();
        other.wait(790);
        assert_eq!(oldest(&other), 0);
        other.wait(30);
        assert_eq!(oldest(&other), 1);
    }
}

#[test]
fn a_source_faster_than_its_link_for_an_hour_keeps_a_window_and_is_heard_at_once_when_it_slows() {
    let mut node = Node::new();
    let layers = ["base".to_owned()];
    let new = NewStream { group: "own", layers: &layers, deadline: None };
    let flow = node.with(|engine, cx| engine.open(cx, new)).unwrap();
    let end = |node: &Node| node.engine.streams.known[&flow].lanes[0].end();
    let wants = |number: u32, handled, needs| State {
        flow,
        number: number as u16,
        layers: vec![has(needs)],
        ..state(2, 1, handled, [has(0), has(0)])
    };

    // Packets enter 50 times in a second, and one of four can be sent.
    for step in 0..3600 * 50 {
        node.with(|engine, cx| engine.send(cx, flow, 0, &[7; 20])).unwrap();
        if step % 4 == 0 {
            node.fill();
        }
        if step % 10 == 0 {
            let handled = node.engine.streams.known[&flow].number;
            node.report(3, &wants(step, handled, end(&node)));
        }
        node.now = node.now + Duration::from_millis(20);
        node.wait(0);
    }

    // A second's packets are kept. What was given up is counted.
    let lane = &node.engine.streams.known[&flow].lanes[0];
    assert_eq!(end(&node), 3600 * 50);
    assert!(lane.end() - lane.oldest() <= 52, "{lane:?}");

    // A packet that comes after a pause goes out at once.
    node.wait(1500);
    node.report(3, &wants(3600 * 50, 0, end(&node)));
    node.with(|engine, cx| engine.send(cx, flow, 0, &[8; 20])).unwrap();
    assert_eq!(node.next_data().unwrap().packets(), [0, 3600 * 50, 1]);
}

#[test]
fn what_is_kept_is_bounded_and_a_far_number_is_left_to_the_parent() {
    let mut lane = Lane::default();
    for _ in 0..2 * CAPACITY {
        lane.push(pack(&[1]), at(1000));
    }
    assert_eq!(lane.live_from(0).count() as u32, CAPACITY);
    assert_eq!(lane.end() - lane.oldest(), CAPACITY);

    let mut lane = Lane::default();
    lane.absorb(packet(5), until(100));
    let far = packet(5 + 2 * CAPACITY);
    assert!(lane.is_far_from(&far) && !lane.is_far_from(&packet(6)));
    assert_eq!(lane.absorb(far, until(100)), None);
    assert_eq!(lane.have(4).needs, 6);
}

#[test]
fn a_map_has_no_more_bytes_than_there_is_room_for() {
    let mut lane = Lane::default();
    lane.begin(0);
    (1..200).for_each(|n| assert_eq!(lane.absorb(packet(n), until(1000)), Some(true)));
    assert_eq!(lane.have(0).map.len(), 0);
    assert_eq!(lane.have(3).map, [0xff; 3]);
    assert_eq!(lane.have(100).map.len(), 25);
}
