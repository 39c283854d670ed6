//! The lab: a mesh of real daemons over an emulated channel.
//!
//! Every node of a scenario is an `ncmesh node` process with a directory of its own. The emulator
//! of each channel runs on a thread of this process, and the daemons exchange frames with it. A
//! node has a port on each channel that it is on. A lab sends files, flows of IP packets, or
//! streams as the scenario says, and compares what arrived with what was sent.
//!
//! Files and streams need no privileges. Flows need root, because each of their ends has a network
//! namespace. Everything is removed when the [`Lab`] is dropped, except a directory that the caller
//! named.

mod comparison;
mod config;
mod error;
mod ether;
mod flows;
mod iperf;
mod namespaces;
mod ping;
mod process;
mod streams;
mod tunnel;
mod verify;

pub use comparison::Comparison;
pub use error::LabError;
pub use flows::RunningFlows;
pub use ncmesh_node::etherd::EtherStatistics;
pub use verify::same_contents;

use config::{Own, OwnRadio, Secrets, node_config};
use ether::EtherThread;
use ncmesh_engine::Background;
use ncmesh_engine::file::Allowance;
use ncmesh_node::api::client::ApiClient;
use ncmesh_node::api::types::{Peer, Recipients, SendRequest, Started, Status, Transfer};
use ncmesh_node::etherd::datagram::Token;
use ncmesh_sim::outcome::{Outcome, ReceiverOutcome, ServiceOutcomes, TransferOutcome};
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Schemes, Simulation, SimulationConfig, settling_time};
use ncmesh_stack::Usage;
use process::NodeProcess;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::os::unix;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;
use tunnel::Tunnel;

/// Time between two requests for the state of the daemons.
pub const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Timeout for a daemon to answer after its start, and for routes after the links are measured.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of a lab.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// Path of the `ncmesh` program.
    pub program: PathBuf,
    /// Directory that keeps the daemons' directories. Without it they are temporary.
    pub dir: Option<PathBuf>,
    /// Largest lag of the channel emulator behind the wall clock. The run fails if the lag is
    /// larger for a second.
    pub max_lag: Duration,
    /// Tunnel scheme for the scenario's flows. `None` if no flows are to be carried.
    pub tunnel: Option<String>,
    /// Stream scheme for the scenario's streams. `None` for the default.
    pub stream: Option<String>,
    /// The daemons' consoles. `None` if they serve none.
    pub web: Option<LabWeb>,
}

/// The consoles of a lab's daemons.
#[derive(Clone, Debug)]
pub struct LabWeb {
    /// Address of the first daemon's. The others have the ports behind it.
    pub first: SocketAddr,
    /// File with the token for commands. Without it the consoles are for looking only.
    pub token_file: Option<PathBuf>,
}

/// A running mesh. Dropping it kills the daemons; [`stop`](Self::stop) lets them end properly.
pub struct Lab {
    scenario: Scenario,
    settling: Duration,
    started: Instant,
    // Fields are dropped in this order: the processes before the things they use.
    nodes: Vec<NodeProcess>,
    tunnel: Option<Tunnel>,
    /// The emulator of each channel.
    channels: Vec<EtherThread>,
    config: SimulationConfig,
    dir: Dir,
    /// Round-trip times without load by flow, s, as far as measured.
    idle_rtts: Vec<Option<f64>>,
}

/// Directory of the daemons' directories.
enum Dir {
    Temporary(TempDir),
    Kept(PathBuf),
}

impl Dir {
    /// Makes a temporary directory, or opens `kept`, which must be empty or absent.
    fn open(kept: Option<&Path>) -> std::io::Result<Self> {
        // A directory with old nodes in it would bring back their state and their inboxes.
        let Some(dir) = kept else {
            return Ok(Self::Temporary(tempfile::Builder::new().prefix("ncmesh-lab-").tempdir()?));
        };
        let made = std::fs::create_dir_all(dir).and_then(|()| std::fs::read_dir(dir));
        if made.map_err(|e| named(dir, &e))?.next().is_some() {
            return Err(named(dir, "it is not empty, choose another"));
        }
        Ok(Self::Kept(std::path::absolute(dir)?))
    }

    /// Returns the path of the directory.
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(dir) => dir.path(),
            Self::Kept(dir) => dir,
        }
    }
}

/// Returns an error that names the path.
fn named(path: &Path, problem: impl Display) -> std::io::Error {
    std::io::Error::other(format!("{}: {problem}", path.display()))
}

