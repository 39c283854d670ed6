//! A member that writes single frames in the name of others, and somebody without the key who holds
//! frames back. Nothing that a frame makes nodes believe lasts.

use ncmesh_engine::counters::DropReason;
use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::Metric;
use ncmesh_sim::{Event, Observer, Simulation, SimulationConfig, What, node_id};
use ncmesh_stack::control::{HELLO, SERVICE};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_stack::trust::TrustMode;
use ncmesh_tests::{contents, links, mesh, settled};
use ncmesh_wire::{Cipher, NodeId, Salt, Sealer, Versions, Writer};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Time between two looks at a mesh.
const LOOK: Duration = Duration::from_millis(100);
/// Time in which a node is heard again whose links others measure anew.
const AGAIN: Duration = Duration::from_secs(8);
/// Counter that is written for one ahead of all that a node has used: it goes on meanwhile.
const AHEAD: u32 = 20_000;

/// A line of four nodes, with the settings of daemons.
fn line(seed: u64) -> Simulation {
    line_that_trusts(TrustMode::Key, seed)
}

fn line_that_trusts(trust: TrustMode, seed: u64) -> Simulation {
    let with = [(0, 1, 0.05), (1, 2, 0.05), (2, 3, 0.05)];
    settled(SimulationConfig {
        link: LinkConfig::default(),
        route: RouteConfig::default(),
        trust,
        ..mesh(links(4, &with), seed)
    })
}

fn salt(s: &Simulation, node: usize) -> Salt {
    s.host(node).stack().unwrap().salt()
}

fn epoch(s: &Simulation, node: usize) -> u64 {
    s.host(node).stack().unwrap().epoch()
}

/// Start of a frame's sender.
#[derive(Clone, Copy)]
struct Start {
    node: NodeId,
    salt: Salt,
}

/// Returns the present start of a node.
fn start(s: &Simulation, node: usize) -> Start {
    Start { node: node_id(node), salt: salt(s, node) }
}

/// Returns a hello that promises the next one within 1 s, sealed as a frame of a start, with these
/// proofs and states.
fn hello(s: &Simulation, from: Start, counter: u32, proofs: &[u8], states: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    Sealer::begin(&mut frame, SERVICE, HELLO);
    let mut w = Writer::new(&mut frame);
    w.u16(1000).u16(0).u16(0).u16(1).u64(0).u8(0).u8(0);
    frame.extend_from_slice(proofs);
    frame.extend_from_slice(states);
    Sealer::resume(s.config().cipher(), from.node, from.salt, counter - 1)
        .seal(&mut frame, Versions::OWN.newest);
    frame
}

/// Proofs that list nothing.
const NO_PROOFS: [u8; 2] = [0, 0];

/// A lie about the links of a node.
#[derive(Clone, Copy)]
struct Lie {
    epoch: u64,
    number: u32,
}

/// Returns states without links of all nodes, in these versions.
fn dark(versions: impl IntoIterator<Item = Lie>) -> Vec<u8> {
    let mut states = Vec::new();
    for (node, Lie { epoch, number }) in versions.into_iter().enumerate() {
        let mut w = Writer::new(&mut states);
        // Whole, for the whole mesh, at once.
        w.node(node_id(node)).u8(0xFF).u32(number).u16(0).u64(epoch).short_bytes(b"n").u8(0);
    }
    states
}

fn all_reach_all(s: &Simulation) -> bool {
    let lacks = |from, to| s.lacks_path(from, to, Metric::Unicast);
    (0..s.len()).all(|from| (0..s.len()).all(|to| !lacks(from, to)))
}

/// Runs until all nodes reach each other. Returns how long it took.
fn time_to_light(s: &mut Simulation) -> Duration {
    let start = s.now();
    while !all_reach_all(s) {
        s.run_for(LOOK);
        assert!(s.now().since(start) < Duration::from_secs(300), "the mesh stays dark");
    }
    s.now().since(start)
}

/// Asserts that a node has links in both directions, and packets get through.
fn assert_whole(s: &mut Simulation, about: &str) {
    assert!(all_reach_all(s), "{about}: a path is gone");
    s.take_packets();
    for _ in 0..20 {
        s.send_packet("forward", 0, 3, &contents(300)).unwrap();
        s.send_packet("forward", 3, 0, &contents(300)).unwrap();
        s.run_for(LOOK);
    }
    s.run_for(Duration::from_secs(1));
    let arrived = s.take_packets().len();
    assert!(arrived >= 38, "{about}: {arrived} of 40 packets");
}

