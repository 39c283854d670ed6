//! Questions for checks of generations, and checks: how a node finds false packets before it
//! decodes.

use ncmesh_engine::file::check::{GenerationId, NONCE_LEN, Nonce};
use ncmesh_wire::record::{field, fixed_len};
use ncmesh_wire::{FlowId, NodeId, Record, frame};

/// Question of a node that took false packets, to the source of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRequest {
    /// The node that passes it on.
    pub next_hop: NodeId,
    /// The node that asks.
    pub verifier: NodeId,
    /// The generation in question.
    pub of: GenerationId,
    /// Drawn after it took the packets in question.
    pub nonce: Nonce,
}

/// Answer of the source: the sums of a generation's packets, by the matrix that follows from the
/// nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The node that passes it on.
    pub next_hop: NodeId,
    /// The node that asked.
    pub verifier: NodeId,
    /// The generation that it is of.
    pub of: GenerationId,
    /// That of the question.
    pub nonce: Nonce,
    /// Sums of the generation's packets, one packet after the other.
    pub sums: Vec<u8>,
}

impl Check {
    /// Bytes before the sums.
    pub const HEADER: usize = fixed_len(Self::PARTS);
}

frame! {
    pub impl CheckRequest as CheckRequest {
        next_hop,
        verifier,
        of: GenerationId { flow, generation },
        nonce: Nonce(nonce),
    } => CheckRequest {
        next_hop,
        verifier,
        of: GenerationId { flow, generation },
        nonce: Nonce(nonce),
    } {
        /// the node that passes it on; others ignore it
        next_hop: NodeId = field("next_hop", "Next hop"),
        /// the node that asks
        verifier: NodeId = field("verifier", "Verifier"),
        /// the transfer
        flow: FlowId = field("flow", "Flow"),
        /// its number, from 0
        generation: u32 = field("generation", "Generation"),
        /// drawn after the packets in question were taken
        nonce: [u8; NONCE_LEN] = field("nonce", "Nonce"),
    }
}

frame! {
    pub impl Check as Check {
        next_hop,
        verifier,
        of: GenerationId { flow, generation },
        nonce: Nonce(nonce),
        sums,
    } => Check {
        next_hop,
        verifier,
        of: GenerationId { flow, generation },
        nonce: Nonce(nonce),
        sums,
    } {
        /// the node that passes it on; others ignore it
        next_hop: NodeId = field("next_hop", "Next hop"),
        /// the node that asked
        verifier: NodeId = field("verifier", "Verifier"),
        /// the transfer
        flow: FlowId = field("flow", "Flow"),
        /// its number, from 0
        generation: u32 = field("generation", "Generation"),
        /// that of the question
        nonce: [u8; NONCE_LEN] = field("nonce", "Nonce"),
        /// sums of the generation's packets, one packet after the other: as many bytes of each, 4
        /// to 8
        sums: Vec<u8> = field("sums", "Sums").rest(1, u16::MAX as usize),
    }
}
