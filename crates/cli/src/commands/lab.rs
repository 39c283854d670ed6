//! `ncmesh lab`.

use crate::args::{LabArgs, RunArgs};
use crate::failure::{Failure, Kind};
use crate::plan;
use crate::progress::Progress;
use crate::show::{self, Table};
use ncmesh_lab::{EtherStatistics, LOOK, Lab, LabError, LabFlows, LabOptions, LabStreams};
use ncmesh_proto::registry;
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
    carried: Carried,
    /// How far the emulated medium was behind the wall clock, ms.
    lag_mean_ms: f64,
    lag_max_ms: f64,
    /// Frames on the air, of every kind.
    frames: u64,
    /// Where the nodes' directories were kept.
    dir: Option<PathBuf>,
}

/// What a scheme carried, by its service.
#[derive(Serialize)]
#[serde(untagged)]
enum Carried {
    Transfer(TransferOutcome),
    Flows(LabFlows),
    Streams(LabStreams),
}

pub(crate) fn run(json: bool, args: &LabArgs) -> Result<(), Failure> {
    let scheme = &args.run.scheme;
    let scenario = plan::scenario(&args.run, &["file", "tunnel", "stream"])?;
    let service = registry::entry(scheme).map_or("", |entry| entry.service);
    let tunnel = (service == "tunnel").then(|| scheme.clone());
    let program = std::env::current_exe()?;
    let options = LabOptions { program, dir: args.dir.clone(), max_lag: args.max_lag, tunnel };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // Whatever ends first: what is dropped here takes the daemons with it.
        tokio::select! {
            outcome = experiment(&scenario, args, (&options, service), json) => outcome,
            _ = interrupt.recv() => Err(Failure::new(Kind::Incomplete, "interrupted")),
            _ = terminate.recv() => Err(Failure::new(Kind::Incomplete, "terminated")),
        }
    })?;
    if json {
        show::json(&outcome)?;
    } else {
        match &outcome.carried {
            Carried::Transfer(transfer) => plan::show_outcome(transfer)?,
            Carried::Flows(flows) => show_flows(flows)?,
            Carried::Streams(streams) => show_streams(streams)?,
        }
        if let Some(dir) = &outcome.dir {
            show::line(&format!("the nodes' directories are in {}", dir.display()))?;
        }
    }
    match &outcome.carried {
        Carried::Transfer(transfer) => plan::verdict(transfer),
        Carried::Flows(_) | Carried::Streams(_) => Ok(()),
    }
}

async fn experiment(
    scenario: &Scenario,
    args: &LabArgs,
    (options, service): (&LabOptions, &str),
    silent: bool,
) -> Result<Outcome, Failure> {
    let mut progress = Progress::new(silent);
    progress.note(&format!("starting {} daemons", scenario.nodes.len()));
    let mut lab = Lab::start(scenario, options).await?;
    let settling = lab.settling().as_secs_f64();
    progress.note(&format!(
        "{} daemons are up; they measure their links for {settling:.0} s",
        scenario.nodes.len()
    ));
    let carried = match &scenario.traffic {
        _ if service == "stream" => {
            Carried::Streams(streams(&mut lab, &args.run, &mut progress).await?)
        }
        Some(traffic) if options.tunnel.is_none() => {
            Carried::Transfer(transfer(&mut lab, scenario, traffic, args, &mut progress).await?)
        }
        _ => Carried::Flows(flows(&mut lab, args.run.timeout, &mut progress).await?),
    };
    let EtherStatistics { lag_mean_ns, lag_max_ns, medium, .. } = lab.stop().await?;
    Ok(Outcome {
        carried,
        lag_mean_ms: lag_mean_ns as f64 / 1e6,
        lag_max_ms: lag_max_ns as f64 / 1e6,
        frames: medium.total().frames_sent,
        dir: options.dir.clone(),
    })
}

