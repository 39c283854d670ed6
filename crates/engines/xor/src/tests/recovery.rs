//! Requests and retransmissions over one hop.

use super::*;

#[test]
fn a_lost_coded_frame_is_asked_for_coded_again_and_its_packet_delivered_in_order() {
    let mut nodes = crossing("hold_time_s = 0.002\nmin_overlap = 0.0\nmin_decoded = 0.0");

    // The coded frame reaches node 1 alone. Node 3 hears the next frame.
    let lost = nodes[1].transmit().unwrap();
    nodes[0].handle(2, lost.kind, &lost.body);
    nodes[0].send(3, b"another").unwrap();
    let sent = nodes[0].transmit().unwrap();
    nodes[1].handle(1, sent.kind, &sent.body);
    nodes[1].now = nodes[1].now + 2 * MS;
    let next = nodes[1].transmit().unwrap();
    assert_eq!(parse(&next.body).unwrap().first().sequence, 2);

    // Node 3 has heard node 2 before. Otherwise it could not know that a packet is missing.
    let id = PacketId { source: NodeId(1), number: 1 };
    nodes[2].handle_native(2, &Header { id, sequence: u16::MAX, ..header() }, b"old");
    assert_eq!(nodes[2].delivered(), Some((NodeId(1), b"old".to_vec())));
    nodes[2].handle(2, next.kind, &next.body);
    assert_eq!(nodes[2].delivered(), None);
    let request = nodes[2].transmit().unwrap();
    assert_eq!((request.kind, request.to), (REQUEST, Some(NodeId(2))));
    let expected = Request { neighbour: NodeId(2), missing: vec![1] };
    assert_eq!(Request::parse(&request.body), Ok(expected));

    // The second request comes too soon after the first one to be answered.
    nodes[1].handle(3, request.kind, &request.body);
    nodes[1].handle(3, request.kind, &request.body);
    let again = nodes[1].transmit().unwrap();
    assert_eq!((again.to, again.packets(), nodes[1].status().repeated), (None, 2, 1));
    nodes[0].handle(2, again.kind, &again.body);
    assert_eq!(nodes[0].counters.dropped(DropReason::Stale), 1);
    nodes[2].handle(2, again.kind, &again.body);
    assert_eq!(nodes[2].delivered(), Some((NodeId(1), b"from one to three".to_vec())));
    assert_eq!(nodes[2].delivered(), Some((NodeId(1), b"another".to_vec())));
    assert_eq!(nodes[1].transmit(), None);
}

#[test]
fn packets_are_repeated_in_their_order_and_before_all_others() {
    let mut node = Bench::new(1, "");
    for packet in [b"a", b"b", b"c"] {
        node.send(2, packet).unwrap();
        assert!(node.transmit().is_some());
    }
    node.send(2, b"new").unwrap();
    let mut body = Vec::new();
    Request { neighbour: NodeId(1), missing: vec![1, 3] }.write(&mut body);
    node.handle(2, REQUEST, &body);
    let sent = |sent: Sent| match Data::parse(&sent.body, NodeId(1)) {
        Ok(Data::Native(header, packet)) => (header.sequence, packet.to_vec()),
        other => panic!("{other:?}"),
    };
    let frames: Vec<_> = core::iter::from_fn(|| node.transmit()).map(sent).collect();
    assert_eq!(frames, [(1, b"a".to_vec()), (3, b"c".to_vec()), (4, b"new".to_vec())]);
}

#[test]
fn a_packet_that_never_comes_is_given_up_after_the_timeout() {
    let mut node = Bench::new(3, "");
    for (number, sequence) in [(1, 1), (3, 3)] {
        let id = PacketId { source: NodeId(1), number };
        node.handle_native(2, &Header { id, sequence, ..header() }, b"IP");
    }
    assert!(node.delivered().is_some() && node.delivered().is_none());
    assert_eq!(node.transmit().map(|sent| sent.kind), Some(REQUEST));
    assert_eq!(node.transmit(), None);
    assert_eq!(node.engine.poll_timeout(node.now), Some(node.now + HOP.ask_again));
    node.advance_to(node.now + HOP.timeout);
    assert!(node.delivered().is_some());
    assert_eq!(node.engine.poll_timeout(node.now), None);
}

#[test]
fn a_request_for_packets_that_were_never_sent_is_not_answered() {
    let mut node = Bench::new(3, "");
    node.handle(2, REQUEST, &[0, 3, 0, 9]);
    assert_eq!((node.transmit(), node.counters.drops().count()), (None, 0));
    node.handle(2, REQUEST, &[0, 3, 0]);
    assert_eq!((node.transmit(), node.counters.dropped(DropReason::Malformed)), (None, 1));
}
