//! ncmesh on the wire: identifiers, the outer frame, field cursors, sealing.
//!
//! Every datagram is a sealed [`frame`]: a clear header, an encrypted body, a tag.
//! [`Sealer`] and [`Opener`] seal and open frames and reject replays. The body belongs to a service
//! that writes it with a [`Writer`] and parses it with a [`Reader`]. A frame's type is the pair of
//! [`ServiceId`] and kind. `docs/reference/wire-format.md` specifies all frames, with test vectors.

mod cursor;
pub mod frame;
mod id;
mod replay;
mod seal;

pub use cursor::{Reader, Truncated, Writer};
pub use frame::{Header, OpenError, Opened, SealedFrame};
pub use id::{FlowId, NodeId, ServiceId};
pub use seal::{Cipher, Key, KeyError, Opener, Sealer};
