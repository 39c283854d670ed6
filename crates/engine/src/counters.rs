//! Counters of a node: frames by service and kind, drops by reason.

use crate::blame::Blame;
use crate::time::Duration;
use ncmesh_wire::{NodeId, OpenError, ServiceId};
use std::collections::BTreeMap;

/// Reason why a frame, or part of it, was dropped. Input from the network never causes an error; it
/// is counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// It is no ncmesh frame.
    Foreign,
    /// It is an ncmesh frame of another version.
    Version,
    /// It is not sealed with the network's key.
    Unauthentic,
    /// It was heard before.
    Replayed,
    /// Its sender has not proved yet that it is there now: it may be a recording.
    Unproven,
    /// It comes from another node with the id of this one.
    DuplicateId,
    /// No service at this node takes such frames.
    UnknownService,
    /// Its fields contradict each other or end early.
    Malformed,
    /// It belongs to a flow that this node does not know.
    UnknownFlow,
    /// It is older than what this node has already.
    Stale,
    /// The node that it is said of has not signed it, as far as this node knows its key.
    Untrusted,
    /// It contradicts what was announced before under the same id.
    Disputed,
    /// It is coded with a packet that this node does not have, or was decoded to something else
    /// than was sent.
    Undecodable,
    /// Its sender sent false packets a short time ago.
    Blamed,
    /// It would have made this node keep more state than it allows.
    Full,
}

impl DropReason {
    /// Returns the name under which the drop is reported.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Version => "version",
            Self::Unauthentic => "unauthentic",
            Self::Replayed => "replayed",
            Self::Unproven => "unproven",
            Self::DuplicateId => "duplicate_id",
            Self::UnknownService => "unknown_service",
            Self::Malformed => "malformed",
            Self::UnknownFlow => "unknown_flow",
            Self::Stale => "stale",
            Self::Untrusted => "untrusted",
            Self::Disputed => "disputed",
            Self::Undecodable => "undecodable",
            Self::Blamed => "blamed",
            Self::Full => "full",
        }
    }
}

impl From<OpenError> for DropReason {
    fn from(e: OpenError) -> Self {
        match e {
            OpenError::Foreign => Self::Foreign,
            OpenError::Version { .. } => Self::Version,
            OpenError::Unauthentic => Self::Unauthentic,
        }
    }
}

/// Contents of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Payload as its source gave it.
    Native,
    /// A combination of packets.
    Coded,
}

/// Frames that a node sent, by what they carry, and their time on the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Frames without payload.
    pub control: (u64, Duration),
    /// Frames with native payload.
    pub native: (u64, Duration),
    /// Frames with coded payload.
    pub coded: (u64, Duration),
}

impl Carried {
    fn of(&mut self, payload: Option<Payload>) -> &mut (u64, Duration) {
        match payload {
            None => &mut self.control,
            Some(Payload::Native) => &mut self.native,
            Some(Payload::Coded) => &mut self.coded,
        }
    }
}

/// Frames that a node heard from another one, and what those with payload brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usefulness {
    /// All frames.
    pub frames: u64,
    /// Packets with something new for this node.
    pub innovative: u64,
    /// Packets that it could do without.
    pub redundant: u64,
}

/// Number of frames of one service and kind, and their bytes on the air (outer frame included).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames.
    pub frames: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

/// Counters of a node since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Neighbours that sent false packets.
    pub blame: Blame,
    drops: BTreeMap<DropReason, u64>,
    sent: BTreeMap<(ServiceId, u8), Tally>,
    heard: BTreeMap<(ServiceId, u8), Tally>,
    airtime: BTreeMap<(ServiceId, u8), Duration>,
    carried: Carried,
    /// Contents of the frame that is being filled, and then is on the air.
    filled: Option<Payload>,
    /// Whether the payload of the frame that is being handled is new, if it has any for this node.
    is_new: Option<bool>,
    usefulness: BTreeMap<NodeId, Usefulness>,
}

impl Counters {
    /// Counts a drop.
    pub fn drop(&mut self, reason: DropReason) {
        *self.drops.entry(reason).or_default() += 1;
    }

    /// Returns the drops so far, by reason.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        self.drops.iter().map(|(reason, n)| (*reason, *n))
    }

    /// Returns how often `reason` was counted.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.get(&reason).copied().unwrap_or(0)
    }

    /// Notes what the frame carries that an engine has just filled. One without this note carries
    /// no payload.
    pub fn note_filled(&mut self, payload: Payload) {
        self.filled = Some(payload);
    }

    /// Notes that the frame being handled has payload for this node, and whether that is new here.
    /// A frame with several packets is new if one of them is.
    pub fn note_payload(&mut self, is_new: bool) {
        self.is_new = Some(self.is_new.unwrap_or(false) | is_new);
    }

    /// Counts the payload noted for a frame of `sender`, after it was handled.
    pub fn count_payload(&mut self, sender: NodeId) {
        match (self.is_new.take(), self.usefulness.entry(sender)) {
            (None, _) => {}
            (Some(true), entry) => entry.or_default().innovative += 1,
            (Some(false), entry) => entry.or_default().redundant += 1,
        }
    }

    /// Returns the frames sent, by what they carry.
    #[must_use]
    pub fn carried(&self) -> Carried {
        self.carried
    }

    /// Returns the frames heard from `sender`.
    #[must_use]
    pub fn usefulness(&self, sender: NodeId) -> Usefulness {
        self.usefulness.get(&sender).copied().unwrap_or_default()
    }

    /// Returns the frames sent of this service and kind.
    #[must_use]
    pub fn sent(&self, service: ServiceId, kind: u8) -> Tally {
        self.sent.get(&(service, kind)).copied().unwrap_or_default()
    }

    /// Returns all frames sent, by service and kind.
    pub fn all_sent(&self) -> impl Iterator<Item = ((ServiceId, u8), Tally)> + '_ {
        self.sent.iter().map(|(name, tally)| (*name, *tally))
    }

    /// Returns all frames heard, by service and kind.
    pub fn all_heard(&self) -> impl Iterator<Item = ((ServiceId, u8), Tally)> + '_ {
        self.heard.iter().map(|(name, tally)| (*name, *tally))
    }

    /// Begins to fill a frame: nothing is known of its payload.
    pub fn begin_frame(&mut self) {
        self.filled = None;
    }

    /// Counts a frame that this node sent; `bytes` are those on the air.
    pub fn count_sent(&mut self, service: ServiceId, kind: u8, bytes: usize) {
        self.carried.of(self.filled).0 += 1;
        self.sent.entry((service, kind)).or_default().add(bytes);
    }

    /// Adds the airtime of the frame that this node sent last.
    pub fn count_airtime(&mut self, service: ServiceId, kind: u8, airtime: Duration) {
        self.carried.of(self.filled).1 += airtime;
        *self.airtime.entry((service, kind)).or_default() += airtime;
    }

    /// Returns the airtime of the frames sent of this service and kind.
    #[must_use]
    pub fn airtime(&self, service: ServiceId, kind: u8) -> Duration {
        self.airtime.get(&(service, kind)).copied().unwrap_or_default()
    }

    /// Counts a frame that this node heard from `sender`; `bytes` are those on the air.
    pub fn count_heard(&mut self, sender: NodeId, service: ServiceId, kind: u8, bytes: usize) {
        self.usefulness.entry(sender).or_default().frames += 1;
        self.heard.entry((service, kind)).or_default().add(bytes);
    }
}
