//! XOR coding in whole meshes: packets arrive as they were sent, under loss, disorder and restarts.

use ncmesh_engine::time::Duration;
use ncmesh_sim::outcome::FlowsOutcome;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Arrival, Disturbance, Simulation, SimulationConfig, run};
use ncmesh_tests::{contents, links, mesh, settled};
use std::ops::ControlFlow;
use std::path::Path;

/// Sends 200 packets each way between nodes 0 and 3 of a line. Returns the packets that arrived.
fn send_both_ways(s: &mut Simulation, restart: Option<usize>) -> Vec<Arrival> {
    for n in 0..200_usize {
        for (from, to) in [(0, 3), (3, 0)] {
            // Lengths differ, so that most pairs are padded.
            let mut packet = contents(100 + (n * 37 + from * 501) % 1200);
            packet[..2].copy_from_slice(&(n as u16).to_be_bytes());
            // A node that has just started knows no paths and refuses packets.
            let _ = s.send_packet("xor", from, to, &packet);
        }
        s.run_for(Duration::from_millis(8));
        if let Some(node) = restart.filter(|_| n % 50 == 25) {
            s.switch_off(node);
            s.switch_on(node).unwrap();
            s.run_for(Duration::from_secs(4));
        }
    }
    s.run_for(Duration::from_secs(1));
    s.take_packets()
}

/// Returns how many distinct packets arrived, and checks that each is as it was sent. A node that
/// has restarted may get a packet twice.
fn count_intact(arrivals: &[Arrival], restarted: bool) -> usize {
    let mut seen = std::collections::BTreeSet::new();
    for arrival in arrivals {
        let n = usize::from(u16::from_be_bytes([arrival.packet[0], arrival.packet[1]]));
        let from = usize::from(arrival.from.0) - 1;
        assert_eq!(arrival.to, 3 - from);
        assert_eq!(arrival.packet.len(), 100 + (n * 37 + from * 501) % 1200);
        assert_eq!(arrival.packet[2..], contents(arrival.packet.len())[2..]);
        assert!(seen.insert((from, n)) || restarted, "packet {n} of {from} came twice");
    }
    seen.len()
}

fn line(loss: f64, seed: u64, settings: &str) -> SimulationConfig {
    let links = links(4, &[(0, 1, loss), (1, 2, loss), (2, 3, loss)]);
    let engines = toml::from_str(&format!("xor = {{ {settings} }}")).unwrap();
    SimulationConfig { engines, ..mesh(links, seed) }
}

/// Returns the coded frames that a node has sent.
fn coded(s: &Simulation, node: usize) -> u64 {
    let statuses = s.host(node).stack().unwrap().coding();
    statuses.into_iter().find(|(scheme, _)| *scheme == "xor").unwrap().1.coded
}

#[test]
fn packets_that_cross_are_coded_and_arrive() {
    for settings in ["hold_time_s = 0.004", "unicast = false, hold_time_s = 0.004", ""] {
        let mut s = settled(line(0.0, 1, settings));
        let arrivals = send_both_ways(&mut s, None);
        // Broadcasts of nodes that do not hear each other collide.
        assert!(count_intact(&arrivals, false) >= 200, "{settings}: {}", arrivals.len());
        assert!(coded(&s, 1) + coded(&s, 2) > 20, "{settings}");
        assert_eq!(coded(&s, 0) + coded(&s, 3), 0);
    }
}

#[test]
fn under_loss_disorder_and_restarts_no_packet_arrives_corrupted() {
    for seed in 1..=3 {
        let mut config = line(0.2, seed, "hold_time_s = 0.004, min_decoded = 0.0, cache = 100");
        config.disturbance = Disturbance { duplicate: 0.2, reorder: 0.2 };
        for restart in [None, Some(1), Some(3)] {
            let mut s = settled(config.clone());
            let arrivals = send_both_ways(&mut s, restart);
            let intact = count_intact(&arrivals, restart.is_some());
            assert!(intact >= 40, "{restart:?}: {intact}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let hash = |seed| {
        let mut s = settled(line(0.1, seed, ""));
        send_both_ways(&mut s, None);
        s.trace_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

/// Runs flows both ways between the ends of a line of three nodes. All nodes sense each other's
/// carrier, and both links are lossless.
fn both_ways(flow: &str, scheme: &str, xor: &str, seed: u64) -> FlowsOutcome {
    let text = format!(
        r#"
        name = "line"
        seed = {seed}
        nodes = ["a", "b", "c"]
        medium = {{ phy = "802.11a", bit_rate = "6M", sense = "everyone" }}
        link = [{{ from = "a", to = "b", loss = 0.0 }}, {{ from = "b", to = "c", loss = 0.0 }}]
        measure = {{ seconds = 5, bytes = 100, period_s = 0.1 }}
        protocol.xor = {{ {xor} }}
        flow = [
            {{ from = "a", to = "c", {flow}, packet = 1020, seconds = 20 }},
            {{ from = "c", to = "a", {flow}, packet = 1020, seconds = 20, start_s = 0.137 }},
        ]
    "#
    );
    let scenario = Scenario::parse(&text, "line.toml", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let limit = Duration::from_secs(1000);
    let outcome =
        run(&scenario, config, scheme, limit, vec![], |_| ControlFlow::Continue(())).unwrap();
    outcome.flows().unwrap().clone()
}

fn total(outcome: &FlowsOutcome) -> f64 {
    outcome.flows.iter().map(|flow| flow.throughput_bps).sum()
}

#[test]
fn without_congestion_control_the_gain_is_that_of_a_relay_with_a_third_of_the_channel() {
    let sent = |xor: &str| {
        total(&both_ways(
            "rate = \"3M\"",
            "xor",
            &format!("unicast = false, min_decoded = 0.0, {xor}"),
            1,
        ))
    };
    // The relay gets the channel as often as each end, and forwards one packet or two each time
    // (Katti et al., SIGCOMM 2006, 7.2).
    let gain = sent("hold_time_s = 0.0") / sent("coding = false");
    assert!((4.0 / 3.0..2.0).contains(&gain), "{gain}");
}

#[test]
fn tcp_is_coded_and_no_segment_arrives_corrupted() {
    let flow = "protocol = \"tcp\"";
    let coded =
        both_ways(flow, "xor", "hold_time_s = 0.0015, unicast = false, min_overlap = 0.0", 1);
    let relay = &coded.coding["b"].values;
    assert!(relay.ratio.unwrap() > 0.2 && relay.undecodable == 0, "{relay:?}");
    assert_eq!((coded.coding["a"].values.coded, coded.coding["c"].values.coded), (0, 0));
    for flow in &coded.flows {
        assert_eq!(flow.corrupt, Some(0));
        let tcp = flow.tcp.as_ref().unwrap();
        assert!(tcp.bytes > 50_000 && tcp.rtt_s.unwrap() > 0.005, "{flow:?}");
    }
}

#[test]
fn by_default_tcp_both_ways_gains_over_plain_forwarding() {
    for congestion in ["cubic", "reno"] {
        let flow = format!("protocol = \"tcp\", congestion = \"{congestion}\"");
        let sum = |scheme: &str| {
            (1..=4).map(|seed| total(&both_ways(&flow, scheme, "", seed))).sum::<f64>()
        };
        let plain = sum("forward");
        let coded = sum("xor");
        assert!(coded > 1.1 * plain, "{coded} {plain}");
    }
    assert!(both_ways("protocol = \"tcp\"", "xor", "", 1).coding["b"].values.repeated > 0);
}
