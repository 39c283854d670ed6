//! Identities: the Ed25519 keys of nodes and of networks, and what they sign.
//!
//! A node's key signs what the node tells the whole mesh. A network's key signs a [`Certificate`]
//! for each node that belongs to the network, and the [`Revocations`]. Each signature covers the
//! [`Purpose`] before the contents, so that none can be taken for another one.
//!
//! Two nodes share a [`PairKey`], made of their keys, by which they know each other's packets.
//!
//! Signatures are checked by `verify_strict` of ed25519-dalek (RFC 8032 without the cofactor, and
//! without keys of small order): all nodes agree on which signatures are good.

mod authority;
mod certificate;
mod key;
mod pair;

pub use authority::{Authority, LONGEST_AHEAD, MAX_NETWORKS, Rejection};
pub use certificate::{Certificate, MAX_REVOKED, NetworkId, Revocations, Subject, Validity};
pub use key::{IdentityError, PublicKey, Purpose, SecretKey, Signature};
pub use pair::{PairKey, TAG_LEN};
