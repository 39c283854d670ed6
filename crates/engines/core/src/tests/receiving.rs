//! Data frames at a node: decoding, and bounds on what frames make it keep.

use super::{
    TestNode, alone, at, combined, generation_id, header, packet, part, symbol, unit, xor,
};
use crate::cope;
use crate::frame::{
    COUNT, CountFrame, FEEDBACK, FeedbackFrame, GenerationHeader, LinkReport, Part, Request,
};
use crate::generation::unit_vector;
use crate::overheard::Overheard;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::toolkit::coder::symbol_of;
use ncmesh_wire::NodeId;

/// Node 4 receives a frame of relay 3 with the packets of both flows at a position.
fn receive_combined(node: &mut TestNode, serial: u16, position: u8) {
    let vector = unit(position);
    let first = part(header(1, 4), 4, vector);
    let second = part(header(2, 5), 5, vector);
    let payload = xor(&symbol(1, position), &symbol(2, position));
    node.receive_data(3, &combined(serial, first, second, &payload));
}

/// Node 4 overhears the other flow's packet at a position from its source.
fn overhear(node: &mut TestNode, serial: u16, position: u8) {
    let part = part(header(2, 5), 3, unit(position));
    node.receive_data(2, &alone(serial, part, &symbol(2, position)));
}

#[test]
fn a_destination_takes_its_packet_out_with_what_it_overhears_before_or_after() {
    let mut node = TestNode::core(4);
    overhear(&mut node, 1, 0);
    receive_combined(&mut node, 1, 0);
    receive_combined(&mut node, 2, 1);
    assert_eq!(node.delivered(), [packet(1, 0)], "what it overheard before");
    overhear(&mut node, 2, 1);
    assert_eq!(node.delivered(), [packet(1, 1)], "what it overheard after");

    let (kind, body) = node.fill().unwrap();
    let feedback = FeedbackFrame::parse(&body).unwrap();
    let request = feedback.request;
    let to = feedback.to;
    assert_eq!((kind, request, to), (FEEDBACK, Request::NextGeneration, NodeId(3)));
    let relay = LinkReport { transmitter: NodeId(3), received: 2, sent: 2 };
    assert_eq!(feedback.links[0], relay);
    assert_eq!(node.fill(), None);
}

/// The baseline keeps nothing that it cannot decode at once, and asks by number.
#[test]
fn cope_decodes_at_once_or_not_at_all() {
    let mut node = TestNode::new(4, cope::engine(&cope::CopeConfig::default()));
    receive_combined(&mut node, 1, 0);
    overhear(&mut node, 1, 0);
    assert_eq!(node.delivered().len(), 0);
    assert_eq!(node.counters.dropped(DropReason::Undecodable), 1);
    receive_combined(&mut node, 2, 0);
    assert_eq!(node.delivered().len(), 1);

    let header = header(1, 4);
    let count = CountFrame { serial: 2, number: 1, again: false, header, next_hop: NodeId(4) };
    node.receive(3, COUNT, |body| count.write(body));
    let feedback = FeedbackFrame::parse(&node.fill().unwrap().1).unwrap();
    assert_eq!((feedback.request, feedback.missing_numbers), (Request::More, vec![1]));
}

#[test]
fn generations_of_unlike_sizes_can_be_combined() {
    let mut node = TestNode::core(4);
    let large = GenerationHeader { generation_size: 9, count: 3, symbol_size: 90, ..header(2, 5) };
    let long = symbol_of(&[9; 80], 90);
    let theirs = Part { header: large, next_hop: NodeId(5), vector: unit_vector(9, 2) };
    let overheard = Part { next_hop: NodeId(3), ..theirs.clone() };
    node.receive_data(2, &alone(1, overheard, &long));

    let mut payload = symbol(1, 0);
    payload.resize(90, 0);
    let payload = xor(&payload, &long);
    let own = part(header(1, 4), 4, [1, 0, 0, 0]);
    node.receive_data(3, &combined(1, theirs, own, &payload));
    assert_eq!(node.delivered(), [packet(1, 0)]);
}

#[test]
fn frames_of_others_and_of_long_ago_leave_bounded_state() {
    let mut node = TestNode::core(4);
    receive_combined(&mut node, 1, 0);
    for number in 0..100 {
        let serial = number as u16;
        // Overheard of flows that never meet this node's, also of generations long gone.
        let source = 7 + (number % 3) as u16;
        let id = generation_id(source, 10, number);
        let foreign = GenerationHeader { id, ..header(source, 10) };
        node.receive_data(7, &alone(serial, part(foreign, 8, [1, 0, 0, 0]), &[1]));
        // This node's flow, combined with ever new generations that nobody knows.
        let other = GenerationHeader { id: generation_id(2, 5, number + 1), ..header(2, 5) };
        let first = part(header(1, 4), 4, [1, 1, 0, 0]);
        let second = part(other, 5, [1, 0, 0, 0]);
        node.receive_data(3, &combined(serial + 1, first, second, &[1]));
        // Combined for two other nodes.
        let first = part(header(7, 6), 6, [1; 4]);
        let second = part(header(8, 9), 9, [1; 4]);
        node.receive_data(3, &combined(serial + 1, first, second, &[1]));
    }
    assert_eq!(node.engine.overheard.len(), 16);
    assert_eq!(node.engine.flows.iter().count(), 1);

    // None of it keeps the node's own flow from being decoded.
    for position in [0, 1] {
        let part = part(header(1, 4), 4, unit(position));
        node.receive_data(3, &alone(301, part, &symbol(1, position)));
    }
    assert_eq!(node.delivered(), [packet(1, 0), packet(1, 1)]);
}

#[test]
fn a_generation_keeps_its_shape_and_ends_once() {
    let mut node = TestNode::core(4);
    receive_combined(&mut node, 1, 0);

    // The same generation in another shape is dropped, and the flow goes on.
    let smaller = GenerationHeader { generation_size: 3, ..header(1, 4) };
    let odd = Part { header: smaller, next_hop: NodeId(4), vector: vec![1, 0, 0] };
    node.receive_data(3, &alone(300, odd, &[1]));
    assert_eq!(node.counters.dropped(DropReason::Malformed), 1);
    for position in [0, 1] {
        let part = part(header(1, 4), 4, unit(position));
        node.receive_data(3, &alone(301, part, &symbol(1, position)));
    }
    assert_eq!(node.delivered().len(), 2);

    // Packets that come late are stale, and their sender is told.
    node.receive_data(3, &alone(302, part(header(1, 4), 4, [1, 0, 0, 0]), &[1]));
    assert_eq!(node.counters.dropped(DropReason::Stale), 1);
    let feedback = FeedbackFrame::parse(&node.fill().unwrap().1).unwrap();
    assert_eq!(feedback.request, Request::NextGeneration);
}

#[test]
fn overheard_generations_are_bounded_and_the_oldest_makes_room() {
    let mut overheard = Overheard::default();
    let one = (unit(0).to_vec(), symbol(1, 0));
    for number in 0..20 {
        let header = GenerationHeader { id: generation_id(1, 4, number), ..header(1, 4) };
        assert_eq!(overheard.keep(&header, &one, at(u64::from(number))), Some(true));
        assert_eq!(overheard.keep(&header, &one, at(u64::from(number))), Some(false));
    }
    assert_eq!(overheard.len(), 16);
    assert!(overheard.get(&generation_id(1, 4, 3)).is_none());
    assert!(overheard.get(&generation_id(1, 4, 4)).is_some());
    assert_eq!(overheard.keep(&header(1, 4), &(vec![1], vec![1]), at(99)), None);
}
