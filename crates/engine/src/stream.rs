//! Types that stream schemes share with drivers: live layered streams from one node to a group.
//!
//! A source opens a stream to a group and names its layers, the base first. Other nodes join the
//! group, each with a utility of its rate. A scheme takes or refuses each packet of the source at
//! once. A packet that arrives at a node that has joined is reported as
//! [`Event::StreamPacket`](crate::Event::StreamPacket). Packets may be lost, those of the highest
//! layer first.

mod utility;

use crate::name::{NODE_NAMES, is_node_name};
use ncmesh_wire::{FlowId, NodeId};

pub use utility::{UtilityConfig, UtilityError};

/// Most layers of a stream.
pub const LAYERS: usize = 4;

/// Age at which a packet of a stream is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// In milliseconds.
    pub ms: u16,
}

impl Deadline {
    /// Least and greatest deadline, milliseconds.
    pub const RANGE: core::ops::RangeInclusive<u16> = 20..=5000;

    /// Returns the deadline of `ms` milliseconds, or `None` outside of [`RANGE`](Self::RANGE).
    #[must_use]
    pub fn of_ms(ms: u16) -> Option<Self> {
        Self::RANGE.contains(&ms).then_some(Self { ms })
    }
}

/// A stream to begin.
#[derive(Clone, Copy, Debug)]
pub struct NewStream<'a> {
    /// The group.
    pub group: &'a str,
    /// Names of its layers, the base first.
    pub layers: &'a [String],
    /// Deadline of its packets; that of the scheme's settings if absent.
    pub deadline: Option<Deadline>,
}

/// Reason why a stream cannot be opened, or a group not joined.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StreamError {
    /// This program has no stream scheme of that name.
    #[error("no stream scheme has this name")]
    UnknownScheme,
    /// A name is not allowed.
    #[error("{what} {name:?}: allowed are {NODE_NAMES}")]
    Name {
        /// Kind of name: group or layer.
        what: &'static str,
        /// The name as it was given.
        name: String,
    },
    /// There is no layer, or too many.
    #[error("{0} layers: allowed are 1 to {LAYERS}, the base first")]
    Layers(usize),
    /// The name of a layer is given twice.
    #[error("layer {0:?} is given twice")]
    LayerTwice(String),
    /// The announcement would not fit a frame.
    #[error("the names of group and layers are too long for this radio's frames ([radio] mtu)")]
    LongNames,
    /// This node sends a stream to the group already.
    #[error("this node sends to group {0:?} already")]
    Busy(String),
    /// The scheme gives no packet up for its age.
    #[error("this scheme has no deadlines")]
    NoDeadlines,
    /// This node keeps as many streams as it can.
    #[error("this node takes part in as many streams as it can")]
    Full,
    /// The utility is not valid.
    #[error("utility: {0}")]
    Utility(#[from] UtilityError),
    /// The utility is steeper than the mesh allows.
    #[error(
        "utility: its slope at rate 0 is {slope} per Mbit/s, [multirate] theta = {theta} is the \
         steepest allowed: lower its weight or penalty, or raise xi"
    )]
    TooSteep {
        /// Slope of the utility at rate 0, per Mbit/s.
        slope: f64,
        /// Steepest slope that is allowed, the same at all nodes.
        theta: f64,
    },
}

/// Reason why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamPacketError {
    /// This program has no stream scheme of that name.
    #[error("no stream scheme has this name")]
    UnknownScheme,
    /// No frame has room for it.
    #[error("a packet of {bytes} bytes is too long: this scheme carries up to {longest}")]
    TooLong {
        /// Length of the packet.
        bytes: usize,
        /// [`StreamEngine::longest`](crate::StreamEngine::longest).
        longest: usize,
    },
    /// The packet is empty.
    #[error("an empty packet")]
    Empty,
    /// As many packets wait at the source as can.
    #[error("a burst: as many packets wait at the source as can")]
    Burst,
    /// This node sends no stream of this id, or the stream has no such layer.
    #[error("no such stream or layer is sent from here")]
    Unknown,
}

/// Reason why a receiver does not get the rate it asks for.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum StreamProblem {
    /// There is no path to the source.
    #[error(
        "no path to the source: no neighbour that hears this node, and is heard by it, leads \
         there; `ncmesh peers` shows who can be reached"
    )]
    NoPath,
    /// The source sends, but nothing arrives.
    #[error(
        "the source sends {:.2} Mbit/s, and nothing arrives: links on the way carry what others \
         value more, or neighbours do not hear this node's reports; give it a minimum rate \
         (--min-rate), or see `ncmesh peers`",
        offered_bps / 1e6
    )]
    NothingArrives {
        /// Rate of the source, bit/s.
        offered_bps: f64,
    },
    /// Less than the minimum rate arrives, although the source sends more.
    #[error(
        "gets {:.2} of at least {:.2} Mbit/s: more than links on the way carry beside other \
         minimum rates; ask for less (--min-rate), here or elsewhere",
        rate_bps / 1e6,
        minimum_bps / 1e6
    )]
    BelowMinimum {
        /// Rate that arrives, bit/s.
        rate_bps: f64,
        /// Minimum rate, bit/s.
        minimum_bps: f64,
    },
    /// Packets of the base layer are missing.
    #[error(
        "gets {:.0} % of the base layer in time: the path carries no more; send a base of a lower \
         rate, or see `ncmesh peers`",
        100.0 * share
    )]
    BaseIncomplete {
        /// Share of its packets that came in time.
        share: f64,
    },
    /// The source sends less than the minimum rate, and that arrives.
    #[error(
        "gets {:.2} of at least {:.2} Mbit/s: the source sends no more",
        offered_bps / 1e6,
        minimum_bps / 1e6
    )]
    SourceSendsLess {
        /// Rate of the source, bit/s.
        offered_bps: f64,
        /// Minimum rate, bit/s.
        minimum_bps: f64,
    },
}

