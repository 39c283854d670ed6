//! End-to-end acknowledgment of a receiver, and the piggyback that confirms it to the previous hop.

use super::Version;
use ncmesh_engine::Malformed;
use ncmesh_engine::file::{ReceiverState, Refusal};
use ncmesh_wire::{FlowId, NodeId, Reader, Writer};

/// Name of an acknowledgment, piggybacked on data packets: the latest one that the transmitter
/// received for the transfer (Pacifier, V-B.2). Overhearing it tells the previous hop that its
/// acknowledgment arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piggyback {
    pub receiver: NodeId,
    /// Low half of the receiver's epoch mixed with the acknowledgment's number: enough to tell its
    /// acknowledgments apart.
    pub serial: u32,
}

/// End-to-end acknowledgment. It carries the receiver's whole state, so a later one makes up for
/// all that were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub flow: FlowId,
    pub receiver: NodeId,
    pub version: Version,
    pub state: ReceiverState,
    /// The lowest batch that is not complete.
    pub first_missing: u32,
    /// One bit for each batch after `first_missing`, 1 for a complete one.
    pub bits: Vec<u8>,
}

impl Ack {
    /// Bytes of an acknowledgment before its bits, next hop included.
    pub(crate) const HEADER: usize = 2 + 6 + 2 + 8 + 4 + 1 + 4;

    /// Returns the acknowledgment of a receiver that keeps nothing of the transfer.
    pub(crate) fn refusal(flow: FlowId, receiver: NodeId, version: Version, why: Refusal) -> Self {
        let state = ReceiverState::Refused(why);
        Self { flow, receiver, version, state, first_missing: 0, bits: Vec::new() }
    }

    /// Returns the piggyback that names this acknowledgment.
    pub(crate) fn piggyback(&self) -> Piggyback {
        let serial = (self.version.epoch as u32).rotate_left(16) ^ self.version.number;
        Piggyback { receiver: self.receiver, serial }
    }

    pub(crate) fn write(&self, next_hop: NodeId, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.node(next_hop).flow(self.flow).node(self.receiver);
        self.version.write(&mut w);
        w.u8(self.state.code()).u32(self.first_missing).bytes(&self.bits);
    }

    /// Parses an acknowledgment and the next hop it is addressed to.
    pub(crate) fn parse(body: &[u8]) -> Result<(NodeId, Self), Malformed> {
        let mut r = Reader::new(body);
        let next_hop = r.node()?;
        let ack = Self {
            flow: r.flow()?,
            receiver: r.node()?,
            version: Version::parse(&mut r)?,
            state: ReceiverState::from_code(r.u8()?).ok_or(Malformed)?,
            first_missing: r.u32()?,
            bits: r.rest().to_vec(),
        };
        Ok((next_hop, ack))
    }
}
