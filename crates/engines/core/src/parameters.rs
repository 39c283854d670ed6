//! Parameters of the engine: everything that CORE and its baseline do differently, and the settings
//! that both have.

use crate::redundancy::Redundancy;
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::RelayMode;

/// Rule by which a relay decides whether it combines two flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PairingRule {
    /// Combines them where that takes fewer transmissions, by what receivers are measured to
    /// overhear.
    FewerTransmissions,
    /// Combines them where both receivers can decode a packet with at least this probability
    /// (Katti et al.; their rule is 80 %).
    Decodable(f64),
}

/// How an engine works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    /// Relaying of generations that begin from now on.
    pub relay: RelayMode,
    /// Whether packets of one flow are combined with each other (intra-flow coding).
    pub codes_within_flows: bool,
    /// Whether this node combines packets of two flows (inter-flow coding).
    pub combines_flows: bool,
    pub pairing: PairingRule,
    pub redundancy: Redundancy,
    /// Most packets that one feedback asks for by number.
    pub max_missing: u8,
    /// Packets of a generation that begins here.
    pub generation_size: u8,
    /// Generations of a flow under way at once.
    pub window: u8,
    /// Whether a flow waits for the one that it is combined with (section 6.1).
    pub synchronise: bool,
    /// Packets that a source queues for one destination.
    pub queue: usize,
    /// Time for which an open generation takes in packets.
    pub flush_time: Duration,
    /// Time for which a relay waits for a packet to combine with.
    pub hold_time: Duration,
    /// Time after which an unanswered poll is repeated for the first time.
    pub poll_timeout: Duration,
    /// Polls without progress after which a source gives a generation up.
    pub max_polls: u32,
}
