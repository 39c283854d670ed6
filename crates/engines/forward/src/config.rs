//! Settings of the engine: `[forward]` in configuration files.

use serde::Deserialize;

/// Settings of plain forwarding.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ForwardConfig {
    /// Most packets that a node queues, 1 to 10,000. Packets that come to a full queue are dropped.
    pub queue: usize,
}

impl Default for ForwardConfig {
    fn default() -> Self {
        // The traditional length of drop-tail queues in ns-3 and mac80211.
        Self { queue: 64 }
    }
}

impl ForwardConfig {
    /// Checks that all values are in range.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=10_000).contains(&self.queue) {
            return Err(format!("queue = {}: allowed is 1 to 10000 packets", self.queue));
        }
        Ok(())
    }
}
