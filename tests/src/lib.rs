//! Small, quick meshes for tests, each described in one line.

pub mod frames;
pub mod settings;

use ncmesh_engine::registry::Entry;
use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::Metric;
use ncmesh_medium::{LossMatrix, MediumConfig, RadioId};
use ncmesh_sim::{Disturbance, Knowledge, Observation, Simulation, SimulationConfig};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_stack::share::ShareConfig;
use ncmesh_stack::trust::TrustMode;
use ncmesh_wire::FlowId;

/// Returns a loss matrix of symmetric links.
///
/// # Panics
/// A link names a node that does not exist, or a loss outside 0 to 1.
#[must_use]
pub fn links(nodes: usize, links: &[(usize, usize, f64)]) -> LossMatrix {
    let mut loss = LossMatrix::new(nodes);
    for (a, b, p) in links {
        loss.set(RadioId(*a), RadioId(*b), *p).expect("a link of this mesh");
        loss.set(RadioId(*b), RadioId(*a), *p).expect("a link of this mesh");
    }
    loss
}

/// Returns an 11 Mbit/s mesh whose nodes find each other quickly.
#[must_use]
pub fn mesh(loss: LossMatrix, seed: u64) -> SimulationConfig {
    let mut medium = MediumConfig::dot11b(loss, 11_000_000);
    medium.seed = seed;
    SimulationConfig {
        names: (1..=medium.radios()).map(|i| format!("n{i:02}")).collect(),
        medium,
        seed,
        mtu: 1500,
        link: LinkConfig { hello_s: 0.5, quick_hello_s: 0.1, ..LinkConfig::default() },
        route: RouteConfig { max_age_s: 15.0, ..RouteConfig::default() },
        share: ShareConfig::default(),
        engines: toml::Table::new(),
        sealed: true,
        trust: TrustMode::Key,
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

/// Returns bytes without short periods.
#[must_use]
pub fn contents(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Returns a running mesh in which all nodes know paths to each other, as far as there are any.
///
/// # Panics
/// The configuration is invalid.
#[must_use]
pub fn settled(config: SimulationConfig) -> Simulation {
    let mut simulation = Simulation::new(config).expect("a valid mesh");
    simulation.run_for(Duration::from_secs(6));
    let end = simulation.now() + Duration::from_secs(24);
    while simulation.now() < end && !all_reach_all(&simulation) {
        simulation.run_for(Duration::from_millis(500));
    }
    simulation
}

fn all_reach_all(simulation: &Simulation) -> bool {
    let nodes = 0..simulation.len();
    let lacks = |from, to| simulation.lacks_path(from, to, Metric::Unicast);
    nodes.clone().all(|from| nodes.clone().all(|to| !lacks(from, to)))
}

/// Returns whether a source has ended its transfer.
#[must_use]
pub fn ended(simulation: &Simulation) -> bool {
    simulation
        .observations()
        .iter()
        .any(|seen| matches!(seen.observation, Observation::SendEnded(_)))
}

/// Returns the time at which `node` had the file, s of the mesh's clock.
#[must_use]
pub fn delivered_at(simulation: &Simulation, node: usize, flow: FlowId) -> Option<f64> {
    let delivered = Observation::Delivered(flow);
    let mut observed = simulation.observations().iter();
    let seen = observed.find(|seen| seen.node == node && seen.observation == delivered)?;
    Some(seen.at.as_secs_f64())
}

/// Returns whether `node` has the file.
#[must_use]
pub fn has(simulation: &Simulation, node: usize, flow: FlowId) -> bool {
    delivered_at(simulation, node, flow).is_some()
}

/// Runs one transfer of a file scheme over `config` from node 0 to all others, until it ends.
///
/// # Panics
/// The transfer does not end within an hour of the mesh's time.
#[must_use]
pub fn transfer(engine: &Entry, config: SimulationConfig, len: usize) -> Simulation {
    let mut simulation = settled(config);
    let to: Vec<usize> = (1..simulation.len()).collect();
    simulation.send_file(engine.name, 0, Some(&to), contents(len)).expect("a file to send");
    let limit = simulation.now() + Duration::from_secs(3600);
    assert!(simulation.run_until(limit, ended), "{} did not end the transfer", engine.name);
    simulation
}
