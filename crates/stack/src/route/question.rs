//! The frames by which neighbours compare link states, and ask for them.

use ncmesh_engine::topology::LinkState;
use ncmesh_wire::record::{Named, field, group};
use ncmesh_wire::{NodeId, record};

record! {
    /// Version of a state that goes everywhere, as comparisons see it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Listed {
        /// the node that the state is of
        pub origin: NodeId = field("listed.origin", "Origin"),
        /// of the origin
        pub epoch: u64 = field("listed.epoch", "Epoch"),
        /// number of its latest version that goes everywhere
        pub base: u32 = field("listed.base", "Base"),
    }
}

impl Listed {
    pub(super) fn of(origin: NodeId, state: &LinkState) -> Self {
        Self { origin, epoch: state.version.0, base: state.base }
    }

    /// Returns 64 bits that differ for any other version. It need not withstand attacks: a member
    /// that makes two versions look alike only hides what it could as well have kept silent about.
    pub(super) fn hash(self) -> u64 {
        let mut x = self.epoch ^ u64::from(self.origin.0) << 48 ^ u64::from(self.base) << 16;
        // The finaliser of splitmix64.
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }
}

/// The only neighbour that handles a frame.
const TO: Named = field("compare.to", "To");

record! {
    /// A range with its digest.
    pub(super) struct Digested {
        /// of a range of ids
        pub first: NodeId = field("range.first", "First node"),
        /// of the range
        pub last: NodeId = field("range.last", "Last node"),
        /// of the sender's states in it
        pub digest: u64 = field("range.digest", "Digest").hex(),
    }
}

record! {
    /// A range with the versions of its states.
    pub(super) struct List {
        /// of a range of ids
        pub first: NodeId = field("range.first", "First node"),
        /// of the range
        pub last: NodeId = field("range.last", "Last node"),
        /// all that the sender knows in the range
        count: u8 = field("listed.count", "States") => states.len() as u8,
        pub states: Vec<Listed> as many as count
            = group("listed", "State", "State {listed.base} of {listed.origin}"),
    }
}

record! {
    /// A comparison by digests.
    pub(crate) struct Compare {
        /// the only neighbour that handles the frame
        pub(super) to: NodeId = TO,
        pub(super) ranges: Vec<Digested> to the end(0, usize::MAX),
    }
}

record! {
    /// A comparison by versions.
    pub(crate) struct States {
        /// the only neighbour that handles the frame
        pub(super) to: NodeId = TO,
        pub(super) lists: Vec<List> to the end(0, usize::MAX),
    }
}

record! {
    /// A request for whole states.
    pub(crate) struct Wanted {
        /// the only neighbour that handles the frame
        pub(super) to: NodeId = TO,
        /// node whose whole state the sender asks for
        pub(super) origins: Vec<NodeId> to the end(0, usize::MAX) = field("wanted", "Wanted"),
    }
}
