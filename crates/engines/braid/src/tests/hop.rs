//! One hop: what is on its way to the next node, what that has, and when the node before is told.

use super::*;
use crate::child::{Child, Link, Pace, Said};
use crate::flight::{Filling, Flight};
use crate::upstream::{Arrived, Upstream};

/// A frame of this number with the packet of this number.
pub(super) fn carrying(number: u16) -> Filling {
    Filling { number, packet: Some(number.into()), carries: true, ..Filling::default() }
}

/// A state covers what was sent before it was written, whether it arrived or not, and leaves what
/// came afterwards.
const POLL: Arrived = Arrived { is_innovative: true, polls: true, is_heard: true };

pub(super) fn said(state: State, number: u16) -> Said {
    Said { state, number, is_direct: true }
}

pub(super) fn pace(room: u8) -> Pace {
    Pace { room, packet_time: PACKET_TIME }
}

/// Returns a link over which this share of frames arrives, both ways.
pub(super) fn link(share: f64) -> Link {
    Link { there: share, back: share }
}

#[test]
fn a_state_covers_what_was_sent_before_it_was_written() {
    let mut flight = Flight::default();
    // One frame each millisecond. The last one is at the MAC.
    for number in 0..6 {
        flight.note_filled(&carrying(number), at(u64::from(number)));
    }
    let after = |number, ms| Handled { number, ago: Duration::from_millis(ms) };
    let mut cover = |handled| {
        let covered = flight.cover(handled);
        (covered, (0..6).filter(|packet| flight.has(*packet)).collect::<Vec<_>>())
    };
    // Frame 1 was sent until 2. Two more were within 2 ms of it, and lost.
    assert_eq!(cover(after(1, 2)), (4.0, vec![4, 5]));
    // A frame written before that says nothing new.
    assert_eq!(cover(after(1, 1)), (0.0, vec![4, 5]));
    // A frame at the MAC is not covered: not by time, nor by a frame that was never sent.
    assert_eq!(cover(after(4, 500)), (1.0, vec![5]));
    assert_eq!(cover(after(900, 0)), (0.0, vec![5]));
    assert_eq!(cover(after(5, 0)), (1.0, vec![]));
}

#[test]
fn a_next_hop_that_handled_nothing_covers_all_that_was_sent() {
    let mut flight = Flight::default();
    flight.note_filled(&carrying(0), at(0));
    assert_eq!(flight.cover(Handled::default()), 0.0);
    flight.note_sent(at(1));
    assert_eq!(flight.cover(Handled::default()), 1.0);
    // A pair counts by the chance that it is separated.
    flight.note_filled(&carrying(1), at(1));
    flight.note_paired(0.25);
    assert_eq!(flight.pending(), 0.25);
}

#[test]
fn a_next_hop_lacks_what_did_not_arrive() {
    let mut child = Child::new(NodeId(2), 0, link(0.5), at(0));
    child.hear(said(state(0, 0), 1), true, pace(8), at(0));
    (0..8).for_each(|n| child.note_filled(&carrying(n), 0.0, PACKET_TIME, at(1)));
    child.flight.note_sent(at(1));
    assert!(
        (child.lacks(8) - 4.0).abs() < 1e-9
            && (child.backlog(PACKET_TIME, at(0)) - 4.0).abs() < 1e-9
    );
    // Two of the eight arrived: the link is worse than link state told.
    assert_eq!(child.hear(said(state(0, 0b11), 2), true, pace(8), at(2)), Some(2));
    assert!(child.delivery() < 0.5 && (child.lacks(6) - 6.0).abs() < 1e-9);
    // An older frame is no news.
    assert_eq!(child.hear(said(state(0, 0), 1), true, pace(8), at(3)), None);
    assert!(child.state.has(1) && child.state.has(2) && !child.state.has(0));
}

#[test]
fn a_silent_next_hop_is_asked_more_and_more_rarely_and_gets_nothing_else() {
    let mut child = Child::new(NodeId(2), 0, link(1.0), at(0));
    let mut now = at(0);
    let mut pauses = Vec::new();
    for _ in 0..10 {
        let repeats = child.is_overdue(now);
        let filling = Filling { repeats, asks: repeats, ..carrying(0) };
        child.note_filled(&filling, 0.0, PACKET_TIME, now);
        let next = child.timeouts(100, PACKET_TIME).min().unwrap();
        pauses.push(next.since(now).as_millis());
        now = next;
    }
    assert_eq!(pauses, [12, 12, 24, 48, 48, 96, 192, 192, 250, 250]);
    assert!(!child.answers(now));
    child.hear(said(state(0, 0), 1), true, pace(8), now);
    assert!(child.answers(now));
}

