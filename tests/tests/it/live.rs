//! The uncoded baselines of live streams over a lossy line.

use ncmesh_engine::stream::NewStream;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::time::Duration;
use ncmesh_engines::registry;
use ncmesh_tests::{links, mesh, settled};
use std::collections::BTreeSet;

/// Packets that are sent, and the time between two of them.
const PACKETS: u16 = 400;
const INTERVAL: Duration = Duration::from_millis(20);

/// Returns the share of packets that come over three hops, each of which loses 0.2.
fn share(scheme: &str) -> f64 {
    let line = links(4, &[(0, 1, 0.2), (1, 2, 0.2), (2, 3, 0.2)]);
    let mut sim = settled(mesh(line, 4));
    let scheme = registry().scheme(scheme).unwrap();
    let utility = UtilityConfig { name: "linear".into(), ..UtilityConfig::default() };
    sim.join(scheme, 3, "tv", utility).unwrap();
    let flow = sim
        .open_stream(
            scheme,
            0,
            NewStream { group: "tv", layers: &["base".to_owned()], deadline: None },
        )
        .unwrap();
    sim.run_for(Duration::from_secs(2));
    let mut arrived = BTreeSet::new();
    for number in 0..PACKETS + 100 {
        if number < PACKETS {
            let packet = [&number.to_be_bytes()[..], &[0; 500]].concat();
            sim.send_stream_packet(scheme, 0, flow, 0, &packet).unwrap().unwrap();
        }
        sim.run_for(INTERVAL);
        arrived.extend(sim.take_stream_packets().into_iter().map(|arrival| arrival.packet));
    }
    arrived.len() as f64 / f64::from(PACKETS)
}

#[test]
fn a_tree_repeats_what_is_lost() {
    let share = share("stream_tree");
    assert!(share >= 0.99, "{share}");
}

#[test]
fn a_flood_repeats_nothing() {
    let share = share("smf");
    assert!((0.4..0.65).contains(&share), "0.8 to the third is 0.51, not {share}");
}
