//! Control frames of members that lie, contradict themselves, or are out of their mind.
//!
//! They have the key of the network, so every frame is authentic. Nothing they send may cause a
//! panic, more memory than the bounds allow, or more frames than the budget of control. Everything
//! that is refused is counted.
// `GlobalAlloc` is an unsafe trait, and there is no other way to count memory.
#![allow(unsafe_code)]
// A helper outside the `#[test]` functions fails its test where it unwraps.
#![allow(clippy::unwrap_used)]

mod lone;

use lone::*;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::Instant;
use ncmesh_stack::control::{COMPARE, HELLO, PROBE, REQUEST, VERSIONS};
use ncmesh_wire::NodeId;

/// Parts into which a range of many states is split, and the length of one in a frame, bytes.
const PARTS: usize = 16;
const RANGE_LEN: usize = 2 + 2 + 8;

/// Tells invented nodes, four in a frame. Each says that it hears `heard`.
fn invent(lone: &mut Lone, nodes: impl IntoIterator<Item = u16>, heard: &[(u16, u8)], ms: u64) {
    let nodes: Vec<u16> = nodes.into_iter().collect();
    for (index, nodes) in nodes.chunks(4).enumerate() {
        let states: Vec<u8> =
            nodes.iter().flat_map(|node| whole(*node, 1, 0, 1, b"invented", heard)).collect();
        lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &states));
        if index % 20 == 0 {
            lone.hear_the_honest();
        }
        lone.run(ms);
    }
}

#[test]
fn a_thousand_invented_nodes_move_no_path_and_are_passed_on_within_the_budget() {
    let mut lone = Lone::settled();
    let bytes = bytes_held();
    let since = lone.begin();
    let heard: Vec<(u16, u8)> = (0..20).map(|i| (1000 + 50 * i, 255)).collect();
    invent(&mut lone, 1000..2000, &heard, 40);
    let grown = bytes_held() - bytes;
    assert!(grown < 8 << 20, "{grown} bytes for a thousand nodes");
    assert_eq!(lone.hops(FAR), Some(vec![NEAR, FAR]));
    assert!(lone.knows(1999) && lone.hops(1999).is_none());
    // Saved airtime, hellos and the frame that overdraws the budget come on top of it.
    let load = lone.load(since);
    assert!(load < 2.0 * BUDGET, "{load} of the airtime");
}

#[test]
fn invented_neighbours_take_no_more_memory_each_the_more_there_are() {
    let grown = |nodes: u16| {
        let mut lone = Lone::settled();
        let bytes = bytes_held();
        invent(&mut lone, 1000..1000 + nodes, &[(ME, 255)], 5);
        lone.sent = Vec::new();
        (bytes_held() - bytes) / isize::try_from(nodes).unwrap()
    };
    let few = grown(500);
    let many = grown(4000);
    assert!(many < 2 * few.max(1024), "{few} bytes for each of 500, {many} for each of 4,000");
}

#[test]
fn invented_nodes_that_nobody_hears_are_forgotten() {
    let mut lone = Lone::settled();
    invent(&mut lone, 1000..1100, &[], 10);
    assert!(lone.knows(1000));
    for _ in 0..80 {
        lone.hear_the_honest();
        lone.run(1000);
    }
    assert!(!lone.knows(1000) && lone.knows(FAR));
    // A node that was forgotten is not believed again at once.
    let stale = lone.dropped(DropReason::Stale);
    lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &whole(1000, 1, 0, 1, b"x", &[])));
    assert!(!lone.knows(1000));
    assert_eq!(lone.dropped(DropReason::Stale), stale + 1);
}

#[test]
fn more_nodes_than_are_kept_are_counted() {
    let mut lone = Lone::settled();
    for first in (100..30_100).step_by(60) {
        let states: Vec<u8> =
            (first..first + 60).flat_map(|n| whole(n, 1, 0, 1, b"", &[])).collect();
        lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &states));
    }
    assert_eq!(lone.stack.topology().len(), 20_000);
    assert!(lone.dropped(DropReason::Full) >= 10_000);
    assert_eq!(lone.hops(FAR), Some(vec![NEAR, FAR]));
    lone.run(1000);
}

#[test]
fn states_that_contradict_or_are_old_change_nothing() {
    let mut lone = Lone::settled();
    let before = lone.stack.topology().state(NodeId(FAR)).unwrap().clone();
    for state in [
        // The same version with other links, an older number, an older epoch.
        whole(FAR, 1, 0, 1, b"x", &[(LIAR, 255)]),
        whole(FAR, 0, 0, 1, b"x", &[]),
        whole(FAR, u32::MAX, 0, 0, b"x", &[]),
        // Changes of the same version, of one that nobody has, of another epoch, backwards.
        change(FAR, 1, 0, 1, 0, &[(NEAR, 0)]),
        change(FAR, 9, 0, 1, 3, &[(NEAR, 0)]),
        change(FAR, 9, 0, 2, 9, &[(NEAR, 0)]),
        change(FAR, 0, 0, 1, 1, &[(NEAR, 0)]),
    ] {
        lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &state));
        assert_eq!(lone.stack.topology().state(NodeId(FAR)), Some(&before), "{state:02x?}");
        lone.run(50);
    }
    assert_eq!(lone.hops(FAR), Some(vec![NEAR, FAR]));
}