impl StreamProblem {
    /// Returns the name of the problem in the API.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoPath => "no_path",
            Self::NothingArrives { .. } => "nothing_arrives",
            Self::BelowMinimum { .. } => "below_minimum",
            Self::BaseIncomplete { .. } => "base_incomplete",
            Self::SourceSendsLess { .. } => "source_sends_less",
        }
    }
}

/// Status of a stream at one node. Lists of layers begin with the base.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamStatus {
    /// Id of the stream: its source, and a number.
    pub flow: FlowId,
    /// Group to which it is sent.
    pub group: String,
    /// Names of its layers.
    pub layers: Vec<String>,
    /// Receivers that are reached through this node, itself included (m in the paper).
    pub receivers: u32,
    /// Previous hop in the stream's tree, if this node is in it.
    pub parent: Option<NodeId>,
    /// Packets taken, at the source.
    pub sending: Option<Sending>,
    /// Packets received, at a receiver.
    pub receiving: Option<Receiving>,
    /// Queue for each next hop.
    pub queues: Vec<StreamQueue>,
}

/// Counters of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Packets taken, by layer.
    pub packets: [u64; LAYERS],
    /// Packets that wait for the next slot, because more came in one slot than may.
    pub waiting: u32,
    /// Packets refused because too many waited.
    pub refused: u64,
}

/// Counters and queues of a receiver.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Receiving {
    /// Packets received, by layer.
    pub packets: [u64; LAYERS],
    /// Bytes received, by layer.
    pub bytes: [u64; LAYERS],
    /// Packets that the source sent from the first announcement heard to the latest, by layer.
    pub offered: [u64; LAYERS],
    /// Packets of these that have not come, by layer. Those on their way are among them.
    pub missing: [u64; LAYERS],
    /// When they came; `None` if the scheme's packets do not tell their age.
    pub timeliness: Option<Timeliness>,
    /// Virtual queue (Z), packets.
    pub z: f64,
    /// Virtual pressure (Y), packets.
    pub pressure: f64,
    /// Minimum rate that it asks for, bit/s; 0 if none.
    pub minimum_bps: f64,
    /// Rates received and sent by the source, over the latest announcements, bit/s.
    pub rates_bps: Option<(f64, f64)>,
    /// Reason why it gets too little, once it has lasted about 15 s; a missing path at once.
    pub problem: Option<StreamProblem>,
}

/// When the packets of a stream came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timeliness {
    /// Packets that came after a later one, by layer.
    pub out_of_order: [u64; LAYERS],
    /// Median time from the source's taking a packet to its arrival, by layer, s; 0 if none came.
    pub delay_p50_s: [f64; LAYERS],
    /// The same of the slowest of 100 packets.
    pub delay_p99_s: [f64; LAYERS],
    /// Whole seconds of the stream of which every packet of the base came.
    pub whole_base_s: u64,
    /// All seconds of the stream that were judged so.
    pub base_s: u64,
}

/// Transmission queue of a stream to one next hop.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamQueue {
    /// Next hop.
    pub to: NodeId,
    /// Receivers that are reached through the next hop (m).
    pub receivers: u32,
    /// Packets queued, by layer. Their sum and the place-holders are Q.
    pub held: [u32; LAYERS],
    /// Part of Q that is not packets: the mean virtual pressure of those receivers.
    pub place_holders: f64,
    /// Drop queue (D), packets.
    pub drop_queue: f64,
    /// Length of the next hop's own queues as it reported it, packets.
    pub downstream: f64,
    /// Differential backlog (W), packets.
    pub weight: f64,
    /// Estimated rate of the link (mu), packets per slot.
    pub rate: f64,
    /// Packets sent, by layer.
    pub sent: [u64; LAYERS],
    /// Packets dropped, by layer.
    pub dropped: [u64; LAYERS],
    /// Number of these for which there was no room. The time of the others was over.
    pub no_room: [u64; LAYERS],
    /// Packets that the MAC gave up.
    pub lost: u64,
}

/// Checks the names of a group and of its layers.
///
/// # Errors
/// [`StreamError::Name`], [`StreamError::Layers`] or [`StreamError::LayerTwice`].
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

/// Checks a name; `what` says in the error whose name it is.
///
/// # Errors
/// [`StreamError::Name`] if it is not allowed.
pub fn check_name(what: &'static str, name: &str) -> Result<(), StreamError> {
    if is_node_name(name) {
        return Ok(());
    }
    Err(StreamError::Name { what, name: name.chars().take(80).collect() })
}
