//! Coding, holding and sending at a relay, and decoding at its neighbours.

use super::*;
use crate::frame::{DecodeCount, Report, ReportEntry};

#[test]
fn a_relay_codes_packets_that_cross_and_both_ends_decode() {
    let mut nodes = crossing("hold_time_s = 0.002\nmin_overlap = 0.0");
    let sent = nodes[1].transmit().unwrap();
    assert_eq!((sent.to, sent.packets()), (None, 2));
    assert_eq!(nodes[1].transmit(), None);
    for node in [0, 2] {
        nodes[node].handle(2, sent.kind, &sent.body);
    }
    assert_eq!(nodes[0].delivered(), Some((NodeId(3), b"from three".to_vec())));
    assert_eq!(nodes[2].delivered(), Some((NodeId(1), b"from one to three".to_vec())));
    assert_eq!(nodes[0].status().decoded, 1);
    assert_eq!((nodes[1].status().sent, nodes[1].status().coded), (1, 1));

    // A copy of the frame is not delivered again.
    nodes[0].handle(2, sent.kind, &sent.body);
    assert_eq!((nodes[0].delivered(), nodes[0].counters.dropped(DropReason::Stale)), (None, 1));
}

#[test]
fn without_coding_packets_are_sent_as_they_are() {
    let mut nodes = crossing("coding = false\nunicast = false");
    for to in [3, 1] {
        let sent = nodes[1].transmit().unwrap();
        assert_eq!((sent.to, sent.packets()), (None, 1));
        assert_eq!(parse(&sent.body).unwrap().first().next(), NodeId(to));
    }
    assert_eq!(nodes[1].transmit(), None);

    let mut unicast = crossing("coding = false");
    assert_eq!(unicast[1].transmit().map(|sent| sent.to), Some(Some(NodeId(3))));

    let mut held = crossing("coding = false\nhold_time_s = 0.002");
    assert_eq!(held[1].transmit(), None);
    held[1].now = held[1].now + 2 * MS;
    assert_eq!(held[1].transmit().map(|sent| sent.packets()), Some(1));
}

#[test]
fn a_packet_without_a_partner_is_sent_when_its_hold_time_is_over() {
    let mut nodes = crossing("hold_time_s = 0.002\nqueue = 3\nunicast = false");
    let relay = &mut nodes[1];
    relay.transmit().unwrap();
    for number in 8..13 {
        relay.handle_native(1, &from_source(header(), number), b"IP");
    }
    // The queue holds three.
    assert_eq!(relay.counters.dropped(DropReason::Full), 2);
    assert_eq!((relay.engine.offer(relay.now), relay.transmit()), (None, None));
    let due = relay.now + 2 * MS;
    assert_eq!(relay.engine.poll_timeout(relay.now), Some(due));
    relay.now = due;
    assert!(relay.engine.offer(due).is_some());
    relay.with(Engine::handle_timeout);
    assert_eq!(relay.engine.poll_timeout(due), None);
    let sent: Vec<_> = core::iter::from_fn(|| relay.transmit()).collect();
    assert_eq!(sent.len(), 3);
    let flows = relay.engine.flows();
    let flow = flows.iter().find(|flow| flow.source == NodeId(1)).unwrap();
    assert_eq!((flow.heard, flow.lost, flow.credits), (6, 2, 0));
}

#[test]
fn a_configured_hold_time_is_used_for_every_packet_and_none_is_measured() {
    let held = |settings: &str| {
        let mut relay = Bench::new(2, settings);
        let times = (0..50).map(|number| {
            relay.handle_native(1, &from_source(header(), number), b"IP");
            let arrived = relay.now;
            if let Some(due) = relay.engine.poll_timeout(arrived) {
                relay.advance_to(due);
            }
            assert!(relay.transmit_for(MS).is_some());
            relay.now - arrived - MS
        });
        (times.collect::<Vec<_>>(), relay.status().holds.len())
    };
    assert_eq!(held("hold_time_s = 0.002"), (vec![2 * MS; 50], 0));
    // Measured, the time is longest for the first trials, and later zero: no partner ever comes.
    let (times, measured) = held("");
    assert_eq!((times[0], times[49], measured), (3 * MS, Duration::ZERO, 1));
}

#[test]
fn packets_that_cannot_be_decoded_are_dropped() {
    let mut nodes = crossing("hold_time_s = 0.002\nmin_overlap = 0.0");
    let sent = nodes[1].transmit().unwrap();

    // The other packet is not in the cache.
    let mut stranger = Bench::new(1, "");
    stranger.handle(2, sent.kind, &sent.body);
    assert_eq!((stranger.delivered(), stranger.status().undecodable), (None, 1));

    // A packet with other bytes is in the cache under its name.
    let id = parse(&sent.body).unwrap().first().id;
    stranger.engine.cache.insert(id, Arc::from(*b"something else"));
    stranger.handle(2, sent.kind, &sent.body);
    assert_eq!((stranger.delivered(), stranger.status().undecodable), (None, 2));
    assert_eq!(stranger.counters.dropped(DropReason::Undecodable), 2);
}

