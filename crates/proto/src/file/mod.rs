//! Reliable multicast of files, for every scheme that sends batches of coded packets down a mesh (Pacifier
//! and its baseline MORE): announcement, coded data, acknowledgments, resumption.
//!
//! A scheme says who forwards how much and when the source moves on ([`Scheme`]); all else is here.
//! One packet's way: `source` fills it, `relay`s recombine it, `sink`s decode it, `acks` carry the
//! answer back.

mod acks;
mod announce;
mod arq;
mod batches;
mod coded;
mod data;
mod engine;
pub mod frame;
mod geometry;
mod manifest;
pub mod merkle;
mod packets;
mod relay;
mod routing;
mod scheme;
mod sink;
mod source;
mod status;
pub mod storage;
mod stored;
mod visit;

#[cfg(test)]
mod hop_tests;
#[cfg(test)]
mod tests;

pub use batches::BatchSet;
pub use engine::{FileEngine, FileLimits};
pub use geometry::{Geometry, GeometryError};
pub use manifest::{Manifest, ReceiverState, Refusal, is_safe_name};
pub use routing::{Cast, Forwarder, Forwarding, Hop, Routing, Upstream};
pub use scheme::{Plan, Scheme, Switching};
pub use status::{Direction, ReceiverStatus, Stage, TransferStatus};

use crate::service::Cx;
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

/// A file to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// What is announced.
    pub manifest: Manifest,
    /// BLAKE3 of each batch.
    pub leaves: Vec<merkle::Hash>,
    /// Who is to get it.
    pub receivers: Vec<NodeId>,
    /// How receivers ended before a restart of this node; listed or joined.
    pub done: BTreeMap<NodeId, ReceiverState>,
    /// Whether nodes not listed may join.
    pub open: bool,
}

/// Why a file that was being sent cannot be sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendFailure {
    /// It is gone or cannot be read.
    #[error("the file cannot be read any more")]
    Unreadable,
    /// It is not the file that was announced.
    #[error("the file changed while it was being sent; send it again")]
    Changed,
}

/// Why a file cannot be offered for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There are none.
    #[error("no receivers")]
    NoReceivers,
    /// An announcement would not fit a frame.
    #[error("too many receivers for one announcement: at most {0} with this radio's MTU")]
    TooManyReceivers(usize),
    /// The file cannot be cut into batches.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The configured packets do not fit.
    #[error("symbol_size = {wanted} does not fit the radio's MTU: at most {fits}")]
    SymbolTooLarge {
        /// As configured, bytes.
        wanted: u16,
        /// What would fit, bytes.
        fits: u16,
    },
    /// The radio's frames are too small for any packet.
    #[error("the radio's MTU is too small for coded packets")]
    MtuTooSmall,
    /// This transfer is already under way.
    #[error("a transfer with this id is under way")]
    Exists,
    /// Its name would be refused by every receiver.
    #[error(
        "receivers refuse this name: 1 to 200 bytes, no '/' or '\\', no control characters, no leading dot"
    )]
    BadName,
}

/// A service that multicasts files.
pub trait FileService {
    /// How a file of `size` bytes would be cut here and now.
    ///
    /// # Errors
    /// [`SendError`].
    fn geometry_for(&self, cx: &Cx<'_>, size: u64) -> Result<Geometry, SendError>;

    /// Offers a file to its receivers.
    ///
    /// # Errors
    /// [`SendError`].
    fn send(&mut self, cx: &mut Cx<'_>, outgoing: Outgoing) -> Result<(), SendError>;

    /// Answers [`Event::Announced`](crate::service::Event::Announced): the file has a place; `have` is
    /// already there.
    fn accept(&mut self, cx: &mut Cx<'_>, flow: FlowId, have: BatchSet);

    /// Answers [`Event::Announced`](crate::service::Event::Announced), or ends a reception: not here.
    fn refuse(&mut self, cx: &mut Cx<'_>, flow: FlowId, why: Refusal);

    /// Answers [`Event::Assembled`](crate::service::Event::Assembled): the file stands under its name.
    fn delivered(&mut self, cx: &mut Cx<'_>, flow: FlowId);

    /// Ends a transfer: withdrawn by its source, or refused by a receiver, whose driver remembers that across a
    /// restart. Says whether it was under way.
    fn cancel(&mut self, cx: &mut Cx<'_>, flow: FlowId) -> bool;

    /// How every transfer stands that this node sends or receives.
    fn transfers(&self) -> Vec<TransferStatus>;
}
