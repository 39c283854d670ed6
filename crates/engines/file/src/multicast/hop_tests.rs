//! Hop-by-hop forwarding by itself: what a node asks, repeats and reports.

use super::arq::{Arq, Next, STALL};
use super::data::{Coding, Data, DataHeader};
use super::frame::Report;
use super::packets::PacketSet;
use super::relay::{Relayed, Relays};
use super::routing::{Cast, Forwarding, Hop, Routing};
use ncmesh_engine::TxResult::{self, Acked, Failed, Sent};
use ncmesh_engine::rng::{stream, unit};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{FlowId, NodeId};
use proptest::prelude::*;
use std::collections::BTreeMap;

const AT: Instant = Instant::from_nanos(0);
/// Airtime of a packet; questions are repeated after 20 ms then.
const AIR: Duration = Duration::from_millis(1);
const CHILD: NodeId = NodeId(8);
const OTHER: NodeId = NodeId(9);

fn set(packets: &[u8]) -> PacketSet {
    let mut set = PacketSet::default();
    packets.iter().for_each(|i| set.insert(*i));
    set
}

fn arq(children: &[NodeId], packets: u8) -> Arq {
    Arq::new(children.iter().copied(), packets, AT)
}

/// Sends what is next of all `packets`, to `to`, with what the MAC says of it.
fn send(
    arq: &mut Arq,
    packets: u8,
    to: Option<NodeId>,
    result: TxResult,
    now: Instant,
) -> Option<Next> {
    let held = PacketSet::first_of(packets);
    let next = arq.next(held, now)?;
    arq.sent(next, held);
    arq.report(next.packet, to, result, AIR, now);
    Some(next)
}

fn plain(packet: u8) -> Option<Next> {
    Some(Next { packet, poll: None })
}

fn asking(packet: u8, poll: u32) -> Option<Next> {
    Some(Next { packet, poll: Some(poll) })
}

#[test]
fn the_last_packet_asks_and_what_a_child_lacks_is_sent_again() {
    let mut a = arq(&[CHILD, OTHER], 3);
    let send = |a: &mut Arq| send(a, 3, None, Sent, AT);
    assert_eq!([send(&mut a), send(&mut a), send(&mut a)], [plain(0), plain(1), asking(2, 1)]);
    assert_eq!(send(&mut a), None, "reports are awaited");
    a.hear_report(CHILD, 1, set(&[0, 2]), AT);
    assert_eq!(send(&mut a), asking(1, 2));
    // What was sent after the poll a report answers may be on its way still.
    a.hear_report(OTHER, 1, set(&[2]), AT);
    assert_eq!(send(&mut a), asking(0, 3));
    a.hear_report(OTHER, 3, set(&[0, 1, 2]), AT);
    a.hear_report(CHILD, 3, set(&[0, 1, 2]), AT);
    assert_eq!((send(&mut a), a.poll_timeout(AT)), (None, None));
}

#[test]
fn a_long_stretch_asks_in_between() {
    let mut a = arq(&[CHILD], 100);
    let asks: Vec<u8> = (0..100)
        .filter_map(|_| send(&mut a, 100, None, Sent, AT))
        .filter(|next| next.poll.is_some())
        .map(|next| next.packet)
        .collect();
    assert_eq!(asks, [31, 63, 95, 99]);
}

#[test]
fn a_question_without_an_answer_is_repeated_less_and_less_often() {
    let mut a = arq(&[CHILD], 2);
    let (mut now, mut asked) = (AT, 0);
    send(&mut a, 2, None, Sent, now);
    send(&mut a, 2, None, Sent, now);
    while let Some(at) = a.poll_timeout(now).filter(|at| *at < AT + Duration::from_secs(600)) {
        now = at;
        assert_eq!(send(&mut a, 2, None, Sent, now).map(|next| next.packet), Some(0));
        asked += 1;
    }
    assert!((300..400).contains(&asked), "asked {asked} times in ten minutes");
    a.hear_report(CHILD, 2, set(&[0]), now);
    assert_eq!(send(&mut a, 2, None, Sent, now).map(|next| next.packet), Some(1));
}

#[test]
fn what_the_mac_acknowledges_needs_no_report_and_what_it_gives_up_does() {
    let mut a = arq(&[CHILD], 3);
    assert_eq!(send(&mut a, 3, Some(CHILD), Acked, AT), plain(0));
    assert_eq!(send(&mut a, 3, Some(CHILD), Failed, AT), plain(1));
    assert_eq!(send(&mut a, 3, Some(CHILD), Acked, AT), None, "a pause after a failure");
    let later = a.poll_timeout(AT).unwrap();
    assert_eq!(send(&mut a, 3, Some(CHILD), Acked, later), asking(2, 1));
    a.hear_report(CHILD, 1, set(&[0, 1, 2]), later);
    assert_eq!(send(&mut a, 3, Some(CHILD), Acked, later), None);
    assert_eq!(a.poll_timeout(later), None);
}

