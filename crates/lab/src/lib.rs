//! The lab: every node of a scenario is a real daemon, a process of its own, and the air between them is
//! emulated.
//!
//! Files need no root; flows do, for the network namespaces of their ends. The ether runs on a thread of this process, the daemons' directories lie under one
//! directory, and all of it is gone when the [`Lab`] is, except a directory that the caller named.

mod comparison;
mod config;
mod error;
mod ether;
mod flows;
mod iperf;
mod namespaces;
mod ping;
mod process;
mod samples;
mod streams;
mod tunnel;
mod verify;

pub use comparison::Comparison;
pub use error::LabError;
pub use flows::{LabFlow, LabFlows, RunningFlows};
pub use ncmesh_node::etherd::EtherStatistics;
pub use samples::Samples;
pub use streams::LabStreams;
pub use verify::same_contents;

use config::node_config;
use ether::EtherThread;
use ncmesh_engine::transmission::DATA;
use ncmesh_node::api::client::ApiClient;
use ncmesh_node::api::types::{Peer, Recipients, SendRequest, Started, Status, Transfer};
use ncmesh_node::etherd::datagram::Token;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{ReceiverOutcome, Simulation, SimulationConfig, TransferOutcome, settling_time};
use process::NodeProcess;
use std::fmt::Display;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;
use tunnel::Tunnel;

/// Time between two looks at the daemons.
pub const LOOK: Duration = Duration::from_millis(200);
/// Beyond the time that the mesh needs to measure itself, it may take so long until all receivers are known.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a lab is run.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The `ncmesh` program.
    pub program: PathBuf,
    /// Where the daemons' directories go, and stay; otherwise they are temporary.
    pub dir: Option<PathBuf>,
    /// How far the emulated medium may be behind the wall clock, for a second, before the run is given up.
    pub max_lag: Duration,
    /// The tunnel scheme that carries the scenario's flows, if any are to be carried.
    pub tunnel: Option<String>,
}

/// A running mesh. Dropped, it is gone at once; [`stop`](Self::stop) ends the daemons in good order.
pub struct Lab {
    scenario: Scenario,
    settling: Duration,
    started: Instant,
    // Dropped in this order: the processes before what they stand on.
    nodes: Vec<NodeProcess>,
    tunnel: Option<Tunnel>,
    ether: EtherThread,
    dir: Dir,
    /// By flow, round-trip times without load, s, as far as measured.
    idle_rtts: Vec<Option<f64>>,
}

/// Where the daemons' directories lie.
enum Dir {
    Temporary(TempDir),
    Kept(PathBuf),
}

impl Dir {
    fn open(kept: Option<&Path>) -> std::io::Result<Self> {
        let Some(dir) = kept else {
            return Ok(Self::Temporary(tempfile::Builder::new().prefix("ncmesh-lab-").tempdir()?));
        };
        let made = std::fs::create_dir_all(dir).and_then(|()| std::fs::read_dir(dir));
        if made.map_err(|e| named(dir, &e))?.next().is_some() {
            return Err(named(dir, "it is not empty, choose another"));
        }
        Ok(Self::Kept(std::path::absolute(dir)?))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Temporary(dir) => dir.path(),
            Self::Kept(dir) => dir,
        }
    }
}

fn named(path: &Path, problem: impl Display) -> std::io::Error {
    std::io::Error::other(format!("{}: {problem}", path.display()))
}

/// Whether the API sockets of daemons in these directories can be.
fn check_sockets(places: &[PathBuf]) -> std::io::Result<()> {
    let problem = "too long for a socket's path; choose a shorter directory (--dir)";
    places.iter().map(|place| place.join("state/api.sock")).try_for_each(|socket| {
        SocketAddr::from_pathname(&socket).map(drop).map_err(|_| named(&socket, problem))
    })
}

