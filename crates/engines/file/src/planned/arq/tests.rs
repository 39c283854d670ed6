//! Per-hop ARQ by itself: what a node sends, polls for and repeats.

use super::*;
use ncmesh_engine::TxResult::{Acked, Failed, Sent};
use ncmesh_engine::rng::{stream, unit};
use proptest::prelude::*;

const AT: Instant = Instant::from_nanos(0);
/// Airtime of a packet. Polls are repeated after 20 ms then.
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

/// Sends the next one of `packets`, all held, to `to`; the MAC reports `result`.
fn send(
    arq: &mut Arq,
    packets: u8,
    to: Option<NodeId>,
    result: TxResult,
    now: Instant,
) -> Option<NextPacket> {
    let held = PacketSet::first_of(packets);
    let next = arq.next(held, now)?;
    arq.note_sent(next, held);
    arq.handle_tx_result(OnAir { packet: next.packet, to }, result, AIR, now);
    Some(next)
}

fn plain(packet: u8) -> Option<NextPacket> {
    Some(NextPacket { packet, poll: None })
}

fn polling(packet: u8, poll: u32) -> Option<NextPacket> {
    Some(NextPacket { packet, poll: Some(poll) })
}

#[test]
fn the_last_packet_polls_and_missing_packets_are_sent_again() {
    let mut a = arq(&[CHILD, OTHER], 3);
    let send = |a: &mut Arq| send(a, 3, None, Sent, AT);
    assert_eq!([send(&mut a), send(&mut a), send(&mut a)], [plain(0), plain(1), polling(2, 1)]);
    assert_eq!(send(&mut a), None, "reports are awaited");
    a.handle_report(CHILD, 1, set(&[0, 2]), AT);
    assert_eq!(send(&mut a), polling(1, 2));
    // A report says nothing of packets sent after the poll that it answers.
    a.handle_report(OTHER, 1, set(&[2]), AT);
    assert_eq!(send(&mut a), polling(0, 3));
    a.handle_report(OTHER, 3, set(&[0, 1, 2]), AT);
    a.handle_report(CHILD, 3, set(&[0, 1, 2]), AT);
    assert_eq!((send(&mut a), a.poll_timeout(AT)), (None, None));
}

#[test]
fn a_long_generation_polls_in_between() {
    let mut a = arq(&[CHILD], 100);
    let polls: Vec<u8> = (0..100)
        .filter_map(|_| send(&mut a, 100, None, Sent, AT))
        .filter(|next| next.poll.is_some())
        .map(|next| next.packet)
        .collect();
    assert_eq!(polls, [31, 63, 95, 99]);
}

#[test]
fn an_unanswered_poll_is_repeated_with_growing_timeouts() {
    let mut a = arq(&[CHILD], 2);
    let mut now = AT;
    let mut polls = 0;
    send(&mut a, 2, None, Sent, now);
    send(&mut a, 2, None, Sent, now);
    while let Some(at) = a.poll_timeout(now).filter(|at| *at < AT + Duration::from_secs(600)) {
        now = at;
        assert_eq!(send(&mut a, 2, None, Sent, now).map(|next| next.packet), Some(0));
        polls += 1;
    }
    assert!((300..400).contains(&polls), "{polls} polls in ten minutes");
    a.handle_report(CHILD, 2, set(&[0]), now);
    assert_eq!(send(&mut a, 2, None, Sent, now).map(|next| next.packet), Some(1));
}

#[test]
fn packets_that_the_mac_acknowledged_need_no_report_and_failed_ones_do() {
    let mut a = arq(&[CHILD], 3);
    assert_eq!(send(&mut a, 3, Some(CHILD), Acked, AT), plain(0));
    assert_eq!(send(&mut a, 3, Some(CHILD), Failed, AT), plain(1));
    assert_eq!(send(&mut a, 3, Some(CHILD), Acked, AT), None, "a pause after a failure");
    let later = a.poll_timeout(AT).unwrap();
    assert_eq!(send(&mut a, 3, Some(CHILD), Acked, later), polling(2, 1));
    a.handle_report(CHILD, 1, set(&[0, 1, 2]), later);
    assert_eq!(send(&mut a, 3, Some(CHILD), Acked, later), None);
    assert_eq!(a.poll_timeout(later), None);
}

#[test]
fn a_child_has_what_it_passes_on() {
    let mut a = arq(&[CHILD], 2);
    a.note_child_has(CHILD, 0, AT);
    a.note_child_has(NodeId(77), 1, AT);
    assert_eq!(send(&mut a, 2, None, Sent, AT), polling(1, 1));
}

#[test]
fn a_child_that_lost_its_generation_gets_it_again() {
    let mut a = arq(&[CHILD], 2);
    for _ in 0..2 {
        send(&mut a, 2, Some(CHILD), Acked, AT);
    }
    let held = PacketSet::first_of(2);
    a.poll_if_stalled(held, AT);
    assert_eq!(a.next(held, AT), None, "only after a while");
    let later = AT + STALL;
    a.poll_if_stalled(held, later);
    let polling = a.next(held, later).unwrap();
    assert!(polling.poll.is_some());
    a.note_sent(polling, held);
    let on_air = OnAir { packet: polling.packet, to: Some(CHILD) };
    a.handle_tx_result(on_air, Acked, AIR, later);
    a.poll_if_stalled(held, later);
    assert_eq!(a.next(held, later), None, "once");
    a.handle_report(CHILD, polling.poll.unwrap(), set(&[polling.packet]), later);
    assert_eq!(send(&mut a, 2, Some(CHILD), Acked, later).map(|next| next.packet), Some(1));
}

#[test]
fn new_children_are_polled_at_once_and_former_ones_are_not_served() {
    let mut a = arq(&[CHILD], 2);
    for _ in 0..2 {
        send(&mut a, 2, Some(CHILD), Acked, AT);
    }
    a.set_children([CHILD, OTHER].into_iter(), AT);
    assert_eq!(send(&mut a, 2, None, Sent, AT), plain(0));
    a.set_children([CHILD].into_iter(), AT);
    let told = send(&mut a, 2, None, Sent, AT).unwrap();
    assert!(told.poll.is_some(), "the one that stays learns of the new plan");
    a.set_children([].into_iter(), AT);
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
        let nothing = |child: &NodeId| (*child, PacketSet::default());
        let mut has: BTreeMap<NodeId, PacketSet> = children.iter().map(nothing).collect();
        let mut a = arq(&children, packets);
        let all = PacketSet::first_of(packets);
        let mut now = AT;
        let mut sent = 0u32;
        let mut reports: Vec<(NodeId, u32, PacketSet)> = Vec::new();
        while has.values().any(|has| *has != all) {
            let Some(next) = a.next(all, now) else {
                let at = a.poll_timeout(now);
                prop_assert!(at.is_some(), "idle though a packet is missing");
                now = at.unwrap();
                continue;
            };
            a.note_sent(next, all);
            for (child, loss) in children.iter().zip(&losses) {
                if unit(&mut rng) < *loss {
                    continue;
                }
                has.get_mut(child).unwrap().insert(next.packet);
                if let Some(poll) = next.poll {
                    reports.push((*child, poll, has[child]));
                }
            }
            a.handle_tx_result(OnAir { packet: next.packet, to: None }, Sent, AIR, now);
            now = now + AIR;
            if unit(&mut rng) < 0.5 {
                for (child, poll, has) in reports.drain(..).filter(|_| unit(&mut rng) < 0.7) {
                    a.handle_report(child, poll, has, now);
                }
            }
            sent += 1;
            prop_assert!(sent < 200_000);
        }
    }
}
