//! Turns of nodes that do not hear each other.

use super::*;
use crate::turns::TURN;

/// A flow of node 3 itself.
const ASIDE: FlowInstance =
    FlowInstance { source: NodeId(3), destination: NodeId(1), incarnation: 0x3344 };

/// Returns the header of a data frame of that flow.
fn aside() -> Header {
    Header { flow: ASIDE, ..header(0) }
}

/// Returns the header of a data frame of a node that has `backlog` packets, and whose frames
/// collide.
fn collided(flow: Header, oldest: u32, backlog: u8) -> Header {
    let state = State { backlog, collides: true, ..state(20, 0) };
    Header { oldest, state, poll: false, ..flow }
}

/// Returns the reports that wait: to whom, and how many packets may wait for it here.
fn told(bench: &mut Bench) -> Vec<(u16, Option<u8>)> {
    let reports = std::iter::from_fn(|| bench.fill().filter(|(kind, _)| *kind == REPORT));
    let reports = reports.take(20).map(|(_, body)| Report::parse(&body).unwrap());
    let mut told: Vec<_> = reports.map(|report| (report.parent.0, report.state.turn)).collect();
    told.dedup();
    told
}

/// Lets a round of turns begin at node 2 between 1 and 3, which do not hear each other.
fn relay() -> Bench {
    let mut relay = Bench::new(2);
    relay.data(1, 2, collided(header(0), 0, 5), &plain(0));
    assert!(!relay.engine.turns.are_on(), "one node alone needs no turns");
    relay.data(3, 2, collided(aside(), 0, 5), &plain(0));
    assert!(relay.engine.turns.are_on());
    relay
}

#[test]
fn nodes_that_hide_from_each_other_send_in_turn() {
    let mut relay = relay();
    // Node 1 begins. The relay is silent meanwhile, though it has packets, and node 3 waits.
    assert_eq!(told(&mut relay), [(1, Some(TURN))]);
    assert_eq!(relay.engine.next(relay.now, At::ONLY), None);
    for number in 1..u32::from(TURN) - 1 {
        relay.data(1, 2, collided(header(0), 0, 5), &plain(number));
        assert_eq!(relay.engine.next(relay.now, At::ONLY), None, "{number}");
    }
    let turns = |relay: &Bench| -> Vec<_> {
        relay.engine.flows.values().map(|flow| flow.upstream.turn).collect()
    };
    assert_eq!(turns(&relay), [Some(TURN), Some(0)], "a turn's packets may wait here");
    relay.data(1, 2, collided(header(0), 0, 5), &plain(u32::from(TURN) - 1));
    assert_eq!(turns(&relay), [Some(0), Some(TURN)]);
    assert!(told(&mut relay).contains(&(3, Some(TURN))));

    // A node whose turn it is says that this is its last packet: now the relay sends packets of
    // both flows, and its last frame gives the turn to node 1 again.
    for number in 1..u32::from(TURN) - 1 {
        relay.data(3, 2, collided(aside(), 0, 5), &plain(number));
    }
    relay.data(3, 2, collided(aside(), 0, 5), &plain(u32::from(TURN) - 1));
    assert!(relay.engine.next(relay.now, At::ONLY).is_some());
    let frames: Vec<_> = std::iter::from_fn(|| relay.fill()).take(30).collect();
    let pairs: Vec<_> = frames.iter().filter(|(kind, _)| *kind == PAIR).collect();
    let states = pairs.iter().map(|(_, body)| Pair::parse(body).unwrap().parts);
    let turns = states.map(|parts| parts.map(|(header, _)| header.state.turn));
    let turns: Vec<_> = turns.collect();
    let (last, before) = turns.split_last().unwrap();
    assert!(before.len() > 6 && before.iter().all(|turns| *turns == [Some(0), Some(0)]));
    assert!(last.iter().any(|turn| turn.is_some_and(|turn| turn > 0)), "{turns:?}");
}

#[test]
fn a_turn_ends_with_silence_and_turns_end_when_nodes_have_no_more() {
    let mut relay = relay();
    told(&mut relay);
    relay.now = relay.engine.turns.until().unwrap();
    relay.with(Braid::handle_timeout);
    assert_eq!(told(&mut relay), [(3, Some(TURN))]);

    // Nothing was heard for half a second.
    relay.now = relay.now + Duration::from_millis(500);
    relay.with(Braid::handle_timeout);
    assert!(!relay.engine.turns.are_on());
    assert!(relay.engine.next(relay.now, At::ONLY).is_some());
    assert_eq!(told(&mut relay), [(1, None), (3, None)]);
}