/// Counters that a liar may write: what the victim has used, and what it may come to.
fn counters() -> [u32; 6] {
    [u32::MAX, u32::MAX - 1, 1 << 31, AHEAD + 30_000, AHEAD + 600, AHEAD]
}

#[test]
fn a_frame_with_a_counter_from_far_ahead_shuts_no_node_out() {
    for (case, counter) in counters().into_iter().enumerate() {
        // The victims hear of it themselves, or only their hearers do; one victim, or all.
        for (is_heard, victims) in [(false, 1..2), (true, 1..2), (false, 0..4), (true, 0..4)] {
            let mut s = line(case as u64);
            for victim in victims.clone() {
                let frame = hello(&s, start(&s, victim), counter, &NO_PROOFS, &[]);
                let hearers = [victim.wrapping_sub(1), victim + 1];
                hearers.into_iter().filter(|n| *n < 4).for_each(|n| s.inject(n, &frame));
                if is_heard {
                    s.inject(victim, &frame);
                }
            }
            s.run_for(AGAIN);
            let about = format!("{counter}, heard: {is_heard}, {victims:?}");
            assert_whole(&mut s, &about);
            s.run_for(Duration::from_secs(70));
            assert_whole(&mut s, &about);
            let is_told = s.host(1).stack().unwrap().is_impersonated();
            // A jump that nobody believes is no lie that had to be answered.
            assert!(is_told || (!is_heard && counter > 1 << 20), "{about}: nothing is said");
        }
    }
}

#[test]
fn a_member_that_goes_on_writing_in_a_name_stops_its_node_only_meanwhile() {
    let mut s = line(1);
    let mut before = salt(&s, 1);
    let mut starts = 0;
    for _ in 0..300 {
        starts += u32::from(salt(&s, 1) != before);
        before = salt(&s, 1);
        for (hearer, counter) in [(0, AHEAD), (2, AHEAD + 5), (0, AHEAD + 3000)] {
            let frame = hello(&s, start(&s, 1), counter, &NO_PROOFS, &[]);
            s.inject(hearer, &frame);
        }
        s.run_for(2 * LOOK);
    }
    assert!((3..=12).contains(&starts), "{starts} starts in a minute");
    let dark = time_to_light(&mut s);
    // The others had forgotten it, and what was forgotten is not believed again for 30 s.
    assert!(dark <= Duration::from_secs(45), "{dark:?} after the member stopped");
    s.run_for(2 * AGAIN);
    assert_whole(&mut s, "after the member stopped");
}

/// Frames of a node come back to it, and frames that others write as if they came from it.
#[test]
fn frames_that_a_node_has_sent_and_frames_without_the_key_begin_no_start() {
    let mut s = line(2);
    let recording = Rc::new(RefCell::new(Recording::default()));
    s.observe(Box::new(Rc::clone(&recording)));
    s.run_for(Duration::from_secs(5));
    let before = salt(&s, 1);
    for (_, frame) in recording.take().0 {
        s.inject(1, &frame);
    }
    let mut garbage = hello(&s, start(&s, 1), AHEAD, &NO_PROOFS, &[]);
    *garbage.last_mut().unwrap() ^= 1;
    s.inject(1, &garbage);
    s.run_for(Duration::from_secs(20));
    assert_eq!(salt(&s, 1), before);
    assert!(!s.host(1).stack().unwrap().is_impersonated());
}

#[test]
fn a_start_that_a_member_foretells_takes_no_place() {
    let mut s = line(3);
    let next = s.config().cipher().next_salt(node_id(1), salt(&s, 1));
    let frame = hello(&s, Start { node: node_id(1), salt: next }, 1, &NO_PROOFS, &[]);
    [0, 2].into_iter().for_each(|hearer| s.inject(hearer, &frame));
    for _ in 0..20 {
        s.run_for(LOOK);
        assert!(all_reach_all(&s));
    }
    assert_whole(&mut s, "afterwards");
}

/// Tells node 0 states of all nodes, as a member that proves that it is there: by the first frame
/// of node 0. Each lie is its own start.
fn lie(s: &mut Simulation, versions: [Lie; 4], number: u8) {
    let mut proofs = vec![0, 0x10];
    Writer::new(&mut proofs).node(node_id(0)).u64(salt(s, 0).start().0).u32(1);
    let from = Start { node: NodeId(100 + u16::from(number)), salt: Salt([number; 16]) };
    let frame = hello(s, from, 1, &proofs, &dark(versions));
    s.inject(0, &frame);
}

