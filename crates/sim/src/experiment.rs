//! One scenario's file transfer, start to end, and what came of it.

use crate::host::Happening;
use crate::observe::Observer;
use crate::scenario::{Content, Scenario};
use crate::simulation::{Simulation, SimulationConfig, SimulationError, node_id};
use ncmesh_proto::file::TransferStatus;
use ncmesh_proto::link::LinkConfig;
use ncmesh_proto::registry;
use ncmesh_proto::rng;
use ncmesh_proto::route::Metric;
use ncmesh_proto::time::{Duration, Instant};
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The transfer.
    #[serde(flatten)]
    pub transfer: TransferOutcome,
    /// Data packets each node sent, by name.
    pub node_transmissions: BTreeMap<String, u64>,
    /// The seed.
    pub seed: u64,
    /// Whether frames were really encrypted; otherwise a null cipher of the same length stood in.
    pub sealed: bool,
    /// Hash over every frame sent, heard and reported.
    pub trace_hash: String,
    /// How many events that hash is over.
    pub events: u64,
}

/// What came of a file transfer, simulated or of real daemons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransferOutcome {
    /// The scenario's name.
    pub scenario: String,
    /// The engine.
    pub scheme: String,
    /// The file's size, bytes.
    pub bytes: u64,
    /// Each receiver.
    pub receivers: Vec<ReceiverOutcome>,
    /// Data packets all nodes sent.
    pub transmissions: u64,
    /// Payload bytes of the source's packets over the file's bytes.
    pub source_redundancy: f64,
    /// Nodes the source listed as forwarders.
    pub forwarders: Vec<String>,
    /// Seconds of the mesh's clock from the start of the transfer to its end.
    pub seconds: f64,
}

/// What came of it at one receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReceiverOutcome {
    /// Its name.
    pub node: String,
    /// Whether it has the whole file, byte for byte.
    pub verified: bool,
    /// Bytes it has.
    pub bytes: u64,
    /// Seconds from the start of the transfer until it had all.
    pub seconds: Option<f64>,
    /// File bits over those seconds, bit/s.
    pub throughput_bps: Option<f64>,
}

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The simulation cannot be.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The scenario says nothing is sent.
    #[error("the scenario has no [traffic]: nothing to run")]
    NoTraffic,
    /// No path was found while the mesh measured itself.
    #[error(
        "{to} cannot be reached from {from}: the scenario's links connect them too badly or not at all"
    )]
    Unreachable {
        /// The source.
        from: String,
        /// The receiver.
        to: String,
    },
    /// Its file cannot be read.
    #[error("cannot read {0}: {1}")]
    File(String, std::io::Error),
    /// The caller ended the run.
    #[error("interrupted")]
    Interrupted,
    /// An observer could not go on.
    #[error(transparent)]
    Observer(std::io::Error),
}

/// How long a mesh whose nodes all start now measures itself before a transfer begins: the quick start of
/// probing, and five seconds for the news of it to travel.
#[must_use]
pub fn settling_time(link: &LinkConfig) -> Duration {
    link.settling_time() + Duration::from_secs(5)
}

/// Runs the scenario's transfer with `scheme`, at most `limit` of virtual time. The `observers` are told of every
/// event; `progress` is called now and then with the simulation and says whether to go on.
///
/// # Errors
/// [`RunError`].
pub fn run(
    scenario: &Scenario,
    config: SimulationConfig,
    scheme: &str,
    limit: Duration,
    observers: Vec<Box<dyn Observer>>,
    mut progress: impl FnMut(&Simulation) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    let traffic = scenario.traffic.as_ref().ok_or(RunError::NoTraffic)?;
    let scheme = registry::entry(scheme)
        .ok_or_else(|| SimulationError::UnknownScheme(scheme.to_owned()))?
        .name;
    let contents = contents(&traffic.content, scenario.seed)?;
    let settling = settling_time(&config.link);
    let mut s = Simulation::new(config)?;
    observers.into_iter().for_each(|observer| s.observe(observer));
    let settled = s.now() + settling;
    advance(&mut s, settled, &mut progress, |_| false)?;
    let name = |node: usize| scenario.nodes[node].name.clone();
    if let Some(node) = first_unreachable(&s, traffic.from, &traffic.to) {
        return Err(RunError::Unreachable { from: name(traffic.from), to: name(node) });
    }
    let start = s.now();
    let flow = s.send_file(scheme, traffic.from, Some(&traffic.to), contents.clone())?;
    let mut seen = 0;
    advance(&mut s, start + limit, &mut progress, |s| {
        let ended = s.happenings()[seen..].iter().any(|(_, _, h)| *h == Happening::SendEnded(flow));
        seen = s.happenings().len();
        ended
    })?;
    s.finish().map_err(RunError::Observer)?;
    Ok(outcome(scenario, &s, scheme, flow, start, &contents))
}

