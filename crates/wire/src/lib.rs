//! ncmesh on the wire: identifiers, the outer frame, a checked cursor, sealing.
//!
//! Every datagram is one sealed [`frame`]. What a service puts inside is its own affair: it writes and
//! reads its body with the [`cursor`], and its frames are named by ([`ServiceId`], kind). The whole format,
//! with golden vectors, stands in `docs/wire-format.md`.

pub mod cursor;
pub mod frame;
mod id;
mod replay;
mod seal;

pub use cursor::{Reader, Truncated, Writer};
pub use frame::{Header, OpenError, Opened, Unsealed};
pub use id::{FlowId, NodeId, ServiceId};
pub use replay::ReplayWindow;
pub use seal::{Cipher, Key, KeyError, Opener, Sealer};
