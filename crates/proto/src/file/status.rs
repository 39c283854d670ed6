//! How transfers stand, for people and programs.

use super::batches::BatchSet;
use super::frame::Phase;
use super::geometry::Geometry;
use super::manifest::ReceiverState;
use super::sink::{Sink, SinkPhase};
use super::source::Source;
use super::{Refusal, SendFailure};
use crate::time::Instant;
use ncmesh_wire::{FlowId, NodeId};

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// This node is its source.
    Sending,
    /// This node receives it.
    Receiving,
}

/// Where a transfer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Under way.
    Open,
    /// A receiver is verifying the whole file.
    Verifying,
    /// Ended well here: received and verified, or sent as far as the receivers took it.
    Complete,
    /// Withdrawn by its source.
    Withdrawn,
    /// Not taken here.
    Refused(Refusal),
    /// The source cannot send on.
    Failed(SendFailure),
}

/// One receiver of a transfer, as its source sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverStatus {
    /// Who.
    pub node: NodeId,
    /// How it stands.
    pub state: ReceiverState,
    /// Bytes it acknowledged.
    pub bytes: u64,
    /// When it had all or refused.
    pub finished: Option<Instant>,
}

/// One transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferStatus {
    /// Which.
    pub flow: FlowId,
    /// The file's name.
    pub name: String,
    /// The file's size, bytes.
    pub size: u64,
    /// BLAKE3 of the file.
    pub hash: [u8; 32],
    /// Which way.
    pub direction: Direction,
    /// Where it stands.
    pub stage: Stage,
    /// Bytes received; of a file being sent, bytes the poorest receiver has.
    pub bytes: u64,
    /// When it began here.
    pub started: Instant,
    /// When it ended here.
    pub finished: Option<Instant>,
    /// Receivers, at the source.
    pub receivers: Vec<ReceiverStatus>,
    /// Data packets the source itself sent.
    pub source_packets: u64,
    /// Payload bytes of the source's packets over the file's bytes; 0 while nothing is sent.
    pub source_redundancy: f64,
    /// Every node the source ever listed as forwarder.
    pub forwarders: Vec<NodeId>,
    /// Packets that brought something new, at a receiver.
    pub innovative: u64,
    /// Packets that did not, at a receiver.
    pub redundant: u64,
    /// Batches whose hash was wrong, at a receiver.
    pub bad_batches: u64,
}

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
