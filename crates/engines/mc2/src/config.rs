//! Settings of MC2: the table `[protocol.mc2]` in configuration files.

use crate::frame::MAX_GENERATION_SIZE;
use serde::Deserialize;

/// Settings of MC2.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mc2Config {
    /// Paths of each flow, the best by product of delivery probabilities. 1 to 8; default 4.
    pub paths: usize,
    /// Gain over the best path that the link state must promise before further paths are used, as a
    /// share. 0 uses them always. 0 to 10; default 0.1.
    pub least_gain: f64,
    /// Most packets of a generation. Larger ones cost a longer coding vector in every frame. 1 to
    /// 128; default 32.
    pub generation: u8,
    /// K: a source with |C| credits inserts K/|C| packets in the time of one frame. Larger values
    /// come nearer to the optimum and make queues longer. 0.1 to 1,000; default 3.
    pub k: f64,
    /// Packets that a source queues for each destination; more are refused. 1 to 10,000; default
    /// 64.
    pub queue: usize,
    /// Time without a packet after which a generation that is not full is closed, ms. 1 to 10,000;
    /// default 20.
    pub flush_ms: u32,
    /// Time without news after which a destination requests what a generation lacks, ms. 10 to
    /// 60,000; default 300.
    pub request_ms: u32,
    /// Requests for a generation after which the destination gives it up. 0 to 100; default 6.
    pub requests: u32,
}

impl Default for Mc2Config {
    fn default() -> Self {
        Self {
            paths: 4,
            least_gain: 0.1,
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
    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// One line that names the setting and the range.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |name: &str, value: String, allowed: &str| {
            Err(format!("{name} = {value}: allowed is {allowed}"))
        };
        if !(1..=8).contains(&self.paths) {
            return wrong("paths", self.paths.to_string(), "1 to 8");
        }
        if !(0.0..=10.0).contains(&self.least_gain) {
            return wrong("least_gain", self.least_gain.to_string(), "0 to 10");
        }
        if !(1..=MAX_GENERATION_SIZE).contains(&self.generation) {
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
