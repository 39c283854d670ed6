//! Order of the announcements of one transfer, and of the acknowledgments of one receiver.

use ncmesh_wire::record;
use ncmesh_wire::record::field;

record! {
    /// Version of a node's message; a later one is greater, also across restarts of the node.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Version {
        /// of the version, see above
        pub epoch: u64 = field("originator_epoch", "Epoch of the originator"),
        /// of the version, from 1 within the epoch
        pub number: u32 = field("number", "Number"),
    }
}
