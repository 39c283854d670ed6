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
use ncmesh_node::api::types::Receiver;
use ncmesh_node::config::{read_token, token_warning};
use ncmesh_sim::outcome::{LabOutcome, Outcome, SharingOutcome};
use ncmesh_sim::scenario::{Content, Node, Scenario, Traffic};
use ncmesh_sim::{RunError, Schemes, SimulationConfig};
use ncmesh_stack::Usage;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, OnceCell};
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

            // A mesh that is held ends in good order, with its result. The run then returns by
            // itself.
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

        // From here on a signal ends the holding, not the run.
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
        // Each run has a directory of its own: daemons would go on with the state of an earlier
        // run.
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

    // Each result was shown, so the failure of a transfer comes last.
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
    let channels = lab.stop().await?;
    let worst = |lag: fn(&EtherStatistics) -> u64| channels.iter().map(lag).max().unwrap_or(0);
    let lab = LabOutcome {
        lag_mean_ms: worst(|channel| channel.lag_mean_ns) as f64 / 1e6,
        lag_max_ms: worst(|channel| channel.lag_max_ns) as f64 / 1e6,
        frames: channels.iter().map(|channel| channel.medium.total().frames_sent).sum(),
        dir,
    };

    Ok(Run { outcome: Outcome { lab: Some(lab), ..outcome }, packets })
}

/// Use of the channel while services run side by side.
struct Sharing<'a> {
    lab: &'a Lab,
    started: Instant,
    before: BTreeMap<String, Usage>,
    /// Time and use at the end of the first service.
    first_end: OnceCell<FirstEnd>,
}

/// End of the first of several services.
struct FirstEnd {
    seconds: f64,
    usage: BTreeMap<String, Usage>,
}

impl<'a> Sharing<'a> {
    /// Begins to measure.
    async fn begin(lab: &'a Lab) -> Result<Self, LabError> {
        let before = lab.usage().await?;
        Ok(Self { lab, started: Instant::now(), before, first_end: OnceCell::new() })
    }

    /// Notes that a service has ended.
    async fn note_end(&self) -> Result<(), LabError> {
        let read = || async {
            let usage = self.lab.usage().await?;
            Ok::<_, LabError>(FirstEnd { seconds: self.started.elapsed().as_secs_f64(), usage })
        };
        self.first_end.get_or_try_init(read).await.map(drop)
    }

    /// Returns how the services of `schemes` shared the channel, if there are several.
    fn outcome(
        &self,
        scenario: &Scenario,
        schemes: &Schemes,
    ) -> Result<Option<SharingOutcome>, Failure> {
        let services: Vec<_> = schemes.entries().map(Entry::service).collect();
        let Some(FirstEnd { seconds, usage }) = self.first_end.get() else { return Ok(None) };
        let config = SimulationConfig::from_scenario(scenario).map_err(RunError::from)?.share;
        let before = &self.before;
        Ok((services.len() > 1)
            .then(|| SharingOutcome::new(&services, &config, before, usage, *seconds)))
    }
}

/// Carries the traffic of each scheme's service, all side by side. Returns the result, and the
/// packets that files are cut into if there are some.
async fn carry(
    lab: &mut Lab,
    scenario: &Scenario,
    schemes: &Schemes,
    args: &LabArgs,
    progress: &mut Progress,
) -> Result<(Outcome, Option<f64>), Failure> {
    // All begin together, when the links are measured and every path is known.
    let file = schemes.of(ServiceKind::File);
    let tunnel = schemes.of(ServiceKind::Tunnel);
    let stream = schemes.of(ServiceKind::Stream);
    for traffic in scenario.traffic.iter().filter(|_| file.is_some()) {
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
    let sharing = Sharing::begin(lab).await?;
    // Each service notes its own end: the first of these notes tells how much of the channel each
    // had while all of them ran.
    let sending = async {
        let Some(scheme) = file else { return Ok(Vec::new()) };
        let sent = transfers(lab, scenario, scheme, args, progress).await?;
        sharing.note_end().await?;
        Ok::<_, Failure>(sent)
    };

    let flowing = async {
        if tunnel.is_none() {
            return Ok(None);
        }
        let flows = run_flows(lab, args).await?;
        sharing.note_end().await?;
        Ok::<_, Failure>(Some(flows))
    };

    let streaming = async {
        let Some(scheme) = stream else { return Ok(None) };
        let streams = streams(lab, &args.run, scheme).await?;
        sharing.note_end().await?;
        Ok::<_, Failure>(Some(streams))
    };

    let (sent, flows, streams) = tokio::try_join!(sending, flowing, streaming)?;
    let packets = sent.iter().map(|sent| sent.packets).sum();
    let sent = sent.into_iter().map(|sent| sent.outcome);
    let mut parts: Vec<Outcome> = sent.chain(flows).chain(streams).collect();
    match parts.pop() {
        // A service that ran alone shared nothing.
        Some(only) if parts.is_empty() => Ok((only, packets)),
        last => {
            parts.extend(last);
            let outcome = lab.together(schemes, parts).await?;
            Ok((Outcome { sharing: sharing.outcome(scenario, schemes)?, ..outcome }, packets))
        }
    }
}

/// A file that is being sent.
struct Sent<'a> {
    traffic: &'a Traffic,
    file: PathBuf,
    id: String,
}

