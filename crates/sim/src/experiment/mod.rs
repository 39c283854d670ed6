//! Runs the traffic of one scenario, with a scheme for each service, and returns the results.
//!
//! A [`Run`] first lets the mesh measure its links for [`settling_time`], and waits until sources
//! know paths to their receivers. Then each service with traffic is a [`Load`], of `transfer`,
//! `flows` or `streams`. All loads begin at the same instant and run side by side. Each ends by
//! itself, and its results are collected at its own end.

mod error;
mod flows;
mod load;
mod step;
mod streams;
mod transfer;

use crate::observe::Observer;
use crate::outcome::{Outcome, ServiceOutcomes, SharingOutcome, TraceOutcome};
use crate::scenario::{Scenario, Stream};
use crate::schemes::{Schemes, SchemesError};
use crate::simulation::{Simulation, SimulationConfig};
use ncmesh_engine::registry::{AUTO, Entry, ServiceKind};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::{Stack, Usage};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

pub use error::RunError;
pub(crate) use flows::addresses;
use load::{Load, World};
pub use step::{Stage, Step};
pub use transfer::contents;

/// Time between two looks for paths that are not known yet, and longest wait for them.
const WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Returns the time that a mesh measures its links before anything is sent: the quick hellos,
/// and five seconds in which link states spread.
#[must_use]
pub fn settling_time(link: &LinkConfig) -> Duration {
    link.settling_time() + Duration::from_secs(5)
}

/// Returns the schemes that `text` names (see [`Schemes::read`]), after checking that the scenario
/// has traffic for each. With `auto` they are those that the scenario names, or else the default
/// schemes of all its traffic.
///
/// # Errors
/// [`RunError::Schemes`], [`RunError::NoTraffic`].
pub fn check_traffic(scenario: &Scenario, text: &str) -> Result<Schemes, RunError> {
    let services = scenario.services();
    let text = if text == AUTO { scenario.scheme.as_deref().unwrap_or(AUTO) } else { text };

    let schemes = if text == AUTO {
        Schemes::default_of(&services).map_err(SchemesError::from)?
    } else {
        Schemes::read(text, services.first().copied().unwrap_or(ServiceKind::File))?
    };

    // A scheme without traffic is a mistake: its result would say nothing.
    let idle = schemes.entries().find(|entry| !services.contains(&entry.service()));
    let Some(idle) = idle else { return Ok(schemes) };
    let missing = match idle.service() {
        ServiceKind::File => "[traffic]",
        ServiceKind::Tunnel => "[[flow]]",
        ServiceKind::Stream => "[[stream]]",
    };
    Err(RunError::NoTraffic { missing, scheme: idle.name })
}