/// Returns the address of a node's console.
///
/// # Errors
/// [`LabError::Ports`] if there are not enough ports behind the first.
pub fn console(first: SocketAddr, node: usize) -> Result<SocketAddr, LabError> {
    let port = u16::try_from(usize::from(first.port()) + node);
    Ok(SocketAddr::new(first.ip(), port.map_err(|_| LabError::Ports(first))?))
}

/// Checks that the paths of the daemons' API sockets are short enough.
fn check_sockets(places: &[PathBuf]) -> std::io::Result<()> {
    // Linux allows 107 bytes. A daemon could only report that it cannot bind its socket.
    let problem = "too long for a socket's path; choose a shorter directory (--dir)";
    places.iter().map(|place| place.join("state/api.sock")).try_for_each(|socket| {
        unix::net::SocketAddr::from_pathname(&socket).map(drop).map_err(|_| named(&socket, problem))
    })
}

/// How a file is sent.
#[derive(Clone, Copy, Debug)]
pub struct SendAs<'a> {
    /// Name of the scheme.
    pub scheme: &'a str,
    /// Airtime and rate that it may take.
    pub allowance: Allowance,
}

impl Lab {
    /// Starts the channel emulator and a daemon for each node, and waits until all answer.
    ///
    /// # Errors
    /// [`LabError`]: an invalid setting, a daemon that does not start, a directory that cannot be
    /// made.
    pub async fn start(scenario: &Scenario, options: &LabOptions) -> Result<Self, LabError> {
        // The simulator checks the settings. The daemons would do so too, but their messages would
        // name a file that the user did not write.
        let config = SimulationConfig::from_scenario(scenario)?;
        let settling = settling_time(&config.link);
        let simulation = Simulation::new(config)?;

        // Directories, and namespaces with tunnel devices if flows are to be carried.
        let dir = Dir::open(options.dir.as_deref()).map_err(LabError::Directory)?;
        let place = |(index, name)| dir.path().join(format!("{}-{name}", index + 1));
        let names = scenario.nodes.iter().map(|node| &node.name);
        let places: Vec<PathBuf> = names.enumerate().map(place).collect();
        check_sockets(&places).map_err(LabError::Directory)?;
        let scheme = options.tunnel.as_deref();
        let tunnel = scheme.map(|scheme| Tunnel::new(scheme, scenario, &simulation)).transpose()?;

        // Emulators and daemons share a token, the daemons share the network key.
        let mut secrets = Secrets { token: Token([0; 16]), key: [0; 32] };
        getrandom::fill(&mut secrets.token.0).map_err(std::io::Error::from)?;
        getrandom::fill(&mut secrets.key).map_err(std::io::Error::from)?;
        let start = |medium| EtherThread::start(medium, secrets.token, options.max_lag);
        let media = simulation.config().media().cloned();
        let channels = media.map(start).collect::<Result<Vec<_>, _>>()?;

        // Every daemon gets a directory with its configuration. None is started yet, so that a
        // wrong setting or a full disk leaves no process behind.
        let mut nodes = Vec::new();
        for (index, (node, place)) in scenario.nodes.iter().zip(places).enumerate() {
            let tunnel = tunnel.as_ref();
            let web = match &options.web {
                Some(web) => Some((console(web.first, index)?, web.token_file.as_deref())),
                None => None,
            };

            let own = Own { index, tunnel, stream: options.stream.as_deref(), web };
            let radios = radios(simulation.config(), &channels, index);
            let config = node_config(scenario, &own, &radios, &secrets);
            let process = NodeProcess::new(&node.name, place, options.program.clone(), &config);
            nodes.push(process.map_err(LabError::Directory)?);
        }

        let mut lab = Self {
            scenario: scenario.clone(),
            settling,
            started: Instant::now(),
            nodes,
            tunnel,
            channels,
            config: simulation.config().clone(),
            dir,
            idle_rtts: Vec::new(),
        };

        // Start all daemons before waiting for the first, so that they start in parallel.
        for node in 0..lab.nodes.len() {
            lab.nodes[node].spawn()?;
        }
        for node in 0..lab.nodes.len() {
            lab.wait_until_up(node).await?;
        }

        // Links are measured from now on, when the last node is there.
        lab.started = Instant::now();
        Ok(lab)
    }

    /// Returns the directory that holds each daemon's configuration, log, state and inbox.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the API client of a node's daemon.
    #[must_use]
    pub fn client(&self, node: usize) -> &ApiClient {
        self.nodes[node].client()
    }

    /// Returns the id of a daemon's process, if it runs.
    #[must_use]
    pub fn process(&self, node: usize) -> Option<u32> {
        self.nodes[node].id()
    }

    /// Returns how long the nodes measure their links before a transfer begins.
    #[must_use]
    pub fn settling(&self) -> Duration {
        self.settling
    }

