//! `ncmesh lab`: runs a scenario over a mesh of real daemons.

use super::flows;
use crate::comparison::{self, Compared, LeftOut, Run};
use crate::failure::{Failure, Kind};
use crate::lab_args::{LabArgs, RunArgs};
use crate::plan;
use crate::progress::Progress;
use crate::show::{self, Form};
use ncmesh_engine::registry::{Entry, ServiceKind};
use ncmesh_lab::{EtherStatistics, Lab, LabError, LabOptions, LabWeb, POLL_INTERVAL, SendAs};
use ncmesh_node::config::{read_token, token_warning};
use ncmesh_sim::Schemes;
use ncmesh_sim::outcome::{LabOutcome, Outcome};
use ncmesh_sim::scenario::{Content, Node, Scenario, Traffic};
use std::cell::Cell;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Runs the command.
pub(crate) fn run(json: bool, args: &LabArgs) -> Result<(), Failure> {
    let form = Form::of(json, args.run.json_stream);

    // With --compare the other scheme runs first.
    let (scenario, schemes) = plan::scenario(&args.run)?;
    let against = comparison::others(&schemes, args.compare.as_slice())?;
    let schemes: Vec<Schemes> = against.into_iter().map(Schemes::from).chain([schemes]).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let holding = Holding::default();
        let mut running = pin!(run_traffic(&scenario, &schemes, args, form, &holding));
        loop {
            // Dropping the run, here or on a signal, ends the daemons.
            let why = tokio::select! {
                done = &mut running => return done,
                _ = interrupt.recv() => "interrupted",
                _ = terminate.recv() => "terminated",
            };
            if !holding.end() {
                return Err(Failure::new(Kind::Incomplete, why));
            }
        }
    })
}

/// Whether the mesh is kept up after its traffic, and the user's request to end that.
#[derive(Default)]
struct Holding {
    is_on: Cell<bool>,
    ended: Notify,
}

impl Holding {
    /// Ends it. Returns whether the mesh was kept up: then it ends by itself.
    fn end(&self) -> bool {
        self.ended.notify_one();
        self.is_on.replace(false)
    }

    /// Says how to talk to the nodes, and keeps the mesh up until the user ends it.
    async fn hold(&self, lab: &mut Lab, nodes: &[Node], args: &LabArgs) -> Result<(), Failure> {
        show::note("the mesh stays up until Ctrl-C; its nodes answer");
        for (index, node) in nodes.iter().enumerate() {
            let socket = lab.client(index).socket().display();
            let process = lab.process(index).map_or(String::new(), |id| format!(", process {id}"));
            show::note(&format!("  ncmesh --api {socket} peers    # {}{process}", node.name));
            if args.web {
                let console = ncmesh_lab::console(args.listen.listen, index)?;
                show::note(&format!("  http://{console}/"));
            }
        }
        self.is_on.set(true);
        loop {
            tokio::select! {
                () = self.ended.notified() => return Ok(()),
                () = tokio::time::sleep(POLL_INTERVAL) => match lab.check() {
                    // Whoever kills a node wants to see what the others do.
                    Err(ended @ LabError::NodeEnded { .. }) => show::note(&ended.to_string()),
                    checked => checked?,
                },
            }
        }
    }
}

/// Runs the scenario once and prints the result, or runs it by several schemes and compares them.
/// Fails if a transfer of the last run is incomplete.
async fn run_traffic(
    scenario: &Scenario,
    schemes: &[Schemes],
    args: &LabArgs,
    form: Form,
    holding: &Holding,
) -> Result<(), Failure> {
    if let [only] = schemes {
        let run = experiment(scenario, args, only, args.dir.clone(), form, holding).await?;
        let is_shown = args.holds();
        return conclude(&run.outcome, scenario, form, is_shown);
    }

    // One run after the other, so that they do not compete for the processor.
    let mut runs = Vec::new();
    let mut left_out = Vec::new();
    for (number, scheme) in schemes.iter().enumerate() {
        let name = |dir: &PathBuf| dir.join(format!("{}-{scheme}", number + 1));
        let dir = args.dir.as_ref().map(name);
        let run = match experiment(scenario, args, scheme, dir, form, holding).await {
            Ok(run) => run,
            Err(failure) if number + 1 < schemes.len() => {
                left_out.push(LeftOut::of(&scheme.to_string(), failure)?);
                continue;
            }
            // The others' results are worth showing all the same.
            Err(failure) if !runs.is_empty() => {
                comparison::show(
                    &Compared::of(runs, left_out),
                    "in the lab",
                    &scenario.flows,
                    form,
                )?;
                return Err(failure);
            }
            Err(failure) => return Err(failure),
        };
        if form == Form::Text {
            show_outcome(&run.outcome, scenario)?;
        }
        runs.push(run);
    }

    let transfer = runs.last().and_then(|run| run.outcome.transfer());
    let verdict = transfer.map_or(Ok(()), plan::verdict);
    comparison::show(&Compared::of(runs, left_out), "in the lab", &scenario.flows, form)?;
    verdict
}

