//! Polls and feedback over bad links: they go in copies, and each is handled once.

use super::{TestNode, alone, at, cross, generation_id, header, instance, part, symbol, unit};
use crate::copy_filter::CopyFilter;
use crate::feedback_queue::FeedbackQueue;
use crate::frame::{COUNT, CountFrame, FEEDBACK, FeedbackFrame, GenerationId, Request, UNKNOWN};
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::DATA;
use ncmesh_engine::{Engine, TunnelEngine, TxReport, TxResult};
use ncmesh_wire::{NodeId, StartId};
use proptest::prelude::*;

impl TestNode {
    /// Returns a node of a cross whose links all lose half, with a MAC that contends.
    fn with_bad_links(me: u16) -> Self {
        let mut node = Self::core(me);
        node.topology = cross(0.5, [0.5, 0.5]);
        let report = TxReport { result: TxResult::Sent, airtime: Duration::ZERO, heard_by: None };
        node.with(|engine, cx| engine.handle_tx_report(cx, report));
        node
    }

    /// Receives a poll of node 3.
    fn receive_poll(&mut self, number: u16, again: bool) {
        let header = header(1, 4);
        let count = CountFrame { serial: 1, number, again, header, next_hop: NodeId(4) };
        self.receive(3, COUNT, |body| count.write(body));
    }

    /// Returns the number of the feedback that is sent next, and its receiver if it is unicast.
    fn next_feedback(&mut self) -> Option<(u16, Option<NodeId>)> {
        let mut body = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut body))?;
        assert_eq!(filled.kind, FEEDBACK);
        Some((FeedbackFrame::parse(&body).unwrap().number, filled.to))
    }
}

/// Returns feedback of node 4 that one packet is missing.
fn feedback(number: u16) -> FeedbackFrame {
    FeedbackFrame {
        id: generation_id(1, 4, 0),
        to: NodeId(1),
        number,
        request: Request::More,
        missing_alone: 1,
        missing_combined: UNKNOWN,
        progress: 0,
        missing_numbers: Vec::new(),
        links: Vec::new(),
    }
}

/// Six copies: 1 - 0.5^6 is more than 0.98.
#[test]
fn a_poll_is_answered_once_in_copies_and_by_unicast_if_all_were_lost() {
    let mut node = TestNode::with_bad_links(4);
    for _ in 0..3 {
        node.receive_poll(7, false);
    }
    let mut answers = Vec::new();
    while let Some(answer) = node.next_feedback() {
        answers.push(answer);
        node.receive_poll(7, false);
        node.receive_poll(6, false);
    }
    assert_eq!(answers, [(1, None); 6], "copies of a poll, or an earlier one, change nothing");

    node.receive_poll(8, true);
    assert_eq!(node.next_feedback(), Some((2, Some(NodeId(3)))));
    assert_eq!(node.next_feedback(), None);
}

#[test]
fn copies_of_feedback_end_when_it_is_acknowledged() {
    let mut node = TestNode::with_bad_links(4);
    node.receive_poll(7, false);
    assert_eq!(node.next_feedback(), Some((1, None)));
    let useless = |serial| alone(serial, part(header(1, 4), 4, [1, 1, 0, 0]), &[1]);
    node.receive_data(3, &useless(2));
    assert_eq!(node.next_feedback(), None, "the packets that it asks for come");

    for position in [0, 1] {
        let part = part(header(1, 4), 4, unit(position));
        node.receive_data(3, &alone(3, part, &symbol(1, position)));
    }
    assert_eq!(node.next_feedback(), Some((2, None)), "it has full rank");
    node.receive_data(3, &useless(4));
    assert_eq!(node.next_feedback(), Some((2, None)), "which it is saying already");

    let next = FeedbackFrame { request: Request::NextGeneration, ..feedback(1) };
    node.receive(3, FEEDBACK, |body| next.write(body));
    assert_eq!(node.next_feedback(), None, "the previous hop passes it on");
}

#[test]
fn copies_of_feedback_bring_credit_once() {
    let mut node = TestNode::with_bad_links(1);
    node.with(|engine, cx| engine.handle_packet(cx, NodeId(4), &[1; 9])).unwrap();
    node.now = at(1100);
    node.with(Engine::handle_timeout);
    let flow = node.engine.flows.between(&(NodeId(1), NodeId(4))).unwrap().instance;
    let mut data_sent_after = |number| {
        let feedback = FeedbackFrame { id: GenerationId { flow, number: 0 }, ..feedback(number) };
        node.receive(3, FEEDBACK, |body| feedback.write(body));
        let kinds: Vec<u8> = (0..20).map_while(|_| node.fill()).map(|(kind, _)| kind).collect();
        kinds.iter().filter(|kind| **kind == DATA).count()
    };
    // 1.06 / 0.5 transmissions for the packet, and as many for each request.
    assert_eq!([5, 5, 4, 6, 6].map(&mut data_sent_after), [2, 0, 0, 2, 0]);
}

proptest! {
    /// Whatever is lost, repeated or late.
    #[test]
    fn each_number_is_accepted_at_most_once_and_only_if_it_is_ahead_of_those_before(
        first: u16,
        steps in prop::collection::vec(-40_i32..40, 1..60),
    ) {
        let mut filter = CopyFilter::default();
        let mut highest = None;
        for step in steps {
            let number = first.wrapping_add_signed(step as i16);
            let is_ahead = highest.is_none_or(|highest| step > highest);
            prop_assert_eq!(filter.accept(NodeId(3), StartId(1), number), is_ahead);
            highest = highest.max(Some(step));
        }
        prop_assert!(filter.accept(NodeId(3), StartId(2), first), "another start counts anew");
        prop_assert!(filter.accept(NodeId(4), StartId(2), first), "so does another node");
    }
}

#[test]
fn the_feedback_queue_is_bounded_and_keeps_the_newest_of_each_generation() {
    let mut queue = FeedbackQueue::default();
    let id = |number| GenerationId { flow: instance(1, 4), number };
    for number in 0..64 {
        assert!(queue.push(id(number), 1, false));
        assert!(queue.push(id(number), 2, false));
    }
    assert!(!queue.push(id(64), 3, false));
    let queued: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(queued.len(), 64);
    assert_eq!((queued[0].generation.number, queued[0].number), (1, 2), "0 made room");

    // Feedback that the MAC gives up is sent again, unless there is newer feedback.
    queue.note_sent(queued[0], None);
    queue.handle_report(true, 1);
    let again = queue.pop().unwrap();
    assert_eq!((again.number, again.sent), (2, 1));
    queue.note_sent(again, None);
    queue.push(again.generation, 4, false);
    queue.handle_report(true, 9);
    assert_eq!(queue.pop().map(|feedback| feedback.number), Some(4));
    assert_eq!(queue.pop(), None);
}