/// Sends frames `numbers`, one each packet time, and hears of each `trip` packet times later that
/// it was handled.
fn send_and_hear(child: &mut Child, numbers: std::ops::Range<u16>, trip: u16) {
    for number in numbers {
        let sent_at = at(u64::from(number));
        child.note_filled(&carrying(number), 0.0, PACKET_TIME, sent_at);
        child.flight.note_sent(sent_at);
        if let Some(heard) = number.checked_sub(trip) {
            let handled = Handled { number: heard, ago: Duration::ZERO };
            let state = State { handled, ..state(u32::from(heard) + 1, 0) };
            child.hear(said(state, heard), false, pace(8), sent_at);
        }
    }
}

#[test]
fn over_a_cable_as_much_is_on_its_way_as_is_sent_until_word_of_it_comes() {
    // A radio answers within a few packet times, a busy processor at the end of a cable does not.
    for (trip, ahead, is_far) in [(3, 16, false), (24, 24, true), (200, 32, true)] {
        let mut child = Child::new(NodeId(2), 0, link(1.0), at(0));
        send_and_hear(&mut child, 0..300, trip);
        let seen = (child.ahead(PACKET_TIME), child.is_far(PACKET_TIME));
        assert_eq!(seen, (ahead, is_far), "{trip}");
    }
}

#[test]
fn over_a_cable_several_questions_are_on_their_way_and_an_answer_has_time() {
    let mut child = Child::new(NodeId(2), 0, link(1.0), at(0));
    send_and_hear(&mut child, 0..300, 24);
    let asking = Filling { asks: true, ..carrying(300) };
    child.note_filled(&asking, 0.0, PACKET_TIME, at(300));
    assert!(child.is_asked_far(PACKET_TIME));

    // It is lost after two trips, and a quarter of a trip later the next question is due.
    assert!(!child.is_overdue(at(347)) && child.is_overdue(at(348)));
    let due = (301..320).find(|number| {
        child.note_filled(&carrying(*number), 0.0, PACKET_TIME, at(u64::from(*number)));
        child.is_uncertain_meanwhile(PACKET_TIME, at(u64::from(*number)))
    });
    assert_eq!(due, Some(306));
}

/// It takes all that came while it was busy, and names the last.
#[test]
fn the_first_of_several_questions_tells_how_long_a_slow_next_hop_takes() {
    // Over a poor link the first ones may have been lost, and radios name what came just now.
    for (share, last, is_far) in [(1.0, 30, true), (0.5, 30, false), (1.0, 38, false)] {
        let mut child = Child::new(NodeId(2), 0, link(share), at(0));
        for number in (0..=last).step_by(2) {
            let now = at(u64::from(number));
            child.note_filled(&Filling { asks: true, ..carrying(number) }, 0.0, PACKET_TIME, now);
            child.flight.note_sent(now);
        }
        let handled = Handled { number: last, ago: Duration::ZERO };
        let state = State { handled, ..state(u32::from(last) + 1, 0) };
        child.hear(said(state, 1), false, pace(8), at(40));
        assert_eq!(child.is_far(PACKET_TIME), is_far, "{share} {last}");
    }
}

#[test]
fn a_report_that_was_passed_on_says_nothing_of_the_link() {
    let mut child = Child::new(NodeId(2), 0, link(1.0), at(0));
    child.note_filled(&carrying(0), 0.0, PACKET_TIME, at(0));
    child.flight.note_sent(at(1));
    let handled = Handled { number: 0, ago: Duration::ZERO };
    let passed_on = Said { is_direct: false, ..said(State { handled, ..state(1, 0) }, 1) };
    child.hear(passed_on, false, pace(8), at(40));
    assert!(!child.is_far(PACKET_TIME));
}

