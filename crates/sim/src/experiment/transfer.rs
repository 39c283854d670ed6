//! The file transfer of a scenario: sends the file, waits for the end, and checks what arrived.

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

/// The file transfer under way.
pub(super) struct Sending {
    flow: FlowId,
    from: usize,
    to: Vec<usize>,
    contents: Vec<u8>,
    start: Instant,
    /// Number of observations that were searched for the end.
    seen: usize,
    ended: bool,
}

impl Sending {
    /// Begins to send the scenario's file.
    pub(super) fn begin(world: &mut World<'_>, scheme: &'static str) -> Result<Self, RunError> {
        let missing = RunError::NoTraffic { missing: "[traffic]", scheme };
        let traffic = world.scenario.traffic.as_ref().ok_or(missing)?;
        let contents = contents(&traffic.content, world.scenario.seed)?;
        let start = world.sim.now();
        let from = traffic.from;
        let to = traffic.to.clone();
        let file = NewFile {
            contents: contents.clone(),
            background: traffic.background,
            ..NewFile::new(scheme, from, Some(&to))
        };
        let flow = world.sim.send(file)?;
        Ok(Self { flow, from, to, contents, start, seen: 0, ended: false })
    }

    /// Looks whether the source has ended the transfer. Only new observations are searched.
    fn look(&mut self, sim: &Simulation) {
        let ended = Observation::SendEnded(self.flow);
        let new = &sim.observations()[self.seen..];
        self.ended |= new.iter().any(|(_, _, happened)| *happened == ended);
        self.seen = sim.observations().len();
    }
}

impl Load for Sending {
    fn stage(&self) -> Stage {
        Stage::Transfer { from: self.from }
    }

    fn is_over(&self, _: &Simulation) -> bool {
        self.ended
    }

    fn act(&mut self, _: &mut Simulation) -> Result<(), RunError> {
        Ok(())
    }

    fn due(&mut self, _: Instant) -> Option<Instant> {
        None
    }

    fn may_act(&mut self, sim: &Simulation, _: Instant) -> bool {
        self.look(sim);
        self.ended
    }

    fn observe(&mut self, world: &mut World<'_>) {
        self.look(&world.sim);
    }

    fn conclude(self: Box<Self>, world: &World<'_>, outcomes: &mut ServiceOutcomes) {
        outcomes.transfer = Some(self.outcome(world));
    }
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

impl Sending {
    /// Returns the result of the transfer.
    fn outcome(&self, world: &World<'_>) -> TransferOutcome {
        // A receiver counts as verified if it reported the file, and if it is byte for byte the one
        // that was sent: the simulation does not rely on the protocol's own check.
        let sim = &world.sim;
        let delivered = Observation::Delivered(self.flow);
        let receivers = self.to.iter().map(|node| {
            let at = sim.observations().iter().find(|(_, n, h)| n == node && *h == delivered);
            let seconds = at.map(|(at, ..)| (*at - self.start).as_secs_f64());
            let received = sim.host(*node).storage().received(self.flow);
            ReceiverOutcome {
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
