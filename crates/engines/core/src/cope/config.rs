//! Settings of the COPE-like baseline.

use crate::frame::{MAX_GENERATION_SIZE, MAX_WINDOW};
use crate::parameters::{PairingRule, Parameters};
use crate::redundancy::Redundancy;
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::RelayMode;

ncmesh_engine::settings! {
    /// `[cope]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CopeConfig {
        /// Whether a relay combines packets of flows that cross. Without it, packets are forwarded
        /// with the same generations and requests; `forward` repeats packets hop by hop instead.
        pub coding: bool = true;
        /// Probability with which both receivers have to be able to decode a combined packet. Flows
        /// for which it is lower are not combined (COPE's rule). 0 turns the rule off, as in the
        /// paper's testbed.
        // The rule of Katti et al.
        pub min_decodable: f64 = 0.8, within 0..=1;
        /// Most packets that a destination asks for at once, by their numbers. The paper's negative
        /// acknowledgment has up to 5.
        pub wanted: u8 = 120, within 1..=MAX_GENERATION_SIZE, unit "packets";
        /// Packets of a generation.
        pub generation: u8 = 64, within 1..=MAX_GENERATION_SIZE, unit "packets";
        /// Generations of a flow under way at once.
        pub window: u8 = 1, within 1..=MAX_WINDOW, unit "generations";
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

impl CopeConfig {
    /// Returns the engine's parameters.
    pub(super) fn parameters(&self) -> Parameters {
        Parameters {
            relay: RelayMode::NonRecoding,
            codes_within_flows: false,
            combines_flows: self.coding,
            pairing: PairingRule::Decodable(self.min_decodable),
            redundancy: Redundancy::Factor(1.0),
            max_missing: self.wanted,
            generation_size: self.generation,
            window: self.window,
            synchronise: true,
            queue: self.queue,
            flush_time: Duration::from_millis(u64::from(self.flush_ms)),
            hold_time: Duration::from_millis(u64::from(self.hold_ms)),
            poll_timeout: Duration::from_millis(u64::from(self.request_ms)),
            max_polls: self.requests,
        }
    }
}
