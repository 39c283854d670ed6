//! The simulator beside the lab: the same scenario carries as much in both.
//!
//! Engines, gateway and queues are the same code in both worlds. What differs is TCP, the kernel's
//! in the lab and the simulator's own, and what a real daemon's loop and the emulator's clock cost.

use crate::flows::{is_possible, options};
use crate::support::{room_alone, scenario_file};
use ncmesh_console::schema::PeerValues;
use ncmesh_engine::time::Duration;
use ncmesh_lab::{Lab, LabOptions};
use ncmesh_node::api::types::{Peer, Status, Traffic};
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Outcome, SimulationConfig, Step, run};
use std::fmt::Write;
use std::ops::ControlFlow;

/// Seeds of the simulator. The lab runs once, since it takes real time.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
/// Greatest difference of the mean over seeds, as a share of what the lab carries.
const TOLERANCE: f64 = 0.1;
/// Bits of a packet. A run whose medium lags by more than half of their airtime on average says
/// nothing about the lab.
const PACKET_BITS: f64 = 1300.0 * 8.0;
/// Runs of the lab until one is good enough.
const ATTEMPTS: usize = 3;

/// Throughput of all flows together in the simulator, bit/s.
fn simulated(scenario: &Scenario, scheme: &str) -> f64 {
    let config = SimulationConfig::from_scenario(scenario).unwrap();
    let limit = Duration::from_secs(3600);
    let go_on = |_: &Step<'_>| ControlFlow::Continue(());
    total(&run(scenario, config, scheme, limit, vec![], go_on).unwrap())
}

/// Throughput of all flows together, bit/s.
fn total(outcome: &Outcome) -> f64 {
    outcome.flows().unwrap().flows.iter().map(|flow| flow.throughput_bps).sum()
}

/// Returns what each daemon knows, in a few short lines.
async fn what_is_known(lab: &Lab, nodes: usize) -> String {
    let mut known = String::new();
    for node in 0..nodes {
        let status: Status = lab.client(node).read("/v1/status").await.unwrap();
        let peers: Vec<Peer> = lab.client(node).read("/v1/peers").await.unwrap();
        let frames = |all: &[Traffic]| -> String {
            all.iter().map(|f| format!(" {}/{}:{}", f.service, f.kind, f.frames)).collect()
        };
        let sent = frames(&status.sent);
        let heard = frames(&status.heard);
        let drops = &status.drops;
        let up = status.values.uptime_s;
        writeln!(known, "\n{}, {up:.0} s: sent{sent}, heard{heard}, {drops:?}", status.name)
            .unwrap();
        for peer in peers {
            let PeerValues { delivery_to, delivery_from, last_heard_s, .. } = peer.values;
            let id = peer.id;
            write!(known, " {id}: {delivery_to:.2?} {delivery_from:.2?} {last_heard_s:.1?}")
                .unwrap();
        }
    }
    known
}

/// The same in the lab.
async fn measured(scenario: &Scenario, scheme: &str) -> f64 {
    let max_lag_s = 0.5 * PACKET_BITS / scenario.medium_config().bit_rate_bps as f64;
    for _ in 0..ATTEMPTS {
        let options = LabOptions { dir: None, ..options(scheme) };
        let lab = Lab::start(scenario, &options).await.unwrap();
        if let Err(e) = lab.settle_flows().await {
            panic!("{e}{}", what_is_known(&lab, scenario.nodes.len()).await);
        }
        let running = lab.begin_flows().await.unwrap();
        let outcome = lab.finish_flows(running).await.unwrap();
        let lag_s = lab.stop().await.unwrap()[0].lag_mean_ns as f64 * 1e-9;
        if lag_s <= max_lag_s {
            return total(&outcome);
        }
        println!("run again: the medium lagged by {lag_s:.4} s on average");
    }
    panic!("this machine is too busy for a lab in real time");
}

/// Compares what flows carry, each measured for `seconds` after `warm_up` seconds.
async fn compare(file: &str, warm_up: u64, seconds: u64) {
    if !is_possible() {
        return;
    }
    let _room = room_alone().await;
    let mut scenario = Scenario::load(&scenario_file(file)).unwrap();
    scenario.set("protocol.link.quick_hello_s=0.05").unwrap();
    for flow in &mut scenario.flows {
        flow.warm_up = Duration::from_secs(warm_up);
        flow.duration = Duration::from_secs(seconds);
    }
    for scheme in ["forward", "xor"] {
        let mut rates = Vec::new();
        for seed in SEEDS {
            scenario.set(&format!("seed={seed}")).unwrap();
            rates.push(simulated(&scenario, scheme));
        }
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let ratio = mean / measured(&scenario, scheme).await;
        println!("{file} by {scheme}: simulated {rates:.0?} bit/s, {ratio:.3} of the lab's");
        assert!((ratio - 1.0).abs() <= TOLERANCE, "{file} by {scheme}: {ratio:.3}");
    }
}

#[tokio::test]
async fn a_hub_carries_what_it_carries_in_the_lab() {
    compare("hub.toml", 3, 30).await;
}

#[tokio::test]
async fn a_line_carries_what_it_carries_in_the_lab() {
    compare("tunnel.toml", 1, 12).await;
}

#[tokio::test]
async fn a_pair_carries_what_it_carries_in_the_lab() {
    compare("pair.toml", 2, 12).await;
}
