//! `ncmesh simulate`: runs a scenario in virtual time.

use crate::comparison::{self, Compared, LeftOut, Run};
use crate::failure::{Failure, Kind};
use crate::lab_args::SimulateArgs;
use crate::plan;
use crate::progress::Progress;
use crate::show::{self, Form};
use crate::traces;
use crate::web;
use ncmesh_console::schema::{ReceivedValues, SourceValues};
use ncmesh_engine::time::Duration;
use ncmesh_node::api::types::Receiver;
use ncmesh_sim::outcome::TraceOutcome;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Observer, RunError, SimulationConfig, Spent, SpentOn, Stage, Step};
use std::ops::ControlFlow;

/// Timeout longer than any run: a thousand years.
const NEVER: Duration = Duration::from_secs(1000 * 365 * 86_400);

/// Runs the command.
pub(crate) fn run(json: bool, mut args: SimulateArgs) -> Result<(), Failure> {
    let form = Form::of(json, args.run.json_stream);

    // Both options are short forms of overrides, and are checked as such.
    if let Some(seed) = args.seed {
        args.run.set.push(format!("seed={seed}"));
    }
    if args.unsealed {
        args.run.set.push("sealed=false".to_owned());
    }

    let (scenario, schemes) = plan::scenario(&args.run)?;
    let others = comparison::others(&schemes, &args.compare)?;

    // Files are opened and the console is started before the first run, so that a mistake there
    // does not cost the time of the runs.
    let mut config = SimulationConfig::from_scenario(&scenario).map_err(RunError::from)?;
    config.time_parts = args.time_parts;
    let mut observers = traces::observers(&args.traces, &scenario, &config, &schemes)?;
    let shown = web::Shown::begin(&args)?;
    observers.extend(shown.observer(&scenario, &config, &schemes));
    let limit = args.run.timeout.unwrap_or(NEVER);

    // The other schemes run first, so that the scheme itself is what is seen last.
    let scheme = schemes.to_string();
    let mut runs = Vec::new();
    let mut left_out = Vec::new();
    let is_compared = !others.is_empty();
    for other in others {
        show::note(&format!("simulating {}", other.name));
        // Each run has the seed of the scenario, so that all schemes start from the same numbers.
        let config = SimulationConfig::from_scenario(&scenario).map_err(RunError::from)?;
        match simulate(&scenario, config, other.name, limit, Vec::new(), form) {
            Ok((run, _)) => runs.push(run),
            Err(failure) => left_out.push(LeftOut::of(other.name, failure)?),
        }
    }

    if is_compared {
        show::note(&format!("simulating {scheme}"));
    }
    let (run, spent) = match simulate(&scenario, config, &scheme, limit, observers, form) {
        Ok(done) => done,
        // The others' results are worth showing all the same.
        Err(failure) if !runs.is_empty() => {
            if let ([only], Form::Text) = (runs.as_slice(), form) {
                plan::show_outcome(&only.outcome)?;
            }
            comparison::show(&Compared::of(runs, left_out), "simulated", &scenario.flows, form)?;
            return Err(failure);
        }
        Err(failure) => return Err(failure),
    };

    // Times go to standard error, so that the result can be piped.
    if let Some(spent) = &spent {
        show::note(&parts(spent));
    }
    let outcome = run.outcome.clone();
    if form == Form::Text {
        plan::show_outcome(&outcome)?;
        if let Some(TraceOutcome { seed, sealed, trace_hash, events }) = &outcome.trace {
            let unsealed = if *sealed { "" } else { "; not encrypted" };
            show::line(&format!("seed {seed}{unsealed}; trace of {events} events: {trace_hash}"))?;
        }
    }

    if !is_compared {
        if form != Form::Text {
            plan::show_json(form, &outcome)?;
        }
    } else {
        runs.push(run);
        if form == Form::Text {
            show::line("")?;
        }
        comparison::show(&Compared::of(runs, left_out), "simulated", &scenario.flows, form)?;
    }

    shown.finish(&scenario.name, &schemes)?;
    outcome.transfer().map_or(Ok(()), plan::verdict)
}

/// Runs the traffic by `schemes`. Returns the run, and the time of its parts if the configuration
/// asks for it.
fn simulate(
    scenario: &Scenario,
    config: SimulationConfig,
    schemes: &str,
    limit: Duration,
    observers: Vec<Box<dyn Observer>>,
    form: Form,
) -> Result<(Run, Option<Spent>), Failure> {
    // The simulation belongs to the run, so what is needed of it is copied while it is there.
    let mut progress = Progress::new(form);
    let mut spent = None;
    let mut packets = None;
    let show = |step: &Step<'_>| {
        show_progress(&mut progress, scenario, step);
        spent = step.sim.time_spent().cloned();
        packets = packets.or_else(|| packets_of(step));
        ControlFlow::Continue(())
    };

    let outcome = ncmesh_sim::run(scenario, config, schemes, limit, observers, show)?;
    progress.clear();
    Ok((Run { outcome, packets }, spent))
}

/// Returns how many packets the files are cut into, once each source has sent some.
fn packets_of(step: &Step<'_>) -> Option<f64> {
    // Measuring has no packets of files yet, and flows have none at all.
    let Stage::Transfer = step.stage else { return None };

    let packets = step.sent().map(|sent| {
        comparison::packets(&SourceValues {
            packets: Some(sent.source_packets),
            source_redundancy: Some(sent.source_redundancy),
        })
    });

    packets.sum()
}

/// Returns a table of the time that each part took.
fn parts(spent: &Spent) -> String {
    let parts = spent.parts();
    let all: f64 = parts.iter().map(|spent| spent.time.as_secs_f64()).sum();
    let mut table = show::Table::new(["PART", "SERVICE", "RUNS", "TIME", "MEAN", "SHARE"]);
    for SpentOn { part, runs, time } in parts {
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

/// Shows the receivers of file transfers, as the sources see them, or how much of the time of flows
/// and streams is over.
fn show_progress(progress: &mut Progress, scenario: &Scenario, step: &Step<'_>) {
    match step.stage {
        Stage::Measuring => return,
        Stage::Timed { .. } => return progress.show_share("simulated", step.share()),
        Stage::Transfer => {}
    }

    for transfer in step.sent() {
        for r in &transfer.receivers {
            let until = r.finished.unwrap_or_else(|| step.sim.now());
            let seconds = (until - transfer.started).as_secs_f64();
            let name = scenario.nodes[usize::from(r.node.0) - 1].name.clone();
            let is_alone = scenario.traffic.len() == 1;
            let receiver = Receiver {
                id: r.node.0,
                name: if is_alone { name } else { format!("{name}, {}", transfer.flow) },
                state: r.state.into(),
                reason: None,
                values: ReceivedValues {
                    bytes: r.bytes,
                    seconds,
                    kbit_s: r.bytes as f64 * 8.0 / 1e3 / seconds.max(1e-3),
                    ..ReceivedValues::default()
                },
            };

            progress.show_receiver(&receiver, transfer.size);
        }
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        let kind = match e {
            RunError::File(..) | RunError::Observer(_) => Kind::File,
            RunError::Schemes(_) => Kind::Usage,
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