    /// Checks that the emulators and all daemons still run.
    ///
    /// # Errors
    /// [`LabError::NodeEnded`], [`LabError::Ether`].
    pub fn check(&self) -> Result<(), LabError> {
        let ended = self.nodes.iter().find_map(|node| node.check().err());

        // If an emulator gives up, the daemons end too, and only the emulator knows why. So its
        // error takes precedence.
        self.channels.iter().try_for_each(EtherThread::check)?;
        ended.map_or(Ok(()), Err)
    }

    /// Waits until the links are measured and `from` can reach all of `to`.
    ///
    /// # Errors
    /// [`LabError::Unreachable`], and those of [`check`](Self::check).
    pub async fn wait_for_routes(&self, from: usize, to: &[usize]) -> Result<(), LabError> {
        // Both must be true: all have measured for long enough, and routes are known. On weak
        // links routes may come later.
        let settled = self.started + self.settling;
        loop {
            self.check()?;
            let missing = self.first_unreachable(from, to).await?;
            let now = Instant::now();
            match missing {
                None if now >= settled => return Ok(()),
                Some(node) if now >= settled + READY_TIMEOUT => {
                    let name = |node: usize| self.scenario.nodes[node].name.clone();
                    return Err(LabError::Unreachable { from: name(from), to: name(node) });
                }
                _ => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Returns the first of `to` to which the daemon of `from` knows no path.
    async fn first_unreachable(
        &self,
        from: usize,
        to: &[usize],
    ) -> Result<Option<usize>, LabError> {
        let peers: Vec<Peer> = self.client(from).read("/v1/peers").await?;
        let reached = |node: usize| {
            peers.iter().any(|peer| usize::from(peer.id) == node + 1 && peer.values.etx.is_some())
        };
        Ok(to.iter().copied().find(|node| !reached(*node)))
    }

    /// Sends `file` from one node to others and returns the transfer's id.
    ///
    /// # Errors
    /// [`LabError::Api`] if the daemon refuses.
    pub async fn send(
        &self,
        from: usize,
        to: &[usize],
        file: &Path,
        how: SendAs<'_>,
    ) -> Result<String, LabError> {
        // The daemon has another working directory.
        let path = std::path::absolute(file)?;
        let to = to.iter().map(|node| self.scenario.nodes[*node].name.clone()).collect();
        let request = SendRequest {
            path,
            to: Recipients::Named(to),
            name: None,
            scheme: Some(how.scheme.into()),
            background: how.allowance.background.map(Background::percent),
            limit_bps: how.allowance.limit_bps,
            priority: None,
        };

        let started: Started = self.client(from).post("/v1/transfers", &request).await?;
        Ok(started.id)
    }

    /// Returns a node's view of a transfer.
    ///
    /// # Errors
    /// [`LabError::Api`].
    pub async fn transfer(&self, node: usize, id: &str) -> Result<Transfer, LabError> {
        Ok(self.client(node).read(&format!("/v1/transfers/{id}")).await?)
    }

    /// Kills a node's daemon, as a crash would, and switches its radios off.
    ///
    /// # Errors
    /// [`LabError::System`], [`LabError::Ether`].
    pub async fn kill(&mut self, node: usize) -> Result<(), LabError> {
        // The emulator would take the radio for a slow one until several grants have expired.
        self.nodes[node].kill().await?;
        self.set_up(node, false).await
    }

    /// Switches the radios of a node on or off, on all channels that it is on.
    async fn set_up(&self, node: usize, up: bool) -> Result<(), LabError> {
        for (channel, ether) in self.channels.iter().enumerate() {
            if self.config.is_on(node, channel) {
                ether.set_up(node, up).await?;
            }
        }
        Ok(())
    }

    /// Starts a killed daemon again and waits until it answers.
    ///
    /// # Errors
    /// [`LabError`].
    pub async fn restart(&mut self, node: usize) -> Result<(), LabError> {
        self.set_up(node, true).await?;
        self.nodes[node].spawn()?;
        self.wait_until_up(node).await
    }

    /// Waits until a node's daemon answers.
    async fn wait_until_up(&self, node: usize) -> Result<(), LabError> {
        // Until its socket is there, every request fails. A daemon that has ended never answers,
        // so `check` looks for that.
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            self.check()?;
            let answer = self.client(node).read::<Status>("/v1/status").await;
            match answer {
                Ok(_) => return Ok(()),
                Err(e) if Instant::now() >= deadline => return Err(e.into()),
                Err(_) => tokio::time::sleep(POLL_INTERVAL / 4).await,
            }
        }
    }

    /// Returns the result of a transfer of `file`: progress as its source reports it, and whether
    /// the received files equal the sent one byte for byte.
    ///
    /// # Errors
    /// [`LabError::Api`], [`LabError::System`].
    pub async fn outcome(
        &self,
        from: usize,
        to: &[usize],
        id: &str,
        scheme: &str,
        file: &Path,
    ) -> Result<Outcome, LabError> {
        let sent = self.transfer(from, id).await?;
        let mut receivers = Vec::new();
        for node in to {
            let report = sent.receivers.iter().find(|report| usize::from(report.id) == node + 1);
            let Some(report) = report else { continue };

            // The source's word is not enough: the received file is compared with the sent one. A
            // receiver that never heard of the transfer answers with an error.
            let received = self.transfer(*node, id).await.ok().and_then(|t| t.path);
            let verified = match &received {
                Some(received) => same_contents(file, received).await?,
                None => false,
            };

            let seconds = verified.then_some(report.values.seconds);
            receivers.push(ReceiverOutcome {
                file: 0,
                node: report.name.clone(),
                verified,
                bytes: report.values.bytes,
                seconds,
                throughput_bps: seconds.map(|s| report.values.bytes as f64 * 8.0 / s.max(1e-3)),
            });
        }

        let transfer = TransferOutcome {
            bytes: sent.size,
            receivers,
            // Only the source was asked, and it knows.
            source_redundancy: sent.sent.source_redundancy.unwrap_or(0.0),
            forwarders: sent.forwarders,
        };

        let services = ServiceOutcomes { transfer: Some(transfer), ..Default::default() };
        self.conclude(scheme, sent.values.seconds, services).await
    }

    /// Returns the result of files and services that ran side by side by `schemes`, from the result
    /// of each. That of each file comes in the scenario's order.
    ///
    /// # Errors
    /// [`LabError::Api`].
    pub async fn together(
        &self,
        schemes: &Schemes,
        parts: Vec<Outcome>,
    ) -> Result<Outcome, LabError> {
        let seconds = parts.iter().map(|part| part.seconds).fold(0.0, f64::max);
        let mut services = ServiceOutcomes::default();
        let mut files = Vec::new();
        for ServiceOutcomes { transfer, flows, streams } in parts.into_iter().map(|p| p.services) {
            files.extend(transfer);
            services.flows = services.flows.or(flows);
            services.streams = services.streams.or(streams);
        }

        services.transfer = (!files.is_empty()).then(|| TransferOutcome::of_files(files));
        self.conclude(&schemes.to_string(), seconds, services).await
    }

    /// Returns the result of a run, with the use of the channel as the daemons report it.
    async fn conclude(
        &self,
        scheme: &str,
        seconds: f64,
        services: ServiceOutcomes,
    ) -> Result<Outcome, LabError> {
        // Counters are read before the daemons end, as they are lost then.
        let nodes = self.usage().await?;
        Ok(Outcome::new(&self.scenario.name, scheme, seconds, nodes, services))
    }

    /// Returns the use of the channel by each node since it started, by name.
    ///
    /// # Errors
    /// [`LabError::Api`].
    pub async fn usage(&self) -> Result<BTreeMap<String, Usage>, LabError> {
        let mut nodes = BTreeMap::new();
        for node in &self.nodes {
            let status: Status = node.client().read("/v1/status").await?;
            nodes.insert(node.name().to_owned(), status.usage);
        }
        Ok(nodes)
    }

    /// Ends all daemons properly, then the channel emulators. Returns the counters of each channel.
    ///
    /// # Errors
    /// [`LabError::Ether`] if an emulator did not keep up with the wall clock.
    pub async fn stop(mut self) -> Result<Vec<EtherStatistics>, LabError> {
        // All are asked before the first is waited for, so that they end in parallel. The emulators
        // come last: a daemon without its radio would report an error.
        for node in &self.nodes {
            node.ask_to_end();
        }
        for node in &mut self.nodes {
            node.wait_for_end().await;
        }
        let mut statistics = Vec::new();
        for channel in self.channels {
            statistics.push(channel.stop().await?);
        }
        Ok(statistics)
    }
}

/// Returns the radios of a node: one on each channel that it is on.
fn radios<'a>(
    config: &'a SimulationConfig,
    channels: &[EtherThread],
    node: usize,
) -> Vec<OwnRadio<'a>> {
    let on = channels.iter().enumerate().filter(|(channel, _)| config.is_on(node, *channel));
    on.map(|(channel, ether)| OwnRadio {
        name: config.channel_name(channel),
        ether: ether.address(),
    })
    .collect()
}
