//! State of a transfer as its source and its receivers report it.

use super::frame::Phase;
use super::sink::{Sink, SinkPhase};
use super::source::Source;
use ncmesh_engine::file::{BatchSet, Direction, Geometry, ReceiverStatus, Stage, TransferStatus};

fn bytes_of(have: &BatchSet, g: &Geometry) -> u64 {
    if have.is_full() {
        return g.size();
    }
    let full = u64::from(have.count()) * g.data_len(0) as u64;
    full.min(g.size())
}

impl Source {
    pub(super) fn status(&self) -> TransferStatus {
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
            stage: match (self.failure, self.phase) {
                (Some(failure), _) => Stage::Failed(failure),
                (None, Phase::Open) => Stage::Open,
                (None, Phase::Ended) => Stage::Complete,
                (None, Phase::Withdrawn) => Stage::Withdrawn,
            },
            bytes: receivers.iter().map(|r| r.bytes).min().unwrap_or(0),
            started: self.started,
            finished: self.finished,
            receivers,
            source_packets: self.packets_sent,
            source_redundancy: if g.size() == 0 { 0.0 } else { sent / g.size() as f64 },
            forwarders: self.forwarders.iter().copied().collect(),
            innovative: 0,
            redundant: 0,
            bad_batches: 0,
        }
    }
}

impl Sink {
    pub(super) fn status(&self) -> TransferStatus {
        let g = &self.manifest.geometry;
        TransferStatus {
            flow: self.manifest.flow,
            name: self.manifest.name.clone(),
            size: g.size(),
            hash: self.manifest.hash,
            direction: Direction::Receiving,
            stage: match self.phase {
                SinkPhase::Asking | SinkPhase::Receiving => Stage::Open,
                SinkPhase::Verifying => Stage::Verifying,
                SinkPhase::Done => Stage::Complete,
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
            bad_batches: self.bad_batches,
        }
    }
}