/// Runs until `over` says so or the clock reaches `until`, and tells `progress` now and then.
fn advance(
    s: &mut Simulation,
    until: Instant,
    mut progress: impl FnMut(&Simulation) -> ControlFlow<()>,
    mut over: impl FnMut(&Simulation) -> bool,
) -> Result<(), RunError> {
    let mut ended = false;
    while !ended && s.now() < until {
        let next = s.now() + Duration::from_millis(500);
        ended = s.run_until(next.min(until), &mut over);
        if s.is_stopped() {
            return s.finish().map_err(RunError::Observer);
        }
        if progress(s).is_break() {
            return Err(RunError::Interrupted);
        }
    }
    Ok(())
}

fn first_unreachable(s: &Simulation, from: usize, to: &[usize]) -> Option<usize> {
    let topology = s.host(from).stack()?.topology();
    let paths = topology.paths_from(node_id(from), Metric::Broadcast);
    to.iter().copied().find(|node| !paths.reaches(node_id(*node)))
}

/// The bytes a scenario's traffic sends.
///
/// # Errors
/// [`RunError::File`] where they are those of a file that cannot be read.
pub fn contents(content: &Content, seed: u64) -> Result<Vec<u8>, RunError> {
    match content {
        Content::File(path) => {
            std::fs::read(path).map_err(|e| RunError::File(path.display().to_string(), e))
        }
        Content::Random { bytes } => {
            let mut contents = vec![0; usize::try_from(*bytes).unwrap_or(usize::MAX)];
            rng::stream(seed, NodeId(0), "experiment", "contents").fill_bytes(&mut contents);
            Ok(contents)
        }
    }
}

fn outcome(
    scenario: &Scenario,
    s: &Simulation,
    scheme: &str,
    flow: FlowId,
    start: Instant,
    contents: &[u8],
) -> Outcome {
    let traffic = scenario.traffic.iter();
    let receivers = traffic.clone().flat_map(|t| &t.to).map(|node| {
        let at =
            s.happenings().iter().find(|(_, n, h)| n == node && *h == Happening::Delivered(flow));
        let seconds = at.map(|(at, ..)| (*at - start).as_secs_f64());
        let received = s.host(*node).storage().received(flow);
        ReceiverOutcome {
            node: scenario.nodes[*node].name.clone(),
            verified: seconds.is_some() && received == contents,
            bytes: received.len() as u64,
            seconds,
            throughput_bps: seconds.map(|t| contents.len() as f64 * 8.0 / t),
        }
    });
    let status = traffic.clone().find_map(|t| status(s, t.from, flow));
    let name = |node: usize| scenario.nodes[node].name.clone();
    let node_transmissions: BTreeMap<String, u64> =
        (0..s.len()).map(|node| (name(node), data_sent(s, node, scheme))).collect();
    let listed = status.iter().flat_map(|t| &t.forwarders);
    let transfer = TransferOutcome {
        scenario: scenario.name.clone(),
        scheme: scheme.to_owned(),
        bytes: contents.len() as u64,
        receivers: receivers.collect(),
        transmissions: node_transmissions.values().sum(),
        source_redundancy: status.as_ref().map_or(0.0, |t| t.source_redundancy),
        forwarders: listed.map(|node| name(usize::from(node.0) - 1)).collect(),
        seconds: (s.now() - start).as_secs_f64(),
    };
    Outcome {
        transfer,
        node_transmissions,
        seed: scenario.seed,
        sealed: s.config().sealed,
        trace_hash: s.trace_hash(),
        events: s.trace_events(),
    }
}

fn status(s: &Simulation, node: usize, flow: FlowId) -> Option<TransferStatus> {
    debug_assert_eq!(flow.source, node_id(node));
    s.host(node).stack()?.transfers().into_iter().find(|t| t.flow == flow)
}

fn data_sent(s: &Simulation, node: usize, scheme: &str) -> u64 {
    let (Some(stack), Some(entry)) = (s.host(node).stack(), registry::entry(scheme)) else {
        return 0;
    };
    stack.counters().sent(entry.id, ncmesh_proto::file::frame::DATA).frames
}
