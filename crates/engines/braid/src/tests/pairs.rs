//! Packets of two flows in one frame.

use super::hop::{carrying, link, pace, said};
use super::*;
use crate::child::Child;

/// Fills the only frame that waits, which is a pair.
fn filled_pair(bench: &mut Bench) -> Pair {
    let (kind, body) = bench.fill().unwrap();
    assert_eq!(kind, PAIR);
    assert_eq!(bench.fill(), None);
    Pair::parse(&body).unwrap()
}

#[test]
fn a_relay_pairs_packets_that_their_senders_can_take_out() {
    let mut relay = Bench::new(2);
    relay.data(1, 2, header(0), &plain(0));
    relay.data(3, 2, back(2), &plain(0));
    let pair = filled_pair(&mut relay);
    let next_hops = pair.parts.clone().map(|(header, _)| header.next_hop.0);
    assert!(next_hops == [3, 1] || next_hops == [1, 3], "{next_hops:?}");
    let coding = relay.engine.coding(relay.now).unwrap();
    assert_eq!((coding.sent, coding.coded), (1, 1));

    // The source of the flow there takes its own packet out, and is told that it arrived.
    let mut source = Bench::new(1);
    source.with(|e, cx| e.handle_packet(cx, NodeId(4), b"I\0")).unwrap();
    source.drain();
    let flow = source.engine.flows.values().next().unwrap().id;
    let told = Header { flow, next_hop: NodeId(3), state: state(1, 0), ..header(0) };
    let parts = [(told, plain(0)), (back(1), plain(0))];
    source.pair(2, parts);
    assert_eq!(source.packets(), [vec![b'I', 0]]);
    assert_eq!(source.engine.coding(source.now).unwrap().decoded, 1);
    assert_eq!(source.drain(), []);

    // A node with neither packet cannot separate them, and says that it lacks its own.
    let mut stranger = Bench::new(1);
    stranger.pair(2, [(header(0), plain(0)), (back(1), plain(0))]);
    assert_eq!(stranger.counters.dropped(DropReason::Undecodable), 1);
    let (kind, body) = stranger.fill().unwrap();
    assert_eq!((kind, Report::parse(&body).unwrap().state.needs), (REPORT, 0));
}

#[test]
fn flows_that_cross_are_paired_for_nodes_that_overhear_the_other_source() {
    // 1 sends to 4 and 5 to 3, both over 2. Node 3 hears 1 and 4 hears 5.
    let both = |a, b| [(a, b, 0.9), (b, a, 0.9)];
    let links = [both(1, 2), both(5, 2), both(2, 3), both(2, 4), both(1, 3), both(5, 4)];
    let crossing = FlowInstance { source: NodeId(5), destination: NodeId(3), incarnation: 1 };
    let across = Header { flow: crossing, ..header(0) };
    let mut relay = Bench::new(2);
    relay.topology = directed(&links.concat());
    relay.data(1, 2, header(0), &plain(0));
    relay.data(5, 2, across, &plain(0));
    let pair = filled_pair(&mut relay);

    // A node that gets packets from the relay listens to others that do the relay's bidding.
    let mut end = Bench::new(4);
    end.topology = directed(&links.concat());
    end.data(5, 2, across, &plain(7));
    assert_eq!(end.engine.flows.len(), 0);
    end.data(2, 4, header(0), &plain(9));
    end.data(5, 2, across, &plain(0));
    assert_eq!(end.engine.flows.len(), 2);
    end.pair(
        2,
        pair.parts
            .clone()
            .map(|(header, coded)| (header, Coded { symbol: plain(coded.first).symbol, ..coded })),
    );
    assert_eq!(end.packets(), [vec![b'I', 0]]);
    // It sends nothing of what it only overheard.
    assert_eq!(end.drain(), []);
}

#[test]
fn pairs_that_are_not_separated_come_to_an_end_for_a_while() {
    let mut child = Child::new(NodeId(2), 0, link(1.0), at(0));
    let mut packets = 0..;
    while child.separates(1.0, at(0)) > 0.0 {
        let packet = packets.next().unwrap();
        assert!(packet < 40, "it gets pairs for ever");
        child.note_filled(&carrying(0), 0.0, PACKET_TIME, at(0));
        child.note_paired(packet, 1.0, at(0));
        child.hear(said(state(0, 0), packet as u16), true, pace(8), at(0));
    }
    assert_eq!(child.separates(1.0, at(4_999)), 0.0);
    assert_eq!(child.separates(0.8, at(5_000)), 0.8);
}

#[test]
fn a_few_pairs_that_are_not_separated_end_none_and_are_forgotten() {
    let mut child = Child::new(NodeId(2), 0, link(1.0), at(0));
    assert_eq!(child.separates(0.9, at(0)), 0.9);
    for packet in 0..4 {
        child.note_filled(&carrying(0), 0.0, PACKET_TIME, at(0));
        child.note_paired(packet, 1.0, at(0));
        child.hear(said(state(0, 0), packet as u16), false, pace(8), at(0));
    }
    assert_eq!(child.separates(0.9, at(0)), 0.9, "chance explains that");
    for packet in 4..13 {
        child.note_filled(&carrying(0), 0.0, PACKET_TIME, at(0));
        child.note_paired(packet, 1.0, at(0));
        child.hear(said(state(0, 0), packet as u16), false, pace(8), at(0));
    }
    assert!(child.separates(0.9, at(999)) < 0.9);
    assert_eq!(child.separates(0.9, at(1000)), 0.9, "a while ago");
}
