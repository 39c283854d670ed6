//! The slotted wireline network: the paper's lemmas on random trees, and invalid input.

use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine_multirate::Policy;
use ncmesh_papers_wireline::{
    Change, Kind, Link, Network, Node, Outcome, Session, Setup, WirelineError, run,
};
use proptest::prelude::*;
use std::ops::ControlFlow;

fn node(name: &str) -> Node {
    Node(name.into())
}

fn link(from: &str, to: &str, capacity: f64) -> Link {
    Link { from: node(from), to: node(to), capacity, wireless: false }
}

fn session(source: &str, receivers: &[&str], tree: &[usize]) -> Session {
    Session {
        source: node(source),
        receivers: receivers.iter().map(|name| node(name)).collect(),
        tree: tree.to_vec(),
        rate: Some(1.0),
        arrivals: Kind::Poisson,
        layers: None,
    }
}

/// Figure 3 with capacity x on (b, d) and (b, e).
fn figure_3(x: f64) -> Network {
    Network {
        links: vec![
            link("1", "a", 1.0),
            link("2", "a", 1.0),
            link("a", "b", 1.0),
            link("b", "c", 1.0),
            link("b", "d", x),
            link("b", "e", x),
        ],
        sessions: vec![
            session("1", &["b", "c"], &[0, 2, 3]),
            session("2", &["b", "d", "e"], &[1, 2, 4, 5]),
        ],
        changes: Vec::new(),
    }
}

fn setup(policy: Policy, slots: u64) -> Setup {
    Setup {
        policy,
        v: 25.0,
        d_max: Some(5),
        epsilon: None,
        zeta: None,
        utilities: Vec::new(),
        slots,
        warm_up: slots / 5,
        seed: 1,
        series: None,
    }
}

fn outcome(network: &Network, setup: &Setup) -> Outcome {
    run(network, setup, || ControlFlow::Continue(())).expect("a network in order")
}

fn refused(network: &Network, setup: &Setup) -> String {
    run(network, setup, || ControlFlow::Continue(())).expect_err("a fault").to_string()
}

fn rate(outcome: &Outcome, session: usize, receiver: usize) -> f64 {
    outcome.sessions[session].receivers[receiver].rates.iter().sum()
}

#[test]
fn figure_3_shares_its_link_for_the_most_throughput() {
    for policy in [Policy::Mmt, Policy::Mmu, Policy::MmuQ, Policy::MmuW] {
        // At x = 1 the links of session 2 are exactly full, and the gap at V = 25 is largest.
        for (x, gap) in [(0.3, 0.01), (0.75, 0.02), (1.0, 0.12)] {
            let found = outcome(&figure_3(x), &setup(policy, 60_000));
            assert!((rate(&found, 0, 1) - (1.0 - x)).abs() < gap, "{policy:?} {x}");
            assert!((rate(&found, 1, 2) - x).abs() < gap, "{policy:?} {x}");
        }
    }
}

#[test]
fn a_seed_gives_one_outcome() {
    let with = |seed| {
        let setup = Setup { seed, series: Some(100), ..setup(Policy::Mmu, 2_000) };
        outcome(&figure_3(0.5), &setup)
    };
    assert_eq!(with(7), with(7));
    assert_ne!(with(7), with(8));
}

#[test]
fn capacities_change_when_they_are_told_to() {
    let mut network = figure_3(1.0);
    let down = |link| Change { slot: 5_000, link, capacity: 0.0 };
    network.changes = vec![down(4), down(5)];
    let setup = Setup { series: Some(5_000), warm_up: 0, ..setup(Policy::Mmt, 10_000) };
    let series = outcome(&network, &setup).series.unwrap();
    let [before, after] = [0, 5].map(|row| &series.received.values[row..row + 5]);
    assert!(before[1] < 0.15 && before[3] > 0.85, "{before:?}");
    assert!(after[1] > 0.9 && after[3] < 0.02, "{after:?}");
}

#[test]
fn a_radio_serves_one_link_at_a_time_and_prefers_the_faster() {
    let radio = |to: &str, capacity| Link { wireless: true, ..link("s", to, capacity) };
    let network = Network {
        links: vec![radio("near", 3.0), radio("far", 1.0)],
        sessions: vec![Session { rate: Some(2.0), ..session("s", &["near", "far"], &[0, 1]) }],
        changes: Vec::new(),
    };
    let setup = Setup { d_max: None, ..setup(Policy::MmuW, 50_000) };
    let found = outcome(&network, &setup);
    // 2 of 3 slots carry the whole stream to the near node; each other slot carries a packet to the
    // far one.
    assert!((rate(&found, 0, 0) - 2.0).abs() < 0.06, "{}", rate(&found, 0, 0));
    assert!((rate(&found, 0, 1) - 1.0 / 3.0).abs() < 0.04, "{}", rate(&found, 0, 1));
    assert!(refused(&network, &Setup { policy: Policy::Mmu, ..setup }).contains("mmu_w"));
}

