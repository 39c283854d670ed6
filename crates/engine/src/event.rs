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
    /// All generations of a file are written. The driver verifies the whole, makes it durable,
    /// gives it its name, then calls [`FileEngine::delivered`](crate::FileEngine::delivered).
    Assembled(FlowId),
    /// The source is said to have withdrawn the file, or ended the transfer without this node. The
    /// driver closes it and keeps what was received for when it is announced again.
    Withdrawn(FlowId),
    /// A generation could not be written, and the reception pauses. The driver prepares the place
    /// again, now or later, and calls accept or refuse as for a file that was announced.
    Unwritable(FlowId),
    /// A file whose source is silent made room for another. The driver closes it and keeps what was
    /// received for when it is announced again.
    Suspended(FlowId),
    /// A receiver of a file that this node sends is said to have all of it, or to refuse it.
    ReceiverDone(FlowId, NodeId),
    /// A receiver that was said to be done says that it is not.
    ReceiverObjected(FlowId, NodeId),
    /// A file that this node sends is said to need nothing more: each receiver has it or never
    /// will. It may begin again if one of them objects.
    SendEnded(FlowId),
    /// A file that this node sends needs nothing more, and no receiver has objected.
    SendConfirmed(FlowId),
    /// A file that this node sends cannot be sent on: it is unreadable, or not what was announced.
    SendFailed(FlowId, SendFailure),
    /// Somebody announces a file of this node in other words than this node does. The stack answers
    /// it, so drivers do not see it.
    Impersonated,
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
