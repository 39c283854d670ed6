//! Queue updates per second of the slotted wireline network:
//! `cargo bench -p ncmesh-papers-wireline --bench wireline`.
//!
//! An update is one slot of one transmission queue with its drop queue. Updates of the receivers'
//! virtual queues are made too but not counted.

#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine_multirate::Policy;
use ncmesh_papers_wireline::{Kind, Link, Network, Node, Session, Setup, WirelineError, run};
use std::ops::ControlFlow;
use std::time::Instant;

/// Sessions of 50 nodes each, which share all 49 links.
const SESSIONS: usize = 4;
const NODES: usize = 50;

fn main() -> Result<(), WirelineError> {
    // `cargo test` runs benches too, with `--test`.
    let slots = if std::env::args().any(|arg| arg == "--test") { 100 } else { 200_000 };
    let network = network();
    for (policy, utility) in
        [(Policy::Mmt, None), (Policy::MmuQ, Some("linear")), (Policy::Mmu, Some("log"))]
    {
        let setup = setup(policy, utility, &network, slots);
        let begun = Instant::now();
        let outcome = run(&network, &setup, || ControlFlow::Continue(()))?;
        let updates = slots as f64 * outcome.queues.len() as f64;
        let rate = updates / begun.elapsed().as_secs_f64();
        println!("{policy:?}, {utility:?}: {:.1} million queue updates per second", rate / 1e6);
    }
    Ok(())
}

/// Tree in which the parent of node i is node i / 3. Every third node is a receiver.
fn network() -> Network {
    let node = |number: usize| Node(number.to_string());
    let link = |to: usize| Link {
        from: node(to / 3),
        to: node(to),
        capacity: 0.5 + (to * 7 % 10) as f64 / 5.0,
        wireless: false,
    };
    let session = |_| Session {
        source: node(0),
        receivers: (1..NODES).step_by(3).map(node).collect(),
        tree: (0..NODES - 1).collect(),
        rate: Some(1.0),
        arrivals: Kind::Poisson,
        layers: None,
    };
    Network {
        links: (1..NODES).map(link).collect(),
        sessions: (0..SESSIONS).map(session).collect(),
        changes: Vec::new(),
    }
}

fn setup(policy: Policy, utility: Option<&str>, network: &Network, slots: u64) -> Setup {
    let config = utility.map(|name| UtilityConfig {
        name: name.into(),
        xi: (name == "log").then_some(0.1),
        ..UtilityConfig::default()
    });
    let of =
        |session: &Session| config.iter().cycle().take(session.receivers.len()).cloned().collect();
    Setup {
        policy,
        v: 100.0,
        d_max: None,
        epsilon: None,
        zeta: None,
        utilities: if config.is_some() {
            network.sessions.iter().map(of).collect()
        } else {
            vec![]
        },
        slots,
        warm_up: 0,
        seed: 1,
        series: None,
    }
}