#[test]
fn the_highest_number_of_a_state_does_not_wrap() {
    let mut lone = Lone::settled();
    let last = whole(FAR, u32::MAX, u16::MAX, 1, b"n3", &[(NEAR, 200)]);
    lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &last));
    let state = lone.stack.topology().state(NodeId(FAR)).unwrap();
    assert_eq!((state.version, state.base), ((1, u32::MAX), u32::MAX - 65_535));
    // A number that lies before its base, and changes beyond the end.
    for state in [
        whole(FAR, 3, 9, 1, b"n3", &[]),
        change(FAR, 0, 0, 1, 1, &[(NEAR, 1)]),
        change(FAR, 5, 9, 1, 9, &[(NEAR, 1)]),
    ] {
        lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &state));
        lone.run(200);
    }
    let state = lone.stack.topology().state(NodeId(FAR)).unwrap();
    assert_eq!((state.version, state.hears.len()), ((1, u32::MAX), 1));
    // Only another epoch comes after it.
    let next = whole(FAR, 1, 0, 2, b"n3", &[(NEAR, 100)]);
    lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &next));
    assert_eq!(lone.stack.topology().state(NodeId(FAR)).unwrap().version, (2, 1));
}

/// Returns the latest version of the node's own state that was sent from `since` on.
fn own_version(lone: &Lone, since: Instant) -> Option<(u64, u32)> {
    let hellos = lone.sent.iter().filter(|s| s.kind == HELLO && s.at >= since);
    // A whole state of this node, wherever it is in the frame.
    let find = |body: &[u8]| {
        let starts = body.windows(18).filter(|w| w[..2] == [0, 1] && w[2] & 0x80 != 0);
        let version = |w: &[u8]| {
            let number = u32::from_be_bytes(w[3..7].try_into().unwrap());
            (u64::from_be_bytes(w[9..17].try_into().unwrap()), number)
        };
        starts.filter(|w| w[17] == 2).map(version).max()
    };
    hellos.filter_map(|s| find(&s.body)).max()
}

#[test]
fn a_lie_about_this_node_is_outlived_if_it_can_be() {
    for lie in [(5, 1), (1 << 40, u32::MAX), (1, 1000)] {
        let mut lone = Lone::settled();
        let since = lone.now;
        let state = whole(ME, lie.1, 0, lie.0, b"n1", &[]);
        lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &state));
        for _ in 0..20 {
            lone.hear_the_honest();
            lone.run(200);
        }
        let told = own_version(&lone, since);
        assert!(told > Some(lie), "{told:?} after {lie:?}");
    }
}

/// Each of two nodes with one id tells an epoch above that of the other.
#[test]
fn a_node_that_is_outbid_again_and_again_does_not_flood_the_mesh() {
    let mut lone = Lone::settled();
    let mut epoch = lone.stack.epoch();
    let mut raises = 0;
    for _ in 0..300 {
        let state = whole(ME, 1, 0, epoch + 1, b"n1", &[]);
        lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &state));
        lone.hear_the_honest();
        lone.run(200);
        raises += u32::from(lone.stack.epoch() > epoch);
        epoch = lone.stack.epoch();
    }
    // After pauses of 1, 2, 4, 8, 8, ... seconds.
    assert!((3..=10).contains(&raises), "{raises} times in a minute");
}

/// The greatest epoch that is believed cannot be outlived. The node must not go beyond it, where it
/// would not be believed even by those who never heard the lie.
#[test]
fn a_node_does_not_follow_a_lie_out_of_what_is_believed() {
    for epoch in [(1 << 62) - 1, 1 << 62, u64::MAX] {
        let mut lone = Lone::settled();
        let state = whole(ME, 1, 0, epoch, b"n1", &[]);
        lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &state));
        lone.run(1000);
        assert!(lone.stack.epoch() < 1 << 62, "after {epoch}");
    }
}

/// No epoch grows so far by itself, and nothing could outlive such a state.
#[test]
fn a_state_of_an_impossible_epoch_is_not_believed() {
    for epoch in [1 << 62, u64::MAX] {
        let mut lone = Lone::settled();
        let state = whole(FAR, 1, 0, epoch, b"n3", &[]);
        lone.hear(LIAR, HELLO, &hello(1000, 0, 9, &[], &state));
        assert_eq!(lone.hops(FAR), Some(vec![NEAR, FAR]), "epoch {epoch}");
        // Nor is it asked for, again and again.
        let since = lone.now;
        for _ in 0..20 {
            lone.hear(LIAR, VERSIONS, &versions(ME, FAR, FAR, 1, &[(FAR, epoch, 1)]));
            lone.run(200);
        }
        assert_eq!(lone.count(REQUEST, since), 0, "epoch {epoch}");
    }
}

