//! A forwarder that does not code: what it passes on and reports.

use super::*;
use crate::planned::frame::Coding;
use crate::planned::packet_set::PacketSet;
use crate::planned::routing::Hop;
use ncmesh_engine::TxResult::{Acked, Failed};
use ncmesh_engine::rng::stream;

const AT: Instant = Instant::from_nanos(0);
/// Airtime of a packet.
const AIR: Duration = Duration::from_millis(1);
const TURN: TurnId = TurnId { incarnation: 7, number: 5 };
const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };

fn set(packets: &[u8]) -> PacketSet {
    let mut set = PacketSet::default();
    packets.iter().for_each(|i| set.insert(*i));
    set
}

/// Header of a packet in a tree where node 1 sends to 2, and 2 to 3 and 4.
fn header(revision: u8, poll: Option<u32>) -> DataHeader {
    let hop = |node, parent| Hop { node: NodeId(node), parent: NodeId(parent) };
    DataHeader {
        flow: FLOW,
        turn: TURN,
        generation: 3,
        packets: 2,
        routing: Routing::Tree(vec![hop(2, 1), hop(3, 2), hop(4, 2)]),
        revision,
        poll,
        piggyback: None,
    }
}

/// Hands packet number `packet` to the node `me`.
fn hear(
    relays: &mut Relays,
    me: u16,
    sender: u16,
    header: &DataHeader,
    packet: u8,
) -> RelayOutcome {
    let data = Data {
        header: header.clone(),
        coding: Coding::Systematic(packet),
        payload: &[packet; 100],
    };
    handle(relays, me, sender, &data)
}

fn handle(relays: &mut Relays, me: u16, sender: u16, data: &Data<'_>) -> RelayOutcome {
    let me = NodeId(me);
    let sender = NodeId(sender);
    relays.handle_data(HeardData { me, sender, data, is_announced: true, mtu: 1500, now: AT })
}

fn relays(cast: Cast) -> Relays {
    Relays::new(Forwarding::HopByHop(cast))
}

/// Returns the packet that a node sends next, and the node that it goes to by unicast.
fn sends(relays: &mut Relays) -> Option<(u8, Option<NodeId>)> {
    let flow = relays.ready(&Transfers::default(), AT)?.flow;
    let mut rng = stream(1, NodeId(2), "test", "hops");
    let mut out = Vec::new();
    let to = relays.fill(flow, None, AT, &mut rng, &mut out)?.to;
    let data = Data::parse(&out).unwrap();
    let Coding::Systematic(packet) = data.coding else { panic!("coded") };
    assert_eq!(data.payload, [packet; 100]);
    Some((packet, to))
}

/// A data packet that says something new.
const NEW: RelayOutcome = RelayOutcome::Data { is_innovative: true };

#[test]
fn an_inner_node_passes_on_its_packets_and_a_leaf_does_not() {
    let mut inner = relays(Cast::Broadcast);
    assert_eq!(hear(&mut inner, 2, 1, &header(0, None), 1), NEW);
    assert_eq!(hear(&mut inner, 2, 9, &header(0, None), 0), NEW);
    assert_eq!((sends(&mut inner), sends(&mut inner)), (Some((0, None)), Some((1, None))));
    assert_eq!(sends(&mut inner), None);
    let mut leaf = relays(Cast::Broadcast);
    hear(&mut leaf, 3, 2, &header(0, None), 1);
    assert_eq!(sends(&mut leaf), None);
    assert_eq!(hear(&mut leaf, 77, 2, &header(0, None), 1), RelayOutcome::NotListed);
}

#[test]
fn a_coded_packet_is_malformed() {
    let coded =
        Data { header: header(0, None), coding: Coding::Combined(&[1, 2]), payload: &[0; 9] };
    let heard = handle(&mut relays(Cast::Broadcast), 2, 1, &coded);
    assert_eq!(heard, RelayOutcome::Malformed);
}

#[test]
fn by_unicast_a_packet_goes_to_the_only_child() {
    let hop = |node, parent| Hop { node: NodeId(node), parent: NodeId(parent) };
    let routing = Routing::Tree(vec![hop(2, 1), hop(3, 2)]);
    let mut inner = relays(Cast::Unicast);
    hear(&mut inner, 2, 1, &DataHeader { routing, ..header(0, None) }, 0);
    assert_eq!(sends(&mut inner), Some((0, Some(NodeId(3)))));
    inner.handle_tx_result(FLOW, Acked, AIR, AT);
    assert_eq!(sends(&mut inner), None);
}

#[test]
fn a_report_to_the_parent_is_repeated_until_the_mac_succeeds() {
    let mut leaf = relays(Cast::Broadcast);
    hear(&mut leaf, 3, 2, &header(0, None), 1);
    assert_eq!(leaf.due_report(AT), None);
    hear(&mut leaf, 3, 1, &header(0, Some(4)), 0);
    assert_eq!(leaf.due_report(AT), None, "it is not its parent that polls");
    hear(&mut leaf, 3, 2, &header(0, Some(6)), 1);
    let report = leaf.due_report(AT).unwrap();
    assert_eq!((report.parent, report.poll, report.has), (NodeId(2), 6, set(&[0, 1])));
    leaf.note_report_sent(FLOW);
    assert_eq!(leaf.due_report(AT), None);
    leaf.handle_report_result(FLOW, Failed, AT);
    let again = leaf.poll_timeout(AT).unwrap();
    assert!(leaf.due_report(again).is_some());
    leaf.note_report_sent(FLOW);
    leaf.handle_report_result(FLOW, Acked, again);
    assert_eq!((leaf.due_report(again), leaf.poll_timeout(again)), (None, None));
}

#[test]
fn a_report_counts_for_its_own_turn_only() {
    let mut inner = relays(Cast::Broadcast);
    hear(&mut inner, 2, 1, &header(0, None), 0);
    let report = |number| {
        let turn = TurnId { number, ..TURN };
        Report { parent: NodeId(2), flow: FLOW, turn, generation: 3, poll: 0, has: set(&[0]) }
    };
    assert_eq!(inner.handle_report(NodeId(3), &report(4), AT), RelayOutcome::Stale);
    assert_eq!(inner.handle_report(NodeId(3), &report(5), AT), RelayOutcome::Taken);
    assert_eq!(inner.handle_report(NodeId(4), &report(5), AT), RelayOutcome::Taken);
    assert_eq!(sends(&mut inner), None, "both children have it");
    assert_eq!(
        relays(Cast::Broadcast).handle_report(NodeId(3), &report(5), AT),
        RelayOutcome::NotListed
    );
}

#[test]
fn a_new_parent_gets_a_report_unasked_and_a_node_that_left_the_tree_stops() {
    let hop = |node, parent| Hop { node: NodeId(node), parent: NodeId(parent) };
    let moved = |revision| {
        let routing = Routing::Tree(vec![hop(3, 1), hop(4, 3)]);
        DataHeader { routing, ..header(revision, None) }
    };
    let mut node = relays(Cast::Broadcast);
    hear(&mut node, 3, 2, &header(0, None), 0);
    hear(&mut node, 3, 1, &moved(1), 1);
    let report = node.due_report(AT).unwrap();
    assert_eq!((report.parent, report.poll, report.has), (NodeId(1), 0, set(&[0, 1])));
    assert_eq!(sends(&mut node), Some((0, None)), "4 is its child now");
    let mut left = relays(Cast::Broadcast);
    hear(&mut left, 2, 1, &header(0, None), 0);
    assert_eq!(hear(&mut left, 2, 1, &moved(1), 1), RelayOutcome::NotListed);
    assert_eq!(sends(&mut left), None);
}