async fn transfer(
    lab: &mut Lab,
    scenario: &Scenario,
    traffic: &Traffic,
    args: &LabArgs,
    progress: &mut Progress,
) -> Result<TransferOutcome, Failure> {
    let scheme = &args.run.scheme;
    lab.settle(traffic.from, &traffic.to).await?;
    let file = file_to_send(lab, scenario, traffic)?;
    let (from, to) = (traffic.from, traffic.to.as_slice());
    let id = lab.send(from, to, &file, scheme).await?;
    progress.note(&format!("sending {} as {id}", file.display()));
    follow(lab, from, &id, args.run.timeout, progress).await?;
    progress.clear();
    Ok(lab.outcome(from, to, &id, scheme, &file).await?)
}

async fn flows(
    lab: &mut Lab,
    limit: Option<Duration>,
    progress: &mut Progress,
) -> Result<LabFlows, Failure> {
    lab.settle_flows().await?;
    progress.note("flows begin");
    let carry = async {
        let running = lab.begin_flows().await?;
        lab.finish_flows(running).await
    };
    let carried = tokio::time::timeout(limit.unwrap_or(Duration::MAX), carry).await;
    let late = |_| Failure::new(Kind::Incomplete, "the flows did not end in time (--timeout)");
    Ok(carried.map_err(late)??)
}

async fn streams(
    lab: &mut Lab,
    args: &RunArgs,
    progress: &mut Progress,
) -> Result<LabStreams, Failure> {
    lab.settle_streams().await?;
    progress.note("streams begin");
    let carry = lab.carry_streams(&args.scheme);
    let carried = tokio::time::timeout(args.timeout.unwrap_or(Duration::MAX), carry).await;
    let late = |_| Failure::new(Kind::Incomplete, "the streams did not end in time (--timeout)");
    Ok(carried.map_err(late)??)
}

/// The streams as a table, and what the daemons cost.
fn show_streams(outcome: &LabStreams) -> Result<(), Failure> {
    plan::show_streams(&outcome.streams)?;
    let each = outcome.cpu.iter().map(|(node, share)| format!("{node} {:.1} %", share * 100.0));
    show::line(&format!("processor: {}", each.collect::<Vec<_>>().join(", ")))
}

/// The flows as a table, and the run in a line.
fn show_flows(outcome: &LabFlows) -> Result<(), Failure> {
    let columns = [
        "FROM",
        "TO",
        "PROTOCOL",
        "KBIT/S",
        "LOSS",
        "RETRANSMITS",
        "RTT MS",
        "JITTER MS",
        "INNOVATIVE",
    ];
    let ms = |seconds: Option<f64>| show::or_dash(seconds.map(|s| format!("{:.1}", s * 1e3)));
    let mut table = Table::new(columns);
    for flow in &outcome.flows {
        let innovative = 100.0 * flow.innovative as f64 / flow.heard.max(1) as f64;
        table.row([
            flow.from.clone(),
            flow.to.clone(),
            flow.protocol.clone(),
            format!("{:.0}", flow.throughput_bps / 1e3),
            show::or_dash(flow.loss.map(|loss| format!("{:.1} %", loss * 100.0))),
            show::or_dash(flow.retransmits.map(|n| n.to_string())),
            ms(flow.mean_rtt_s),
            ms(flow.jitter_s),
            format!("{innovative:.1} %"),
        ]);
    }
    show::line(&table.to_string())?;
    let (scheme, seconds, sent) = (&outcome.scheme, outcome.seconds, outcome.transmissions);
    show::line(&format!("{seconds:.1} s by {scheme}; data transmissions: {sent}"))
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
            LabError::Scenario(_) | LabError::TooLong { .. } => Kind::Config,
            LabError::Directory(_) => Kind::File,
            LabError::Unreachable { .. } => Kind::Receiver,
            LabError::Flow { .. } => Kind::Incomplete,
            _ => Kind::Other,
        };
        Self::new(kind, e.to_string())
    }
}
