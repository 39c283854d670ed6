//! Frames of a relay, and how they change.

use super::{TestNode, alone, at, header, numbered, part, symbol, unit};
use crate::frame::{
    COUNT, CountFrame, DataFrame, FEEDBACK, FeedbackFrame, RELAYED, RelayedFeedback, Request,
};
use crate::{CoreConfig, cope};
use ncmesh_engine::testing::directed;
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::{DATA, RelayMode, Relaying};
use ncmesh_engine::{Engine, TunnelEngine, TxReport, TxResult};
use ncmesh_wire::NodeId;

#[test]
fn a_relay_stops_the_sources_and_combines_what_crosses() {
    let mut node = TestNode::core(3);
    node.receive_generation(header(1, 4), 3, 1);
    node.receive_generation(header(2, 5), 3, 2);

    let mut kinds = Vec::new();
    while let Some((kind, body)) = node.fill() {
        match kind {
            FEEDBACK => {
                assert_eq!(FeedbackFrame::parse(&body).unwrap().request, Request::Stop);
            }
            DATA => assert!(DataFrame::parse(&body).unwrap().second.is_some()),
            _ => assert_eq!(CountFrame::parse(&body).unwrap().header.count, 2),
        }
        kinds.push(kind);
    }
    // Two packets over links of 0.9 take 1.06 * 2 / 0.9 transmissions. Then it polls both next
    // hops.
    assert_eq!(kinds, [FEEDBACK, FEEDBACK, DATA, DATA, COUNT, COUNT]);
}

/// Steps of a relay with one generation.
struct Relayed {
    /// Coding vectors of the frames that it sends.
    vectors: Vec<Vec<u8>>,
    /// Whether it stops the source.
    stops: bool,
}

/// Lets relay 3 receive both packets of generation `number` of the flow from 1 to 4.
fn relay_generation(node: &mut TestNode, number: u32) -> Relayed {
    node.receive_generation(numbered(number, header(1, 4)), 3, 1);
    let mut relayed = Relayed { vectors: Vec::new(), stops: false };
    while let Some((kind, body)) = node.fill() {
        match kind {
            DATA => relayed.vectors.push(DataFrame::parse(&body).unwrap().first.vector),
            FEEDBACK => {
                let request = FeedbackFrame::parse(&body).unwrap().request;
                relayed.stops |= request == Request::Stop;
            }
            _ => {}
        }
    }
    relayed
}

#[test]
fn another_kind_of_relay_begins_with_the_next_generation() {
    let mut node = TestNode::core(3);
    let change = |relay| Relaying { relay: Some(relay), coding: None };
    node.receive_data(1, &alone(1, part(header(1, 4), 3, [1, 0, 0, 0]), &symbol(1, 0)));
    node.with(|engine, cx| engine.relay_as(cx, change(RelayMode::NonRecoding)));
    assert!(relay_generation(&mut node, 0).stops, "a generation ends as it began");

    let relayed = relay_generation(&mut node, 1);
    assert_eq!(relayed.vectors, [unit(0), unit(1)]);
    assert!(!relayed.stops);

    node.with(|engine, cx| engine.relay_as(cx, change(RelayMode::Recoding)));
    let relayed = relay_generation(&mut node, 2);
    let is_combination = |vector: &Vec<u8>| vector[0] > 0 && vector[1] > 0;
    assert!(relayed.vectors.iter().any(is_combination), "{:?}", relayed.vectors);
    assert!(!relayed.stops);

    let status = node.engine.coding(at(0)).unwrap();
    let expected = Relaying { relay: Some(RelayMode::Recoding), coding: Some(true) };
    assert_eq!(status.relaying, expected);
}

#[test]
fn the_baseline_has_one_kind_of_relay_and_a_choice_whether_it_combines() {
    let mut node = TestNode::new(3, cope::engine(&cope::CopeConfig::default()));
    let change = Relaying { relay: Some(RelayMode::Core), coding: Some(false) };
    node.with(|engine, cx| engine.relay_as(cx, change));
    let status = node.engine.coding(at(0)).unwrap();
    assert_eq!(status.relaying, Relaying { relay: None, coding: Some(false) });
}

#[test]
fn feedback_that_the_mac_gives_up_is_sent_again_but_not_for_ever() {
    let mut node = TestNode::core(3);
    node.receive_generation(header(1, 4), 3, 1);
    let report = |result| TxReport { result, airtime: Duration::ZERO, heard_by: None };
    let attempts = 1 + CoreConfig::default().requests;
    for _ in 0..attempts {
        assert_eq!(node.fill().unwrap().0, FEEDBACK);
        node.with(|engine, cx| engine.handle_tx_report(cx, report(TxResult::Failed)));
    }
    assert_eq!(node.fill().unwrap().0, DATA);
}

/// Node 3 sends to 4 and does not hear it; 5 hears 4, and 3 hears 5.
#[test]
fn feedback_goes_over_another_node_where_the_previous_hop_does_not_hear() {
    let links = [(1, 3, 0.9), (3, 1, 0.9), (3, 4, 0.9), (4, 5, 0.9), (5, 3, 0.9)];
    let node = |me| {
        let mut node = TestNode::core(me);
        node.topology = directed(&links);
        node
    };
    let mut destination = node(4);
    for position in [0, 1] {
        let part = part(header(1, 4), 4, unit(position));
        destination.receive_data(3, &alone(1, part, &symbol(1, position)));
    }
    let (kind, body) = destination.fill().unwrap();
    let relayed = RelayedFeedback::parse(&body).unwrap();
    assert_eq!((kind, relayed.next_hop, relayed.author), (RELAYED, NodeId(5), NodeId(4)));
    assert_eq!(relayed.feedback.to, NodeId(3));

    let mut between = node(5);
    between.receive(4, RELAYED, |body| relayed.write(body));
    let (kind, body) = between.fill().unwrap();
    let passed_on = RelayedFeedback::parse(&body).unwrap();
    assert_eq!((kind, passed_on.next_hop), (RELAYED, NodeId(3)));
    assert!(between.fill().is_none(), "once");

    // Relay 3 takes it for what its next hop says: the generation is done.
    let mut relay = node(3);
    relay.receive_generation(header(1, 4), 3, 1);
    while relay.fill().is_some() {}
    relay.receive(5, RELAYED, |body| passed_on.write(body));
    let (kind, body) = relay.fill().unwrap();
    let told = FeedbackFrame::parse(&body).unwrap();
    assert_eq!((kind, told.to, told.request), (FEEDBACK, NodeId(1), Request::NextGeneration));
}

/// The next hop hears nobody that knows a way back. It answers all the same, and the node that
/// knows to be on the way passes that on.
#[test]
fn feedback_that_was_sent_nowhere_is_passed_on() {
    let mut between = TestNode::core(5);
    between.topology = directed(&[(3, 4, 0.9), (4, 5, 0.9), (5, 3, 0.9)]);
    let mut relay = TestNode::core(3);
    relay.receive_generation(header(1, 4), 3, 1);
    let (_, body) = relay.fill().unwrap();
    let feedback = FeedbackFrame { to: NodeId(3), ..FeedbackFrame::parse(&body).unwrap() };
    between.receive(4, FEEDBACK, |body| feedback.write(body));
    let (kind, body) = between.fill().unwrap();
    let relayed = RelayedFeedback::parse(&body).unwrap();
    let ends = (kind, relayed.next_hop, relayed.author);
    assert_eq!(ends, (RELAYED, NodeId(3), NodeId(4)));
}