#[test]
fn it_is_learned_how_soon_a_next_hop_answers() {
    let mut child = Child::new(NodeId(2), 0, link(1.0), at(0));
    let lost_after = |child: &mut Child, ms| {
        child.note_filled(&Filling { asks: true, ..carrying(0) }, 0.0, PACKET_TIME, at(ms));
        child.timeouts(100, PACKET_TIME).min().unwrap().since(at(ms)).as_millis()
    };
    assert_eq!(lost_after(&mut child, 0), 12);
    // Answers come after 1 ms, later after 6, and once after 200.
    for (start, took, expected) in [(100, 1, 3), (10_000, 6, 6), (20_000, 200, 12)] {
        for i in 0..80 {
            let begin = start + 100 * i;
            lost_after(&mut child, begin);
            child.hear(said(state(0, 0), begin as u16), true, pace(100), at(begin + took));
        }
        let now = start + 9_000;
        assert_eq!(lost_after(&mut child, now), expected, "{took}");
        child.hear(said(state(0, 0), now as u16), true, pace(100), at(now + took));
    }
}

fn upstream() -> Upstream {
    let mut upstream = Upstream::default();
    upstream.parent = Some(NodeId(1));
    upstream
}

#[test]
fn a_report_is_repeated_until_it_is_heard_with_some_certainty() {
    let copies = |delivery: f64| {
        let mut upstream = upstream();
        upstream.note_packet(POLL, false, PACKET_TIME, at(0));
        let mut sent = 0;
        while let Some(due) = upstream.due() {
            assert_eq!(upstream.reports_to(due), Some(NodeId(1)));
            upstream.note_told(delivery, PACKET_TIME, due);
            sent += 1;
        }
        sent
    };
    assert_eq!([0.9, 0.7, 0.4, 0.1].map(copies), [1, 2, 4, 4]);
    // A packet that asks for nothing is not answered unless it was here already. A data frame
    // meanwhile says the same.
    let mut upstream = upstream();
    let packet = Arrived { polls: false, ..POLL };
    (0..40).for_each(|_| upstream.note_packet(packet, true, PACKET_TIME, at(0)));
    assert_eq!(upstream.due(), None);
    upstream.note_packet(
        Arrived { polls: false, is_innovative: false, ..POLL },
        true,
        PACKET_TIME,
        at(0),
    );
    assert_eq!(upstream.due(), Some(at(3)));
    upstream.note_told(0.9, PACKET_TIME, at(1));
    assert_eq!(upstream.due(), None);
}

/// Link state's frames collide with those of the flow. Copies of reports would collide, too.
#[test]
fn a_link_that_was_good_before_the_flow_began_needs_no_copies() {
    let mut upstream = upstream();
    let copies = |upstream: &mut Upstream, delivery: f64| {
        upstream.note_packet(POLL, false, PACKET_TIME, at(0));
        let mut sent = 0;
        while let Some(due) = upstream.due() {
            upstream.note_told(delivery, PACKET_TIME, due);
            sent += 1;
        }
        sent
    };
    assert_eq!([0.9, 0.2].map(|delivery| copies(&mut upstream, delivery)), [1, 1]);
    upstream.parent = Some(NodeId(3));
    assert_eq!([0.2, 0.9].map(|delivery| copies(&mut upstream, delivery)), [4, 1]);
}

/// Node 1 hears node 2 ask node 3, and would not hear the answer.
#[test]
fn a_node_leaves_the_channel_to_an_answer_that_it_does_not_hear() {
    let silence = |topology: Option<Topology>, poll| {
        let mut bench = Bench::new(1);
        bench.topology = topology.unwrap_or(bench.topology);
        bench.with(|e, cx| e.handle_packet(cx, NodeId(4), &[7; 1000])).unwrap();
        bench.data(2, 3, Header { poll, ..header(0) }, &plain(0));
        let sent = bench.drain();
        bench.now = bench.now + PACKET_TIME;
        (sent.len(), bench.drain().len())
    };
    assert_eq!(silence(None, true), (0, 1));
    assert_eq!(silence(None, false), (1, 0));
    let both = |a, b| [(a, b, 0.9), (b, a, 0.9)];
    let hears = directed(&[both(1, 2), both(2, 3), both(3, 4), both(1, 3)].concat());
    assert_eq!(silence(Some(hears), true), (1, 0));
}

