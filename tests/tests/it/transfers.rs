//! Transfers of files: receivers that vanish, join late or cancel, sources that restart, files that
//! change, transfers side by side, and the paper's variants.

use ncmesh_engine::file::{ReceiverState, Refusal, Stage, TransferStatus};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::Metric;
use ncmesh_engines::registry;
use ncmesh_sim::{Knowledge, Observation, Observed, Simulation, SimulationConfig, node_id};
use ncmesh_stack::route::RouteConfig;
use ncmesh_tests::{contents, delivered_at, ended, has, links, mesh, settled};

const PACIFIER: &str = "pacifier";

/// Every file scheme.
fn schemes() -> impl Iterator<Item = &'static str> {
    registry().of(ServiceKind::File).map(|e| e.name)
}

fn star(seed: u64) -> SimulationConfig {
    mesh(links(4, &[(0, 1, 0.1), (0, 2, 0.1), (0, 3, 0.5)]), seed)
}

fn status(s: &Simulation, node: usize) -> TransferStatus {
    s.host(node).stack().unwrap().transfers().remove(0)
}

fn state_of(s: &Simulation, receiver: usize) -> ReceiverState {
    let receivers = status(s, 0).receivers;
    receivers.iter().find(|r| r.node == node_id(receiver)).unwrap().state
}

fn within(s: &Simulation, seconds: u64) -> ncmesh_engine::time::Instant {
    s.now() + Duration::from_secs(seconds)
}

#[test]
fn a_vanished_receiver_is_reported_and_resumes_where_it_was() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(star(1));
        let flow = s.send_file(scheme, 0, Some(&[1, 2, 3]), contents(1_200_000)).unwrap();
        assert!(s.run_until(within(&s, 60), |s| status(s, 0).receivers[2].bytes > 100_000));
        s.switch_off(3);
        let others = |s: &Simulation| has(s, 1, flow) && has(s, 2, flow);
        assert!(s.run_until(within(&s, 60), others), "the others were stopped");
        assert!(s.run_until(within(&s, 60), |s| state_of(s, 3) == ReceiverState::Lost));
        assert!(!ended(&s));
        s.switch_on(3).unwrap();
        assert!(s.run_until(within(&s, 120), |s| has(s, 3, flow)));
        let again = status(&s, 3);
        let generations = 1_200_000_u64.div_ceil(32 * 1300);
        assert!(again.innovative < (generations - 2) * 32, "{} packets again", again.innovative);
        assert!(s.run_until(within(&s, 60), ended));
    }
}

#[test]
fn a_restarted_source_goes_on_with_the_same_transfer() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(star(2));
        let flow = s.send_file(scheme, 0, Some(&[1, 2]), contents(400_000)).unwrap();
        s.run_until(within(&s, 60), |s| status(s, 0).receivers[0].bytes > 150_000);
        let before = status(&s, 1).innovative;
        s.switch_off(0);
        s.run_for(Duration::from_secs(2));
        s.switch_on(0).unwrap();
        assert!(s.run_until(within(&s, 120), ended));
        assert!(has(&s, 1, flow) && has(&s, 2, flow));
        let packets = 400_000_u64.div_ceil(1300) + 32;
        assert!(status(&s, 1).innovative <= packets, "received again after {before}");
    }
}

#[test]
fn a_late_joiner_gets_a_file_sent_to_all() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(star(3));
        s.switch_off(3);
        s.run_for(Duration::from_secs(20));
        let flow = s.send_file(scheme, 0, None, contents(2_000_000)).unwrap();
        s.run_for(Duration::from_secs(1));
        s.switch_on(3).unwrap();
        assert!(s.run_until(within(&s, 300), |s| has(s, 3, flow)));
        assert!(s.run_until(within(&s, 60), ended));
    }
}

#[test]
fn transfers_from_several_sources_share_the_channel() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(star(4));
        let a = s.send_file(scheme, 0, Some(&[1, 2]), contents(200_000)).unwrap();
        let b = s.send_file(scheme, 1, Some(&[0, 2]), contents(200_001)).unwrap();
        let c = s.send_file(scheme, 0, Some(&[1]), contents(200_002)).unwrap();
        let at = |s: &Simulation, flow| {
            let end = |seen: &&Observed| seen.observation == Observation::SendEnded(flow);
            s.observations().iter().find(end).map(|seen| seen.at.as_secs_f64())
        };
        let all = |s: &Simulation| [a, b, c].iter().all(|flow| at(s, *flow).is_some());
        assert!(s.run_until(within(&s, 120), all));
        for (node, flow) in [(1, a), (2, a), (0, b), (2, b), (1, c)] {
            assert!(has(&s, node, flow));
        }
        assert_eq!(s.host(2).storage().received(b), contents(200_001));
        assert!(s.host(0).stack().unwrap().transfers().len() == 3);
        let a = at(&s, a).unwrap();
        let c = at(&s, c).unwrap();
        let first = a.min(c);
        let last = a.max(c);
        assert!(last - 6.0 < 2.0 * (first - 6.0), "one starved: {first} and {last}");
    }
}

