//! File that is to be sent, errors of sending, and the limits of a node.

use super::geometry::GeometryError;
use super::manifest::{Manifest, ReceiverState};
use super::merkle;
use crate::transmission::Background;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Airtime and rate that a file may take. The default is all that there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Whether it gives way to all else, and its bound on airtime.
    pub background: Option<Background>,
    /// The most of its data that the source sends, bit/s.
    pub limit_bps: Option<u64>,
}

/// File that is to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Announcement.
    pub manifest: Manifest,
    /// BLAKE3 of each generation.
    pub leaves: Vec<merkle::Hash>,
    /// Receivers.
    pub receivers: Vec<NodeId>,
    /// Final states of receivers from before a restart of this node, whether they were listed or
    /// joined.
    pub done: BTreeMap<NodeId, ReceiverState>,
    /// Whether nodes that are not listed may join.
    pub open: bool,
    /// Airtime and rate that it may take.
    pub allowance: Allowance,
}

/// Reason why the sending of a file cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendFailure {
    /// The file is gone or cannot be read.
    #[error("the file cannot be read any more")]
    Unreadable,
    /// The file is not the one that was announced.
    #[error("the file changed while it was being sent; send it again")]
    Changed,
}

/// Reason why a file cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// This program has no file scheme of that name.
    #[error("no file scheme has this name")]
    UnknownScheme,
    /// No receiver is given.
    #[error("no receivers")]
    NoReceivers,
    /// The announcement would not fit a frame.
    #[error("too many receivers for one announcement: at most {0} with this radio's MTU")]
    TooManyReceivers(usize),
    /// The file cannot be cut into generations.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The configured packets do not fit a frame.
    #[error("symbol_size = {wanted} does not fit the radio's MTU: at most {fits}")]
    SymbolTooLarge {
        /// Configured size, bytes.
        wanted: u16,
        /// Largest size that fits, bytes.
        fits: u16,
    },
    /// The radio's frames are too small for any packet.
    #[error("the radio's MTU is too small for coded packets")]
    MtuTooSmall,
    /// This transfer is already under way.
    #[error("a transfer with this id is under way")]
    Exists,
    /// Every receiver would refuse the file's name.
    #[error(
        "receivers refuse this name: 1 to 200 bytes, no '/' or '\\', no control characters, \
         no leading dot"
    )]
    BadName,
}

/// Limits on the state that a node keeps for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// Most transfers received at once, and most ended transfers of files sent. The oldest make
    /// space for new ones.
    pub kept: usize,
    /// Most bytes of incomplete generations, of all transfers received.
    pub memory: usize,
}

impl FileLimits {
    /// Limits for a router with 64 MB of memory: about 40 generations of the default size.
    pub const ROUTER: Self = Self { kept: 16, memory: 4 << 20 };
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { kept: 64, memory: 256 << 20 }
    }
}
