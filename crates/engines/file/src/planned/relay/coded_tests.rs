//! A forwarder that codes: its credit, its buffer, and the turns and plans that it follows.

use super::*;
use crate::planned::frame::Coding;
use crate::planned::routing::{Forwarder, Upstream};
use ncmesh_engine::rng;

const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };
/// Room in a frame for any header here.
const MTU: usize = 1500;
const AT: Instant = Instant::from_nanos(0);
const PAYLOAD: [u8; 100] = [1; 100];

/// Header of a packet that nodes 2 and 3 are to forward, in this order.
fn header(turn: u32, generation: u32) -> DataHeader {
    let forwarder = |node, credit| Forwarder::new(NodeId(node), credit);
    DataHeader {
        flow: FLOW,
        turn: TurnId { incarnation: 7, number: turn },
        generation,
        packets: 2,
        routing: Routing::Ordered(vec![forwarder(2, 1.5), forwarder(3, 0.5)]),
        revision: 0,
        poll: None,
        piggyback: None,
    }
}

/// Hands packet `i` to the forwarder `me`.
fn hear_packet(
    relays: &mut Relays,
    me: u16,
    sender: u16,
    header: &DataHeader,
    i: u8,
) -> RelayOutcome {
    let data = Data { header: header.clone(), coding: Coding::Systematic(i), payload: &PAYLOAD };
    let me = NodeId(me);
    let sender = NodeId(sender);
    relays.handle_data(HeardData { me, sender, data: &data, is_announced: true, mtu: MTU, now: AT })
}

/// A data packet that says something new.
const NEW: RelayOutcome = RelayOutcome::Data { is_innovative: true };

#[test]
fn credit_comes_from_upstream_only() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let h = header(1, 0);
    assert_eq!(hear_packet(&mut relays, 3, 9, &h, 0), NEW);
    assert_eq!(
        relays.ready(&Transfers::default(), AT),
        None,
        "a node outside the list is not upstream"
    );
    let again = hear_packet(&mut relays, 3, 2, &h, 0);
    assert_eq!(again, RelayOutcome::Data { is_innovative: false }, "but it earns");
    assert!(relays.ready(&Transfers::default(), AT).is_some(), "credit 0.5 is positive");
    let mut rng = rng::stream(1, NodeId(3), "test", "relay");
    let mut out = Vec::new();
    assert!(relays.fill(FLOW, None, AT, &mut rng, &mut out).is_some());
    assert_eq!(out.len(), 19 + 2 * 4 + 102);
    assert_eq!(relays.ready(&Transfers::default(), AT), None);
    // The credit is at -0.5. The next packet brings it to 0, the one after that above.
    hear_packet(&mut relays, 3, 1, &h, 1);
    assert_eq!(relays.ready(&Transfers::default(), AT), None);
    hear_packet(&mut relays, 3, 1, &h, 1);
    assert!(relays.ready(&Transfers::default(), AT).is_some());
    assert_eq!(hear_packet(&mut relays, 5, 1, &h, 0), RelayOutcome::NotListed);
}

/// Header with belts: the first two forwarders are upstream of each other, others of nobody.
fn belts(revision: u8, listed: &[u16]) -> DataHeader {
    let mut upstream = Upstream::none(listed.len());
    upstream.insert(0, 1);
    upstream.insert(1, 0);
    let forwarders = listed.iter().map(|node| Forwarder::new(NodeId(*node), 1.0)).collect();
    DataHeader { routing: Routing::Belts(forwarders, upstream), revision, ..header(1, 0) }
}

#[test]
fn in_belts_the_packet_says_who_is_upstream() {
    for (me, sender, gets_credit) in
        [(2, 3, true), (3, 2, true), (2, 4, false), (4, 2, false), (4, 1, true), (2, 9, false)]
    {
        let mut relays = Relays::new(Forwarding::Ordered);
        hear_packet(&mut relays, me, sender, &belts(0, &[2, 3, 4]), 0);
        assert_eq!(
            relays.ready(&Transfers::default(), AT).is_some(),
            gets_credit,
            "{me} hears {sender}"
        );
    }
}

