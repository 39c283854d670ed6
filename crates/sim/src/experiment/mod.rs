//! Runs the traffic of one scenario with one engine, and returns the results.
//!
//! A [`Run`] first lets the mesh measure its links for [`settling_time`], and waits until sources
//! know paths to their receivers. Then `transfer`, `flows` or `streams` sends what the scenario
//! asks of that service, and collects its results.

mod flows;
mod step;
mod streams;
mod transfer;

use crate::observe::Observer;
use crate::outcome::{Outcome, ServiceOutcome, TraceOutcome};
use crate::scenario::{Scenario, Stream};
use crate::simulation::{Simulation, SimulationConfig, SimulationError};
use ncmesh_engine::registry::{Entry, ServiceKind, UnknownScheme};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_engines::REGISTRY;
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::{Stack, Usage};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

pub(crate) use flows::addresses;
pub use step::{Stage, Step};
pub use transfer::contents;

/// Reason why a scenario cannot be run, or a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The simulation refused a setting or a command.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// No scheme has this name.
    #[error(transparent)]
    Scheme(#[from] UnknownScheme),
    /// The scenario has no traffic of the scheme's service.
    #[error("the scenario has no {missing}: {scheme} has nothing to carry")]
    NoTraffic {
        /// Table that the scenario lacks.
        missing: &'static str,
        /// Name of the scheme.
        scheme: &'static str,
    },
    /// The simulator's TCP does not support a setting of a flow.
    #[error("the simulator's TCP {0}; `ncmesh lab` has the kernel's")]
    Tcp(String),
    /// No path was found while the mesh measured itself.
    #[error(
        "{to} cannot be reached from {from}: \
         the scenario's links connect them too badly or not at all"
    )]
    Unreachable {
        /// Name of the source.
        from: String,
        /// Name of the receiver.
        to: String,
    },
    /// A flow's packets do not fit into a frame.
    #[error("packets of {bytes} bytes are too long: {scheme} carries up to {longest} here")]
    TooLong {
        /// Length of the packets, bytes.
        bytes: usize,
        /// Name of the scheme.
        scheme: &'static str,
        /// Length of the longest packet that it carries, bytes.
        longest: usize,
    },
    /// The file to be sent cannot be read.
    #[error("cannot read {0}: {1}")]
    File(String, std::io::Error),
    /// The caller ended the run.
    #[error("interrupted")]
    Interrupted,
    /// An observer failed.
    #[error(transparent)]
    Observer(std::io::Error),
}

/// Time between two looks for paths that are not known yet, and longest wait for them.
const WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Returns the time that a mesh measures its links before anything is sent: the quick hellos,
/// and five seconds in which link states spread.
#[must_use]
pub fn settling_time(link: &LinkConfig) -> Duration {
    link.settling_time() + Duration::from_secs(5)
}

/// Returns the engine `scheme`, after checking that the scenario has traffic for it. `auto` is the
/// first engine for the scenario's file, or else for its flows, or else its streams.
///
/// # Errors
/// [`RunError::Scheme`], [`RunError::NoTraffic`].
pub fn check_traffic(scenario: &Scenario, scheme: &str) -> Result<&'static Entry, RunError> {
    let named = REGISTRY.entry(scheme);
    let service = named.map_or_else(|| service_of(scenario), Entry::service);
    let entry = REGISTRY.choose(service, scheme)?.entry;
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

/// Returns the service of the scenario's first kind of traffic.
fn service_of(scenario: &Scenario) -> ServiceKind {
    match scenario {
        Scenario { traffic: Some(_), .. } => ServiceKind::File,
        Scenario { flows, .. } if !flows.is_empty() => ServiceKind::Tunnel,
        Scenario { streams, .. } if !streams.is_empty() => ServiceKind::Stream,
        _ => ServiceKind::File,
    }
}