#[test]
fn a_file_that_changes_is_not_sent_on() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(star(5));
        let flow = s.send_file(scheme, 0, Some(&[1]), contents(900_000)).unwrap();
        s.run_for(Duration::from_millis(300));
        s.replace_outgoing(0, flow, vec![0; 900_000]);
        let failed = |s: &Simulation| {
            let failed = Observation::SendFailed(flow);
            s.observations().iter().any(|seen| seen.observation == failed)
        };
        assert!(s.run_until(within(&s, 60), failed));
        let withdrawn = |s: &Simulation| status(s, 1).stage == Stage::Withdrawn;
        assert!(s.run_until(within(&s, 60), withdrawn));
        assert!(!has(&s, 1, flow));
    }
}

#[test]
fn either_end_can_cancel() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(star(6));
        let flow = s.send_file(scheme, 0, Some(&[1, 2]), contents(500_000)).unwrap();
        s.run_for(Duration::from_millis(300));
        assert!(s.cancel(2, flow));
        let refused = ReceiverState::Refused(Refusal::Cancelled);
        assert!(s.run_until(within(&s, 30), |s| state_of(s, 2) == refused));
        assert!(s.run_until(within(&s, 60), ended));
        assert!(has(&s, 1, flow) && !has(&s, 2, flow));

        let second = s.send_file(scheme, 0, Some(&[1, 2]), contents(500_000)).unwrap();
        s.run_for(Duration::from_millis(500));
        assert!(s.cancel(0, second) && !s.cancel(0, second));
        let told = |s: &Simulation| {
            let done = |n| {
                let withdrawn = Observation::Withdrawn(second);
                s.observations().iter().any(|seen| seen.node == n && seen.observation == withdrawn)
            };
            done(1) && done(2)
        };
        assert!(s.run_until(within(&s, 30), told));
    }
}

#[test]
fn a_receiver_out_of_reach_does_not_stop_the_others() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(mesh(links(4, &[(0, 1, 0.1), (2, 3, 0.1)]), 7));
        let flow = s.send_file(scheme, 0, Some(&[1, 3]), contents(100_000)).unwrap();
        assert!(s.run_until(within(&s, 60), |s| has(s, 1, flow)));
        assert_eq!(state_of(&s, 3), ReceiverState::Invited);
        // When the two meshes join, the transfer continues by itself.
        s.set_loss(1, 2, 0.1).unwrap();
        s.set_loss(2, 1, 0.1).unwrap();
        assert!(s.run_until(within(&s, 120), ended));
        assert!(has(&s, 3, flow));
    }
}

#[test]
fn a_dead_node_disappears_and_a_returned_one_is_used_again() {
    let mut s = settled(mesh(links(4, &[(0, 1, 0.0), (1, 3, 0.0), (0, 2, 0.3), (2, 3, 0.3)]), 8));
    let way = |s: &Simulation| {
        let paths = s.host(0).stack().unwrap().topology().paths_from(node_id(0), Metric::Broadcast);
        paths.path_to(node_id(3))
    };
    assert_eq!(way(&s), [node_id(1), node_id(3)]);
    s.switch_off(1);
    assert!(s.run_until(within(&s, 30), |s| way(s) == [node_id(2), node_id(3)]));
    let known = |s: &Simulation| s.host(0).stack().unwrap().topology().state(node_id(1)).is_some();
    assert!(s.run_until(within(&s, 60), |s| !known(s)));
    s.switch_on(1).unwrap();
    assert!(s.run_until(within(&s, 60), |s| way(s) == [node_id(1), node_id(3)]));
}

fn variant(name: &str, seed: u64) -> SimulationConfig {
    let mut config =
        mesh(links(5, &[(0, 1, 0.3), (1, 2, 0.3), (0, 3, 0.05), (2, 4, 0.5), (1, 4, 0.9)]), seed);
    config.engines = toml::from_str(&format!("pacifier.variant = \"{name}\"")).unwrap();
    config
}

/// Returns when node 3, the well-connected one, had the file, and how many packets the source sent.
fn outcome(name: &str, seed: u64) -> (f64, f64) {
    let mut s = settled(variant(name, seed));
    let start = s.now().as_secs_f64();
    let flow = s.send_file(PACIFIER, 0, Some(&[2, 3, 4]), contents(150_000)).unwrap();
    assert!(s.run_until(within(&s, 600), ended), "{name}");
    (delivered_at(&s, 3, flow).unwrap() - start, status(&s, 0).source_redundancy)
}

