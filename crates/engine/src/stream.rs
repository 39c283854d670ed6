//! What stream schemes share: live streams in layers, from one node to all that join their group.
//!
//! The source names the layers, the base first. A scheme takes or refuses each packet at once. A
//! packet that arrives at a node that joined comes up as
//! [`Event::StreamPacket`](crate::Event::StreamPacket). Packets may be lost, those of the highest
//! layer first.

mod utility;

use crate::name::{MAX_NODE_NAME, is_node_name};
use ncmesh_wire::{FlowId, NodeId};

pub use utility::{UtilityConfig, UtilityError};

/// Most layers of a stream.
pub const LAYERS: usize = 4;

/// Why a stream or a membership cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StreamError {
    /// This program has no stream scheme of that name.
    #[error("no stream scheme has this name")]
    UnknownScheme,
    /// A name that is none.
    #[error("{what} {name:?}: allowed are 1 to {MAX_NODE_NAME} letters, digits, '.', '_' and '-'")]
    Name {
        /// Of what.
        what: &'static str,
        /// As it was given.
        name: String,
    },
    /// No layer, or too many.
    #[error("{0} layers: allowed are 1 to {LAYERS}, the base first")]
    Layers(usize),
    /// A layer's name given twice.
    #[error("layer {0:?} is given twice")]
    LayerTwice(String),
    /// An announcement that fits no frame.
    #[error("the names of group and layers are too long for this radio's frames ([radio] mtu)")]
    LongNames,
    /// A second stream to a group from here.
    #[error("this node sends to group {0:?} already")]
    Busy(String),
    /// No more streams can be kept.
    #[error("this node takes part in as many streams as it can")]
    Full,
    /// No utility.
    #[error("utility: {0}")]
    Utility(#[from] UtilityError),
    /// A utility that asks for more than the mesh allows.
    #[error(
        "utility: its slope at rate 0 is {slope} per Mbit/s, [multirate] theta = {theta} is the steepest allowed: lower its weight or penalty, or raise xi"
    )]
    TooSteep {
        /// Its slope.
        slope: f64,
        /// What all nodes are set to.
        theta: f64,
    },
}

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamPacketError {
    /// This program has no stream scheme of that name.
    #[error("no stream scheme has this name")]
    UnknownScheme,
    /// No frame has room for it.
    #[error("a packet of {bytes} bytes is too long: this scheme carries up to {longest}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// [`StreamEngine::longest`](crate::StreamEngine::longest).
        longest: usize,
    },
    /// It is empty.
    #[error("an empty packet")]
    Empty,
    /// More than waits at a source.
    #[error("a burst: as many packets wait at the source as can")]
    Burst,
    /// No stream of that id is sent from here, or it has no such layer.
    #[error("no such stream or layer is sent from here")]
    Unknown,
}

/// What keeps a receiver from the rate it asks for.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Trouble {
    /// Its node finds no path to the source.
    #[error(
        "no path to the source: no neighbour that hears this node, and is heard by it, leads there; `ncmesh peers` shows who can be reached"
    )]
    NoPath,
    /// The source sends, and nothing arrives.
    #[error(
        "the source sends {:.2} Mbit/s, and nothing arrives: links on the way carry what others value more, or neighbours do not hear this node's reports; give it a minimum rate (--min-rate), or see `ncmesh peers`", offered_bps / 1e6
    )]
    NothingArrives {
        /// What the source sends.
        offered_bps: f64,
    },
    /// Less than its minimum rate arrives, of a stream that has more.
    #[error(
        "gets {:.2} of at least {:.2} Mbit/s: more than links on the way carry beside other minimum rates; ask for less (--min-rate), here or elsewhere", rate_bps / 1e6, minimum_bps / 1e6
    )]
    BelowMinimum {
        /// What it gets.
        rate_bps: f64,
        /// What it asks for.
        minimum_bps: f64,
    },
    /// The source sends less than its minimum rate, and that arrives.
    #[error(
        "gets {:.2} of at least {:.2} Mbit/s: the source sends no more", offered_bps / 1e6, minimum_bps / 1e6
    )]
    SourceSendsLess {
        /// What the source sends.
        offered_bps: f64,
        /// What it asks for.
        minimum_bps: f64,
    },
}