/// Sends the scenario's files and returns the result of each, with the packets that it is cut into.
async fn transfers(
    lab: &Lab,
    scenario: &Scenario,
    scheme: &Entry,
    args: &LabArgs,
    progress: &mut Progress,
) -> Result<Vec<Run>, Failure> {
    // Contents are made before the first transfer begins, so that transfers begin together.
    let files: Result<Vec<PathBuf>, Failure> =
        (0..scenario.traffic.len()).map(|index| file_to_send(lab, scenario, index)).collect();
    let mut all = Vec::new();
    for (traffic, file) in scenario.traffic.iter().zip(files?) {
        let how = SendAs { scheme: scheme.name, allowance: traffic.allowance };
        let id = lab.send(traffic.from, &traffic.to, &file, how).await?;
        progress.note(&format!("sending {} as {id}", file.display()));
        all.push(Sent { traffic, file, id });
    }

    // At a timeout the result is that of the transfers so far.
    follow(lab, &all, args.run.timeout, progress).await?;
    progress.clear();
    let mut runs = Vec::new();
    for Sent { traffic, file, id } in &all {
        let sent = lab.transfer(traffic.from, id).await?;
        let packets = comparison::packets(&sent.sent);
        let outcome = lab.outcome(traffic.from, &traffic.to, id, scheme.name, file).await?;
        runs.push(Run { outcome, packets });
    }

    Ok(runs)
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

/// Returns the path of the file to send, the scenario's `index`-th. Random contents are written to
/// a file first.
fn file_to_send(lab: &Lab, scenario: &Scenario, index: usize) -> Result<PathBuf, Failure> {
    match &scenario.traffic[index].content {
        Content::File(file) => Ok(file.clone()),
        content @ Content::Random { .. } => {
            let name = match index {
                0 => "random.bin".to_owned(),
                _ => format!("random-{}.bin", index + 1),
            };

            let file = lab.dir().join(name);
            let contents = ncmesh_sim::contents(content, scenario.seed, index)
                .map_err(|e| Failure::new(Kind::File, e.to_string()))?;
            std::fs::write(&file, contents)
                .map_err(|e| Failure::new(Kind::File, format!("{}: {e}", file.display())))?;
            Ok(file)
        }
    }
}

/// Shows the transfers until all end or the limit is reached.
async fn follow(
    lab: &Lab,
    sent: &[Sent<'_>],
    limit: Option<Duration>,
    progress: &mut Progress,
) -> Result<(), LabError> {
    let started = Instant::now();
    loop {
        lab.check()?;

        let mut have_ended = true;
        for Sent { traffic, id, .. } in sent {
            let transfer = lab.transfer(traffic.from, id).await?;
            // A single file needs no id to be told from others.
            if let [_] = sent {
                progress.show_receivers(&transfer);
            } else {
                for receiver in &transfer.receivers {
                    let name = format!("{}, {id}", receiver.name);
                    progress.show_receiver(&Receiver { name, ..receiver.clone() }, transfer.size);
                }
            }

            have_ended &= transfer.ended;
        }

        if have_ended || limit.is_some_and(|limit| started.elapsed() >= limit) {
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
