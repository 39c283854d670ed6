//! Settings of plain forwarding.

use serde::Deserialize;

/// `[forward]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ForwardConfig {
    /// Packets a node queues at most, 1 to 10,000; those that come when it is full are dropped.
    pub queue: usize,
}

impl Default for ForwardConfig {
    fn default() -> Self {
        // What ns-3's and mac80211's drop-tail queues are of old.
        Self { queue: 64 }
    }
}

impl ForwardConfig {
    /// Checks the values.
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