/// Versions that a liar may tell, above those that nodes have told.
fn versions(s: &Simulation, case: usize) -> [Lie; 4] {
    core::array::from_fn(|node| {
        let own = epoch(s, node);
        match case {
            0 => Lie { epoch: (1 << 62) - 1, number: u32::MAX },
            1 => Lie { epoch: 1 << 58, number: u32::MAX },
            2 => Lie { epoch: (1 << 58) - 1, number: 1 },
            3 => Lie { epoch: (1 << 58) + 1, number: 1 },
            4 => Lie { epoch: own, number: u32::MAX },
            5 => Lie { epoch: own, number: 1000 },
            6 => Lie { epoch: own + 1, number: 1 },
            _ => Lie { epoch: own.max(1 << 58) + (1 << 16), number: u32::MAX },
        }
    })
}

const CASES: usize = 8;

#[test]
fn a_frame_with_states_of_all_nodes_makes_no_mesh_dark() {
    for case in 0..CASES {
        let mut times: Vec<Duration> = (0..5).map(|seed| dark_after_a_lie(case, seed)).collect();
        times.sort_unstable();
        println!("case {case}: dark for {times:?}");
        assert!(times[2] <= Duration::from_millis(2500), "case {case}: dark for {times:?}");
        // Where a frame that answers the lie is lost, the next one comes later.
        assert!(times[4] <= Duration::from_secs(8), "case {case}: dark for {times:?}");
    }
}

#[test]
fn with_identities_no_lie_is_believed_or_answered() {
    for trust in [TrustMode::FirstUse, TrustMode::Network] {
        for case in 0..CASES {
            let mut s = line_that_trusts(trust, case as u64);
            assert!(all_reach_all(&s), "{trust:?}, case {case}: not settled");
            let epochs: Vec<u64> = (0..4).map(|node| epoch(&s, node)).collect();
            let told = versions(&s, case);
            lie(&mut s, told, 1);
            for _ in 0..50 {
                s.run_for(LOOK);
                assert!(all_reach_all(&s), "{trust:?}, case {case}: dark");
            }
            let now: Vec<u64> = (0..4).map(|node| epoch(&s, node)).collect();
            assert_eq!(now, epochs, "{trust:?}, case {case}");
            assert_whole(&mut s, &format!("{trust:?}, case {case}"));
        }
    }
}

#[test]
fn with_identities_a_name_cannot_be_taken() {
    for trust in [TrustMode::FirstUse, TrustMode::Network] {
        let mut s = line_that_trusts(trust, 11);
        take_name(&mut s, 1);
        let named = |s: &Simulation| s.host(0).stack().unwrap().node_named("n04");
        assert_eq!(named(&s), Some(node_id(3)));
        // Nor while its node is away: nobody has it then.
        s.switch_off(3);
        s.run_for(Duration::from_secs(120));
        take_name(&mut s, 2);
        assert_eq!(named(&s), None, "{trust:?}");
    }
}

#[test]
fn with_identities_nodes_restart_and_the_mesh_knows_itself_again() {
    for trust in [TrustMode::FirstUse, TrustMode::Network] {
        let mut s = line_that_trusts(trust, 12);
        for node in 0..4 {
            s.switch_off(node);
            s.run_for(Duration::from_secs(1));
            s.switch_on(node).unwrap();
            let dark = time_to_light(&mut s);
            assert!(dark <= Duration::from_secs(15), "{trust:?}: {dark:?} after node {node}");
        }
        assert_whole(&mut s, "at the end");
    }
}

/// Returns for how long a lie makes a mesh dark, which stays as it was afterwards.
fn dark_after_a_lie(case: usize, seed: u64) -> Duration {
    let mut s = line(case as u64 + 100 * seed);
    let told = versions(&s, case);
    lie(&mut s, told, 1);
    s.run_for(LOOK);
    let dark = LOOK + time_to_light(&mut s);
    for _ in 0..60 {
        s.run_for(Duration::from_secs(1));
        assert!(all_reach_all(&s), "case {case}: dark again");
    }
    assert_whole(&mut s, &format!("case {case}"));
    dark
}

#[test]
fn one_lie_after_another_uses_up_no_numbers() {
    let mut s = line(9);
    for round in 0..200 {
        let told = versions(&s, usize::from(round) % CASES);
        lie(&mut s, told, round);
        s.run_for(2 * LOOK);
    }
    let dark = time_to_light(&mut s);
    assert!(dark <= Duration::from_secs(20), "{dark:?} until the last lie was answered");
    s.run_for(Duration::from_secs(60));
    assert_whole(&mut s, "after many lies");
    assert!((0..4).all(|node| epoch(&s, node) < (1 << 58) + (1 << 40)));
}