#[test]
fn bursts_beyond_a_max_wait_outside_the_source() {
    let mut network = figure_3(1.0);
    network.sessions[0].rate = Some(3.5);
    let found = outcome(&network, &setup(Policy::Mmt, 20_000));
    // d_max leaves room for 4 packets at once, so the mean of 3.5 enters with some delay.
    let entered: f64 = found.sessions[0].rates.iter().sum();
    assert!((entered - 3.5).abs() < 0.05, "{entered}");
    assert!(found.sessions[0].waiting.max > 4.0);
    network.sessions[0].rate = Some(4.0);
    assert!(refused(&network, &setup(Policy::Mmt, 100)).contains("no more than the rate 4"));
    network.sessions[0].arrivals = Kind::Constant;
    assert_eq!(outcome(&network, &setup(Policy::Mmt, 100)).sessions[0].waiting.max, 0.0);
}

#[test]
fn fractions_of_packets_are_carried_in_time() {
    let mut network = figure_3(0.3);
    for session in &mut network.sessions {
        session.rate = Some(0.3);
        session.arrivals = Kind::Constant;
    }
    let found = outcome(&network, &Setup { warm_up: 0, ..setup(Policy::Mmt, 10_000) });
    assert!(found.queues.iter().all(|queue| queue.dropped.iter().sum::<u64>() == 0));
    assert!(found.sessions.iter().all(|session| session.entered[0].abs_diff(3_000) <= 1));
}

#[test]
fn invalid_input_is_refused() {
    let with = |change: &dyn Fn(&mut Network)| {
        let mut network = figure_3(0.5);
        change(&mut network);
        refused(&network, &setup(Policy::Mmt, 100))
    };
    assert_eq!(
        with(&|n| n.links[4].capacity = 0.0),
        "links[4]: capacity = 0: allowed is above 0, at most 1000000"
    );
    assert!(with(&|n| n.links[4].capacity = f64::NAN).contains("links[4]: capacity = NaN"));
    assert!(with(&|n| n.links[0].to = node("1")).contains("leads from 1 to itself"));
    assert!(with(&|n| n.sessions[1].tree = vec![1, 2]).contains("sessions[1]: receiver d is not"));
    assert!(with(&|n| n.sessions[1].tree = vec![2, 4, 5]).contains("link 2 begins at a"));
    assert!(with(&|n| n.sessions[0].rate = Some(-1.0)).contains("rate = -1"));
    assert!(with(&|n| n.sessions[0].rate = None).contains("needed is rate, or layers"));
    assert!(with(&|n| n.sessions[0].layers = Some(vec![0.3; 2])).contains("rate is 1"));
    assert!(
        with(&|n| (n.sessions[0].rate, n.sessions[0].layers) = (None, Some(vec![0.2; 5])))
            .contains("5 layers")
    );
    assert!(with(&|n| n.sessions.clear()).contains("sessions: there are none"));
    assert!(with(&|n| n.links.clear()).contains("links: there are none"));
    let change = |link, capacity| Change { slot: 0, link, capacity };
    assert!(with(&|n| n.changes.push(change(6, 1.0))).contains("no link 6"));
    assert!(with(&|n| n.changes.push(change(0, -1.0))).contains("changes[0]: capacity = -1"));
    let otherwise = |change: &dyn Fn(&mut Setup)| {
        let mut setup = setup(Policy::Mmu, 100);
        change(&mut setup);
        refused(&figure_3(0.5), &setup)
    };
    assert!(otherwise(&|s| s.warm_up = 100).contains("after the warm-up"));
    assert!(otherwise(&|s| s.series = Some(0)).contains("series = 0"));
    assert!(otherwise(&|s| s.d_max = Some(2)).contains("d_max = 2"));
    assert!(otherwise(&|s| s.v = f64::NAN).contains("V = NaN"));
    let log = UtilityConfig { name: "log".into(), ..UtilityConfig::default() };
    assert!(otherwise(&|s| s.utilities = vec![vec![log.clone(); 2]]).contains("for 1 sessions"));
    assert!(otherwise(&|s| s.utilities = vec![vec![log.clone(); 2]; 2]).contains("receiver b"));
    assert!(otherwise(&|s| (s.policy, s.utilities) = (Policy::Mmt, vec![vec![]])).contains("mmu"));
    let ended = run(&figure_3(1.0), &setup(Policy::Mmt, 9), || ControlFlow::Break(()));
    assert_eq!(ended, Err(WirelineError::Interrupted));
}

