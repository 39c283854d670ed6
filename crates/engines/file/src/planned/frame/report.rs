//! Report of a node in a tree to its parent: which packets of the generation it holds.

use super::TurnId;
use crate::planned::packet_set::PacketSet;
use ncmesh_wire::record::field;
use ncmesh_wire::{FlowId, NodeId, frame};

frame! {
    /// Report on the generation at hand.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Report {
        /// the node that is told; others ignore it
        pub parent: NodeId = field("parent", "Parent"),
        /// the transfer
        pub flow: FlowId = field("flow", "Flow"),
        pub turn: TurnId,
        /// its number, from 0
        pub generation: u32 = field("generation", "Generation"),
        /// the newest poll of the parent that was heard; 0 if it is told unasked
        pub poll: u32 = field("poll", "Poll"),
        /// a bit for each packet of the generation, most significant first, 1 held; without zero
        /// bytes at the end
        pub has: PacketSet = field("held", "Packets held").rest(0, PacketSet::BYTES),
    }
}