impl Lab {
    /// Starts the ether and a daemon for each node, and waits until all answer.
    ///
    /// # Errors
    /// [`LabError`]: a setting that cannot be, a daemon that does not start, a directory that cannot be made.
    pub async fn start(scenario: &Scenario, options: &LabOptions) -> Result<Self, LabError> {
        // The daemons would find out, but in the file we wrote, not in the one the user did.
        let config = SimulationConfig::from_scenario(scenario)?;
        let settling = settling_time(&config.link);
        let simulation = Simulation::new(config)?;
        let dir = Dir::open(options.dir.as_deref()).map_err(LabError::Directory)?;
        let place = |(index, name)| dir.path().join(format!("{}-{name}", index + 1));
        let names = scenario.nodes.iter().map(|node| &node.name);
        let places: Vec<PathBuf> = names.enumerate().map(place).collect();
        check_sockets(&places).map_err(LabError::Directory)?;
        let scheme = options.tunnel.as_deref();
        let tunnel = scheme.map(|scheme| Tunnel::new(scheme, scenario, &simulation)).transpose()?;
        let (mut token, mut key) = ([0; 16], [0; 32]);
        getrandom::fill(&mut token).map_err(std::io::Error::from)?;
        getrandom::fill(&mut key).map_err(std::io::Error::from)?;
        let token = Token(token);
        let ether = EtherThread::start(scenario.medium_config(), token, options.max_lag)?;
        let mut nodes = Vec::new();
        for (index, (node, place)) in scenario.nodes.iter().zip(places).enumerate() {
            let tunnel = tunnel.as_ref();
            let config = node_config(scenario, index, ether.address(), (token, &key), tunnel);
            let process = NodeProcess::new(&node.name, place, options.program.clone(), &config);
            nodes.push(process.map_err(LabError::Directory)?);
        }
        let mut lab = Self {
            scenario: scenario.clone(),
            settling,
            started: Instant::now(),
            nodes,
            tunnel,
            ether,
            dir,
            idle_rtts: Vec::new(),
        };
        for node in 0..lab.nodes.len() {
            lab.nodes[node].spawn()?;
        }
        for node in 0..lab.nodes.len() {
            lab.wait_until_up(node).await?;
        }
        lab.started = Instant::now();
        Ok(lab)
    }

    /// The directory that holds each daemon's configuration, log, state and inbox.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The API of a node's daemon.
    #[must_use]
    pub fn client(&self, node: usize) -> &ApiClient {
        self.nodes[node].client()
    }

    /// How long the mesh measures itself before a transfer begins.
    #[must_use]
    pub fn settling(&self) -> Duration {
        self.settling
    }

    /// Finds out whether everything still runs.
    ///
    /// # Errors
    /// [`LabError::NodeEnded`], [`LabError::Ether`].
    pub fn check(&mut self) -> Result<(), LabError> {
        let ended = self.nodes.iter_mut().find_map(|node| node.check().err());
        // An ether that gives up takes the daemons with it, and knows why.
        self.ether.check()?;
        ended.map_or(Ok(()), Err)
    }

