//! Certificates of nodes, and lists of those that are not valid any more.

use super::key::{PublicKey, Purpose, SecretKey, Signature};
use crate::cursor::Writer;
use crate::frame;
use crate::id::NodeId;
use crate::layout::Charset;
use crate::prefix::Prefixes;
use crate::record::{Record, field};

/// Most certificates that one list revokes. It fits into a frame of 1,472 bytes.
pub const MAX_REVOKED: usize = 256;

/// First 8 bytes of a network's key, which tell networks apart. A check takes the whole key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkId(pub [u8; 8]);

impl NetworkId {
    /// Returns the id of the network with this key.
    #[must_use]
    pub fn of(key: &PublicKey) -> Self {
        let mut id = [0; 8];
        id.copy_from_slice(&key.bytes()[..8]);
        Self(id)
    }
}

/// Facts about a node that a certificate states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its id.
    pub node: NodeId,
    /// Its key.
    pub key: PublicKey,
    /// Its name.
    pub name: String,
    /// Addresses behind it that it may announce, and any part of them.
    pub prefixes: Prefixes,
}

/// Number of a certificate, and when it is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its number, greater than all earlier ones of the network.
    pub serial: u32,
    /// When it is signed.
    pub issued: u64,
    /// When it ends.
    pub expires: u64,
}

frame! {
    /// Statement of a network's holder that a node belongs to the network. It is valid from when it
    /// was issued; one from the future shows that a clock is late.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Certificate {
        /// first bytes of the network's key
        pub network: [u8; 8] = field("certificate.network", "Network"),
        /// number of the certificate, greater than all earlier ones of the network
        pub serial: u32 = field("certificate.serial", "Serial"),
        /// when it was signed, seconds since 1970
        pub issued: u64 = field("certificate.issued", "Issued"),
        /// end of its validity, seconds since 1970
        pub expires: u64 = field("certificate.expires", "Expires"),
        /// the node that it is for
        pub node: NodeId = field("certificate.node", "Node"),
        /// of the node
        pub key: PublicKey = field("certificate.key", "Key"),
        /// of the node
        pub name: String = field("certificate.name", "Name").text(Charset::Utf8),
        /// that the node may announce, and any part of them
        pub prefixes: Prefixes,
        /// of the network's key, over all before it
        pub signature: Signature = field("certificate.signature", "Signature"),
    }
}

impl Certificate {
    /// Signs a certificate with the key of a network.
    #[must_use]
    pub fn issue(network: &SecretKey, validity: Validity, subject: Subject) -> Self {
        let Validity { serial, issued, expires } = validity;
        let Subject { node, key, name, prefixes } = subject;
        let NetworkId(id) = NetworkId::of(&network.public());

        // The signature covers the bytes of the record without the signature, so it is set last.
        let signature = Signature([0; Signature::LEN]);
        let mut certificate =
            Self { network: id, serial, issued, expires, node, key, name, prefixes, signature };
        certificate.signature = network.sign(Purpose::Certificate, &contents(&certificate));
        certificate
    }

    /// Returns whether the network of this key signed it.
    #[must_use]
    pub fn is_signed_by(&self, network: &PublicKey) -> bool {
        network.has_signed(Purpose::Certificate, &contents(self), &self.signature)
    }

    /// Returns whether the node may announce a prefix.
    #[must_use]
    pub fn permits(&self, prefix: &ipnet::IpNet) -> bool {
        self.prefixes.0.iter().any(|permitted| permitted.contains(prefix))
    }
}

frame! {
    /// Certificates of a network that are not valid any more. A list replaces those with smaller
    /// numbers, and repeats what they revoke.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Revocations {
        /// first bytes of the network's key
        pub network: [u8; 8] = field("revocations.network", "Network"),
        /// grows from list to list
        pub number: u32 = field("revocations.number", "Number"),
        /// when it was signed, seconds since 1970
        pub issued: u64 = field("revocations.issued", "Issued"),
        /// how many follow
        count: u16 = field("revocations.count", "Revoked").within(0, MAX_REVOKED as u64)
            => serials.len() as u16,
        /// serial number of a certificate
        pub serials: Vec<u32> as many as count = field("revocations.serial", "Serial"),
        /// of the network's key, over all before it
        pub signature: Signature = field("revocations.signature", "Signature"),
    }
}

impl Revocations {
    /// Signs a list with the key of a network.
    ///
    /// # Panics
    /// If there are more than [`MAX_REVOKED`] serial numbers.
    #[must_use]
    pub fn issue(network: &SecretKey, number: u32, issued: u64, serials: Vec<u32>) -> Self {
        assert!(serials.len() <= MAX_REVOKED, "a list holds {MAX_REVOKED} certificates");

        let NetworkId(id) = NetworkId::of(&network.public());
        let signature = Signature([0; Signature::LEN]);
        let mut list = Self { network: id, number, issued, serials, signature };
        // The empty signature is no part of the contents that are signed.
        list.signature = network.sign(Purpose::Revocations, &contents(&list));
        list
    }

    /// Returns whether the network of this key signed it.
    #[must_use]
    pub fn is_signed_by(&self, network: &PublicKey) -> bool {
        network.has_signed(Purpose::Revocations, &contents(self), &self.signature)
    }
}

/// Returns the bytes that the signature at the end of a record is for.
fn contents<'a>(record: &impl Record<'a>) -> Vec<u8> {
    let mut out = Vec::new();
    record.put(&mut Writer::new(&mut out));
    out.truncate(out.len() - Signature::LEN);
    out
}