#[test]
fn rate_limiting_saves_source_packets_and_round_robin_frees_the_good_receiver() {
    let seeds = [1, 2, 3];
    let mean = |name| {
        let outcomes = seeds.map(|seed| outcome(name, seed));
        let sum = outcomes.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
        (sum.0 / seeds.len() as f64, sum.1 / seeds.len() as f64)
    };
    let tree = mean("tree");
    let tree_rl = mean("tree_rl");
    let pacifier = mean("tree_rl_rrb");
    assert!(tree_rl.1 < tree.1, "redundancy {tree_rl:?} against {tree:?}");
    assert!(pacifier.0 < 0.7 * tree_rl.0, "good receiver {pacifier:?} against {tree_rl:?}");
}

/// Two relays, of which the better one dies during the transfer.
fn survives_the_death_of_a_forwarder(scheme: &'static str, settings: &str, seed: u64) {
    let mut config = mesh(links(4, &[(0, 1, 0.1), (0, 2, 0.4), (1, 3, 0.1), (2, 3, 0.4)]), seed);
    config.engines = toml::from_str(settings).unwrap();
    let mut s = settled(config);
    let flow = s.send_file(scheme, 0, Some(&[3]), contents(900_000)).unwrap();
    assert!(s.run_until(within(&s, 60), |s| status(s, 0).receivers[0].bytes > 100_000));
    assert!(!has(&s, 3, flow), "{scheme} {settings}, seed {seed}");
    s.switch_off(1);
    assert!(s.run_until(within(&s, 60), |s| has(s, 3, flow)), "{scheme} {settings}, seed {seed}");
}

#[test]
fn every_scheme_and_variant_survives_the_death_of_a_forwarder() {
    for seed in 1..=4 {
        for name in ["tree", "tree_rl", "tree_rrb"] {
            let settings = format!("pacifier.variant = \"{name}\"");
            survives_the_death_of_a_forwarder(PACIFIER, &settings, seed);
        }
        for scheme in schemes() {
            survives_the_death_of_a_forwarder(scheme, "", seed);
        }
    }
}

#[test]
fn every_scheme_survives_the_restart_of_a_forwarder() {
    for scheme in schemes() {
        for seed in 1..=4 {
            let mut s = settled(mesh(links(3, &[(0, 1, 0.2), (1, 2, 0.2)]), seed));
            let flow = s.send_file(scheme, 0, Some(&[2]), contents(900_000)).unwrap();
            assert!(s.run_until(within(&s, 60), |s| status(s, 0).receivers[0].bytes > 100_000));
            for _ in 0..3 {
                s.run_for(Duration::from_millis(300));
                s.switch_off(1);
                s.run_for(Duration::from_millis(100));
                s.switch_on(1).unwrap();
            }
            assert!(s.run_until(within(&s, 60), |s| has(s, 2, flow)), "{scheme}, seed {seed}");
        }
    }
}

#[test]
fn a_crowded_node_with_short_frames_is_still_known_and_can_send() {
    let spokes: Vec<(usize, usize, f64)> = (1..=80).map(|node| (0, node, 0.05)).collect();
    let mut s = settled(SimulationConfig { mtu: 264, ..mesh(links(81, &spokes), 1) });
    s.run_for(Duration::from_secs(20));
    // Its neighbours do not all fit into its link state, and acknowledgments need a known path.
    let topology = s.host(0).stack().unwrap().topology();
    let heard = &topology.state(node_id(0)).unwrap().hears;
    assert!((20..80).contains(&heard.len()), "{} links fit", heard.len());
    let to: Vec<usize> = heard.keys().take(2).map(|node| usize::from(node.0) - 1).collect();
    let flow = s.send_file(PACIFIER, 0, Some(&to), contents(10_000)).unwrap();
    assert!(s.run_until(within(&s, 60), |s| to.iter().all(|node| has(s, *node, flow))));
    assert!(s.host(to[0]).stack().unwrap().topology().state(node_id(0)).is_some());
}

#[test]
fn packets_too_long_for_the_way_are_refused_and_never_sent() {
    let way: Vec<(usize, usize, f64)> = (1..10).map(|node| (node - 1, node, 0.05)).collect();
    let long = |symbol: u16| {
        let mut config = SimulationConfig { mtu: 1472, ..mesh(links(10, &way), 1) };
        config.engines = toml::from_str(&format!("pacifier.symbol_size = {symbol}")).unwrap();
        let mut s = settled(config);
        s.run_for(Duration::from_secs(5));
        s.send_file(PACIFIER, 0, Some(&[9]), contents(50_000)).map(|flow| (s, flow))
    };
    assert!(long(1366).is_err(), "with nine hops it does not fit");
    let (mut s, flow) = long(1300).unwrap();
    assert!(s.run_until(within(&s, 120), |s| has(s, 9, flow)));
}