#[test]
fn counts_of_frames_that_wrap_or_jump_leave_a_delivery_between_0_and_1() {
    let mut lone = Lone::new(1472);
    for (counter, long_sent) in [
        (1, u16::MAX - 1),
        (3, 1),
        (100, 0),
        (1 << 31, u16::MAX),
        (u32::MAX - 1, 5),
        (u32::MAX, u16::MAX),
    ] {
        lone.hear_as(NEAR, 1, counter, HELLO, &hello(250, long_sent, 0, &[], &[]));
        lone.run(250);
        assert!(lone.stack.inbound().all(|(_, d)| (0.0..=1.0).contains(&d)));
    }
    // Its next start is measured anew.
    for counter in 1..=60 {
        lone.hear_as(NEAR, 2, counter, HELLO, &hello(250, 0, 0, &[], &[]));
        lone.run(250);
    }
    let inbound: Vec<_> = lone.stack.inbound().collect();
    assert!(inbound.iter().any(|(node, d)| *node == NodeId(NEAR) && *d > 0.9), "{inbound:?}");
}

#[test]
fn whatever_interval_a_neighbour_promises_hellos_stay_few_and_its_death_is_noticed() {
    for (interval, silence_s) in [(0, 5), (1, 5), (9000, 12), (u16::MAX, 12)] {
        let mut lone = Lone::settled();
        let since = lone.now;
        for i in 0..300 {
            if i % 10 == 0 {
                lone.hear_the_honest();
            }
            lone.hear(LIAR, HELLO, &hello(interval, 0, 7, &[], &[]));
            lone.run(100);
        }
        // Quick hellos are 0.25 s apart, and a question or its answer may come in between.
        let hellos = lone.count(HELLO, since);
        assert!(hellos <= 30 * 8, "{hellos} hellos in 30 s at {interval} ms");
        for _ in 0..silence_s {
            lone.hear_the_honest();
            lone.run(1000);
        }
        assert!(lone.stack.inbound().all(|(node, _)| node != NodeId(LIAR)), "{interval} ms");
        assert!(lone.stack.inbound().any(|(node, _)| node == NodeId(NEAR)), "{interval} ms");
    }
}

#[test]
fn a_neighbour_that_always_asks_is_answered_now_and_then() {
    let mut lone = Lone::settled();
    let everyone: Vec<u16> = (0..16).map(|i| if i == 7 { ME } else { 100 + i }).collect();
    let since = lone.now;
    for _ in 0..1000 {
        lone.hear(LIAR, HELLO, &hello(1000, 0, 7, &everyone, &[]));
        lone.run(2);
    }
    let hellos = lone.count(HELLO, since);
    assert!(hellos >= 2, "{hellos} answers");
    assert!(hellos <= 60, "{hellos} answers to 1,000 questions in 2 s");
    // A hello that asks more than it may is refused as a whole.
    let malformed = lone.dropped(DropReason::Malformed);
    let too_many = [everyone.as_slice(), &[ME]].concat();
    lone.hear(LIAR, HELLO, &hello(1000, 0, 7, &too_many, &[]));
    assert_eq!(lone.dropped(DropReason::Malformed), malformed + 1);
}

#[test]
fn comparisons_of_nonsense_ranges_are_answered_within_the_budget() {
    let mut lone = Lone::settled();
    invent(&mut lone, 1000..1200, &[(1000, 255)], 5);
    lone.run(20_000);
    let since = lone.begin();
    let all = (0, u16::MAX, 1);
    let inverted = (9000, 3, 1);
    for ranges in [
        vec![],
        vec![inverted; 100],
        vec![all; 100],
        vec![(0, 1500, 1), (1000, 1100, 2), (1050, 1050, 3), (u16::MAX, u16::MAX, 4), all],
    ] {
        for _ in 0..20 {
            lone.hear(LIAR, COMPARE, &compare(ME, &ranges));
            lone.run(250);
        }
    }
    // Compared with somebody else: not our business.
    lone.hear(LIAR, COMPARE, &compare(NEAR, &[all]));
    assert_eq!(lone.dropped(DropReason::Malformed), 0);
    let load = lone.load(since);
    assert!(load < 2.0 * BUDGET, "{load} of the airtime");
    // A range that is cut off.
    lone.hear(LIAR, COMPARE, &compare(ME, &[all])[..9]);
    assert_eq!(lone.dropped(DropReason::Malformed), 1);
}