#[test]
fn what_a_child_passes_on_it_has() {
    let mut a = arq(&[CHILD], 2);
    a.overhear(CHILD, 0, AT);
    a.overhear(NodeId(77), 1, AT);
    assert_eq!(send(&mut a, 2, None, Sent, AT), asking(1, 1));
}

#[test]
fn a_child_that_lost_everything_gets_everything_again() {
    let mut a = arq(&[CHILD], 2);
    for _ in 0..2 {
        send(&mut a, 2, Some(CHILD), Acked, AT);
    }
    let held = PacketSet::first_of(2);
    a.prod(held, AT);
    assert_eq!(a.next(held, AT), None, "only after a while");
    let later = AT + STALL;
    a.prod(held, later);
    let probe = a.next(held, later).unwrap();
    assert!(probe.poll.is_some());
    a.sent(probe, held);
    a.report(probe.packet, Some(CHILD), Acked, AIR, later);
    a.prod(held, later);
    assert_eq!(a.next(held, later), None, "once");
    a.hear_report(CHILD, probe.poll.unwrap(), set(&[probe.packet]), later);
    assert_eq!(send(&mut a, 2, Some(CHILD), Acked, later).map(|next| next.packet), Some(1));
}

#[test]
fn new_children_are_told_at_once_and_old_ones_are_not_sent_to() {
    let mut a = arq(&[CHILD], 2);
    for _ in 0..2 {
        send(&mut a, 2, Some(CHILD), Acked, AT);
    }
    a.follow([CHILD, OTHER].into_iter(), AT);
    assert_eq!(send(&mut a, 2, None, Sent, AT), plain(0));
    a.follow([CHILD].into_iter(), AT);
    let told = send(&mut a, 2, None, Sent, AT).unwrap();
    assert!(told.poll.is_some(), "the one that stays learns of the new plan");
    a.follow([].into_iter(), AT);
    assert_eq!(send(&mut a, 2, None, Sent, AT), None);
}

proptest! {
    /// A parent and its children over a channel that loses packets and reports, and delays reports.
    #[test]
    fn every_child_gets_everything(
        losses in prop::collection::vec(0.0..0.9f64, 1..4),
        packets in 1u8..=255,
        seed in any::<u64>(),
    ) {
        let mut rng = stream(seed, NodeId(1), "test", "arq");
        let children: Vec<NodeId> = (0..losses.len()).map(|i| NodeId(i as u16 + 2)).collect();
        let mut has: BTreeMap<NodeId, PacketSet> = children.iter().map(|c| (*c, PacketSet::default())).collect();
        let (mut a, all) = (arq(&children, packets), PacketSet::first_of(packets));
        let (mut now, mut sent) = (AT, 0u32);
        let mut reports: Vec<(NodeId, u32, PacketSet)> = Vec::new();
        while has.values().any(|has| *has != all) {
            let Some(next) = a.next(all, now) else {
                let at = a.poll_timeout(now);
                prop_assert!(at.is_some(), "at rest though something is missing");
                now = at.unwrap();
                continue;
            };
            a.sent(next, all);
            for (child, loss) in children.iter().zip(&losses) {
                if unit(&mut rng) < *loss {
                    continue;
                }
                has.get_mut(child).unwrap().insert(next.packet);
                if let Some(poll) = next.poll {
                    reports.push((*child, poll, has[child]));
                }
            }
            a.report(next.packet, None, Sent, AIR, now);
            now = now + AIR;
            if unit(&mut rng) < 0.5 {
                for (child, poll, has) in reports.drain(..).filter(|_| unit(&mut rng) < 0.7) {
                    a.hear_report(child, poll, has, now);
                }
            }
            sent += 1;
            prop_assert!(sent < 200_000);
        }
    }
}

const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };

/// 1 sends to 2, 2 to 3 and 4.
fn header(revision: u8, poll: Option<u32>) -> DataHeader {
    let hop = |node, parent| Hop { node: NodeId(node), parent: NodeId(parent) };
    DataHeader {
        flow: FLOW,
        incarnation: 7,
        visit: 5,
        batch: 3,
        packets: 2,
        routing: Routing::Tree(vec![hop(2, 1), hop(3, 2), hop(4, 2)]),
        revision,
        poll,
        piggyback: None,
    }
}

fn hear(relays: &mut Relays, me: u16, sender: u16, header: &DataHeader, packet: u8) -> Relayed {
    let data = Data {
        header: header.clone(),
        coding: Coding::Systematic(packet),
        payload: &[packet; 100],
    };
    relays.handle_data(NodeId(me), NodeId(sender), &data, 1500, AT)
}

fn relays(cast: Cast) -> Relays {
    Relays::new(Forwarding::HopByHop(cast))
}

/// The packet that a node sends next, and to whom.
fn sends(relays: &mut Relays) -> Option<(u8, Option<NodeId>)> {
    let (flow, _) = relays.ready(AT)?;
    let mut rng = stream(1, NodeId(2), "test", "hops");
    let mut out = Vec::new();
    let to = relays.fill(flow, None, AT, &mut rng, &mut out)?;
    let data = Data::parse(&out).unwrap();
    let Coding::Systematic(packet) = data.coding else { panic!("coded") };
    assert_eq!(data.payload, [packet; 100]);
    Some((packet, to))
}