/// The answer of node 4 must not meet the next packet of node 2.
#[test]
fn a_relay_waits_for_an_answer_that_the_node_before_it_does_not_hear() {
    let mut bench = Bench::new(3);
    (0..30).for_each(|number| bench.data(2, 3, header(0), &plain(number)));
    bench.report(4, 1, state(0, 0));
    // One by one, with pauses in which an answer would come.
    let mut polls = Vec::new();
    for _ in 0..12 {
        let body = bench.fill().map(|(_, body)| Header::parse(&body).unwrap().0.poll);
        polls.push(body);
        bench.now = bench.now + PACKET_TIME / 2;
    }
    let asked = polls.iter().position(|poll| *poll == Some(true)).unwrap();
    assert_eq!(polls[asked + 1], None, "{polls:?}");
    bench.report(4, 2, state(2, 0));
    assert!(bench.fill().is_some());
}

/// The MAC's acknowledgment says that a packet arrived that goes alone.
#[test]
fn a_packet_that_goes_alone_needs_no_report() {
    let send = |bench: &mut Bench, result| {
        bench.with(|e, cx| e.handle_packet(cx, NodeId(4), &[7; 1000])).unwrap();
        let (to, body) = bench.fill_with(result).unwrap();
        (to, Header::parse(&body).unwrap().0.poll)
    };
    let mut bench = Bench::new(1);
    // Nothing is known of the MAC at first, so the next hop is asked as well.
    assert_eq!(send(&mut bench, TxResult::Acked), (Some(NodeId(2)), true));
    for _ in 0..5 {
        assert_eq!(send(&mut bench, TxResult::Acked), (Some(NodeId(2)), false));
        bench.now = bench.now + Duration::from_millis(50);
        assert_eq!(bench.drain(), [], "what was acknowledged is not sent again");
    }
    // A packet that the MAC gave up goes again, by broadcast, and asks.
    assert_eq!(send(&mut bench, TxResult::Failed), (Some(NodeId(2)), false));
    bench.now = bench.now + Duration::from_millis(50);
    let (to, body) = bench.fill_with(TxResult::Sent).unwrap();
    assert_eq!((to, Header::parse(&body).unwrap().0.poll), (None, true));
    // Over a poor link the MAC would repeat it for long, which costs nothing while nobody waits for
    // the channel.
    let mut poor = Bench::new(1);
    poor.topology = directed(&[(1, 4, 0.6), (4, 1, 0.6)]);
    poor.now = poor.now + Duration::from_secs(1);
    assert_eq!(send(&mut poor, TxResult::Acked), (Some(NodeId(4)), true));
    for number in 0..40 {
        poor.now = poor.now + PACKET_TIME;
        poor.data(3, 4, Header { next_hop: NodeId(4), ..header(number) }, &plain(0));
    }
    assert_eq!(send(&mut poor, TxResult::Sent), (None, true));
}

/// Link state says that the shortest way from here leads back to the source, which has all that
/// there is. The next hop has nothing yet.
#[test]
fn what_the_source_has_still_goes_to_the_next_hop() {
    let mut bench = Bench::new(2);
    let mesh = |to_4, around| {
        let both = |a, b, delivery| [(a, b, delivery), (b, a, delivery)];
        directed(&[both(1, 2, 0.9), both(2, 4, to_4), both(1, 4, around)].concat())
    };
    bench.topology = mesh(0.9, 0.1);
    bench.data(1, 2, Header { state: state(1, 0), ..header(0) }, &plain(0));
    bench.topology = mesh(0.5, 0.9);
    bench.data(1, 2, Header { state: state(2, 0), ..header(0) }, &plain(1));
    assert_eq!(bench.drain(), [(0, 1), (1, 1)]);
}

#[test]
fn a_parent_that_does_not_hear_what_is_sent_on_is_told_after_a_few_packets() {
    let packet = Arrived { polls: false, ..POLL };
    let due_after = |is_heard| {
        let mut upstream = Upstream::default();
        upstream.hear_parent(NodeId(1), said(state(1, 0), 1), at(0));
        (1..20).find(|_| {
            upstream.note_packet(Arrived { is_heard, ..packet }, true, PACKET_TIME, at(0));
            upstream.reports_to(at(0)).is_some()
        })
    };
    assert_eq!(due_after(true), None);
    assert_eq!(due_after(false), Some(4));
}
