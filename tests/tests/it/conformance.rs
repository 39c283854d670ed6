//! Properties that every engine in the registry must have.

use ncmesh_engine::registry::Entry;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engines::registry;
use ncmesh_sim::{Disturbance, SimulationConfig};
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_tests::{contents, links, mesh, settled, transfer};
use ncmesh_wire::{Cipher, NodeId, Salt, Sealer, Versions, frame};
use rand_core::RngCore;

/// Five nodes: two paths from 0 to 3, and 4 behind 3.
fn diamond(seed: u64) -> SimulationConfig {
    let links = links(5, &[(0, 1, 0.2), (0, 2, 0.3), (1, 3, 0.3), (2, 3, 0.1), (3, 4, 0.2)]);
    mesh(links, seed)
}

fn file_engines() -> impl Iterator<Item = &'static Entry> {
    registry().of(ServiceKind::File)
}

/// A single node, which the test feeds with frames.
fn lone_stack() -> Stack {
    let config = diamond(1);
    let stack = StackConfig {
        node: NodeId(1),
        name: "n01".into(),
        profile: Default::default(),
        salt: Salt([1; 16]),
        epoch: 1,
        seed: 1,
        mtu: 1500,
        versions: Versions::OWN,
        cipher: Cipher::Null,
        trust: Default::default(),
        link: config.link,
        route: config.route,
        share: config.share,
        engines: toml::Table::new(),
        file: Default::default(),
    };
    let mut stack = Stack::new(stack, registry(), Instant::default()).unwrap();
    stack.trust_all();
    stack
}

#[test]
fn a_file_arrives_whole_at_every_receiver() {
    for engine in file_engines() {
        let s = transfer(engine, diamond(1), 150_000);
        let flow = s.host(0).stack().unwrap().transfers()[0].flow;
        for node in 1..5 {
            assert_eq!(s.host(node).storage().received(flow), contents(150_000), "{}", engine.name);
        }
    }
}

#[test]
fn one_seed_gives_one_trace_and_another_gives_another() {
    for engine in file_engines() {
        let hash = |seed| transfer(engine, diamond(seed), 60_000).trace_hash();
        assert_eq!(hash(7), hash(7), "{}", engine.name);
        assert_ne!(hash(7), hash(8), "{}", engine.name);
    }
}

#[test]
fn asking_changes_nothing() {
    for engine in file_engines() {
        let run = |curious: bool| {
            let mut s = settled(diamond(3));
            s.send_file(engine.name, 0, Some(&[3, 4]), contents(40_000)).unwrap();
            s.run_until(s.now() + Duration::from_secs(3), |s| {
                for node in (0..s.len()).filter(|_| curious) {
                    let stack = s.host(node).stack().unwrap();
                    assert_eq!(stack.offer(s.now()), stack.offer(s.now()));
                    assert_eq!(stack.poll_timeout(), stack.poll_timeout());
                    let _ = stack.transfers();
                }
                false
            });
            s.trace_hash()
        };
        assert_eq!(run(false), run(true), "{}", engine.name);
    }
}

#[test]
fn frames_fit_the_radio() {
    for engine in file_engines() {
        for mtu in [400, 1472, 2300] {
            // The medium accepts every frame of this length, so it sends what the engine wrote.
            let s = transfer(engine, SimulationConfig { mtu, ..diamond(4) }, 30_000);
            for node in 0..s.len() {
                let counters = s.host(node).stack().unwrap().counters().clone();
                for (name, tally) in counters.all_sent() {
                    assert!(tally.bytes <= tally.frames * mtu as u64, "{name:?} over {mtu}");
                }
            }
        }
    }
}

#[test]
fn an_idle_node_wakes_for_hellos_and_states_only() {
    let mut stack = lone_stack();
    let mut storage = MemoryStorage::default();
    let mut out = Vec::new();
    let mut wakes = 0;
    let mut now = Instant::default();
    while now < Instant::from_nanos(600_000_000_000) {
        while stack.offer(now).is_some() {
            assert!(
                stack.at(now, &mut storage).fill(&mut out).is_some(),
                "an offer with nothing in it"
            );
        }
        let next = stack.poll_timeout().expect("hellos go on");
        assert!(next > now, "a timeout that does not move on");
        now = next;
        stack.at(now, &mut storage).handle_timeout();
        wakes += 1;
    }
    // Two hellos and five looks at the measurements a second, and the node's own state.
    assert!(wakes < 600 * 8, "{wakes} wakes in ten minutes");
}

#[test]
fn without_an_offer_nothing_is_filled() {
    let mut stack = lone_stack();
    let mut storage = MemoryStorage::default();
    let mut out = Vec::new();
    let now = Instant::default();
    while stack.at(now, &mut storage).fill(&mut out).is_some() {}
    assert_eq!(stack.offer(now), None);
}

