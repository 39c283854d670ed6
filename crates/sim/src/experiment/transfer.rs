//! The file transfers of a scenario: sends the files, waits for the end of each, and checks what
//! arrived.

use super::error::RunError;
use super::load::{Load, World};
use super::step::Stage;
use crate::host::Observation;
use crate::outcome::{ReceiverOutcome, ServiceOutcomes, TransferOutcome};
use crate::scenario::Content;
use crate::simulation::{NewFile, Simulation, node_id};
use ncmesh_engine::file::TransferStatus;
use ncmesh_engine::rng;
use ncmesh_engine::time::Instant;
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use std::collections::BTreeSet;

/// A file that is sent.
struct File {
    flow: FlowId,
    from: usize,
    to: Vec<usize>,
    contents: Vec<u8>,
}

/// The file transfers under way.
pub(super) struct Sending {
    files: Vec<File>,
    start: Instant,
    /// Number of observations that were searched for ends.
    seen: usize,
    /// Files whose sources have not ended the transfer.
    under_way: BTreeSet<FlowId>,
}

impl Sending {
    /// Begins to send the scenario's files.
    pub(super) fn begin(world: &mut World<'_>, scheme: &'static str) -> Result<Self, RunError> {
        let start = world.sim.now();
        let mut files = Vec::new();
        for (index, traffic) in world.scenario.traffic.iter().enumerate() {
            let contents = contents(&traffic.content, world.scenario.seed, index)?;
            let from = traffic.from;
            let to = traffic.to.clone();
            let file = NewFile {
                contents: contents.clone(),
                allowance: traffic.allowance,
                ..NewFile::new(scheme, from, Some(&to))
            };
            let flow = world.sim.send(file)?;
            files.push(File { flow, from, to, contents });
        }

        let under_way = files.iter().map(|file| file.flow).collect();
        Ok(Self { files, start, seen: 0, under_way })
    }

    /// Looks which transfers their sources have ended. Only new observations are searched.
    fn look(&mut self, sim: &Simulation) {
        for observed in &sim.observations()[self.seen..] {
            if let Observation::SendEnded(flow) = observed.observation {
                self.under_way.remove(&flow);
            }
        }
        self.seen = sim.observations().len();
    }
}

impl Load for Sending {
    fn stage(&self) -> Stage {
        Stage::Transfer
    }

    fn is_over(&self, _: &Simulation) -> bool {
        self.under_way.is_empty()
    }

    fn act(&mut self, _: &mut Simulation) -> Result<(), RunError> {
        Ok(())
    }

    fn due(&mut self, _: Instant) -> Option<Instant> {
        None
    }

    fn may_act(&mut self, sim: &Simulation, _: Instant) -> bool {
        self.look(sim);
        self.under_way.is_empty()
    }

    fn observe(&mut self, world: &mut World<'_>) {
        self.look(&world.sim);
    }

    fn conclude(self: Box<Self>, world: &World<'_>, outcomes: &mut ServiceOutcomes) {
        outcomes.transfer = Some(self.outcome(world));
    }
}

/// Returns the contents of a scenario's file transfer, which is the `index`-th.
///
/// # Errors
/// [`RunError::File`] if they come from a file that cannot be read.
pub fn contents(content: &Content, seed: u64, index: usize) -> Result<Vec<u8>, RunError> {
    match content {
        Content::File(path) => {
            std::fs::read(path).map_err(|e| RunError::File(path.display().to_string(), e))
        }
        Content::Random { bytes } => {
            let mut contents = vec![0; usize::try_from(*bytes).unwrap_or(usize::MAX)];
            // Files differ, so that a mix-up of two would show.
            let stream = NodeId(u16::try_from(index).unwrap_or(u16::MAX));
            rng::stream(seed, stream, "experiment", "contents").fill_bytes(&mut contents);
            Ok(contents)
        }
    }
}

impl Sending {
    /// Returns the result of the transfers.
    fn outcome(&self, world: &World<'_>) -> TransferOutcome {
        let files = self.files.iter().map(|file| file.outcome(self.start, world));
        TransferOutcome::of_files(files.collect())
    }
}

impl File {
    /// Returns the result of the transfer, which began at `start`.
    fn outcome(&self, start: Instant, world: &World<'_>) -> TransferOutcome {
        // A receiver counts as verified if it reported the file, and if it is byte for byte the one
        // that was sent: the simulation does not rely on the protocol's own check.
        let sim = &world.sim;
        let delivered = Observation::Delivered(self.flow);
        let receivers = self.to.iter().map(|node| {
            let mut observed = sim.observations().iter();
            let end = observed.find(|seen| seen.node == *node && seen.observation == delivered);
            let seconds = end.map(|end| (end.at - start).as_secs_f64());
            let received = sim.host(*node).storage().received(self.flow);
            ReceiverOutcome {
                file: 0,
                node: world.name(*node),
                verified: seconds.is_some() && received == self.contents,
                bytes: received.len() as u64,
                seconds,
                throughput_bps: seconds.map(|t| self.contents.len() as f64 * 8.0 / t),
            }
        });

        let status = status(sim, self.from, self.flow);
        let listed = status.iter().flat_map(|t| &t.forwarders);
        TransferOutcome {
            bytes: self.contents.len() as u64,
            receivers: receivers.collect(),
            source_redundancy: status.as_ref().map_or(0.0, |t| t.source_redundancy),
            forwarders: listed.map(|node| world.name(usize::from(node.0) - 1)).collect(),
        }
    }
}

/// Returns the status of a transfer at its source.
fn status(sim: &Simulation, node: usize, flow: FlowId) -> Option<TransferStatus> {
    debug_assert_eq!(flow.source, node_id(node));
    sim.host(node).stack()?.transfers().into_iter().find(|t| t.flow == flow)
}
