//! Turns of nodes that do not hear each other.

use super::*;

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
    relay.data((1, 2), collided(header(0), 0, 5), &plain(0));
    assert!(!relay.engine.turns.are_on(), "one node alone needs no turns");
    relay.data((3, 2), collided(back(2), 0, 5), &plain(0));
    assert!(relay.engine.turns.are_on());
    relay
}

#[test]
fn nodes_that_hide_from_each_other_send_in_turn() {
    let mut relay = relay();
    // Node 1 begins. The relay is silent meanwhile, though it has packets, and node 3 waits.
    assert_eq!(told(&mut relay), [(1, Some(9))]);
    assert_eq!(relay.engine.next(relay.now), None);
    for number in 1..8 {
        relay.data((1, 2), collided(header(0), 0, 5), &plain(number));
        assert_eq!(relay.engine.next(relay.now), None, "{number}");
    }
    let turns = |relay: &Bench| -> Vec<_> {
        relay.engine.flows.values().map(|flow| flow.upstream.turn).collect()
    };
    assert_eq!(turns(&relay), [Some(9), Some(0)], "8 wait here, and one more may");
    relay.data((1, 2), collided(header(0), 0, 5), &plain(8));
    assert_eq!(turns(&relay), [Some(0), Some(9)]);
    assert!(told(&mut relay).contains(&(3, Some(9))));

    // A node whose turn it is says that this is its last packet: now the relay sends packets of
    // both flows, and its last frame gives the turn to node 1 again.
    for number in 1..8 {
        relay.data((3, 2), collided(back(2), 0, 5), &plain(number));
    }
    relay.data((3, 2), collided(back(2), 0, 5), &plain(8));
    assert!(relay.engine.next(relay.now).is_some());
    let frames: Vec<_> = std::iter::from_fn(|| relay.fill()).take(30).collect();
    let pairs: Vec<_> = frames.iter().filter(|(kind, _)| *kind == PAIR).collect();
    let states = pairs.iter().map(|(_, body)| Pair::parse(body).unwrap().parts);
    let turns = states.map(|parts| parts.map(|(header, _)| header.state.turn));
    let turns: Vec<_> = turns.collect();
    assert_eq!(turns.len(), 8, "{frames:?}");
    assert!(turns[..7].iter().all(|turns| *turns == [Some(0), Some(0)]), "{turns:?}");
    assert!(turns[7].iter().any(|turn| turn.is_some_and(|turn| turn > 0)), "{turns:?}");
}

#[test]
fn a_turn_ends_with_silence_and_turns_end_when_nodes_have_no_more() {
    let mut relay = relay();
    told(&mut relay);
    relay.now = relay.engine.turns.until().unwrap();
    relay.with(Braid::handle_timeout);
    assert_eq!(told(&mut relay), [(3, Some(9))]);

    // Nothing was heard for half a second.
    relay.now = relay.now + Duration::from_millis(500);
    relay.with(Braid::handle_timeout);
    assert!(!relay.engine.turns.are_on());
    assert!(relay.engine.next(relay.now).is_some());
    assert_eq!(told(&mut relay), [(1, None), (3, None)]);
}

#[test]
fn nodes_that_hear_each_other_or_whose_packets_arrive_take_no_turns() {
    let both = |a, b| [(a, b, 0.9), (b, a, 0.9)];
    let mut hearing = Bench::new(2);
    hearing.topology = directed(&[both(1, 2), both(2, 3), both(3, 4), both(1, 3)].concat());
    let mut quiet = Bench::new(2);
    for (relay, collides) in [(&mut hearing, true), (&mut quiet, false)] {
        for flow in [header(0), back(2)] {
            let sender = if flow.flow == FLOW { 1 } else { 3 };
            let change = collided(flow, 0, 5);
            let state = State { collides, ..change.state };
            relay.data((sender, 2), Header { state, ..change }, &plain(0));
        }
        assert!(!relay.engine.turns.are_on());
    }
}

#[test]
fn a_node_sends_nothing_while_it_is_anothers_turn() {
    let mut bench = Bench::new(2);
    bench.data((1, 2), header(0), &plain(0));
    bench.report(3, 1, State { turn: Some(0), feeds: true, ..state(0, 0) });
    assert_eq!(bench.drain(), []);
    bench.report(3, 2, State { turn: Some(8), feeds: true, ..state(0, 0) });
    assert_eq!(bench.drain(), [(0, 1)]);

    // A destination, too, takes no more than its turn.
    let ends = State { ends: true, ..state(1, 0) };
    (1..10).for_each(|number| bench.data((1, 2), header(0), &plain(number)));
    bench.report(3, 3, State { turn: Some(4), ..ends });
    assert!((4..6).contains(&bench.drain().len()));
    bench.report(3, 4, State { needs: 9, ..ends });
    assert_eq!(bench.drain(), [(9, 1)]);
}
