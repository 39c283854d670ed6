//! The frames by which keys, certificates and revocations travel.

use ncmesh_wire::identity::{Certificate, MAX_NETWORKS, PublicKey, Revocations};
use ncmesh_wire::layout::Layout;
use ncmesh_wire::record::{field, group};
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

record! {
    /// Number of a list of revocations.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct KnownList {
        /// first bytes of the network's key
        pub network: [u8; 8] = field("known.network", "Network"),
        /// of the sender's list; 0 if it has none
        pub number: u32 = field("known.number", "Number"),
    }
}

record! {
    /// Lists of revocations that a node has.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct KnownLists {
        /// how many networks follow
        count: u8 = field("known.count", "Networks").within(0, MAX_NETWORKS as u64)
            => lists.len() as u8,
        pub lists: Vec<KnownList> as many as count
            = group("known", "List", "List {known.number}"),
        /// nodes that are to say which lists they have
        pub asked: Vec<NodeId> to the end(0, usize::MAX) = field("known.asked", "Asked"),
    }
}

impl KnownLists {
    /// Returns the list of a network.
    pub(crate) fn of(&self, network: [u8; 8]) -> KnownList {
        let known = self.lists.iter().find(|list| list.network == network);
        known.copied().unwrap_or(KnownList { network, number: 0 })
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
/// Kind of the numbers of lists of revocations.
pub const KNOWN_LISTS: u8 = 9;

/// Layouts of these frames.
pub(crate) const LAYOUTS: [Layout; 5] = [
    Layout::of::<KeysWanted>(KEYS_WANTED, "keys_wanted", "to {keys.to}: {keys.wanted?} keys"),
    Layout::of::<Keys>(KEYS, "keys", "{key.node?} keys"),
    Layout::of::<Certificates>(CERTIFICATES, "certificates", "{certificate.node?} certificates"),
    Layout::of::<Revocations>(REVOCATIONS, "revocations", "list {revocations.number}"),
    Layout::of::<KnownLists>(KNOWN_LISTS, "known_lists", "{known.asked?} nodes asked"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::{Record, Writer};
    use proptest::prelude::*;

    fn written<'a>(record: &impl Record<'a>) -> Vec<u8> {
        let mut out = Vec::new();
        record.put(&mut Writer::new(&mut out));
        out
    }

    /// The golden vectors of the wire format.
    #[test]
    fn golden_keys() {
        let wanted = KeysWanted { to: NodeId(3), nodes: vec![NodeId(5), NodeId(9)] };
        assert_eq!(written(&wanted), [0, 3, 0, 5, 0, 9]);
        let key: PublicKey =
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a".parse().unwrap();
        let keys = Keys { keys: vec![NodeKey { node: NodeId(5), key }] };
        assert_eq!(written(&keys), [&[0, 5][..], &key.bytes()].concat());

        let network = [1, 2, 3, 4, 5, 6, 7, 8];
        let lists = vec![KnownList { network, number: 2 }];
        let known = KnownLists { lists, asked: vec![NodeId(3), NodeId(9)] };
        let golden = [1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 2, 0, 3, 0, 9];
        assert_eq!(written(&known), golden);
    }

    proptest! {
        /// A body has one meaning: what is well-formed is written as it was.
        #[test]
        fn bodies_are_malformed_or_written_as_they_were(
            body in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Ok(wanted) = KeysWanted::from_body(&body) {
                prop_assert_eq!(&written(&wanted), &body);
            }
            if let Ok(keys) = Keys::from_body(&body) {
                prop_assert_eq!(&written(&keys), &body);
            }
            if let Ok(certificates) = Certificates::from_body(&body) {
                prop_assert_eq!(written(&certificates).len(), body.len());
            }
            if let Ok(known) = KnownLists::from_body(&body) {
                prop_assert_eq!(&written(&known), &body);
            }
        }
    }
}