/// Runs the scenario's traffic for the service of `scheme`, for at most `limit` of virtual time.
///
/// The `observers` get every event. `progress` is called at least every half second of virtual
/// time, and may end the run.
///
/// # Errors
/// [`RunError`].
pub fn run(
    scenario: &Scenario,
    config: SimulationConfig,
    scheme: &str,
    limit: Duration,
    observers: Vec<Box<dyn Observer>>,
    progress: impl FnMut(&Step<'_>) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    let entry = check_traffic(scenario, scheme)?;

    // Let the mesh measure its links first.
    let settling = settling_time(&config.link);
    let mut sim = Simulation::new(config)?;
    observers.into_iter().for_each(|observer| sim.observe(observer));
    let mut run = Run { scenario, scheme: entry.name, sim, stage: Stage::Measuring, progress };
    run.advance(Instant::default() + settling, |_| false)?;
    run.await_paths(entry.service())?;
    let start = run.sim.now();

    let service = match &scenario.traffic {
        Some(traffic) if entry.service() == ServiceKind::File => {
            ServiceOutcome::Transfer(transfer::run(&mut run, traffic, limit)?)
        }
        _ if entry.service() == ServiceKind::Stream => {
            ServiceOutcome::Streams(streams::run(&mut run, limit)?)
        }
        _ => ServiceOutcome::Flows(flows::run(&mut run, limit)?),
    };

    // The observers must have written everything before the result says that the run succeeded.
    run.sim.finish().map_err(RunError::Observer)?;
    let seconds = (run.sim.now() - start).as_secs_f64();
    let trace = TraceOutcome {
        seed: scenario.seed,
        sealed: run.sim.config().sealed,
        trace_hash: run.sim.trace_hash(),
        events: run.sim.trace_events(),
    };
    let outcome = Outcome::new(&scenario.name, entry.name, seconds, run.usage(), service);
    Ok(Outcome { trace: Some(trace), ..outcome })
}

/// A run under way.
struct Run<'a, P> {
    scenario: &'a Scenario,
    scheme: &'static str,
    sim: Simulation,
    stage: Stage,
    progress: P,
}

impl<P: FnMut(&Step<'_>) -> ControlFlow<()>> Run<'_, P> {
    /// Runs until `over` returns true or the clock reaches `until`, and reports progress every half
    /// second of virtual time. Returns whether `over` returned true.
    fn advance(
        &mut self,
        until: Instant,
        mut over: impl FnMut(&Simulation) -> bool,
    ) -> Result<bool, RunError> {
        // In pieces, so that a caller can show progress and stop a long run.
        let mut ended = false;
        while !ended && self.sim.now() < until {
            let next = self.sim.now() + Duration::from_millis(500);
            ended = self.sim.run_until(next.min(until), &mut over);

            // An observer has failed, for instance because the disk is full.
            if self.sim.is_stopped() {
                self.sim.finish().map_err(RunError::Observer)?;
                return Ok(ended);
            }
            let step = Step { sim: &self.sim, stage: self.stage };
            if (self.progress)(&step).is_break() {
                return Err(RunError::Interrupted);
            }
        }
        Ok(ended)
    }

    /// Returns the name of a node.
    fn name(&self, node: usize) -> String {
        self.scenario.nodes[node].name.clone()
    }

    /// Waits until the sources of this service's traffic know paths to all receivers. For services
    /// with feedback, the receivers must know paths back as well.
    fn await_paths(&mut self, service: ServiceKind) -> Result<(), RunError> {
        // Source and receivers of each transfer, flow or stream.
        let scenario = self.scenario;
        let ends: Vec<(usize, Vec<usize>)> = match service {
            ServiceKind::File => {
                scenario.traffic.iter().map(|file| (file.from, file.to.clone())).collect()
            }
            ServiceKind::Tunnel => {
                scenario.flows.iter().map(|flow| (flow.from, vec![flow.to])).collect()
            }
            ServiceKind::Stream => {
                let to = |stream: &Stream| stream.receivers.iter().map(|r| r.node).collect();
                scenario.streams.iter().map(|stream| (stream.from, to(stream))).collect()
            }
        };

        // Receivers of files and streams send feedback to the source, so both directions of each
        // link count. A tunnel needs the forward direction only.
        let answers = service != ServiceKind::Tunnel;
        let metric = if answers { Metric::Unicast } else { Metric::Broadcast };
        let mut needed = Vec::new();
        for (from, to) in ends {
            needed.extend(to.iter().map(|to| (from, *to)));
            needed.extend(to.iter().filter(|_| answers).map(|to| (*to, from)));
        }
        let missing = |sim: &Simulation| {
            needed.iter().find(|(from, to)| sim.lacks_path(*from, *to, metric)).copied()
        };

        // On weak links some measurements come late. A pair that stays without a path is a fault of
        // the scenario, and the error names it.
        let end = self.sim.now() + LONGEST_WAIT;
        while let Some((from, to)) = missing(&self.sim) {
            if self.sim.is_stopped() {
                return Ok(());
            }
            if self.sim.now() >= end {
                return Err(RunError::Unreachable { from: self.name(from), to: self.name(to) });
            }
            self.advance(self.sim.now() + WAIT, |_| false)?;
        }
        Ok(())
    }

    /// Returns the use of the channel by each node, by name.
    fn usage(&self) -> BTreeMap<String, Usage> {
        let of = |node| self.sim.host(node).stack().map(Stack::usage).unwrap_or_default();
        (0..self.sim.len()).map(|node| (self.name(node), of(node))).collect()
    }
}
