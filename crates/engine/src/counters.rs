//! What a node counts: frames by service and kind, drops by reason.

use ncmesh_wire::{OpenError, ServiceId};
use std::collections::BTreeMap;

/// Why a frame, or part of one, was dropped. Network input never causes an error; it is counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Not an ncmesh frame.
    Foreign,
    /// An ncmesh frame of another version.
    Version,
    /// Not sealed with the network's key.
    Unauthentic,
    /// Heard before.
    Replayed,
    /// Claims to come from this very node: a second node uses this node's id.
    DuplicateId,
    /// No service here takes such frames.
    UnknownService,
    /// Its fields contradict each other or end early.
    Malformed,
    /// Belongs to a flow this node knows nothing of.
    UnknownFlow,
    /// Older than what this node already has.
    Stale,
    /// Coded with a packet that this node does not have.
    Undecodable,
    /// Would have made this node keep more state than it allows.
    Full,
}

impl DropReason {
    /// The name under which the drop is reported.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Version => "version",
            Self::Unauthentic => "unauthentic",
            Self::Replayed => "replayed",
            Self::DuplicateId => "duplicate_id",
            Self::UnknownService => "unknown_service",
            Self::Malformed => "malformed",
            Self::UnknownFlow => "unknown_flow",
            Self::Stale => "stale",
            Self::Undecodable => "undecodable",
            Self::Full => "full",
        }
    }
}

impl From<OpenError> for DropReason {
    fn from(e: OpenError) -> Self {
        match e {
            OpenError::Foreign => Self::Foreign,
            OpenError::Version => Self::Version,
            OpenError::Unauthentic => Self::Unauthentic,
            OpenError::Replayed => Self::Replayed,
        }
    }
}

/// Frames of one (service, kind), and their bytes on the air (outer frame included).
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

/// A node's counters since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    drops: BTreeMap<DropReason, u64>,
    sent: BTreeMap<(ServiceId, u8), Tally>,
    heard: BTreeMap<(ServiceId, u8), Tally>,
}

impl Counters {
    /// Counts a drop.
    pub fn drop(&mut self, reason: DropReason) {
        *self.drops.entry(reason).or_default() += 1;
    }

    /// Drops so far, by reason.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        self.drops.iter().map(|(reason, n)| (*reason, *n))
    }

    /// How often `reason` was counted.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.get(&reason).copied().unwrap_or(0)
    }

    /// Frames sent of (service, kind).
    #[must_use]
    pub fn sent(&self, service: ServiceId, kind: u8) -> Tally {
        self.sent.get(&(service, kind)).copied().unwrap_or_default()
    }

    /// All frames sent, by service and kind.
    pub fn all_sent(&self) -> impl Iterator<Item = ((ServiceId, u8), Tally)> + '_ {
        self.sent.iter().map(|(name, tally)| (*name, *tally))
    }

    /// All frames heard, by service and kind.
    pub fn all_heard(&self) -> impl Iterator<Item = ((ServiceId, u8), Tally)> + '_ {
        self.heard.iter().map(|(name, tally)| (*name, *tally))
    }

    /// Counts a frame that this node sent, with its bytes on the air.
    pub fn count_sent(&mut self, service: ServiceId, kind: u8, bytes: usize) {
        self.sent.entry((service, kind)).or_default().add(bytes);
    }

    /// Counts a frame that this node heard, with its bytes on the air.
    pub fn count_heard(&mut self, service: ServiceId, kind: u8, bytes: usize) {
        self.heard.entry((service, kind)).or_default().add(bytes);
    }
}