/// Authenticated frames with random contents: from a faulty neighbour, or an insider.
#[test]
fn nonsense_is_counted_and_leaves_the_engine_at_work() {
    for engine in registry().entries() {
        let mut stack = lone_stack();
        let mut storage = MemoryStorage::default();
        let mut rng = rng::stream(9, NodeId(0), engine.name, "nonsense");
        let mut sealer = Sealer::new(Cipher::Null, NodeId(66), Salt([1; 16]));
        let mut datagram = Vec::new();
        let rounds: u64 = 20_000;
        for i in 0..rounds {
            let kind = (rng.next_u32() % 5) as u8;
            Sealer::begin(&mut datagram, engine.id, kind);
            let len = rng.next_u32() as usize % 200;
            let start = datagram.len();
            datagram.resize(start + len, 0);
            rng.fill_bytes(&mut datagram[start..]);
            sealer.seal(&mut datagram, Versions::OWN.newest);
            let now = Instant::from_nanos(i * 1_000_000);
            stack.at(now, &mut storage).handle_datagram(&datagram);
            stack.at(now, &mut storage).handle_timeout();
            while stack.at(now, &mut storage).fill(&mut datagram).is_some() {}
        }
        let heard: u64 = stack.counters().all_heard().map(|(_, t)| t.frames).sum();
        assert_eq!(heard, rounds);
        let dropped: u64 = stack.counters().drops().map(|(_, n)| n).sum();
        assert!(dropped > rounds / 2, "{}: {dropped} of {rounds} dropped", engine.name);
        assert!(stack.transfers().len() <= 64, "{}: state grew", engine.name);
    }
}

/// Data packets of the transfer as an insider would forge them, most with a flipped bit.
#[test]
fn forged_packets_never_break_a_file_and_do_not_stop_it() {
    for engine in file_engines() {
        let mut config = diamond(5);
        config.sealed = false;
        let settings = format!("{}.symbol_size = 1300\n{0}.generation = 32", engine.name);
        config.engines = toml::from_str(&settings).unwrap();
        let mut s = settled(config);
        let to = [1, 2, 3, 4];
        s.trust_all();
        let flow = s.send_file(engine.name, 0, Some(&to), contents(50_000)).unwrap();
        let mut rng = rng::stream(5, NodeId(0), engine.name, "bits");
        let mut forger = Sealer::new(Cipher::Null, NodeId(77), Salt([1; 16]));
        for i in 0..2000 {
            s.run_for(Duration::from_millis(2));
            let mut bad = forged(&mut forger, engine, i);
            let at = frame::HEADER_LEN + 2 + rng.next_u32() as usize % 60;
            bad[at] ^= ((rng.next_u32() % 2) << (rng.next_u32() % 8)) as u8;
            s.inject(rng.next_u32() as usize % 5, &bad);
        }
        let limit = s.now() + Duration::from_secs(600);
        assert!(s.run_until(limit, ncmesh_tests::ended), "{} did not end", engine.name);
        for node in to {
            assert_eq!(s.host(node).storage().received(flow), contents(50_000));
        }
    }
}

/// Sealed data packets of transfer 1-00000001, generation 0, one for each kind of routing in turn.
fn forged(forger: &mut Sealer, engine: &Entry, i: u32) -> Vec<u8> {
    let mut frame = Vec::new();
    Sealer::begin(&mut frame, engine.id, 1);
    frame.extend_from_slice(&[0, 1, 0, 0, 0, 1]);
    // Incarnation 1, visit 1, generation 0, 32 packets.
    frame.extend_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 32]);
    match i % 3 {
        // Node 2 forwards with credit 1.
        0 => frame.extend_from_slice(&[0, 1, 0, 2, 1, 0]),
        1 => frame.extend_from_slice(&[4, 1, 0, 2, 1, 0, 0, 0]),
        // Node 2 behind node 1, systematic.
        _ => frame.extend_from_slice(&[9, 1, 0, 2, 0, 1, 0, (i % 32) as u8]),
    }
    let vector = if i % 3 == 2 { 0 } else { 32 };
    frame.resize(frame.len() + vector + 1300, 7);
    forger.seal(&mut frame, Versions::OWN.newest);
    frame
}

#[test]
fn disorder_on_the_way_to_the_node_is_survived() {
    for engine in file_engines() {
        let mut config = diamond(6);
        config.disturbance = Disturbance { duplicate: 0.2, reorder: 0.2 };
        let s = transfer(engine, config, 80_000);
        let flow = s.host(0).stack().unwrap().transfers()[0].flow;
        assert_eq!(s.host(4).storage().received(flow), contents(80_000));
    }
}
