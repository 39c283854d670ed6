//! Frames of a node to its next hops, and when they go.

use super::node::{FLOW, Node, announcement, has, state};
use crate::frame::{Have, State};
use ncmesh_engine::stream::{Deadline, NewStream};
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::live::Announcement;
use ncmesh_engine::{Engine, StreamEngine};
use ncmesh_wire::{FlowId, NodeId};

#[test]
fn a_packet_goes_as_it_is_once_for_all_next_hops() {
    let mut node = Node::relay();
    node.report(4, &state(2, 1, 0, [has(0), has(0)]));
    node.data(0, 0);
    let sent = node.next_data().unwrap();
    assert_eq!(sent.packets(), [0, 0, 1]);
    assert_eq!(sent.head.state.receivers, 2);
    node.wait(1);
    assert_eq!(node.next_data(), None);
}

#[test]
fn what_two_next_hops_lost_goes_again_in_one_combination() {
    let mut node = Node::relay();
    node.report(4, &state(2, 1, 0, [has(0), has(0)]));
    for number in 0..2 {
        node.data(0, number);
        assert_eq!(node.next_data().unwrap().packets(), [0, number, 1]);
    }
    node.wait(1);
    // 3 lost the first one, 4 the second one.
    let last = node.last_number();
    node.report(3, &state(2, 1, last, [Have { map: vec![1], ..has(0) }, has(0)]));
    node.report(4, &state(2, 1, last, [has(1), has(0)]));
    node.wait(10);
    let sent = node.next_data().unwrap();
    assert_eq!(sent.packets(), [0, 0, 2]);
    // Both have everything then.
    let last = node.last_number();
    for child in [3, 4] {
        node.report(child, &state(2, 1, last, [has(2), has(0)]));
    }
    node.wait(10);
    assert_eq!(node.next_data(), None);
}

#[test]
fn a_loss_that_is_known_goes_again_as_it_is_and_before_what_is_new() {
    let mut node = Node::relay();
    node.data(0, 0);
    node.next_data().unwrap();
    node.data(0, 1);
    node.next_data().unwrap();
    let last = node.last_number();
    node.report(3, &state(2, 1, last, [Have { map: vec![1], ..has(0) }, has(0)]));
    node.data(0, 2);
    node.wait(10);
    assert_eq!(node.next_data().unwrap().packets(), [0, 0, 1]);
    assert_eq!(node.next_data().unwrap().packets(), [0, 2, 1]);
}

#[test]
fn the_base_goes_before_enhancement_layers() {
    let mut node = Node::relay();
    node.data(1, 0);
    node.data(0, 0);
    node.wait(1);
    let layers: Vec<u8> = (0..2).map(|_| node.next_data().unwrap().head.layer).collect();
    assert_eq!(layers, [0, 1]);
}

#[test]
fn enhancement_layers_wait_while_the_base_is_late_behind_a_next_hop() {
    let mut node = Node::relay();
    let late = State { lag: 200, ..state(2, 1, 0, [has(0), has(0)]) };
    node.report(3, &State { number: 1, ..late });
    node.data(1, 0);
    node.wait(1);
    assert_eq!(node.next_data(), None);
    node.report(3, &State { number: 2, ..state(2, 1, 0, [has(0), has(0)]) });
    assert_eq!(node.next_data().unwrap().packets(), [1, 0, 1]);
}

#[test]
fn enhancement_layers_wait_for_the_base_of_another_stream_once_it_is_nearly_too_late() {
    let mut node = Node::relay();
    let other = FlowId { serial: 8, ..FLOW };
    node.announce_as(1, &Announcement { flow: other, ..announcement() });
    let says = |lag| State { flow: other, lag, ..state(2, 1, 0, [has(0), has(0)]) };
    node.report(4, &says(150));
    node.data(1, 0);
    assert_eq!(node.next_data().unwrap().packets(), [1, 0, 1]);
    node.report(4, &State { number: 1, ..says(250) });
    node.data(1, 1);
    assert_eq!(node.next_data(), None);
    node.data(0, 0);
    assert_eq!(node.next_data().unwrap().packets(), [0, 0, 1]);
}

#[test]
fn a_layer_that_a_next_hop_does_not_want_is_not_sent() {
    let mut node = Node::relay();
    let wants = State { wants: 1, number: 1, ..state(2, 1, 0, [has(0), has(0)]) };
    node.report(3, &wants);
    node.data(1, 0);
    node.data(0, 0);
    node.wait(1);
    let sent = node.next_data().unwrap();
    assert_eq!((sent.head.layer, sent.head.state.wants), (0, 1));
    node.wait(1);
    assert_eq!(node.next_data(), None);
}

#[test]
fn a_packet_is_given_up_at_its_deadline() {
    let mut node = Node::relay();
    node.join();
    node.data(0, 0);
    assert_eq!(node.received(), [0]);
    node.wait(1000);
    node.report(3, &State { number: 1, ..state(2, 1, 0, [has(0), has(0)]) });
    node.wait(1);
    assert_eq!(node.next_data(), None, "no one needs it any more");
    // The next hops are told so.
    node.data(0, 1);
    assert_eq!(node.next_data().unwrap().head.state.layers[0].oldest, 1);
}