#[test]
fn receivers_whose_forwarders_do_not_all_fit_into_a_frame_take_turns() {
    // Twenty arms of four nodes around the source: 60 forwarders.
    let arms: Vec<(usize, usize, f64)> =
        (1..81).map(|node| (if node % 4 == 1 { 0 } else { node - 1 }, node, 0.1)).collect();
    for scheme in ["pacifier", "more"] {
        let mut config = SimulationConfig { mtu: 450, ..mesh(links(81, &arms), 1) };
        config.engines = toml::from_str(&format!("{scheme}.symbol_size = 180")).unwrap();
        let mut s = settled(config);
        s.run_for(Duration::from_secs(5));
        let all: Vec<usize> = (1..81).collect();
        let flow = s.send_file(scheme, 0, Some(&all), contents(20_000)).unwrap();
        let everybody = |s: &Simulation| all.iter().all(|node| has(s, *node, flow));
        assert!(s.run_until(within(&s, 120), everybody), "{scheme}");
    }
}

#[test]
fn a_restarted_node_gets_the_mesh_from_a_neighbour() {
    let way = [(0, 1, 0.1), (1, 2, 0.1), (2, 3, 0.1)];
    let mut config = mesh(links(4, &way), 1);
    config.route = RouteConfig::default();
    let mut s = settled(config);
    s.run_for(Duration::from_secs(6));
    s.switch_off(3);
    s.run_for(Duration::from_millis(300));
    s.switch_on(3).unwrap();
    let knows_a_way = |s: &Simulation| {
        let topology = s.host(3).stack().unwrap().topology();
        topology.paths_from(node_id(3), Metric::Unicast).reaches(node_id(0))
    };
    assert!(!knows_a_way(&s));
    assert!(s.run_until(within(&s, 3), knows_a_way));
}

#[test]
fn a_receiver_that_missed_the_end_learns_of_it_when_it_is_back() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(star(6));
        let flow = s.send_file(scheme, 0, Some(&[1, 2]), contents(500_000)).unwrap();
        s.run_for(Duration::from_millis(500));
        assert_eq!(status(&s, 2).stage, Stage::Open);
        s.set_loss(0, 2, 1.0).unwrap();
        s.set_loss(2, 0, 1.0).unwrap();
        assert!(s.cancel(0, flow));
        s.run_for(Duration::from_secs(15));
        assert_eq!(status(&s, 2).stage, Stage::Open);
        s.set_loss(0, 2, 0.1).unwrap();
        s.set_loss(2, 0, 0.1).unwrap();
        assert!(s.run_until(within(&s, 120), |s| status(s, 2).stage == Stage::Withdrawn));
    }
}

#[test]
fn what_a_receiver_cancelled_is_not_received_after_its_restart() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(star(6));
        let flow = s.send_file(scheme, 0, Some(&[1, 2, 3]), contents(2_000_000)).unwrap();
        s.run_for(Duration::from_millis(400));
        assert!(s.cancel(2, flow));
        s.run_for(Duration::from_secs(1));
        s.switch_off(2);
        s.run_for(Duration::from_secs(1));
        s.switch_on(2).unwrap();
        assert!(s.run_until(within(&s, 120), ended));
        assert!(!has(&s, 2, flow));
    }
}

#[test]
fn without_round_robin_nothing_is_sent_to_nobody_either() {
    let mut config = star(1);
    config.knowledge = Knowledge::Perfect;
    config.engines = toml::from_str("pacifier.variant = \"tree\"").unwrap();
    let mut s = settled(config);
    s.send_file(PACIFIER, 0, Some(&[2]), contents(400_000)).unwrap();
    assert!(s.run_until(within(&s, 60), |s| status(s, 0).receivers[0].bytes > 100_000));
    s.switch_off(2);
    s.run_for(Duration::from_secs(60));
    assert_eq!(state_of(&s, 2), ReceiverState::Lost);
    let before = status(&s, 0).source_packets;
    s.run_for(Duration::from_secs(60));
    assert_eq!(status(&s, 0).source_packets, before);
}

#[test]
fn a_restarted_source_remembers_who_is_done() {
    for scheme in schemes() {
        eprintln!("{scheme}");
        let mut s = settled(star(4));
        let flow = s.send_file(scheme, 0, Some(&[1, 3]), contents(1_500_000)).unwrap();
        assert!(s.run_until(within(&s, 120), |s| state_of(s, 1) == ReceiverState::Complete));
        assert!(!has(&s, 3, flow));
        s.switch_off(1);
        s.switch_off(0);
        s.run_for(Duration::from_secs(2));
        s.switch_on(0).unwrap();
        assert!(s.run_until(within(&s, 600), ended), "1 is {:?}", state_of(&s, 1));
        assert!(has(&s, 3, flow));
    }
}