#[test]
fn nodes_that_restart_or_were_away_believe_the_mesh_again() {
    let mut s = line(10);
    // The last node is cut off while lies lead all epochs beyond what clocks can tell.
    s.set_loss(2, 3, 1.0).unwrap();
    s.set_loss(3, 2, 1.0).unwrap();
    s.run_for(Duration::from_secs(20));
    for round in 0..5 {
        let told = versions(&s, 7);
        lie(&mut s, told, round);
        s.run_for(Duration::from_secs(10));
    }
    s.set_loss(2, 3, 0.0).unwrap();
    s.set_loss(3, 2, 0.0).unwrap();
    let dark = time_to_light(&mut s);
    assert!(dark <= Duration::from_secs(40), "{dark:?} until the parts knew each other");
    // Restarts one by one, of nodes whose clocks know nothing of those epochs.
    for node in 0..4 {
        s.switch_off(node);
        s.run_for(Duration::from_secs(1));
        s.switch_on(node).unwrap();
        let dark = time_to_light(&mut s);
        assert!(dark <= Duration::from_secs(40), "{dark:?} after the restart of {node}");
    }
    s.run_for(Duration::from_secs(60));
    assert_whole(&mut s, "at the end");
}

/// Tells node 0 a state of the member in which it has the name of node 3.
fn take_name(s: &mut Simulation, number: u8) {
    let mut told = Vec::new();
    let mut w = Writer::new(&mut told);
    let member = NodeId(100 + u16::from(number));
    w.node(member).u8(0xFF).u32(1).u16(0).u64(1).short_bytes(b"n04").u8(0);
    let mut proofs = vec![0, 0x10];
    Writer::new(&mut proofs).node(node_id(0)).u64(salt(s, 0).start().0).u32(1);
    let from = Start { node: member, salt: Salt([number; 16]) };
    let frame = hello(s, from, 1, &proofs, &told);
    s.inject(0, &frame);
}

#[test]
fn a_name_belongs_to_the_node_that_had_it_first() {
    let mut s = line(11);
    let named = |s: &Simulation| s.host(0).stack().unwrap().node_named("n04");
    s.run_for(Duration::from_secs(40));
    take_name(&mut s, 1);
    assert_eq!(s.host(0).stack().unwrap().topology().named("n04").count(), 2);
    assert_eq!(named(&s), Some(node_id(3)));

    // A node that has heard both names shortly after its start cannot tell who had it first.
    s.switch_off(0);
    s.run_for(Duration::from_secs(1));
    s.switch_on(0).unwrap();
    time_to_light(&mut s);
    take_name(&mut s, 2);
    assert_eq!(named(&s), None);
    // The member goes.
    s.run_for(Duration::from_secs(200));
    assert_eq!(named(&s), Some(node_id(3)));
}

/// Frames that were heard, and by whom.
#[derive(Default)]
struct Recording(Vec<(usize, Vec<u8>)>);

impl Observer for Recording {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Heard { frame, .. } = event.what {
            self.0.push((event.node, frame.to_vec()));
        }
        Ok(())
    }
}

/// Somebody without the key keeps a frame from a node, and delivers it two minutes later.
#[test]
fn a_frame_that_is_held_back_for_long_is_not_taken() {
    let mut s = settled(SimulationConfig {
        link: LinkConfig::default(),
        route: RouteConfig::default(),
        ..mesh(links(3, &[(0, 1, 0.0), (1, 2, 0.0)]), 4)
    });
    let recording = Rc::new(RefCell::new(Recording::default()));
    s.observe(Box::new(Rc::clone(&recording)));
    s.set_loss(1, 0, 1.0).unwrap();
    s.send_packet("forward", 1, 2, &contents(300)).unwrap();
    s.run_for(Duration::from_millis(50));
    s.set_loss(1, 0, 0.0).unwrap();
    let recorded = recording.take().0;
    let (_, held) = recorded.into_iter().find(|(node, _)| *node == 2).unwrap();
    // Its sender is quiet: many fewer frames follow than a window is wide.
    s.run_for(Duration::from_secs(120));
    let refused =
        |s: &Simulation| s.host(0).stack().unwrap().counters().dropped(DropReason::Replayed);
    let before = refused(&s);
    s.inject(0, &held);
    assert_eq!(refused(&s), before + 1);
    assert!(matches!(s.config().cipher(), Cipher::Sealed(_)), "the frame was a true one");
}
