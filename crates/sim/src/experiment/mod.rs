//! One scenario's traffic, start to end, and what came of it.

mod flows;
mod streams;
mod transfer;

use crate::observe::Observer;
use crate::scenario::Scenario;
use crate::simulation::{Simulation, SimulationConfig, SimulationError, node_id};
use ncmesh_engine::registry::{Entry, ServiceKind};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::transmission::DATA;
use ncmesh_engines::REGISTRY;
use ncmesh_stack::link::LinkConfig;
use ncmesh_wire::ServiceId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

pub use flows::{CodingOutcome, FlowOutcome, FlowSeries, FlowsOutcome};
pub use streams::{
    StreamLayerOutcome, StreamOutcome, StreamQueueOutcome, StreamReceiverOutcome, StreamSeries,
    StreamsOutcome,
};
pub use transfer::{ReceiverOutcome, TransferOutcome, contents};

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// What was carried.
    #[serde(flatten)]
    pub carried: Carried,
    /// Data packets each node sent, by name.
    pub node_transmissions: BTreeMap<String, u64>,
    /// The seed.
    pub seed: u64,
    /// Whether frames were really encrypted; otherwise a null cipher of the same length stood in.
    pub sealed: bool,
    /// Hash over every frame sent, heard and reported.
    pub trace_hash: String,
    /// How many events that hash is over.
    pub events: u64,
}

impl Outcome {
    /// The file transfer, if it was one.
    #[must_use]
    pub fn transfer(&self) -> Option<&TransferOutcome> {
        match &self.carried {
            Carried::Transfer(transfer) => Some(transfer),
            Carried::Flows(_) | Carried::Streams(_) => None,
        }
    }
}

/// What a scheme carried, by its service.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Carried {
    /// A file.
    Transfer(TransferOutcome),
    /// Packets.
    Flows(FlowsOutcome),
    /// Live streams.
    Streams(StreamsOutcome),
}

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The simulation cannot be.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The scenario says nothing is sent that the scheme could carry.
    #[error("the scenario has no {missing}: {scheme} has nothing to carry")]
    NoTraffic {
        /// The part of the scenario.
        missing: &'static str,
        /// The scheme.
        scheme: &'static str,
    },
    /// Its TCP cannot do what a flow asks of it.
    #[error("the simulator's TCP {0}; `ncmesh lab` has the kernel's")]
    Tcp(String),
    /// No path was found while the mesh measured itself.
    #[error(
        "{to} cannot be reached from {from}: the scenario's links connect them too badly or not \
         at all"
    )]
    Unreachable {
        /// The source.
        from: String,
        /// The receiver.
        to: String,
    },
    /// A packet that fits no frame.
    #[error("packets of {bytes} bytes are too long: {scheme} carries up to {longest} here")]
    TooLong {
        /// Their length.
        bytes: usize,
        /// The scheme.
        scheme: &'static str,
        /// The most it carries.
        longest: usize,
    },
    /// Its file cannot be read.
    #[error("cannot read {0}: {1}")]
    File(String, std::io::Error),
    /// The caller ended the run.
    #[error("interrupted")]
    Interrupted,
    /// An observer could not go on.
    #[error(transparent)]
    Observer(std::io::Error),
}

/// How long a mesh whose nodes all start now measures itself before anything is sent: the quick
/// start of probing, and five seconds for the news of it to travel.
#[must_use]
pub fn settling_time(link: &LinkConfig) -> Duration {
    link.settling_time() + Duration::from_secs(5)
}

/// The engine `scheme`, which finds something to carry in the scenario; where none is named, the
/// first one for its file, else for its flows, else for its streams.
///
/// # Errors
/// [`SimulationError::UnknownScheme`], [`RunError::NoTraffic`].
pub fn check_traffic(
    scenario: &Scenario,
    scheme: Option<&str>,
) -> Result<&'static Entry, RunError> {
    let named = match scheme {
        Some(scheme) => REGISTRY.entry(scheme),
        None => REGISTRY.of(service_of(scenario)).next(),
    };
    let unknown = || SimulationError::UnknownScheme(scheme.unwrap_or_default().to_owned());
    let entry = named.ok_or_else(unknown)?;
    let scheme = entry.name;
    match entry.service() {
        ServiceKind::Tunnel if scenario.flows.is_empty() => {
            Err(RunError::NoTraffic { missing: "[[flow]]", scheme })
        }
        ServiceKind::File if scenario.traffic.is_none() => {
            Err(RunError::NoTraffic { missing: "[traffic]", scheme })
        }
        ServiceKind::Stream if scenario.streams.is_empty() => {
            Err(RunError::NoTraffic { missing: "[[stream]]", scheme })
        }
        _ => Ok(entry),
    }
}

