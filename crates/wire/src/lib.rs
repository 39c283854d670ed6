//! ncmesh on the wire: identifiers, the outer frame, field cursors, sealing.
//!
//! Every datagram is a sealed [`frame`](mod@frame): a clear header, an encrypted body, a tag.
//! A [`Sealer`] seals the frames of a node, a [`Cipher`] opens those of others, and a
//! [`ReplayWindow`] takes each once. The body belongs to a service that declares it with [`frame!`]
//! ([`record`](mod@record)). A frame's type is the pair of [`ServiceId`] and kind. Keys and
//! certificates of nodes are in [`identity`].
//! `docs/reference/wire-format.md` specifies all frames, with test vectors.

// Documentation that declarations of frames make names this crate as other crates do.
extern crate self as ncmesh_wire;

mod cursor;
pub mod frame;
mod hex;
mod id;
pub mod identity;
pub mod layout;
pub mod prefix;
pub mod record;
pub mod replay;
mod seal;

pub use cursor::{Reader, Truncated, Writer};
pub use frame::{Header, OpenError, Opened, SealedFrame, Versions};
pub use hex::hex;
pub use id::{FlowId, LongAddress, NodeId, RadioAddress, Salt, ServiceId, ShortAddress, StartId};
pub use record::{Malformed, Record};
pub use replay::ReplayWindow;
pub use seal::{Cipher, Key, KeyError, Sealer};