    /// Waits until the mesh has measured itself and `from` can reach all of `to`.
    ///
    /// # Errors
    /// [`LabError::Unreachable`], and those of [`check`](Self::check).
    pub async fn settle(&mut self, from: usize, to: &[usize]) -> Result<(), LabError> {
        let settled = self.started + self.settling;
        loop {
            self.check()?;
            let missing = self.first_unreachable(from, to).await?;
            let now = Instant::now();
            match missing {
                None if now >= settled => return Ok(()),
                Some(node) if now >= settled + PATIENCE => {
                    let name = |node: usize| self.scenario.nodes[node].name.clone();
                    return Err(LabError::Unreachable { from: name(from), to: name(node) });
                }
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    }

    async fn first_unreachable(
        &self,
        from: usize,
        to: &[usize],
    ) -> Result<Option<usize>, LabError> {
        let peers: Vec<Peer> = self.client(from).read("/v1/peers").await?;
        let reached = |node: usize| {
            peers.iter().any(|peer| usize::from(peer.id) == node + 1 && peer.etx.is_some())
        };
        Ok(to.iter().copied().find(|node| !reached(*node)))
    }

    /// Sends `file` from one node to others, and returns the transfer's id.
    ///
    /// # Errors
    /// [`LabError::Api`]: what the daemon has against it.
    pub async fn send(
        &self,
        from: usize,
        to: &[usize],
        file: &Path,
        scheme: &str,
    ) -> Result<String, LabError> {
        let path = std::path::absolute(file)?;
        let to = to.iter().map(|node| self.scenario.nodes[*node].name.clone()).collect();
        let request = SendRequest {
            path,
            to: Recipients::Named(to),
            name: None,
            scheme: Some(scheme.into()),
        };
        let started: Started = self.client(from).post("/v1/transfers", &request).await?;
        Ok(started.id)
    }

    /// A transfer as a node sees it.
    ///
    /// # Errors
    /// [`LabError::Api`].
    pub async fn transfer(&self, node: usize, id: &str) -> Result<Transfer, LabError> {
        Ok(self.client(node).read(&format!("/v1/transfers/{id}")).await?)
    }

    /// Ends a node's daemon at once, as a crash would, its radio with it.
    ///
    /// # Errors
    /// [`LabError::System`], [`LabError::Ether`].
    pub async fn kill(&mut self, node: usize) -> Result<(), LabError> {
        self.nodes[node].kill().await?;
        self.ether.set_up(node, false).await
    }

    /// Starts a killed daemon again, and waits until it answers.
    ///
    /// # Errors
    /// [`LabError`].
    pub async fn restart(&mut self, node: usize) -> Result<(), LabError> {
        self.ether.set_up(node, true).await?;
        self.nodes[node].spawn()?;
        self.wait_until_up(node).await
    }

    async fn wait_until_up(&mut self, node: usize) -> Result<(), LabError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.check()?;
            let answer = self.client(node).read::<Status>("/v1/status").await;
            match answer {
                Ok(_) => return Ok(()),
                Err(e) if Instant::now() >= deadline => return Err(e.into()),
                Err(_) => tokio::time::sleep(LOOK / 4).await,
            }
        }
    }

    /// What came of a transfer of `file`: what its source and its receivers say, and what lies in their
    /// inboxes, compared byte for byte.
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
    ) -> Result<TransferOutcome, LabError> {
        let sent = self.transfer(from, id).await?;
        let mut receivers = Vec::new();
        for node in to {
            let told = sent.receivers.iter().find(|told| usize::from(told.id) == node + 1);
            let Some(told) = told else { continue };
            // A receiver that never heard of it has no such transfer.
            let received = self.transfer(*node, id).await.ok().and_then(|t| t.path);
            let verified = match &received {
                Some(received) => same_contents(file, received).await?,
                None => false,
            };
            let seconds = verified.then_some(told.seconds);
            receivers.push(ReceiverOutcome {
                node: told.name.clone(),
                verified,
                bytes: told.bytes,
                seconds,
                throughput_bps: seconds.map(|s| told.bytes as f64 * 8.0 / s.max(1e-3)),
            });
        }
        Ok(TransferOutcome {
            scenario: self.scenario.name.clone(),
            scheme: scheme.to_owned(),
            bytes: sent.size,
            receivers,
            transmissions: self.data_frames_sent(scheme).await?,
            source_redundancy: sent.source_redundancy,
            forwarders: sent.forwarders,
            seconds: sent.seconds,
        })
    }

    /// Data packets that all daemons sent since they started.
    async fn data_frames_sent(&self, scheme: &str) -> Result<u64, LabError> {
        let mut frames = 0;
        for node in &self.nodes {
            let status: Status = node.client().read("/v1/status").await?;
            let data = status.sent.iter().filter(|t| t.service == scheme && t.kind == DATA);
            frames += data.map(|t| t.frames).sum::<u64>();
        }
        Ok(frames)
    }

    /// Ends all daemons in good order, then the ether.
    ///
    /// # Errors
    /// [`LabError::Ether`] where it did not keep up with the wall clock.
    pub async fn stop(mut self) -> Result<EtherStatistics, LabError> {
        for node in &self.nodes {
            node.ask_to_end();
        }
        for node in &mut self.nodes {
            node.wait_for_end().await;
        }
        self.ether.stop().await
    }
}
