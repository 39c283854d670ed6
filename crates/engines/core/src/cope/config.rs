//! Settings of the COPE-like baseline.

use crate::config::{check_common, check_times};
use crate::parameters::{PairingRule, Parameters};
use crate::redundancy::Redundancy;
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::RelayMode;
use serde::Deserialize;

/// `[cope]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopeConfig {
    /// Whether a relay combines packets of flows that cross. Without it, packets are forwarded with
    /// the same generations and requests.
    pub coding: bool,
    /// Probability with which both receivers have to be able to decode a combined packet, 0 to 1;
    /// flows for which it is lower are not combined.
    pub min_decodable: f64,
    /// Most packets that a destination asks for at once, by their numbers, 1 to 120.
    pub wanted: u8,
    /// Packets of a generation, 1 to 120.
    pub generation: u8,
    /// Generations of a flow under way at once, 1 to 8.
    pub window: u8,
    /// Packets that a source queues for each destination, 1 to 10,000. When the queue is full,
    /// further packets are refused.
    pub queue: usize,
    /// Time for which a generation takes in packets once it has begun, ms, 0 to 10,000.
    pub flush_ms: u32,
    /// Time for which a relay waits for a packet to combine with, ms, 0 to 1,000.
    pub hold_ms: u32,
    /// Time after which an unanswered poll is repeated, ms, 5 to 60,000. Each further pause is
    /// twice as long.
    pub request_ms: u32,
    /// Polls without progress after which the source gives a generation up, 1 to 100.
    pub requests: u32,
}

impl Default for CopeConfig {
    fn default() -> Self {
        Self {
            coding: true,
            // The rule of Katti et al.
            min_decodable: 0.8,
            wanted: 120,
            generation: 64,
            window: 1,
            queue: 128,
            flush_ms: 20,
            hold_ms: 8,
            request_ms: 50,
            requests: 8,
        }
    }
}

impl CopeConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.min_decodable) {
            return Err(format!("min_decodable = {}: allowed is 0 to 1", self.min_decodable));
        }
        if !(1..=120).contains(&self.wanted) {
            return Err(format!("wanted = {}: allowed is 1 to 120 packets", self.wanted));
        }
        check_common(self.generation, self.window, self.queue, self.requests)?;
        check_times(self.flush_ms, self.hold_ms, self.request_ms)
    }

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