/// Prints one run, unless people were shown it before. Fails if a transfer is incomplete.
fn conclude(
    outcome: &Outcome,
    scenario: &Scenario,
    form: Form,
    is_shown: bool,
) -> Result<(), Failure> {
    if form != Form::Text {
        plan::show_json(form, outcome)?;
    } else {
        if !is_shown {
            show_outcome(outcome, scenario)?;
        }
        if let Some(dir) = outcome.lab.as_ref().and_then(|lab| lab.dir.as_ref()) {
            show::line(&format!("the nodes' directories are in {}", dir.display()))?;
        }
    }
    outcome.transfer().map_or(Ok(()), plan::verdict)
}

/// Prints the result as tables and lines, and the processor time of daemons where it was measured.
fn show_outcome(outcome: &Outcome, scenario: &Scenario) -> Result<(), Failure> {
    plan::show_services(outcome, |all| flows::show(all, &scenario.flows))?;
    let Some(streams) = outcome.streams() else { return Ok(()) };
    let share = |(node, share): (&String, &f64)| format!("{node} {:.1} %", share * 100.0);
    let each: Vec<String> = streams.cpu.iter().map(share).collect();
    show::line(&format!("processor: {}", each.join(", ")))
}

/// Runs the scenario by `schemes` in a lab of its own and returns the result.
async fn experiment(
    scenario: &Scenario,
    args: &LabArgs,
    schemes: &Schemes,
    dir: Option<PathBuf>,
    form: Form,
    holding: &Holding,
) -> Result<Run, Failure> {
    // Flows need a tunnel device at each of their ends, and with it root.
    let tunnel = schemes.of(ServiceKind::Tunnel).map(|scheme| scheme.name.to_owned());
    let program = std::env::current_exe()?;
    let max_lag = args.max_lag;
    let stream = schemes.of(ServiceKind::Stream).map(|scheme| scheme.name.to_owned());
    // The daemons would name the file as their configurations do, which the user did not write.
    if let Some(file) = &args.token_file {
        read_token(file).map_err(|e| Failure::new(Kind::File, format!("--token-file {e}")))?;
        token_warning(file).iter().for_each(|problem| show::note(problem));
    }
    // The daemons have other working directories.
    let token_file = args.token_file.as_deref().map(std::path::absolute).transpose()?;
    let web = args.web.then_some(LabWeb { first: args.listen.listen, token_file });
    let options = LabOptions { program, dir: dir.clone(), max_lag, tunnel, stream, web };

    // Start the daemons. They are this program.
    let mut progress = Progress::new(form);
    progress.note(&format!("starting {} daemons", scenario.nodes.len()));
    let mut lab = Lab::start(scenario, &options).await?;
    let settling = lab.settling().as_secs_f64();
    progress.note(&format!(
        "{} daemons are up; they measure their links for {settling:.0} s",
        scenario.nodes.len()
    ));

    let (outcome, packets) = carry(&mut lab, scenario, schemes, args, &mut progress).await?;

    // The result ends here: the user may do anything with the mesh afterwards.
    if args.holds() {
        if form == Form::Text {
            show_outcome(&outcome, scenario)?;
        }
        holding.hold(&mut lab, &scenario.nodes, args).await?;
    }

    // The lag says how far the results can be trusted.
    let EtherStatistics { lag_mean_ns, lag_max_ns, medium, .. } = lab.stop().await?;
    let lab = LabOutcome {
        lag_mean_ms: lag_mean_ns as f64 / 1e6,
        lag_max_ms: lag_max_ns as f64 / 1e6,
        frames: medium.total().frames_sent,
        dir,
    };
    Ok(Run { outcome: Outcome { lab: Some(lab), ..outcome }, packets })
}