/// Up to three sessions on parts of a random tree, with layers and changes of capacity.
fn networks() -> impl Strategy<Value = Network> {
    let links = prop::collection::vec((0usize..50, 0.05..3.0f64), 1..20);
    let sessions = prop::collection::vec((0.0..2.5f64, 0usize..3, 1usize..3, any::<u64>()), 1..4);
    let changes = prop::collection::vec((0u64..600, 0usize..50, 0.0..3.0f64), 0..4);
    (links, sessions, changes).prop_map(|(links, sessions, changes)| {
        let name = |number: usize| number.to_string();
        let links: Vec<Link> = links
            .iter()
            .enumerate()
            .map(|(at, (parent, capacity))| {
                link(&name(parent % (at + 1)), &name(at + 1), *capacity)
            })
            .collect();
        let stream = |(rate, kind, layers, chosen): (f64, usize, usize, u64)| {
            let is_receiver = |at: &usize| at == &1 || chosen >> (at % 64) & 1 == 1;
            let receivers: Vec<String> = (1..=links.len()).filter(is_receiver).map(name).collect();
            let names: Vec<&str> = receivers.iter().map(String::as_str).collect();
            Session {
                arrivals: [Kind::Poisson, Kind::Bernoulli, Kind::Constant][kind],
                layers: Some(vec![rate / layers as f64; layers]),
                rate: None,
                ..session("0", &names, &(0..links.len()).collect::<Vec<_>>())
            }
        };
        let change = |(slot, link, capacity)| Change { slot, link: link % links.len(), capacity };
        Network {
            sessions: sessions.into_iter().map(stream).collect(),
            changes: changes.into_iter().map(change).collect(),
            links,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Lemmas 1 and 2. The maxima are taken over all slots.
    #[test]
    fn queues_stay_within_their_bounds_in_every_slot(
        network in networks(), v in 1.0..80.0f64, policy in 0usize..4, name in 0usize..3, seed: u64,
    ) {
        let policy = [Policy::Mmt, Policy::Mmu, Policy::MmuQ, Policy::MmuW][policy];
        let utility = [("linear", None), ("log", Some(0.3)), ("max_min", Some(0.5))][name];
        let config = UtilityConfig {
            name: utility.0.into(),
            xi: utility.1,
            ..UtilityConfig::default()
        };
        let utilities = if policy == Policy::Mmt {
            Vec::new()
        } else {
            network.sessions.iter().map(|s| vec![config.clone(); s.receivers.len()]).collect()
        };
        let setup = Setup { v, d_max: None, utilities, seed, ..setup(policy, 1_000) };
        let found = outcome(&network, &setup);
        let p = found.parameters;
        for queue in &found.queues {
            prop_assert!(queue.q.max <= p.q_bound(), "{:?} {:?}", queue, p);
            prop_assert!(queue.d.max <= p.d_bound(), "{:?} {:?}", queue, p);
        }
        for receiver in found.sessions.iter().flat_map(|session| &session.receivers) {
            prop_assert_eq!(receiver.z.is_some(), policy != Policy::Mmt);
            prop_assert!(receiver.z.is_none_or(|z| z.max <= p.z_bound()), "{:?} {:?}", receiver, p);
        }
    }

    /// A packet that enters is received, dropped on its way, or still in a queue on its way.
    #[test]
    fn packets_are_conserved(network in networks(), policy in 0usize..4, seed: u64) {
        let policy = [Policy::Mmt, Policy::Mmu, Policy::MmuQ, Policy::MmuW][policy];
        let found = outcome(&network, &Setup { d_max: None, seed, ..setup(policy, 700) });
        for (id, session) in network.sessions.iter().enumerate() {
            let queue = |link: usize| {
                found.queues.iter().find(|q| (q.session, q.link) == (id, link)).unwrap()
            };
            for (receiver, got) in session.receivers.iter().zip(&found.sessions[id].receivers) {
                let mut gone: u64 = got.received.iter().sum();
                let mut at = receiver;
                while let Some(link) = network.links.iter().position(|link| link.to == *at) {
                    gone += queue(link).dropped.iter().sum::<u64>() + queue(link).q.end as u64;
                    at = &network.links[link].from;
                }
                prop_assert_eq!(gone, found.sessions[id].entered.iter().sum::<u64>());
            }
        }
    }
}
