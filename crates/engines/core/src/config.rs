//! Settings of CORE.

use crate::frame::{MAX_GENERATION_SIZE, MAX_WINDOW};
use crate::parameters::{PairingRule, Parameters};
use crate::redundancy::Redundancy;
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::RelayMode;

ncmesh_engine::settings! {
    /// `[core_nc]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CoreConfig {
        /// Part of this node as a relay (section 4). `"recoding"`: no stop, and requests go to
        /// the source. `"non_recoding"`: packets are forwarded unchanged, combined with what is
        /// there.
        pub relay: RelayMode = RelayMode::Core;
        /// Whether this node combines packets of flows that cross.
        pub coding: bool = true;
        /// Packets of a generation. Larger generations need less redundancy and feedback, but take
        /// longer to fill and decode, and leave less of a frame for payload.
        pub generation: u8 = 64, within 1..=MAX_GENERATION_SIZE, unit "packets";
        /// Extra credit factor x of section 6.3, C = s x / r: transmissions, relative to those that
        /// suffice on average.
        pub extra: f64 = 1.06, within 1..=4;
        /// Probability that no further packets have to be requested. If it is set, x is chosen by
        /// equation 35 from the generation size, the measured r and this probability, and `extra`
        /// is not used. With 60 packets and r = 0.7, 0.92 sends 94 packets (x = 1.1) and 0.99 sends
        /// 101 (x = 1.18).
        pub decode_probability: Option<f64> = None, within 0.01..=0.9999;
        /// Generations of a flow under way at once. 2 gains 18 to 30 % over six hops in slots,
        /// where nothing collides. Over 802.11 1 is best, and flows combine better.
        pub window: u8 = 1, within 1..=MAX_WINDOW, unit "generations";
        /// Whether a relay lets a source go on only when the flow that its own is combined with is
        /// done too, within limits (section 6.1).
        pub synchronise: bool = true;
        /// Packets that a source queues for each destination. When the queue is full, further
        /// packets are refused.
        pub queue: usize = 128, within 1..=10_000, unit "packets";
        /// Time for which a new generation accepts packets. Then it is closed, and losses are
        /// requested.
        pub flush_ms: u32 = 20, within 0..=10_000, unit "ms";
        /// Time for which a relay waits for a packet to combine with.
        pub hold_ms: u32 = 8, within 0..=1000, unit "ms";
        /// Time after which an unanswered request is repeated. Each further pause is twice as long.
        pub request_ms: u32 = 50, within 5..=60_000, unit "ms";
        /// Unanswered requests after which the source gives a generation up; one more if the first
        /// was sent in copies.
        pub requests: u32 = 8, within 1..=100, unit "requests";
    }
}

impl CoreConfig {
    /// Returns the engine's parameters.
    pub(crate) fn parameters(&self) -> Parameters {
        Parameters {
            relay: self.relay,
            codes_within_flows: true,
            combines_flows: self.coding,
            pairing: PairingRule::FewerTransmissions,
            redundancy: match self.decode_probability {
                Some(probability) => Redundancy::Probability(probability),
                None => Redundancy::Factor(self.extra),
            },
            max_missing: 0,
            generation_size: self.generation,
            window: self.window,
            synchronise: self.synchronise,
            queue: self.queue,
            flush_time: Duration::from_millis(u64::from(self.flush_ms)),
            hold_time: Duration::from_millis(u64::from(self.hold_ms)),
            poll_timeout: Duration::from_millis(u64::from(self.request_ms)),
            max_polls: self.requests,
        }
    }
}
