//! Events: what an engine asks its driver to do, or tells it.

use crate::file::{Manifest, SendFailure};
use ncmesh_wire::{FlowId, NodeId};
use std::sync::Arc;

/// Something an engine tells its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A file is offered to this node. The driver prepares a place for it, then calls
    /// [`FileEngine::accept`](crate::FileEngine::accept) or
    /// [`FileEngine::refuse`](crate::FileEngine::refuse).
    Announced(Box<Manifest>),
    /// All batches of a file are written. The driver verifies the whole, makes it durable, gives it
    /// its name, then calls [`FileEngine::delivered`](crate::FileEngine::delivered).
    Assembled(FlowId),
    /// The source withdrew the file. The driver discards what was received of it.
    Withdrawn(FlowId),
    /// A batch could not be written, and the reception pauses. The driver prepares the place again,
    /// now or later, and calls accept or refuse as for a file that was announced.
    Unwritable(FlowId),
    /// A file whose source is silent made room for another. The driver closes it and keeps what was
    /// received for when it is announced again.
    Suspended(FlowId),
    /// A receiver of a file that this node sends has all of it.
    ReceiverDone(FlowId, NodeId),
    /// A file that this node sends needs nothing more: each receiver has it or never will.
    SendEnded(FlowId),
    /// A file that this node sends cannot be sent on: it is unreadable, or not what was announced.
    SendFailed(FlowId, SendFailure),
    /// A packet for this node arrived through a tunnel.
    Packet {
        /// Node that sent it.
        from: NodeId,
        /// Its bytes.
        packet: Vec<u8>,
    },
    /// A packet of a stream arrived whose group this node joined.
    StreamPacket {
        /// The stream.
        flow: FlowId,
        /// The group it is sent to.
        group: Arc<str>,
        /// Its layer.
        layer: Arc<str>,
        /// Its bytes.
        packet: Vec<u8>,
    },
}
