//! The file transfer of a scenario: sends the file, waits for the end, and checks what arrived.

use super::{Run, RunError, Stage, Step};
use crate::host::Observation;
use crate::outcome::{ReceiverOutcome, TransferOutcome};
use crate::scenario::{Content, Traffic};
use crate::simulation::{Simulation, node_id};
use ncmesh_engine::file::TransferStatus;
use ncmesh_engine::rng;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use std::ops::ControlFlow;

/// Runs the file transfer, for at most `limit`.
pub(super) fn run<P: FnMut(&Step<'_>) -> ControlFlow<()>>(
    run: &mut Run<'_, P>,
    traffic: &Traffic,
    limit: Duration,
) -> Result<TransferOutcome, RunError> {
    let contents = contents(&traffic.content, run.scenario.seed)?;

    let start = run.sim.now();
    let flow = run.sim.send_file(run.scheme, traffic.from, Some(&traffic.to), contents.clone())?;

    run.stage = Stage::Transfer { from: traffic.from };

    // The transfer is over when its source has ended it. Only new observations are searched.
    let mut seen = 0;
    run.advance(start + limit, |sim| {
        let ended =
            sim.observations()[seen..].iter().any(|(_, _, h)| *h == Observation::SendEnded(flow));
        seen = sim.observations().len();
        ended
    })?;
    Ok(outcome(run, traffic, flow, start, &contents))
}

/// Returns the contents of a scenario's file transfer.
///
/// # Errors
/// [`RunError::File`] if they come from a file that cannot be read.
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

/// Returns the result of the transfer `flow`, which began at `start`.
fn outcome<P: FnMut(&Step<'_>) -> ControlFlow<()>>(
    run: &Run<'_, P>,
    traffic: &Traffic,
    flow: FlowId,
    start: Instant,
    contents: &[u8],
) -> TransferOutcome {
    let sim = &run.sim;
    // A receiver counts as verified if it reported the file, and if it is byte for byte the one
    // that was sent: the simulation does not rely on the protocol's own check.
    let receivers = traffic.to.iter().map(|node| {
        let at = sim
            .observations()
            .iter()
            .find(|(_, n, h)| n == node && *h == Observation::Delivered(flow));
        let seconds = at.map(|(at, ..)| (*at - start).as_secs_f64());
        let received = sim.host(*node).storage().received(flow);
        ReceiverOutcome {
            node: run.name(*node),
            verified: seconds.is_some() && received == contents,
            bytes: received.len() as u64,
            seconds,
            throughput_bps: seconds.map(|t| contents.len() as f64 * 8.0 / t),
        }
    });

    let status = status(sim, traffic.from, flow);
    let listed = status.iter().flat_map(|t| &t.forwarders);
    TransferOutcome {
        bytes: contents.len() as u64,
        receivers: receivers.collect(),
        source_redundancy: status.as_ref().map_or(0.0, |t| t.source_redundancy),
        forwarders: listed.map(|node| run.name(usize::from(node.0) - 1)).collect(),
    }
}

/// Returns the status of a transfer at its source.
fn status(sim: &Simulation, node: usize, flow: FlowId) -> Option<TransferStatus> {
    debug_assert_eq!(flow.source, node_id(node));
    sim.host(node).stack()?.transfers().into_iter().find(|t| t.flow == flow)
}
