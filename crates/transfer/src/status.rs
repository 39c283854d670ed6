//! Status of a transfer for the API: how its source sees it, and how a receiver does.

use crate::sink::{FileSink, SinkPhase};
use crate::source::{CloseReason, FileSource, SourceState};
use ncmesh_engine::file::{
    Direction, GenerationSet, Geometry, ReceiverStatus, Stage, TransferStatus,
};

impl FileSource {
    /// Returns the status of a file that this node sends.
    pub(crate) fn status(&self) -> TransferStatus {
        let g = &self.manifest.geometry;
        let receivers: Vec<ReceiverStatus> = self
            .receivers
            .iter()
            .map(|(node, r)| ReceiverStatus {
                node: *node,
                state: r.state,
                bytes: bytes_of(&r.have, g),
                finished: r.finished,
            })
            .collect();

        let sent = self.packets_sent as f64 * f64::from(g.symbol_size());
        TransferStatus {
            flow: self.manifest.flow,
            name: self.manifest.name.clone(),
            size: g.size(),
            hash: self.manifest.hash,
            direction: Direction::Sending,
            stage: match self.state {
                SourceState::Open => Stage::Open,
                SourceState::Closed { reason, .. } => match reason {
                    // Receivers may still object, so the transfer counts as open.
                    CloseReason::SaidDone => Stage::Open,
                    CloseReason::Ended => Stage::Complete,
                    CloseReason::Withdrawn => Stage::Withdrawn,
                    CloseReason::Failed(failure) => Stage::Failed(failure),
                },
            },
            // Bytes of the receiver that has least.
            bytes: receivers.iter().map(|r| r.bytes).min().unwrap_or(0),
            started: self.started,
            finished: self.state.closed_at(),
            receivers,
            source_packets: self.packets_sent,
            source_redundancy: if g.size() == 0 { 0.0 } else { sent / g.size() as f64 },
            forwarders: Vec::new(),
            innovative: 0,
            redundant: 0,
            bad_generations: 0,
            begun: None,
        }
    }
}

impl FileSink {
    /// Returns the status of a file that this node receives.
    pub(crate) fn status(&self) -> TransferStatus {
        let g = &self.manifest.geometry;
        TransferStatus {
            flow: self.manifest.flow,
            name: self.manifest.name.clone(),
            size: g.size(),
            hash: self.manifest.hash,
            direction: Direction::Receiving,
            stage: match self.phase {
                SinkPhase::Offered | SinkPhase::Receiving => Stage::Open,
                SinkPhase::Verifying => Stage::Verifying,
                SinkPhase::Complete => Stage::Complete,
                SinkPhase::Withdrawn => Stage::Withdrawn,
                SinkPhase::Refused(why) => Stage::Refused(why),
            },
            bytes: bytes_of(&self.have, g),
            started: self.started,
            finished: self.finished,
            receivers: Vec::new(),
            source_packets: 0,
            source_redundancy: 0.0,
            forwarders: Vec::new(),
            innovative: self.innovative,
            redundant: self.redundant,
            bad_generations: self.bad_generations,
            begun: None,
        }
    }
}

/// Returns the bytes of the generations in `have`, about: the last generation may be shorter.
fn bytes_of(have: &GenerationSet, g: &Geometry) -> u64 {
    if have.is_full() {
        return g.size();
    }
    let full = u64::from(have.count()) * g.data_len(0) as u64;
    full.min(g.size())
}