impl Trouble {
    /// A name for programs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoPath => "no_path",
            Self::NothingArrives { .. } => "nothing_arrives",
            Self::BelowMinimum { .. } => "below_minimum",
            Self::SourceSendsLess { .. } => "source_sends_less",
        }
    }
}

/// A stream as one node sees it. Lists of layers begin with the base.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamStatus {
    /// Its source, and the number that tells this source's streams apart.
    pub flow: FlowId,
    /// The group it is sent to.
    pub group: String,
    /// Its layers' names.
    pub layers: Vec<String>,
    /// Receivers that are reached through this node, itself included (m).
    pub receivers: u32,
    /// The node it comes from, if this one is in its tree.
    pub parent: Option<NodeId>,
    /// At the source: what it took.
    pub sending: Option<Sending>,
    /// At a receiver: what it got.
    pub receiving: Option<Receiving>,
    /// A queue for each next hop.
    pub queues: Vec<StreamQueue>,
}

/// What a source took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Packets by layer.
    pub packets: [u64; LAYERS],
    /// Packets that wait to enter: more came in a slot than may.
    pub waiting: u32,
    /// Packets refused: as many waited as can.
    pub refused: u64,
}

/// What a receiver got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Receiving {
    /// Packets by layer.
    pub packets: [u64; LAYERS],
    /// Their bytes.
    pub bytes: [u64; LAYERS],
    /// Its virtual queue (Z), packets.
    pub z: f64,
    /// Its virtual pressure (Y), packets.
    pub pressure: f64,
    /// What it asks for at least, bit/s; 0 if nothing.
    pub minimum_bps: f64,
    /// What it got and what the source sent over the latest announcements, bit/s.
    pub rates_bps: Option<(f64, f64)>,
    /// What has been wrong for some 15 s, or a path that is not there.
    pub trouble: Option<Trouble>,
}

/// The transmission queue of a stream towards a next hop.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamQueue {
    /// The next hop.
    pub to: NodeId,
    /// Receivers behind it (m).
    pub receivers: u32,
    /// Packets held, by layer (their sum and the place-holders are Q).
    pub held: [u32; LAYERS],
    /// The part of Q that is no packets: the mean virtual pressure of the receivers behind it.
    pub place_holders: f64,
    /// The drop queue (D), packets.
    pub drop_queue: f64,
    /// What the next hop told of its own queues, packets.
    pub downstream: f64,
    /// The differential backlog (W), packets.
    pub weight: f64,
    /// What the link is thought to carry, packets per slot (mu).
    pub rate: f64,
    /// Packets sent, by layer.
    pub sent: [u64; LAYERS],
    /// Packets dropped, by layer.
    pub dropped: [u64; LAYERS],
    /// Packets the radio gave up on.
    pub lost: u64,
}

/// Checks the names of a group and its layers.
///
/// # Errors
/// [`StreamError::Name`], [`StreamError::Layers`], [`StreamError::LayerTwice`].
pub fn check_names(group: &str, layers: &[String]) -> Result<(), StreamError> {
    check_name("group", group)?;
    if layers.is_empty() || layers.len() > LAYERS {
        return Err(StreamError::Layers(layers.len()));
    }
    for (at, name) in layers.iter().enumerate() {
        check_name("layer", name)?;
        if layers[..at].contains(name) {
            return Err(StreamError::LayerTwice(name.clone()));
        }
    }
    Ok(())
}

/// Checks a name.
///
/// # Errors
/// [`StreamError::Name`].
pub fn check_name(what: &'static str, name: &str) -> Result<(), StreamError> {
    if is_node_name(name) {
        return Ok(());
    }
    Err(StreamError::Name { what, name: name.chars().take(80).collect() })
}
