//! `ncmesh simulate`: runs a scenario in virtual time.

use crate::failure::{Failure, Kind};
use crate::lab_args::SimulateArgs;
use crate::plan;
use crate::progress::Progress;
use crate::show;
use crate::traces;
use crate::web;
use ncmesh_engine::time::Duration;
use ncmesh_sim::outcome::TraceOutcome;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{RunError, Simulation, SimulationConfig, Spent, Step};
use ncmesh_stack::Stack;
use std::ops::ControlFlow;

/// Timeout longer than any run: a thousand years.
const NEVER: Duration = Duration::from_secs(1000 * 365 * 86_400);

/// Runs the command.
pub(crate) fn run(json: bool, mut args: SimulateArgs) -> Result<(), Failure> {
    // Both options are short forms of overrides, and are checked as such.
    if let Some(seed) = args.seed {
        args.run.set.push(format!("seed={seed}"));
    }
    if args.unsealed {
        args.run.set.push("sealed=false".to_owned());
    }

    let (scenario, scheme) = plan::scenario(&args.run)?;
    let mut config = SimulationConfig::from_scenario(&scenario).map_err(RunError::from)?;
    config.time_parts = args.time_parts;
    let mut observers = traces::observers(&args.traces, &scenario, &config, scheme.name)?;
    let shown = web::Shown::begin(&args)?;
    observers.extend(shown.observer(&scenario, &config, scheme.name));
    let limit = args.run.timeout.unwrap_or(NEVER);

    // The simulation belongs to the run, so the time of its parts is copied while it is there.
    let mut progress = Progress::new(json);
    let mut spent = None;
    let show = |step: &Step<'_>| {
        show_progress(&mut progress, &scenario, step.sim);
        spent = step.sim.time_spent().cloned();
        ControlFlow::Continue(())
    };
    let outcome = ncmesh_sim::run(&scenario, config, scheme.name, limit, observers, show)?;

    // Progress and times go to standard error, so that the result can be piped.
    progress.clear();
    if let Some(spent) = &spent {
        show::note(&parts(spent));
    }
    if json {
        show::json(&outcome)?;
    } else {
        plan::show_outcome(&outcome)?;
        if let Some(TraceOutcome { seed, sealed, trace_hash, events }) = &outcome.trace {
            let unsealed = if *sealed { "" } else { "; not encrypted" };
            show::line(&format!("seed {seed}{unsealed}; trace of {events} events: {trace_hash}"))?;
        }
    }
    shown.finish(&scenario.name, scheme.name)?;
    outcome.transfer().map_or(Ok(()), plan::verdict)
}

/// Returns a table of the time that each part took.
fn parts(spent: &Spent) -> String {
    let parts = spent.parts();
    let all: f64 = parts.iter().map(|(.., time)| time.as_secs_f64()).sum();
    let mut table = show::Table::new(["PART", "SERVICE", "RUNS", "TIME", "MEAN", "SHARE"]);
    for (part, runs, time) in parts {
        let (name, service) = part.names();
        let seconds = time.as_secs_f64();
        table.row([
            name.to_owned(),
            service.to_owned(),
            runs.to_string(),
            format!("{seconds:.3} s"),
            format!("{:.1} us", 1e6 * seconds / runs as f64),
            format!("{:.1} %", 100.0 * seconds / all),
        ]);
    }
    table.to_string()
}

/// Shows the receivers of the file transfer, as its source sees them.
fn show_progress(progress: &mut Progress, scenario: &Scenario, s: &Simulation) {
    let from = scenario.traffic.as_ref().map(|traffic| s.host(traffic.from));
    let stack = from.and_then(|host| host.stack());
    for transfer in stack.into_iter().flat_map(Stack::transfers) {
        for r in &transfer.receivers {
            let name = &scenario.nodes[usize::from(r.node.0) - 1].name;
            progress.show_receiver(name, r.state.into(), r.bytes, transfer.size);
        }
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        let kind = match e {
            RunError::File(..) | RunError::Observer(_) => Kind::File,
            RunError::Scheme(_) => Kind::Usage,
            RunError::Unreachable { .. } => Kind::Receiver,
            RunError::NoTraffic { .. }
            | RunError::Tcp(_)
            | RunError::TooLong { .. }
            | RunError::Simulation(_) => Kind::Config,
            RunError::Interrupted => Kind::Incomplete,
        };
        Self::new(kind, e.to_string())
    }
}
