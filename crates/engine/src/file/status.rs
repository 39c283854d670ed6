//! State of transfers, for people and programs.

use super::manifest::{ReceiverState, Refusal};
use super::outgoing::SendFailure;
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