#[test]
fn a_newer_plan_is_followed_and_an_older_one_is_not() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let mut hear = |h: &DataHeader| {
        hear_packet(&mut relays, 3, 1, h, 0);
        (relays.ready(&Transfers::default(), AT).is_some(), relays.flows[&FLOW].revision)
    };
    assert_eq!(hear(&belts(254, &[2, 3])), (true, 254));
    // The revision wraps. The new plan does without node 3, and packets of nodes that still follow
    // the old plan do not bring it back.
    assert_eq!(hear(&belts(1, &[2, 4])), (false, 1));
    assert_eq!(hear(&belts(254, &[2, 3])), (false, 1));
    assert_eq!(hear(&belts(2, &[2, 3])), (true, 2));
}

#[test]
fn a_new_turn_empties_the_buffer_and_packets_of_the_old_one_do_not_bring_it_back() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let turn = |relays: &Relays| relays.flows[&FLOW].turn.number;
    hear_packet(&mut relays, 2, 1, &header(5, 0), 0);
    assert!(relays.ready(&Transfers::default(), AT).is_some());
    // A packet from outside the list begins the new turn without a credit.
    hear_packet(&mut relays, 2, 9, &header(6, 1), 0);
    assert_eq!((turn(&relays), relays.flows[&FLOW].generation), (6, 1));
    assert_eq!(relays.ready(&Transfers::default(), AT), None, "the credit of the old turn is gone");
    assert_eq!(hear_packet(&mut relays, 2, 1, &header(5, 0), 0), RelayOutcome::Stale);
    // Another start of the source counts from the beginning.
    let incarnated = |incarnation, number, generation| DataHeader {
        turn: TurnId { incarnation, number },
        ..header(0, generation)
    };
    assert_eq!(hear_packet(&mut relays, 2, 1, &incarnated(8, 1, 0), 0), NEW);
    assert_eq!(turn(&relays), 1);
    // The number of the turn wraps.
    hear_packet(&mut relays, 2, 1, &incarnated(9, u32::MAX, 0), 0);
    assert_eq!(hear_packet(&mut relays, 2, 1, &incarnated(9, 0, 1), 0), NEW);
    assert_eq!(turn(&relays), 0);
}

#[test]
fn forwarded_transfers_are_bounded() {
    let mut relays = Relays::new(Forwarding::Ordered);
    for serial in 0..500 {
        let flow = FlowId { source: NodeId(1), serial };
        let data = Data {
            header: DataHeader { flow, ..header(1, 0) },
            coding: Coding::Systematic(0),
            payload: &PAYLOAD,
        };
        let now = Instant::from_nanos(u64::from(serial));
        let me = NodeId(2);
        let sender = NodeId(1);
        relays.handle_data(HeardData {
            me,
            sender,
            data: &data,
            is_announced: true,
            mtu: MTU,
            now,
        });
        assert!(relays.flows.len() <= MAX_FLOWS);
        assert!(relays.flows.contains_key(&flow), "the newest is kept");
    }
    assert_eq!(relays.flows.len(), MAX_FLOWS);
}

#[test]
fn a_packet_of_another_length_does_not_change_the_forwarders() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let h = header(1, 0);
    hear_packet(&mut relays, 2, 1, &h, 0);
    let routing = Routing::Ordered(vec![Forwarder::new(NodeId(2), 1.0); 200]);
    let header = DataHeader { routing, ..header(1, 0) };
    let longer = Data { header, coding: Coding::Systematic(0), payload: &[1; 50] };
    let me = NodeId(2);
    let sender = NodeId(1);
    let heard = HeardData { me, sender, data: &longer, is_announced: true, mtu: MTU, now: AT };
    assert_eq!(relays.handle_data(heard), RelayOutcome::Malformed);
    assert_eq!(relays.flows[&FLOW].routing, h.routing);
}

