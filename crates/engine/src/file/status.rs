//! Status of transfers, as the API and the command line show it.

use super::manifest::{ReceiverState, Refusal};
use super::outgoing::SendFailure;
use crate::time::Instant;
use ncmesh_wire::{FlowId, NodeId};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// This node is the source.
    Sending,
    /// This node is a receiver.
    Receiving,
}

/// Stage of a transfer at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is under way.
    Open,
    /// This node is verifying the whole file.
    Verifying,
    /// It ended well: received and verified, or sent to all receivers that take it.
    Complete,
    /// The source withdrew it.
    Withdrawn,
    /// This node did not take it.
    Refused(Refusal),
    /// The source could not go on sending.
    Failed(SendFailure),
}

/// Status of one receiver, as the source sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverStatus {
    /// The receiver.
    pub node: NodeId,
    /// Its state.
    pub state: ReceiverState,
    /// Bytes that it acknowledged.
    pub bytes: u64,
    /// When it had the whole file, or refused it.
    pub finished: Option<Instant>,
}

/// A generation of which a receiver has a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its number.
    pub generation: u32,
    /// Innovative packets of it that are there.
    pub rank: u32,
    /// Packets that it takes to decode it.
    pub packets: u32,
}

/// Status of one transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferStatus {
    /// Id of the transfer.
    pub flow: FlowId,
    /// Name of the file.
    pub name: String,
    /// Size of the file, bytes.
    pub size: u64,
    /// BLAKE3 of the file.
    pub hash: [u8; 32],
    /// Whether this node sends or receives it.
    pub direction: Direction,
    /// Its stage.
    pub stage: Stage,
    /// Bytes received. At the source: bytes that the receiver with the fewest has.
    pub bytes: u64,
    /// When it began at this node.
    pub started: Instant,
    /// When it ended at this node.
    pub finished: Option<Instant>,
    /// Receivers (at the source only).
    pub receivers: Vec<ReceiverStatus>,
    /// Data packets that the source itself sent.
    pub source_packets: u64,
    /// Payload bytes of the source's packets, divided by the size of the file; 0 before the first.
    pub source_redundancy: f64,
    /// All nodes that the source has listed as forwarders.
    pub forwarders: Vec<NodeId>,
    /// Innovative packets that a receiver has heard.
    pub innovative: u64,
    /// Packets that a receiver has heard and that were not innovative.
    pub redundant: u64,
    /// Generations with a wrong hash, at a receiver.
    pub bad_generations: u64,
    /// The first generation of which a receiver has a part, if there is one.
    pub begun: Option<Begun>,
}
