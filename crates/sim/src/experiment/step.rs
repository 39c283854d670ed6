//! Progress of a run, for callers that show it.

use crate::simulation::Simulation;
use ncmesh_engine::file::TransferStatus;
use ncmesh_engine::time::Instant;
use ncmesh_stack::Stack;

/// Stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The mesh measures its links. Nothing is sent yet.
    Measuring,
    /// Files are being sent.
    Transfer,
    /// Flows or streams are running.
    Timed {
        /// Instant at which the first began.
        begins: Instant,
        /// Instant at which the last ends.
        ends: Instant,
    },
}

/// A run at one instant.
pub struct Step<'a> {
    /// The mesh.
    pub sim: &'a Simulation,
    /// Stage of the run.
    pub stage: Stage,
}

impl Step<'_> {
    /// Returns all file transfers, as their sources see them.
    pub fn sent(&self) -> impl Iterator<Item = TransferStatus> + '_ {
        let stacks = (0..self.sim.len()).filter_map(|node| self.sim.host(node).stack());
        stacks.flat_map(|stack| {
            let all = Stack::transfers(stack).into_iter();
            all.filter(|transfer| transfer.flow.source == stack.node())
        })
    }

    /// Returns how much of the run is done, 0 to 1: of files, the share of their bytes that the
    /// receivers have, as the sources know it; of flows and streams, the share of their time.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.stage {
            Stage::Measuring => 0.0,
            Stage::Timed { begins, ends } if ends <= begins => 1.0,
            Stage::Timed { begins, ends } => {
                let done = self.sim.now().min(ends) - begins;
                done.as_secs_f64() / (ends - begins).as_secs_f64()
            }
            Stage::Transfer => {
                let mut have = 0;
                let mut all = 0;
                for transfer in self.sent() {
                    all += transfer.size * transfer.receivers.len() as u64;
                    have += transfer.receivers.iter().map(|receiver| receiver.bytes).sum::<u64>();
                }
                if all == 0 { 0.0 } else { have as f64 / all as f64 }
            }
        }
    }
}
