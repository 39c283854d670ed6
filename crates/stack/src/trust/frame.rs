//! The frames by which keys, certificates and revocations travel.

use ncmesh_wire::identity::{Certificate, PublicKey, Revocations};
use ncmesh_wire::layout::Layout;
use ncmesh_wire::record::field;
use ncmesh_wire::{NodeId, record};

record! {
    /// Key of a node.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct NodeKey {
        /// the node that has the key
        pub node: NodeId = field("key.node", "Node"),
        /// that signs its link states
        pub key: PublicKey = field("key.key", "Key"),
    }
}

record! {
    /// A request for keys.
    pub(crate) struct KeysWanted {
        /// the only neighbour that handles the frame
        pub to: NodeId = field("keys.to", "To"),
        /// node whose key the sender asks for
        pub nodes: Vec<NodeId> to the end(0, usize::MAX) = field("keys.wanted", "Wanted"),
    }
}

record! {
    /// Keys of nodes.
    pub(crate) struct Keys {
        pub keys: Vec<NodeKey> to the end(0, usize::MAX),
    }
}

record! {
    /// Certificates of nodes.
    pub(crate) struct Certificates {
        pub certificates: Vec<Certificate> to the end(0, usize::MAX),
    }
}

/// Kind of a request for keys.
pub const KEYS_WANTED: u8 = 5;
/// Kind of a list of keys.
pub const KEYS: u8 = 6;
/// Kind of a list of certificates.
pub const CERTIFICATES: u8 = 7;
/// Kind of a list of revocations.
pub const REVOCATIONS: u8 = 8;

/// Layouts of these frames.
pub(crate) const LAYOUTS: [Layout; 4] = [
    Layout::of::<KeysWanted>(KEYS_WANTED, "keys_wanted", "to {keys.to}: {keys.wanted?} keys"),
    Layout::of::<Keys>(KEYS, "keys", "{key.node?} keys"),
    Layout::of::<Certificates>(CERTIFICATES, "certificates", "{certificate.node?} certificates"),
    Layout::of::<Revocations>(REVOCATIONS, "revocations", "list {revocations.number}"),
];