#[test]
fn frames_of_a_wrong_sender_or_kind_are_malformed_and_those_for_others_ignored() {
    let mut nodes = crossing("hold_time_s = 0.002\nmin_overlap = 0.0");
    let sent = nodes[1].transmit().unwrap();
    nodes[0].handle(3, sent.kind, &sent.body);
    assert_eq!(nodes[0].counters.dropped(DropReason::Malformed), 1);
    let mut other = Bench::new(4, "");
    other.handle(2, sent.kind, &sent.body);
    assert_eq!((other.delivered(), other.counters.drops().count()), (None, 0));
    other.handle(2, 9, &sent.body);
    assert_eq!(other.counters.dropped(DropReason::Malformed), 1);
}

#[test]
fn flows_with_other_ends_that_cross_only_at_the_relay_are_coded() {
    let mut relay = Bench::new(2, "hold_time_s = 0.002\nunicast = false");
    // 4 -> 3 -> 2 -> 1 and 1 -> 2 -> 3: neither ends where the other begins.
    let id = PacketId { source: NodeId(4), number: 1 };
    let long = Header { id, hop: 1, route: vec![NodeId(3), NodeId(2), NodeId(1)], ..header() };
    relay.handle_native(3, &long, b"IP");
    relay.handle_native(1, &Header { hop: 0, ..header() }, b"IP");
    assert_eq!(relay.transmit().map(|sent| sent.packets()), Some(2));
}

#[test]
fn a_relay_stops_coding_for_a_neighbour_that_does_not_decode() {
    let mut relay = Bench::new(2, "hold_time_s = 0.002");
    let mut coded = 0;
    for number in 0..200 {
        relay.now = relay.now + 100 * MS;
        relay.handle_native(1, &from_source(header(), number), b"IP");
        relay.handle_native(3, &from_source(header_back(), number), b"IP");
        relay.now = relay.now + 5 * MS;
        while let Some(sent) = relay.transmit() {
            coded += u32::from(sent.packets() == 2);
        }
        // Node 1 decodes everything, node 3 half of it.
        for (node, decoded) in [(1, coded), (3, coded / 2)] {
            let mut report = Vec::new();
            let count = DecodeCount { coded, decoded };
            Report { entries: vec![ReportEntry { neighbour: NodeId(2), count }] }
                .write(&mut report);
            relay.handle(node, REPORT, &report);
        }
    }
    assert!((32..80).contains(&coded), "{coded}");
    let stopped = relay.status().stopped;
    assert_eq!((stopped.len(), stopped[0].0), (1, NodeId(3)));
    assert!(stopped[0].1.starts_with("decoded only "), "{stopped:?}");
}

#[test]
fn a_packet_is_accepted_at_its_first_hop_from_its_source_alone() {
    let mut node = Bench::new(2, "");
    let first_hop = Header { hop: 0, ..header() };
    node.handle_native(3, &first_hop, b"IP");
    assert_eq!((node.transmit(), node.counters.dropped(DropReason::Malformed)), (None, 1));
    node.handle_native(1, &first_hop, b"IP");
    assert_eq!(node.engine.buffer.packets().count(), 1);
}

/// Returns a relay with a packet of node 1 for node 3. Node 3 has said before whether it has more
/// packets for the relay.
fn relay_after_announcement(more: bool) -> Bench {
    let mut relay = Bench::new(2, "max_hold_time_s = 0.0");
    relay.handle_native(3, &Header { hop: 0, more, ..header_back() }, b"IP");
    assert!(relay.transmit_for(MS).is_some());
    relay.handle_native(1, &Header { hop: 0, ..header() }, b"IP");
    relay
}

#[test]
fn a_relay_waits_for_an_announced_partner() {
    let mut relay = relay_after_announcement(false);
    assert_eq!(relay.transmit().map(|sent| sent.to), Some(Some(NodeId(3))));

    let mut relay = relay_after_announcement(true);
    assert_eq!(relay.transmit(), None);
    relay.handle_native(3, &from_source(header_back(), 10), b"IP");
    assert_eq!(relay.transmit().map(|sent| sent.packets()), Some(2));
}

#[test]
fn a_relay_waits_once_for_an_announced_partner_that_does_not_come() {
    let mut relay = relay_after_announcement(true);
    let until = relay.engine.poll_timeout(relay.now).unwrap();
    assert!(until > relay.now && until - relay.now < 20 * MS);
    relay.advance_to(until);
    assert_eq!(relay.transmit().map(|sent| sent.to), Some(Some(NodeId(3))));
    relay.handle_native(1, &from_source(header(), 8), b"IP");
    assert!(relay.transmit().is_some());
}

#[test]
fn after_a_leap_of_the_clock_nothing_is_held_and_coding_goes_on() {
    let mut nodes = crossing("hold_time_s = 0.002\nmin_overlap = 0.0");
    let relay = &mut nodes[1];
    relay.transmit().unwrap();
    // A machine that slept: an hour passes between two packets of a direction.
    for (sender, header) in [(1, header()), (3, header_back())] {
        for number in [20, 21] {
            relay.handle_native(sender, &from_source(header.clone(), number), b"IP");
            relay.advance_to(relay.now + Duration::from_secs(3600));
            while relay.transmit().is_some() {}
            assert_eq!(relay.engine.buffer.packets().count(), 0);
        }
    }
    assert_eq!(relay.status().coded, 1);
    relay.handle_native(1, &from_source(header(), 30), b"IP");
    relay.handle_native(3, &from_source(header_back(), 30), b"IP");
    assert_eq!(relay.transmit().map(|sent| sent.packets()), Some(2));
}
