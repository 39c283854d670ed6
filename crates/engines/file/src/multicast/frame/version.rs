//! Order of the announcements of one transfer, and of the acknowledgments of one receiver.

use ncmesh_wire::{Reader, Truncated, Writer};

/// Version of a node's message; a later one is greater, also across restarts of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    /// Epoch in which the node wrote it.
    pub epoch: u64,
    /// Counts the messages within the epoch, from 1.
    pub number: u32,
}

impl Version {
    pub(super) fn write(self, w: &mut Writer<'_>) {
        w.u64(self.epoch).u32(self.number);
    }

    pub(super) fn parse(r: &mut Reader<'_>) -> Result<Self, Truncated> {
        Ok(Self { epoch: r.u64()?, number: r.u32()? })
    }
}