#[test]
fn nodes_that_hear_each_other_or_whose_packets_arrive_take_no_turns() {
    let both = |a, b| [(a, b, 0.9), (b, a, 0.9)];
    let mut hearing = Bench::new(2);
    hearing.topology = directed(&[both(1, 2), both(2, 3), both(3, 4), both(1, 3)].concat());
    let mut quiet = Bench::new(2);
    for (relay, collides) in [(&mut hearing, true), (&mut quiet, false)] {
        for flow in [header(0), aside()] {
            let sender = if flow.flow == FLOW { 1 } else { 3 };
            let change = collided(flow, 0, 5);
            let state = State { collides, ..change.state };
            relay.data(sender, 2, Header { state, ..change }, &plain(0));
        }
        assert!(!relay.engine.turns.are_on());
    }
}

#[test]
fn a_node_sends_nothing_while_it_is_anothers_turn() {
    let mut bench = Bench::new(2);
    bench.data(1, 2, header(0), &plain(0));
    bench.report(3, 1, State { turn: Some(0), feeds: true, ..state(0, 0) });
    assert_eq!(bench.drain(), []);
    bench.report(3, 2, State { turn: Some(8), feeds: true, ..state(0, 0) });
    assert_eq!(bench.drain(), [(0, 1)]);

    // A destination, too, takes no more than its turn.
    let ends = State { ends: true, ..state(1, 0) };
    (1..10).for_each(|number| bench.data(1, 2, header(0), &plain(number)));
    bench.report(3, 3, State { turn: Some(4), ..ends });
    assert!((4..6).contains(&bench.drain().len()));
    bench.report(3, 4, State { needs: 9, ..ends });
    assert_eq!(bench.drain(), [(9, 1)]);
}

/// It has to send on meanwhile what it gets.
#[test]
fn a_relay_gets_no_turn() {
    let mut relay = Bench::new(2);
    relay.data(1, 2, collided(header(0), 0, 5), &plain(0));
    relay.data(3, 2, collided(back(2), 0, 5), &plain(0));
    assert!(!relay.engine.turns.are_on());
}

/// Frames that were lost count, so that the turn ends with its last frame.
#[test]
fn lost_frames_of_a_turn_count() {
    let mut relay = relay();
    told(&mut relay);
    let last = Header { number: 9 + u16::from(TURN), ..collided(header(0), 0, 5) };
    relay.data(1, 2, last, &plain(TURN.into()));
    assert!(told(&mut relay).contains(&(3, Some(TURN))));
}

/// Node 1 does not hear node 3, which has the turn of node 2.
#[test]
fn a_node_is_silent_while_one_that_it_does_not_hear_has_the_turn() {
    let mut bench = Bench::new(1);
    bench.with(|e, cx| e.handle_packet(cx, NodeId(4), &[7; 1000])).unwrap();
    let turn = |bench: &mut Bench, to, turn| {
        let flow = FlowInstance { source: NodeId(to), ..ASIDE };
        let child = NodeId(2);
        let parent = NodeId(to);
        let next_hop = parent;
        let state = State { turn: Some(turn), ..state(5, 0) };
        let mut body = Vec::new();
        Report { flow, next_hop, parent, child, number: 7, state }.write(&mut body);
        bench.frame(2, REPORT, &body);
    };
    turn(&mut bench, 3, 4);
    assert_eq!(bench.drain(), []);
    let until = bench.engine.poll_timeout(bench.now).unwrap();
    assert!((8..12).contains(&until.since(bench.now).as_millis()), "{until:?}");
    // Nobody has the turn: node 1 may come in.
    turn(&mut bench, 3, 0);
    assert_eq!(bench.drain(), [(0, 1)]);
    // A lie about a long turn costs no more than a turn.
    turn(&mut bench, 3, 254);
    let until = bench.engine.poll_timeout(bench.now).unwrap();
    assert!(until.since(bench.now).as_millis() < 25, "{until:?}");
}
