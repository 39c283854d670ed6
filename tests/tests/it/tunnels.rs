//! Properties that every tunnel scheme in the registry must have.

use ncmesh_engine::counters::Counters;
use ncmesh_engine::registry::Entry;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::Duration;
use ncmesh_engines::registry;
use ncmesh_sim::{Disturbance, Simulation, SimulationConfig, SimulationError};
use ncmesh_tests::{links, mesh, settled};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

fn tunnels() -> impl Iterator<Item = &'static Entry> {
    registry().of(ServiceKind::Tunnel)
}

/// Two paths from 0 to 3, and 4 behind 3.
fn diamond(seed: u64) -> SimulationConfig {
    let links = links(5, &[(0, 1, 0.2), (0, 2, 0.3), (1, 3, 0.3), (2, 3, 0.1), (3, 4, 0.2)]);
    mesh(links, seed)
}

/// Returns a packet of any length that holds its number.
fn packet(number: u32) -> Vec<u8> {
    let len = 4 + number as usize * 37 % 900;
    let mut packet = number.to_be_bytes().to_vec();
    packet.extend((4..len).map(|i| (i as u32 ^ number) as u8));
    packet
}

/// Offers packets `numbers` from one node to another, one each 30 ms, and runs for eight seconds
/// more. Returns the packets that arrived, in order.
fn carry(
    s: &mut Simulation,
    scheme: &str,
    from: usize,
    to: usize,
    numbers: std::ops::Range<u32>,
) -> Vec<u32> {
    for number in numbers {
        match s.send_packet(scheme, from, to, &packet(number)) {
            Ok(()) | Err(SimulationError::Packet(_)) => {}
            Err(e) => panic!("{scheme}: {e}"),
        }
        s.run_for(Duration::from_millis(30));
    }
    s.run_for(Duration::from_secs(8));
    received(s, scheme, from, to)
}

fn received(s: &mut Simulation, scheme: &str, from: usize, to: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    for arrival in s.take_packets() {
        assert_eq!((arrival.from, arrival.to), (NodeId(from as u16 + 1), to), "{scheme}");
        let number = u32::from_be_bytes(*arrival.packet.first_chunk().unwrap());
        assert_eq!(arrival.packet, packet(number), "{scheme}: other bytes than were sent");
        numbers.push(number);
    }
    numbers
}

/// Checks that none came twice, and that at least `least` came.
fn check(scheme: &str, numbers: &[u32], least: usize) {
    let mut times = BTreeMap::new();
    numbers.iter().for_each(|number| *times.entry(*number).or_insert(0) += 1);
    assert!(times.values().all(|times| *times == 1), "{scheme}: {times:?}");
    assert!(numbers.len() >= least, "{scheme}: {} of at least {least}", numbers.len());
}

#[test]
fn packets_arrive_as_they_were_sent_once_and_both_ways() {
    for engine in tunnels() {
        let mut s = settled(diamond(1));
        let there = carry(&mut s, engine.name, 0, 4, 0..300);
        check(engine.name, &there, 290);
        let back = carry(&mut s, engine.name, 4, 0, 300..500);
        check(engine.name, &back, 190);
        if engine.name == ncmesh_engine_mc2::NAME {
            assert!(there.is_sorted() && back.is_sorted(), "in their order");
        }
    }
}

#[test]
fn sparse_packets_do_not_wait_for_others() {
    for engine in tunnels() {
        let mut s = settled(diamond(4));
        for number in 0..10 {
            s.send_packet(engine.name, 0, 4, &packet(number)).unwrap();
            s.run_for(Duration::from_millis(500));
            assert_eq!(received(&mut s, engine.name, 0, 4), [number], "{}", engine.name);
        }
    }
}

/// Between two ends are ten relays, of which another one has good links every second, so each end
/// hears from many. What it owes to each is said some day, and then nothing more is.
#[test]
fn a_mesh_falls_silent_once_its_packets_have_arrived() {
    let ways = (1..=10).flat_map(|relay| [(0, relay, 0.5), (relay, 11, 0.5)]);
    let ways: Vec<(usize, usize, f64)> = ways.collect();
    for engine in tunnels() {
        let frames = |s: &Simulation| -> u64 {
            let counters = (0..12).map(|node| s.host(node).stack().unwrap().counters());
            let sent = counters.flat_map(Counters::all_sent);
            sent.filter(|((service, _), _)| *service == engine.id).map(|(_, t)| t.frames).sum()
        };
        let mut s = settled(mesh(links(12, &ways), 6));
        for number in 0..800 {
            if number % 40 == 0 {
                let relay = 1 + number as usize / 40 % 10;
                for (other, loss) in (1..=10).map(|n| (n, if n == relay { 0.1 } else { 0.5 })) {
                    for end in [0, 11] {
                        s.set_loss(end, other, loss).unwrap();
                        s.set_loss(other, end, loss).unwrap();
                    }
                }
            }
            let _ = s.send_packet(engine.name, 0, 11, &packet(number));
            let _ = s.send_packet(engine.name, 11, 0, &packet(number));
            s.run_for(Duration::from_millis(25));
        }
        s.run_for(Duration::from_secs(10));
        let before = frames(&s);
        s.run_for(Duration::from_secs(5));
        let more = frames(&s) - before;
        assert!(more <= 20, "{}: {more} frames in 5 s, after {before}", engine.name);
    }
}

