//! Claims of the Pacifier paper about MORE: pruning that disconnects receivers, and the crying
//! baby.

use ncmesh_engine::time::Duration;
use ncmesh_sim::{Knowledge, Simulation, SimulationConfig};
use ncmesh_tests::{contents, delivered_at, ended, links, mesh, settled};
use ncmesh_wire::FlowId;

fn started(config: SimulationConfig, scheme: &'static str, to: &[usize]) -> (Simulation, FlowId) {
    let mut s = settled(config);
    let flow = s.send_file(scheme, 0, Some(to), contents(600_000)).unwrap();
    (s, flow)
}

/// Seven hops. The sender of the fourth, which is lossless, makes 1 of 13 transmissions.
fn line(prune: &str) -> SimulationConfig {
    let loss = |hop| if hop == 3 { 0.0 } else { 0.5 };
    let hops: Vec<_> = (0..7).map(|hop| (hop, hop + 1, loss(hop))).collect();
    let mut config = mesh(links(8, &hops), 1);
    config.knowledge = Knowledge::Perfect;
    config.engines = toml::from_str(&format!("more.prune = {prune}")).unwrap();
    config
}

#[test]
fn a_threshold_that_cuts_a_receiver_off_never_ends_and_the_largest_that_does_not_ends() {
    let (mut s, flow) = started(line("0.1"), "more", &[7]);
    assert!(!s.run_until(s.now() + Duration::from_secs(300), ended));
    assert_eq!(s.host(7).stack().unwrap().transfers()[0].innovative, 0);
    assert_eq!(delivered_at(&s, 7, flow), None);
    let (mut s, flow) = started(line("\"connected\""), "more", &[7]);
    assert!(s.run_until(s.now() + Duration::from_secs(300), ended));
    assert!(delivered_at(&s, 7, flow).is_some());
}

#[test]
fn a_poor_receiver_holds_up_a_good_one_and_not_with_pacifier() {
    let receivers = [(0, 1, 0.05), (0, 2, 0.3), (2, 3, 0.5)];
    let share = |scheme, seed| {
        let (mut s, flow) = started(mesh(links(4, &receivers), seed), scheme, &[1, 3]);
        let start = s.now().as_secs_f64();
        assert!(s.run_until(s.now() + Duration::from_secs(600), ended));
        let took = |node| delivered_at(&s, node, flow).unwrap() - start;
        took(1) / took(3)
    };
    for seed in 1..=3 {
        assert!(share("more", seed) > 0.9, "seed {seed}: {}", share("more", seed));
        assert!(share("pacifier", seed) < 0.8, "seed {seed}: {}", share("pacifier", seed));
    }
}