#[test]
fn a_node_that_is_asked_answers_in_its_turn() {
    let mut node = Node::new();
    node.announce();
    node.join();
    node.wait(20);
    while node.fill().is_some() {}
    node.data_asking(0, 0, &[2]);
    assert_eq!(node.next_report().unwrap().layers[0], has(1));

    node.data_asking(0, 1, &[9, 9, 9, 2]);
    assert_eq!(node.next_report(), None);
    node.now = node.now + Duration::from_millis(20);
    let report = node.next_report().unwrap();
    assert_eq!((report.layers[0].needs, report.parent), (2, NodeId(1)));
}

#[test]
fn a_silent_next_hop_is_asked_more_and_more_rarely_and_then_forgotten() {
    let mut node = Node::relay();
    node.data(0, 0);
    node.next_data().unwrap();
    let mut asked = Vec::new();
    for _ in 0..4000 {
        node.now = node.now + Duration::from_millis(1);
        if node.engine.poll_timeout(node.now).is_some() {
            node.wait(0);
        }
        if let Some(sent) = node.next_data() {
            assert!(sent.head.asked.contains(&NodeId(3)));
            asked.push(node.now);
        }
    }
    assert!((3..80).contains(&asked.len()), "{}", asked.len());
    assert!(node.status().queues.is_empty());
}

#[test]
fn a_relay_without_receivers_leaves_the_tree_and_says_so() {
    let mut node = Node::relay();
    node.wait(20);
    assert_eq!(node.next_report().unwrap().receivers, 1);
    node.report(3, &State { number: 1, ..state(2, 0, 0, [has(0), has(0)]) });
    node.now = node.now + Duration::from_millis(20);
    assert_eq!(node.next_report().unwrap().receivers, 0);
    assert_eq!(node.status().receivers, 0);
}

#[test]
fn a_packet_lives_as_long_as_its_source_says() {
    let layers = ["base".to_owned()];
    let lives = |deadline, ms| {
        let mut node = Node::new();
        let new = NewStream { group: "own", layers: &layers, deadline };
        let flow = node.with(|engine, cx| engine.open(cx, new)).unwrap();
        node.with(|engine, cx| engine.send(cx, flow, 0, &[1; 100])).unwrap();
        node.now = node.now + Duration::from_millis(ms);
        let wants = State { flow, layers: vec![has(0)], ..state(2, 1, 0, [has(0), has(0)]) };
        node.report(3, &wants);
        node.next_data().is_some_and(|data| !data.symbol.is_empty())
    };
    let short = Deadline::of_ms(100);
    assert!(lives(None, 900) && lives(short, 80) && !lives(short, 120));
}

#[test]
fn an_own_stream_is_sent_from_its_first_packet_on() {
    let mut node = Node::new();
    let layers = ["base".to_owned()];
    let flow = node
        .with(|engine, cx| {
            engine.open(cx, NewStream { group: "own", layers: &layers, deadline: None })
        })
        .unwrap();
    let wants = State { flow, layers: vec![has(0)], ..state(2, 1, 0, [has(0), has(0)]) };
    node.report(3, &wants);
    let longest = node.engine.longest(super::node::MTU);
    let packet = vec![1; longest];
    node.with(|engine, cx| engine.send(cx, flow, 0, &packet)).unwrap();
    let sent = node.next_data().unwrap();
    assert_eq!((sent.head.state.flow, sent.symbol.len()), (flow, longest + 6));
    let too_long = vec![1; longest + 1];
    assert!(node.with(|engine, cx| engine.send(cx, flow, 0, &too_long)).is_err());
    assert!(node.with(|engine, cx| engine.send(cx, flow, 1, &packet)).is_err());
    assert!(node.with(|engine, cx| engine.send(cx, FLOW, 0, &packet)).is_err());
}

#[test]
fn a_source_leaves_half_of_the_deadline_to_the_hops_before_its_only_receiver() {
    let mut node = Node::new();
    let layers = ["base".to_owned()];
    let new = NewStream { group: "own", layers: &layers, deadline: None };
    let flow = node.with(|engine, cx| engine.open(cx, new)).unwrap();
    let wants = |receivers: u16, handled: u16| State {
        flow,
        feeds: true,
        layers: vec![has(0)],
        ..state(2, receivers, handled, [has(0), has(0)])
    };
    node.report(3, &wants(1, 0));

    // Two packets wait for the channel, which others use.
    let send = |node: &mut Node| {
        node.with(|engine, cx| engine.send(cx, flow, 0, &[1; 100])).unwrap();
    };
    send(&mut node);
    node.wait(100);
    send(&mut node);
    node.wait(450);

    // The first one is older than half of the deadline, 1 s. The second one is not, and a packet
    // that went once goes again until its deadline.
    assert_eq!(node.next_data().unwrap().packets(), [0, 1, 1]);
    assert_eq!(node.next_data(), None);
    node.wait(300);
    let last = node.engine.streams.known[&flow].number;
    node.report(3, &wants(1, last));
    assert_eq!(node.next_data().unwrap().packets(), [0, 1, 1]);

    // A second receiver may be near enough for the first one.
    let last = node.engine.streams.known[&flow].number;
    node.report(3, &wants(2, last));
    assert_eq!(node.next_data().unwrap().packets(), [0, 1, 1]);
    assert_eq!(node.next_data().unwrap().packets(), [0, 0, 1]);
}
