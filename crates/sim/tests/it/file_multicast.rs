//! File transfers over small meshes: every receiver gets the whole file.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_medium::{LossMatrix, MediumConfig, RadioId};
use ncmesh_sim::{Disturbance, Knowledge, Observation, Simulation, SimulationConfig};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;

fn config(loss: LossMatrix, seed: u64) -> SimulationConfig {
    let mut medium = MediumConfig::dot11b(loss, 11_000_000);
    medium.seed = seed;
    SimulationConfig {
        names: (1..=medium.radios()).map(|i| format!("n{i:02}")).collect(),
        medium,
        seed,
        mtu: 1500,
        link: LinkConfig { quick_hello_s: 0.1, ..Default::default() },
        route: RouteConfig::default(),
        share: Default::default(),
        engines: toml::Table::new(),
        sealed: true,
        trust: Default::default(),
        knowledge: Knowledge::Own,
        disturbance: Disturbance::default(),
        processing: None,
        mobility: None,
        absent: Default::default(),
        channels: Vec::new(),
        outages: Vec::new(),
        time_parts: false,
    }
}

fn links(n: usize, links: &[(usize, usize, f64)]) -> LossMatrix {
    let mut loss = LossMatrix::new(n);
    for (a, b, p) in links {
        loss.set(RadioId(*a), RadioId(*b), *p).unwrap();
        loss.set(RadioId(*b), RadioId(*a), *p).unwrap();
    }
    loss
}

fn contents(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

fn delivered(s: &Simulation) -> usize {
    s.observations()
        .iter()
        .filter(|seen| matches!(seen.observation, Observation::Delivered(_)))
        .count()
}

fn ended(s: &Simulation) -> bool {
    s.observations().iter().any(|seen| matches!(seen.observation, Observation::SendEnded(_)))
}

fn transfer(loss: LossMatrix, seed: u64, to: &[usize], len: usize) -> Simulation {
    let mut s = Simulation::new(config(loss, seed)).unwrap();
    s.run_for(Duration::from_secs(5));
    let flow = s.send_file("pacifier", 0, Some(to), contents(len)).unwrap();
    let done = s.run_until(s.now() + Duration::from_secs(600), ended);
    for t in s.host(0).stack().unwrap().transfers() {
        println!("{t:?}");
    }
    assert!(done, "not ended after {:?}", s.now());
    assert_eq!(delivered(&s), to.len());
    for node in to {
        assert_eq!(s.host(*node).storage().received(flow), contents(len));
    }
    s
}

#[test]
fn over_a_lossless_pair() {
    for len in [0, 1, 1400, 46_000, 300_000] {
        transfer(links(2, &[(0, 1, 0.0)]), 1, &[1], len);
    }
}

#[test]
fn over_a_line_of_four() {
    let line = links(4, &[(0, 1, 0.2), (1, 2, 0.4), (2, 3, 0.3)]);
    let s = transfer(line, 2, &[3], 200_000);
    println!("{}", (s.now() - Instant::default()).as_secs_f64());
}

#[test]
fn a_poor_receiver_does_not_slow_a_good_one() {
    let star = links(3, &[(0, 1, 0.0), (0, 2, 0.6)]);
    let s = transfer(star, 3, &[1, 2], 500_000);
    let at = |node| {
        s.observations()
            .iter()
            .find(|seen| seen.node == node && matches!(seen.observation, Observation::Delivered(_)))
            .map(|seen| seen.at.as_secs_f64() - 5.0)
            .unwrap()
    };
    println!("{} {}", at(1), at(2));
    assert!(at(1) < 0.6 * at(2));
}