/// Carries the traffic of each scheme's service, all side by side. Returns the result, and the
/// packets that the file is cut into if there is one.
async fn carry(
    lab: &mut Lab,
    scenario: &Scenario,
    schemes: &Schemes,
    args: &LabArgs,
    progress: &mut Progress,
) -> Result<(Outcome, Option<f64>), Failure> {
    // All begin together, when the links are measured and every path is known.
    let file = schemes.of(ServiceKind::File).zip(scenario.traffic.as_ref());
    let tunnel = schemes.of(ServiceKind::Tunnel);
    let stream = schemes.of(ServiceKind::Stream);
    if let Some((_, traffic)) = file {
        lab.wait_for_routes(traffic.from, &traffic.to).await?;
    }
    if tunnel.is_some() {
        lab.settle_flows().await?;
        if args.compare.is_some() {
            progress.note("round-trip times without load are measured");
            lab.measure_idle_rtts().await?;
        }
        progress.note("flows begin");
    }
    if stream.is_some() {
        lab.settle_streams().await?;
        progress.note("streams begin");
    }

    // A failure of one ends the others.
    let lab = &*lab;
    let sending = async {
        let Some((scheme, traffic)) = file else { return Ok(None) };
        transfer(lab, scenario, scheme, traffic, args, progress).await.map(Some)
    };
    let flowing = async {
        if tunnel.is_none() {
            return Ok(None);
        }
        run_flows(lab, args).await.map(Some)
    };
    let streaming = async {
        let Some(scheme) = stream else { return Ok(None) };
        streams(lab, &args.run, scheme).await.map(Some)
    };
    let (sent, flows, streams) = tokio::try_join!(sending, flowing, streaming)?;
    let packets = sent.as_ref().and_then(|sent| sent.packets);
    let mut parts: Vec<Outcome> =
        [sent.map(|sent| sent.outcome), flows, streams].into_iter().flatten().collect();
    match parts.pop() {
        Some(only) if parts.is_empty() => Ok((only, packets)),
        last => {
            parts.extend(last);
            Ok((lab.together(schemes, parts).await?, packets))
        }
    }
}

/// Sends the scenario's file and returns the result, with the packets that the file is cut into.
async fn transfer(
    lab: &Lab,
    scenario: &Scenario,
    scheme: &Entry,
    traffic: &Traffic,
    args: &LabArgs,
    progress: &mut Progress,
) -> Result<Run, Failure> {
    let file = file_to_send(lab, scenario, traffic)?;

    // At a timeout the result is that of the transfer so far.
    let from = traffic.from;
    let to = traffic.to.as_slice();
    let how = SendAs { scheme: scheme.name, background: traffic.background };
    let id = lab.send(from, to, &file, how).await?;
    progress.note(&format!("sending {} as {id}", file.display()));
    follow(lab, from, &id, args.run.timeout, progress).await?;
    progress.clear();
    let sent = lab.transfer(from, &id).await?;
    let packets = comparison::packets(&sent.sent);
    let outcome = lab.outcome(from, to, &id, scheme.name, &file).await?;
    Ok(Run { outcome, packets })
}

/// Runs the scenario's flows and returns the result.
async fn run_flows(lab: &Lab, args: &LabArgs) -> Result<Outcome, Failure> {
    let running = async {
        let running = lab.begin_flows().await?;
        let running = match args.sample {
            Some(every) => running.sampled(every),
            None => running,
        };
        lab.finish_flows(running).await
    };

    // Flows are measured over a fixed time, so a part of them is no result.
    let limit = args.run.timeout.unwrap_or(Duration::MAX);
    let outcome = tokio::time::timeout(limit, running).await;
    let late = |_| Failure::new(Kind::Incomplete, "the flows did not end in time (--timeout)");
    Ok(outcome.map_err(late)??)
}

/// Runs the scenario's streams and returns the result.
async fn streams(lab: &Lab, args: &RunArgs, scheme: &Entry) -> Result<Outcome, Failure> {
    let running = lab.run_streams(scheme.name);
    let outcome = tokio::time::timeout(args.timeout.unwrap_or(Duration::MAX), running).await;
    let late = |_| Failure::new(Kind::Incomplete, "the streams did not end in time (--timeout)");
    Ok(outcome.map_err(late)??)
}

/// Returns the path of the file to send. Random contents are written to a file first.
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

/// Shows the transfer until it ends or the limit is reached.
async fn follow(
    lab: &Lab,
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
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

impl From<LabError> for Failure {
    fn from(e: LabError) -> Self {
        let kind = match e {
            LabError::Api(e) => return e.into(),
            LabError::Scenario(_) | LabError::TooLong { .. } => Kind::Config,
            LabError::Directory(_) => Kind::File,
            LabError::Ports(_) => Kind::Usage,
            LabError::Unreachable { .. } => Kind::Receiver,
            LabError::Flow { .. } => Kind::Incomplete,
            _ => Kind::Other,
        };
        Self::new(kind, e.to_string())
    }
}