/// What the scenario asks for first.
fn service_of(scenario: &Scenario) -> ServiceKind {
    match scenario {
        Scenario { traffic: Some(_), .. } => ServiceKind::File,
        Scenario { flows, .. } if !flows.is_empty() => ServiceKind::Tunnel,
        Scenario { streams, .. } if !streams.is_empty() => ServiceKind::Stream,
        _ => ServiceKind::File,
    }
}

/// Runs the scenario's traffic with `scheme`, at most `limit` of virtual time: its file transfer,
/// or its flows. The `observers` are told of every event; `progress` is called now and then with
/// the simulation and says whether to go on.
///
/// # Errors
/// [`RunError`].
pub fn run(
    scenario: &Scenario,
    config: SimulationConfig,
    scheme: &str,
    limit: Duration,
    observers: Vec<Box<dyn Observer>>,
    progress: impl FnMut(&Simulation) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    let entry = check_traffic(scenario, Some(scheme))?;
    let settling = settling_time(&config.link);
    let mut s = Simulation::new(config)?;
    observers.into_iter().for_each(|observer| s.observe(observer));
    let mut run = Run { scenario, scheme: entry.name, id: entry.id, s, progress };
    run.advance(Instant::default() + settling, |_| false)?;
    let carried = match &scenario.traffic {
        Some(traffic) if entry.service() == ServiceKind::File => {
            Carried::Transfer(transfer::carry(&mut run, traffic, limit)?)
        }
        _ if entry.service() == ServiceKind::Stream => {
            Carried::Streams(streams::carry(&mut run, limit)?)
        }
        _ => Carried::Flows(flows::carry(&mut run, limit)?),
    };
    run.s.finish().map_err(RunError::Observer)?;
    Ok(Outcome {
        carried,
        node_transmissions: run.node_transmissions(),
        seed: scenario.seed,
        sealed: run.s.config().sealed,
        trace_hash: run.s.trace_hash(),
        events: run.s.trace_events(),
    })
}

/// A run under way.
struct Run<'a, P> {
    scenario: &'a Scenario,
    scheme: &'static str,
    /// Under which the scheme's frames travel.
    id: ServiceId,
    s: Simulation,
    progress: P,
}

impl<P: FnMut(&Simulation) -> ControlFlow<()>> Run<'_, P> {
    /// Runs until `over` says so or the clock reaches `until`, and tells of progress now and then.
    /// Says whether `over` did.
    fn advance(
        &mut self,
        until: Instant,
        mut over: impl FnMut(&Simulation) -> bool,
    ) -> Result<bool, RunError> {
        let mut ended = false;
        while !ended && self.s.now() < until {
            let next = self.s.now() + Duration::from_millis(500);
            ended = self.s.run_until(next.min(until), &mut over);
            if self.s.is_stopped() {
                self.s.finish().map_err(RunError::Observer)?;
                return Ok(ended);
            }
            if (self.progress)(&self.s).is_break() {
                return Err(RunError::Interrupted);
            }
        }
        Ok(ended)
    }

    fn name(&self, node: usize) -> String {
        self.scenario.nodes[node].name.clone()
    }

    /// That paths lead from a node to others.
    fn check_reach(&self, from: usize, to: &[usize], metric: Metric) -> Result<(), RunError> {
        let Some(stack) = self.s.host(from).stack() else { return Ok(()) };
        let paths = stack.topology().paths_from(node_id(from), metric);
        match to.iter().find(|node| !paths.reaches(node_id(**node))) {
            None => Ok(()),
            Some(node) => {
                Err(RunError::Unreachable { from: self.name(from), to: self.name(*node) })
            }
        }
    }

    fn node_transmissions(&self) -> BTreeMap<String, u64> {
        (0..self.s.len()).map(|node| (self.name(node), self.data_sent(node))).collect()
    }

    fn data_sent(&self, node: usize) -> u64 {
        let Some(stack) = self.s.host(node).stack() else { return 0 };
        // Data frames have the same kind in files and tunnels.
        stack.counters().sent(self.id, DATA).frames
    }
}
