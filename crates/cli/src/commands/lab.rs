//! `ncmesh lab`.

use crate::args::LabArgs;
use crate::failure::{Failure, Kind};
use crate::plan;
use crate::progress::Progress;
use crate::show;
use ncmesh_lab::{EtherStatistics, LOOK, Lab, LabError, LabOptions};
use ncmesh_sim::TransferOutcome;
use ncmesh_sim::scenario::{Content, Scenario, Traffic};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// A run of real daemons.
#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    transfer: TransferOutcome,
    /// How far the emulated medium was behind the wall clock, ms.
    lag_mean_ms: f64,
    lag_max_ms: f64,
    /// Frames on the air, of every kind.
    frames: u64,
    /// Where the nodes' directories were kept.
    dir: Option<PathBuf>,
}

pub(crate) fn run(json: bool, args: &LabArgs) -> Result<(), Failure> {
    let scenario = plan::scenario(&args.run, &["file"])?;
    let Some(traffic) = scenario.traffic.clone() else { return Ok(()) };
    let program = std::env::current_exe()?;
    let options = LabOptions { program, dir: args.dir.clone(), max_lag: args.max_lag };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // Whatever ends first: what is dropped here takes the daemons with it.
        tokio::select! {
            outcome = experiment(&scenario, &traffic, args, &options, json) => outcome,
            _ = interrupt.recv() => Err(Failure::new(Kind::Incomplete, "interrupted")),
            _ = terminate.recv() => Err(Failure::new(Kind::Incomplete, "terminated")),
        }
    })?;
    if json {
        show::json(&outcome)?;
    } else {
        plan::show_outcome(&outcome.transfer)?;
        if let Some(dir) = &outcome.dir {
            show::line(&format!("the nodes' directories are in {}", dir.display()))?;
        }
    }
    plan::verdict(&outcome.transfer)
}

async fn experiment(
    scenario: &Scenario,
    traffic: &Traffic,
    args: &LabArgs,
    options: &LabOptions,
    silent: bool,
) -> Result<Outcome, Failure> {
    let scheme = &args.run.scheme;
    let mut progress = Progress::new(silent);
    progress.note(&format!("starting {} daemons", scenario.nodes.len()));
    let mut lab = Lab::start(scenario, options).await?;
    let settling = lab.settling().as_secs_f64();
    progress.note(&format!(
        "{} daemons are up; they measure their links for {settling:.0} s",
        scenario.nodes.len()
    ));
    lab.settle(traffic.from, &traffic.to).await?;
    let file = file_to_send(&lab, scenario, traffic)?;
    let (from, to) = (traffic.from, traffic.to.as_slice());
    let id = lab.send(from, to, &file, scheme).await?;
    progress.note(&format!("sending {} as {id}", file.display()));
    follow(&mut lab, from, &id, args.run.timeout, &mut progress).await?;
    progress.clear();
    let transfer = lab.outcome(from, to, &id, scheme, &file).await?;
    let EtherStatistics { lag_mean_ns, lag_max_ns, medium, .. } = lab.stop().await?;
    Ok(Outcome {
        transfer,
        lag_mean_ms: lag_mean_ns as f64 / 1e6,
        lag_max_ms: lag_max_ns as f64 / 1e6,
        frames: medium.total().frames_sent,
        dir: options.dir.clone(),
    })
}

/// The file; one of random bytes is made.
fn file_to_send(lab: &Lab, scenario: &Scenario, traffic: &Traffic) -> Result<PathBuf, Failure> {
    match &traffic.content {
        Content::File(file) => Ok(file.clone()),
        content @ Content::Random { .. } => {
            let file = lab.dir().join("random.bin");
            let contents = ncmesh_sim::contents(content, scenario.seed)
                .map_err(|e| Failure::new(Kind::File, e.to_string()))?;
            std::fs::write(&file, contents)
                .map_err(|e| Failure::new(Kind::File, format!("{}: {e}", file.display())))?;
            Ok(file)
        }
    }
}

/// Shows the transfer until it ends, or for as long as it may take.
async fn follow(
    lab: &mut Lab,
    from: usize,
    id: &str,
    limit: Option<Duration>,
    progress: &mut Progress,
) -> Result<(), LabError> {
    let started = Instant::now();
    loop {
        lab.check()?;
        let transfer = lab.transfer(from, id).await?;
        progress.show_receivers(&transfer);
        if transfer.ended || limit.is_some_and(|limit| started.elapsed() >= limit) {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

impl From<LabError> for Failure {
    fn from(e: LabError) -> Self {
        let kind = match e {
            LabError::Api(e) => return e.into(),
            LabError::Scenario(_) => Kind::Config,
            LabError::Directory(_) => Kind::File,
            LabError::Unreachable { .. } => Kind::Receiver,
            _ => Kind::Other,
        };
        Self::new(kind, e.to_string())
    }
}