/// Runs the scenario's traffic of the services that `schemes` names (see [`check_traffic`]), for at
/// most `limit` of virtual time.
///
/// The `observers` get every event. `progress` is called at least every half second of virtual
/// time, and may end the run.
///
/// # Errors
/// [`RunError`].
pub fn run(
    scenario: &Scenario,
    config: SimulationConfig,
    schemes: &str,
    limit: Duration,
    observers: Vec<Box<dyn Observer>>,
    progress: impl FnMut(&Step<'_>) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    let schemes = check_traffic(scenario, schemes)?;

    // Let the mesh measure its links first.
    let settling = settling_time(&config.link);
    let mut sim = Simulation::new(config)?;
    observers.into_iter().for_each(|observer| sim.observe(observer));
    let world = World { scenario, sim };
    let mut run = Run { world, stage: Stage::Measuring, progress, sharing: None };

    run.advance(Instant::default() + settling, |_| false)?;
    for entry in schemes.entries() {
        run.await_paths(entry.service())?;
    }

    let start = run.world.sim.now();
    let services = run.carry(&schemes, limit)?;

    // The observers must have written everything before the result says that the run succeeded.
    let sharing = run.sharing;
    let World { mut sim, .. } = run.world;
    sim.finish().map_err(RunError::Observer)?;
    let seconds = (sim.now() - start).as_secs_f64();

    let trace = TraceOutcome {
        seed: scenario.seed,
        sealed: sim.config().sealed,
        trace_hash: sim.trace_hash(),
        events: sim.trace_events(),
    };
    let usage = usage(&World { scenario, sim });
    let outcome = Outcome::new(&scenario.name, &schemes.to_string(), seconds, usage, services);
    Ok(Outcome { sharing, trace: Some(trace), ..outcome })
}

/// Returns the use of the channel by each node, by name.
fn usage(world: &World<'_>) -> BTreeMap<String, Usage> {
    let of = |node| world.sim.host(node).stack().map(Stack::usage).unwrap_or_default();
    (0..world.sim.len()).map(|node| (world.name(node), of(node))).collect()
}

/// A run under way.
struct Run<'a, P> {
    world: World<'a>,
    stage: Stage,
    progress: P,
    /// How services shared the channel, once the first of several has ended.
    sharing: Option<SharingOutcome>,
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
        while !ended && self.world.sim.now() < until {
            let next = self.world.sim.now() + Duration::from_millis(500);
            ended = self.world.sim.run_until(next.min(until), &mut over);

            // An observer has failed, for instance because the disk is full.
            if self.world.sim.is_stopped() {
                self.world.sim.finish().map_err(RunError::Observer)?;
                return Ok(ended);
            }

            let step = Step { sim: &self.world.sim, stage: self.stage };
            if (self.progress)(&step).is_break() {
                return Err(RunError::Interrupted);
            }
        }

        Ok(ended)
    }

    /// Carries the traffic of each scheme's service, all side by side, for at most `limit`.
    fn carry(&mut self, schemes: &Schemes, limit: Duration) -> Result<ServiceOutcomes, RunError> {
        // Flows and streams check their settings, so they are set up before files are sent.
        let start = self.world.sim.now();
        let end = start + limit;
        let mut loads: Vec<Box<dyn Load>> = Vec::new();
        if let Some(entry) = schemes.of(ServiceKind::Tunnel) {
            loads.push(Box::new(flows::Flows::begin(&mut self.world, entry.name, end)?));
        }
        if let Some(entry) = schemes.of(ServiceKind::Stream) {
            loads.push(Box::new(streams::Streams::begin(&self.world, entry.name, end)?));
        }
        if let Some(entry) = schemes.of(ServiceKind::File) {
            loads.insert(0, Box::new(transfer::Sending::begin(&mut self.world, entry.name)?));
        }

        let before = usage(&self.world);
        let mut outcomes = ServiceOutcomes::default();
        while let Some(first) = loads.first() {
            // Files, if there are some, tell more about the progress than the clock.
            self.stage = first.stage();

            // Send what is due now, and run until the next timer or an event that lets a load act.
            for load in &mut loads {
                load.act(&mut self.world.sim)?;
            }
            let now = self.world.sim.now();
            let due = loads.iter_mut().filter_map(|load| load.due(now));
            let until = due.chain([end]).min().unwrap_or(end);
            self.advance(until, |sim| loads.iter_mut().any(|load| load.may_act(sim, now)))?;
            loads.iter_mut().for_each(|load| load.observe(&mut self.world));

            // Collect the results of loads that are over.
            let is_cut = self.world.sim.now() >= end || self.world.sim.is_stopped();
            let (over, rest): (Vec<_>, Vec<_>) =
                loads.into_iter().partition(|load| is_cut || load.is_over(&self.world.sim));
            if self.sharing.is_none() && !over.is_empty() {
                self.sharing = self.sharing_since(start, &before, schemes);
            }
            over.into_iter().for_each(|load| load.conclude(&self.world, &mut outcomes));
            loads = rest;
        }
        Ok(outcomes)
    }

    /// Returns how services have shared the channel since `start`, if there are several.
    fn sharing_since(
        &self,
        start: Instant,
        before: &BTreeMap<String, Usage>,
        schemes: &Schemes,
    ) -> Option<SharingOutcome> {
        let services: Vec<_> = schemes.entries().map(Entry::service).collect();
        let sim = &self.world.sim;
        let seconds = (sim.now() - start).as_secs_f64();
        let after = usage(&self.world);
        (services.len() > 1 && seconds > 0.0)
            .then(|| SharingOutcome::new(&services, &sim.config().share, before, &after, seconds))
    }

    /// Waits until the sources of this service's traffic know paths to all receivers. For services
    /// with feedback, the receivers must know paths back as well.
    fn await_paths(&mut self, service: ServiceKind) -> Result<(), RunError> {
        // Source and receivers of each transfer, flow or stream.
        let scenario = self.world.scenario;
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
        let end = self.world.sim.now() + LONGEST_WAIT;
        while let Some((from, to)) = missing(&self.world.sim) {
            if self.world.sim.is_stopped() {
                return Ok(());
            }
            if self.world.sim.now() >= end {
                let [from, to] = [from, to].map(|node| self.world.name(node));
                return Err(RunError::Unreachable { from, to });
            }
            self.advance(self.world.sim.now() + WAIT, |_| false)?;
        }
        Ok(())
    }
}