#[test]
fn an_inner_node_passes_on_what_it_has_and_a_leaf_does_not() {
    let mut inner = relays(Cast::Broadcast);
    assert_eq!(hear(&mut inner, 2, 1, &header(0, None), 1), Relayed::Taken);
    assert_eq!(hear(&mut inner, 2, 9, &header(0, None), 0), Relayed::Taken);
    assert_eq!((sends(&mut inner), sends(&mut inner)), (Some((0, None)), Some((1, None))));
    assert_eq!(sends(&mut inner), None);
    let mut leaf = relays(Cast::Broadcast);
    hear(&mut leaf, 3, 2, &header(0, None), 1);
    assert_eq!(sends(&mut leaf), None);
    assert_eq!(hear(&mut leaf, 77, 2, &header(0, None), 1), Relayed::NotOurs);
}

#[test]
fn a_coded_packet_does_not_go_hop_by_hop() {
    let coded =
        Data { header: header(0, None), coding: Coding::Combined(&[1, 2]), payload: &[0; 9] };
    let heard = relays(Cast::Broadcast).handle_data(NodeId(2), NodeId(1), &coded, 1500, AT);
    assert_eq!(heard, Relayed::Malformed);
}

#[test]
fn by_unicast_it_goes_to_the_one_child() {
    let hop = |node, parent| Hop { node: NodeId(node), parent: NodeId(parent) };
    let routing = Routing::Tree(vec![hop(2, 1), hop(3, 2)]);
    let mut inner = relays(Cast::Unicast);
    hear(&mut inner, 2, 1, &DataHeader { routing, ..header(0, None) }, 0);
    assert_eq!(sends(&mut inner), Some((0, Some(NodeId(3)))));
    inner.report(FLOW, Acked, AIR, AT);
    assert_eq!(sends(&mut inner), None);
}

#[test]
fn a_parents_question_is_answered_until_the_mac_has_brought_it_there() {
    let mut leaf = relays(Cast::Broadcast);
    hear(&mut leaf, 3, 2, &header(0, None), 1);
    assert_eq!(leaf.owed(AT), None);
    hear(&mut leaf, 3, 1, &header(0, Some(4)), 0);
    assert_eq!(leaf.owed(AT), None, "another's question");
    hear(&mut leaf, 3, 2, &header(0, Some(6)), 1);
    let (parent, report) = leaf.owed(AT).unwrap();
    assert_eq!((parent, report.poll, report.has), (NodeId(2), 6, set(&[0, 1])));
    leaf.answer(FLOW);
    assert_eq!(leaf.owed(AT), None);
    leaf.answered(FLOW, Failed, AT);
    let again = leaf.poll_timeout(AT).unwrap();
    assert!(leaf.owed(again).is_some());
    leaf.answer(FLOW);
    leaf.answered(FLOW, Acked, again);
    assert_eq!((leaf.owed(again), leaf.poll_timeout(again)), (None, None));
}

#[test]
fn a_report_counts_for_its_own_visit_only() {
    let mut inner = relays(Cast::Broadcast);
    hear(&mut inner, 2, 1, &header(0, None), 0);
    let report =
        |visit| Report { flow: FLOW, incarnation: 7, visit, batch: 3, poll: 0, has: set(&[0]) };
    assert_eq!(inner.handle_report(NodeId(3), &report(4), AT), Relayed::Stale);
    assert_eq!(inner.handle_report(NodeId(3), &report(5), AT), Relayed::Taken);
    assert_eq!(inner.handle_report(NodeId(4), &report(5), AT), Relayed::Taken);
    assert_eq!(sends(&mut inner), None, "both children have it");
    assert_eq!(relays(Cast::Broadcast).handle_report(NodeId(3), &report(5), AT), Relayed::NotOurs);
}

#[test]
fn a_new_parent_is_told_unasked_and_who_is_not_listed_any_more_stops() {
    let hop = |node, parent| Hop { node: NodeId(node), parent: NodeId(parent) };
    let moved = |revision| {
        let routing = Routing::Tree(vec![hop(3, 1), hop(4, 3)]);
        DataHeader { routing, ..header(revision, None) }
    };
    let mut node = relays(Cast::Broadcast);
    hear(&mut node, 3, 2, &header(0, None), 0);
    hear(&mut node, 3, 1, &moved(1), 1);
    let (parent, report) = node.owed(AT).unwrap();
    assert_eq!((parent, report.poll, report.has), (NodeId(1), 0, set(&[0, 1])));
    assert_eq!(sends(&mut node), Some((0, None)), "4 is its child now");
    let mut left = relays(Cast::Broadcast);
    hear(&mut left, 2, 1, &header(0, None), 0);
    assert_eq!(hear(&mut left, 2, 1, &moved(1), 1), Relayed::NotOurs);
    assert_eq!(sends(&mut left), None);
}
