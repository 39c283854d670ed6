//! End-to-end acknowledgment of a receiver, and the piggyback that confirms it to the previous hop.

use super::Version;
use ncmesh_engine::Malformed;
use ncmesh_engine::file::{ReceiverState, Refusal};
use ncmesh_wire::layout::Part;
use ncmesh_wire::record::{Named, field, fixed_len};
use ncmesh_wire::{FlowId, NodeId, Reader, Record, Writer, record};

record! {
    /// Name of an acknowledgment, piggybacked on data packets: the latest one that the transmitter
    /// received for the transfer (Pacifier, V-B.2). Overhearing it tells the previous hop that its
    /// acknowledgment arrived.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Piggyback {
        /// see below
        pub receiver: NodeId = field("piggyback.receiver", "Acknowledgment of receiver"),
        /// see below
        pub serial: u32 = field("piggyback.serial", "Acknowledgment serial").hex(),
    }
}

record! {
    /// End-to-end acknowledgment. It carries the receiver's whole state, so a later one makes up
    /// for all that were lost.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Ack {
        /// the transfer
        pub flow: FlowId = field("flow", "Flow"),
        /// the receiver that acknowledges
        pub receiver: NodeId = field("receiver.node", "Node"),
        /// of the acknowledgment
        pub version: Version,
        /// of the receiver
        pub state: ReceiverState = field("receiver.state", "State"),
        /// the lowest generation that is not complete; the number of generations if all are
        pub first_missing: u32 = field("first_missing", "First missing generation"),
        /// a bit for each, most significant first, 1 complete; without zero bytes at the end
        pub bits: Vec<u8> = field("bits", "Complete generations behind it"),
    }
}

impl Ack {
    /// Bytes of an acknowledgment before its bits, next hop included.
    pub const HEADER: usize = fixed_len(Self::BODY);

    /// Parts of the frame: the next hop, and the acknowledgment.
    pub(crate) const BODY: &'static [Part] = &[
        Self::NEXT_HOP.part::<NodeId>("the node that passes it on; others ignore it"),
        Part::Include(Self::PARTS),
    ];
    const NEXT_HOP: Named = field("next_hop", "Next hop");

    /// Returns the acknowledgment of a receiver that keeps nothing of the transfer.
    pub fn refusal(flow: FlowId, receiver: NodeId, version: Version, why: Refusal) -> Self {
        let state = ReceiverState::Refused(why);
        Self { flow, receiver, version, state, first_missing: 0, bits: Vec::new() }
    }

    /// Returns the piggyback that names this acknowledgment.
    pub fn piggyback(&self) -> Piggyback {
        // Enough of the version to tell the receiver's acknowledgments apart.
        let serial = (self.version.epoch as u32).rotate_left(16) ^ self.version.number;
        Piggyback { receiver: self.receiver, serial }
    }

    /// Appends the frame that brings it to `next_hop`.
    pub fn write(&self, next_hop: NodeId, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        Self::NEXT_HOP.put(&next_hop, &mut w);
        self.put(&mut w);
    }

    /// Parses an acknowledgment and the next hop it is addressed to.
    ///
    /// # Errors
    /// [`Malformed`] if it is none.
    pub fn parse(body: &[u8]) -> Result<(NodeId, Self), Malformed> {
        let mut r = Reader::new(body);
        Ok((Self::NEXT_HOP.read(&mut r)?, Self::read(&mut r)?))
    }
}
