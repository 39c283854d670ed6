//! Settings of the COPE-like baseline.

use crate::config::{check_common, check_times};
use crate::redundancy::Redundancy;
use crate::rules::{Rules, Xor};
use ncmesh_engine::tunnel::RelayMode;
use serde::Deserialize;

/// `[cope]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopeConfig {
    /// Whether a relay combines packets of flows that cross; without it packets are forwarded, with the same
    /// generations and requests.
    pub coding: bool,
    /// They are only combined where both receivers can decode them with at least this probability, 0 to 1.
    pub min_decodable: f64,
    /// Packets that a destination asks for at once, by their numbers, 1 to 120.
    pub wanted: u8,
    /// Packets of a generation, 1 to 120.
    pub generation: u8,
    /// Generations of a flow under way at once, 1 to 8.
    pub window: u8,
    /// Packets a source queues for each destination, 1 to 10,000; when it is full, more are refused.
    pub queue: usize,
    /// A generation begun takes in packets for so long, ms, 0 to 10,000.
    pub flush_ms: u32,
    /// A relay waits for a packet to combine with for so long, ms, 0 to 1,000.
    pub hold_ms: u32,
    /// Who hears nothing of a generation for so long asks, ms, 5 to 60,000.
    pub request_ms: u32,
    /// After asking so often in vain the source gives a generation up, 1 to 100.
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
    /// One line that names the setting and what is allowed.
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

    pub(super) fn rules(&self) -> Rules {
        Rules {
            relay: RelayMode::NonRecoding,
            coded: false,
            combines: self.coding,
            xor: Xor::WhereDecodable(self.min_decodable),
            redundancy: Redundancy::Extra(1.0),
            wanted: self.wanted,
            room: self.generation,
            window: self.window,
            synchronise: true,
            queue: self.queue,
            flush_ms: self.flush_ms,
            hold_ms: self.hold_ms,
            request_ms: self.request_ms,
            requests: self.requests,
        }
    }
}
