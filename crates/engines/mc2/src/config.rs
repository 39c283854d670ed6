//! Settings of MC2.

use super::frame::MAX_ROOM;
use serde::Deserialize;

/// `[mc2]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mc2Config {
    /// Paths of each flow, the best by product of delivery probabilities, 1 to 8.
    pub paths: usize,
    /// Packets of a generation, 1 to 128.
    pub generation: u8,
    /// K: a source with |C| credits takes K/|C| packets in the time of one frame, 0.1 to 1,000. More: nearer to the
    /// optimum, longer queues.
    pub k: f64,
    /// Packets a source queues for each destination, 1 to 10,000; when it is full, more are refused.
    pub queue: usize,
    /// A generation begun is closed, though not full, after so long without a packet, ms, 1 to 10,000.
    pub flush_ms: u32,
    /// A destination asks for what a generation lacks after so long without news of it, ms, 10 to 60,000.
    pub request_ms: u32,
    /// After so many requests it goes on without what is lacking, 0 to 100.
    pub requests: u32,
}

impl Default for Mc2Config {
    fn default() -> Self {
        Self {
            paths: 4,
            generation: 32,
            k: 3.0,
            queue: 64,
            flush_ms: 20,
            request_ms: 300,
            requests: 6,
        }
    }
}

impl Mc2Config {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |name: &str, value: String, allowed: &str| {
            Err(format!("{name} = {value}: allowed is {allowed}"))
        };
        if !(1..=8).contains(&self.paths) {
            return wrong("paths", self.paths.to_string(), "1 to 8");
        }
        if !(1..=MAX_ROOM).contains(&self.generation) {
            return wrong("generation", self.generation.to_string(), "1 to 128 packets");
        }
        if !(0.1..=1000.0).contains(&self.k) {
            return wrong("k", self.k.to_string(), "0.1 to 1000");
        }
        if !(1..=10_000).contains(&self.queue) {
            return wrong("queue", self.queue.to_string(), "1 to 10000 packets");
        }
        if !(1..=10_000).contains(&self.flush_ms) {
            return wrong("flush_ms", self.flush_ms.to_string(), "1 to 10000 ms");
        }
        if !(10..=60_000).contains(&self.request_ms) {
            return wrong("request_ms", self.request_ms.to_string(), "10 to 60000 ms");
        }
        if self.requests > 100 {
            return wrong("requests", self.requests.to_string(), "0 to 100");
        }
        Ok(())
    }
}