#[test]
fn one_seed_gives_one_trace_and_another_gives_another() {
    for engine in tunnels() {
        let hash = |seed| {
            let mut s = settled(diamond(seed));
            carry(&mut s, engine.name, 0, 4, 0..50);
            s.trace_hash()
        };
        assert_eq!(hash(7), hash(7), "{}", engine.name);
        assert_ne!(hash(7), hash(8), "{}", engine.name);
    }
}

#[test]
fn asking_changes_nothing() {
    for engine in tunnels() {
        let run = |curious: bool| {
            let mut s = settled(diamond(3));
            (0..40).for_each(|i| s.send_packet(engine.name, 0, 4, &packet(i)).unwrap());
            s.run_until(s.now() + Duration::from_secs(2), |s| {
                for node in (0..s.len()).filter(|_| curious) {
                    let stack = s.host(node).stack().unwrap();
                    assert_eq!(stack.offer(s.now()), stack.offer(s.now()));
                    assert_eq!(stack.poll_timeout(), stack.poll_timeout());
                    let _ = (
                        stack.flows(),
                        stack.can_send(stack.scheme(engine.name).unwrap(), NodeId(5)),
                    );
                }
                false
            });
            s.trace_hash()
        };
        assert_eq!(run(false), run(true), "{}", engine.name);
    }
}

#[test]
fn disorder_loses_little_and_brings_nothing_twice() {
    for engine in tunnels() {
        let mut config = diamond(5);
        config.disturbance = Disturbance { duplicate: 0.2, reorder: 0.2 };
        let mut s = settled(config);
        let numbers = carry(&mut s, engine.name, 0, 4, 0..300);
        check(engine.name, &numbers, 270);
    }
}

/// Any node that dies comes back, and so does the flow.
#[test]
fn a_flow_goes_on_after_any_node_was_killed() {
    for engine in tunnels() {
        for node in 0..5 {
            let mut s = settled(diamond(6));
            carry(&mut s, engine.name, 0, 4, 0..100);
            s.switch_off(node);
            if node != 0 {
                carry(&mut s, engine.name, 0, 4, 100..200);
            }
            s.switch_on(node).unwrap();
            s.run_for(Duration::from_secs(6));
            s.take_packets();
            let numbers = carry(&mut s, engine.name, 0, 4, 200..400);
            let late: Vec<u32> = numbers.into_iter().filter(|number| *number >= 200).collect();
            // Packets queued meanwhile go first, so the queue may be full at the beginning.
            assert!(late.len() >= 150, "{}: {} after node {node}", engine.name, late.len());
        }
    }
}

/// A source that starts again begins new flows, and nobody takes their packets for old ones.
#[test]
fn a_source_that_restarts_is_heard_at_once() {
    for engine in tunnels() {
        let mut s = settled(diamond(7));
        for start in 0..8 {
            s.switch_off(0);
            s.run_for(Duration::from_millis(200));
            s.switch_on(0).unwrap();
            s.run_for(Duration::from_secs(12));
            s.take_packets();
            let numbers = carry(&mut s, engine.name, 0, 4, 0..50);
            assert!(numbers.len() >= 40, "{}: {} at start {start}", engine.name, numbers.len());
        }
    }
}

/// One of two relays dies, and the flow continues over the other.
#[test]
fn a_dead_relay_is_gone_around() {
    for engine in tunnels() {
        let mut s = settled(diamond(8));
        carry(&mut s, engine.name, 0, 4, 0..100);
        s.switch_off(2);
        // Wait until routing has noticed.
        carry(&mut s, engine.name, 0, 4, 100..900);
        let numbers = carry(&mut s, engine.name, 0, 4, 900..1100);
        let late = numbers.iter().filter(|number| **number >= 900).count();
        assert!(late >= 190, "{}: {late}", engine.name);
    }
}

#[test]
fn full_queues_refuse_and_losing_links_do_not_stop_a_flow() {
    for engine in tunnels() {
        let mut s = settled(diamond(9));
        let mut taken = 0;
        while s.can_send(engine.name, 0, 4) {
            s.send_packet(engine.name, 0, 4, &packet(taken)).unwrap();
            taken += 1;
            assert!(taken < 5000, "{}: no bound", engine.name);
        }
        let refused = s.send_packet(engine.name, 0, 4, &packet(taken)).unwrap_err();
        assert_eq!(refused.to_string(), "the queue is full", "{}", engine.name);
        // The better path gets worse during the flow.
        s.set_loss(1, 3, 0.6).unwrap();
        s.set_loss(2, 3, 0.6).unwrap();
        s.run_for(Duration::from_secs(5));
        let numbers = received(&mut s, engine.name, 0, 4);
        check(engine.name, &numbers, taken as usize * 8 / 10);
    }
}

/// A combination over a poor link holds many packets and is of use once the last of them is there:
/// that must not take so long that the destination cannot keep them.
#[test]
fn braid_delivers_what_arrives_over_a_poor_link_while_more_follows() {
    for seed in 1..=2 {
        let hops = [(0, 1, 0.5), (1, 2, 0.73), (2, 3, 0.2), (3, 4, 0.3), (4, 5, 0.0)];
        let mut s = settled(mesh(links(6, &hops), seed));
        let mut taken = 0;
        for number in 0..4000 {
            let mut full = packet(number);
            full.resize(1300, 0);
            taken += usize::from(s.send_packet("braid", 0, 5, &full).is_ok());
            s.run_for(Duration::from_millis(5));
        }
        s.run_for(Duration::from_secs(8));
        let arrived = s.take_packets().len();
        assert!(taken > 500 && arrived > taken * 9 / 10, "seed {seed}: {arrived} of {taken}");
    }
}