#[test]
fn lists_of_versions_that_promise_more_than_they_hold_are_refused() {
    let mut lone = Lone::settled();
    lone.run(5_000);
    let since = lone.now;
    for (count, listed) in [(1, vec![]), (255, vec![(FAR, 1, 1)]), (2, vec![(500, 1, 1)])] {
        let malformed = lone.dropped(DropReason::Malformed);
        lone.hear(LIAR, VERSIONS, &versions(ME, 0, u16::MAX, count, &listed));
        assert_eq!(lone.dropped(DropReason::Malformed), malformed + 1, "{count}");
    }
    lone.hear(LIAR, REQUEST, &request(ME, [FAR])[..3]);
    assert_eq!(lone.dropped(DropReason::Malformed), 4);
    lone.run(1_000);
    assert_eq!(lone.count(REQUEST, since), 0);
}

#[test]
fn lists_and_requests_for_everything_are_answered_within_the_budget() {
    let mut lone = Lone::settled();
    let heard: Vec<(u16, u8)> = (0..40).map(|i| (1000 + 5 * i, 255)).collect();
    invent(&mut lone, 1000..1200, &heard, 5);
    lone.run(20_000);
    let bytes = bytes_held();
    let since = lone.begin();
    for round in 0..100 {
        // It has nothing at all; it has newer states of nodes that do not exist; it wants all.
        lone.hear(LIAR, VERSIONS, &versions(ME, 0, u16::MAX, 0, &[]));
        let newer: Vec<_> = (0..100).map(|i| (20_000 + 100 * round + i, 9, 9)).collect();
        lone.hear(LIAR, VERSIONS, &versions(ME, 3, 5, 100, &newer));
        lone.hear(LIAR, REQUEST, &request(ME, 900..1500));
        lone.run(200);
    }
    let load = lone.load(since);
    assert!(load < 2.0 * BUDGET, "{load} of the airtime");
    lone.sent = Vec::new();
    let grown = bytes_held() - bytes;
    assert!(grown < 1 << 20, "{grown} bytes");
    assert_eq!(lone.dropped(DropReason::Malformed), 0);
}

/// Frames of more than 500 bytes show how length matters. A radio that takes none sends none.
#[test]
fn probes_are_rare_on_every_radio() {
    for mtu in [256, 400, 501, 600, 1472] {
        let mut lone = Lone::new(mtu);
        for _ in 0..60 {
            lone.hear_the_honest();
            lone.run(1000);
        }
        let probes = lone.count(PROBE, Instant::default());
        assert!(probes <= 20, "{probes} probes in a minute with frames of {mtu} bytes");
    }
}

/// Each comparison makes a node look at all states that it knows.
#[test]
fn comparisons_cost_one_pass_and_each_neighbour_has_a_budget_of_them() {
    let mut lone = Lone::settled();
    invent(&mut lone, 1000..1400, &[(ME, 255)], 5);
    lone.run(20_000);
    let answers = |lone: &Lone, since: Instant| -> Vec<usize> {
        let compares = lone.sent.iter().filter(|s| s.kind == COMPARE && s.at >= since);
        compares.map(|s| (s.body.len() - 2) / RANGE_LEN).collect()
    };
    // The same range again and again, and ranges that lie in each other: only the first counts.
    let all = (0, u16::MAX, 1);
    for ranges in [vec![all; 64], vec![all, (1000, 1200, 2), (1100, 1300, 3), all]] {
        let since = lone.now;
        lone.hear(LIAR, COMPARE, &compare(ME, &ranges));
        lone.run(1000);
        let sizes = answers(&lone, since);
        assert!(sizes.iter().sum::<usize>() <= PARTS, "{sizes:?} ranges");
    }
    // A neighbour that asks for more than it may takes nothing from others.
    let full = lone.dropped(DropReason::Full);
    for _ in 0..150 {
        lone.hear(LIAR, COMPARE, &compare(ME, &[(1000, 1000, 1)]));
    }
    assert!(lone.dropped(DropReason::Full) >= full + 100);
    lone.run(10_000);
    let since = lone.now;
    for _ in 0..200 {
        lone.hear(LIAR, COMPARE, &compare(ME, &[]));
    }
    lone.hear(NEAR, COMPARE, &compare(ME, &[all]));
    lone.run(2000);
    assert_eq!(answers(&lone, since).iter().sum::<usize>(), PARTS);
    // The same holds for lists and requests of everything.
    for (kind, body) in
        [(VERSIONS, versions(ME, 0, u16::MAX, 0, &[])), (REQUEST, request(ME, 900..1500))]
    {
        lone.run(10_000);
        let full = lone.dropped(DropReason::Full);
        (0..150).for_each(|_| lone.hear(LIAR, kind, &body));
        assert!(lone.dropped(DropReason::Full) >= full + 100, "kind {kind}");
    }
}
