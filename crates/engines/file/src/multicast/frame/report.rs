//! Report of a node in a tree to its parent: which packets of the batch it holds.

use super::TurnId;
use crate::multicast::packet_set::PacketSet;
use ncmesh_engine::Malformed;
use ncmesh_wire::{FlowId, NodeId, Reader, Writer};

/// Report on the batch at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Node it is meant for.
    pub parent: NodeId,
    pub flow: FlowId,
    pub turn: TurnId,
    pub batch: u32,
    /// The parent's poll that it answers; 0 if there was none.
    pub poll: u32,
    /// Packets that the reporting node holds.
    pub has: PacketSet,
}

impl Report {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.node(self.parent).flow(self.flow);
        self.turn.write(&mut w);
        w.u32(self.batch).u32(self.poll).bytes(&self.has.to_wire());
    }

    pub(crate) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        Ok(Self {
            parent: r.node()?,
            flow: r.flow()?,
            turn: TurnId::parse(&mut r)?,
            batch: r.u32()?,
            poll: r.u32()?,
            has: PacketSet::from_wire(r.rest()).ok_or(Malformed)?,
        })
    }
}