#[test]
fn a_packet_of_a_transfer_that_was_not_announced_is_not_forwarded() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let data = Data { header: header(1, 0), coding: Coding::Systematic(0), payload: &PAYLOAD };
    let me = NodeId(2);
    let sender = NodeId(1);
    let heard = HeardData { me, sender, data: &data, is_announced: false, mtu: MTU, now: AT };
    assert_eq!(relays.handle_data(heard), RelayOutcome::Unannounced);
    assert!(relays.is_empty());
}

/// Sends all that the forwarders 2, 3 and 4 may send, each frame heard by the two others, a
/// millisecond each, for at most `millis`. Returns the number of frames.
fn frames_of_three(first: &DataHeader, millis: u64) -> usize {
    let mut rng = rng::stream(1, NodeId(3), "test", "relay");
    let mut nodes: Vec<(u16, Relays)> =
        [2, 3, 4].map(|node| (node, Relays::new(Forwarding::Belts))).into();
    for (me, relays) in &mut nodes {
        hear_packet(relays, *me, 1, first, 0);
    }
    let mut frames = 0;
    for milli in 0..millis {
        let now = Instant::from_nanos(milli * 1_000_000);
        let sender =
            nodes.iter().position(|(_, relays)| relays.ready(&Transfers::default(), now).is_some());
        let Some(sender) = sender else { continue };
        let mut body = Vec::new();
        let (from, relays) = &mut nodes[sender];
        let from = NodeId(*from);
        assert!(relays.fill(FLOW, None, now, &mut rng, &mut body).is_some());
        frames += 1;
        let data = Data::parse(&body).unwrap();
        for (me, relays) in &mut nodes {
            let me = NodeId(*me);
            let sender = from;
            let heard = HeardData { me, sender, data: &data, is_announced: true, mtu: MTU, now };
            relays.handle_data(heard);
        }
    }
    frames
}

#[test]
fn one_hostile_packet_does_not_have_forwarders_feed_each_other_for_ever() {
    // Everybody is upstream of everybody, with the highest credit there is.
    let mut upstream = Upstream::none(3);
    for (of, other) in (0..3).flat_map(|of| (0..3).map(move |other| (of, other))) {
        upstream.insert(of, other);
    }
    let forwarders = [2, 3, 4].map(|node| Forwarder::new(NodeId(node), 1e9)).into();
    let hostile = DataHeader { routing: Routing::Belts(forwarders, upstream), ..header(1, 0) };
    let frames = frames_of_three(&hostile, 60_000);
    // One packet earns 64 for each node, three times in a minute: after 10 s and 20 s more.
    assert!(frames <= 3 * 3 * 65, "{frames} frames");
}

#[test]
fn a_generation_that_is_not_finished_earns_credit_anew_ever_more_seldom() {
    let mut relays = Relays::new(Forwarding::Ordered);
    let h = header(1, 0);
    let mut earned = Vec::new();
    let mut rng = rng::stream(1, NodeId(3), "test", "relay");
    for second in 0..100_u64 {
        let now = Instant::from_nanos(second * 1_000_000_000);
        let mut sent = 0;
        for _ in 0..200 {
            let data = Data { header: h.clone(), coding: Coding::Systematic(0), payload: &PAYLOAD };
            let me = NodeId(2);
            let sender = NodeId(1);
            let heard = HeardData { me, sender, data: &data, is_announced: true, mtu: MTU, now };
            relays.handle_data(heard);
            while relays.ready(&Transfers::default(), now).is_some() {
                relays.fill(FLOW, None, now, &mut rng, &mut Vec::new());
                sent += 1;
            }
        }
        if sent > 0 {
            earned.push((second, sent));
        }
    }
    assert_eq!(earned, [(0, 64), (10, 64), (30, 64), (70, 64)]);
}
