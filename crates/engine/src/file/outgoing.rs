//! A file to be sent, why it cannot be, and the bounds of a node.

use super::geometry::GeometryError;
use super::manifest::{Manifest, ReceiverState};
use super::merkle;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// A file to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// What is announced.
    pub manifest: Manifest,
    /// BLAKE3 of each batch.
    pub leaves: Vec<merkle::Hash>,
    /// Receivers.
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
    /// This program has no file scheme of that name.
    #[error("no file scheme has this name")]
    UnknownScheme,
    /// No receiver is named.
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

/// Bounds on what one node keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// Transfers received at once, and files sent that ended: the oldest are dropped for new ones.
    pub kept: usize,
    /// Bytes of batches under way, of all transfers received.
    pub memory: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { kept: 64, memory: 256 << 20 }
    }
}
