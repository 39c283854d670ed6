//! Settings of the engine: `[braid]` in configuration files.

use serde::Deserialize;

/// Settings of the engine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BraidConfig {
    /// Packets that may wait at the next hop, 1 to 32. A longer queue fills gaps in the channel and
    /// delays packets.
    pub backlog: u8,
}

impl Default for BraidConfig {
    fn default() -> Self {
        Self { backlog: 8 }
    }
}

impl BraidConfig {
    /// Checks that all values are in range.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=32).contains(&self.backlog) {
            return Err(format!("backlog = {}: allowed is 1 to 32 packets", self.backlog));
        }
        Ok(())
    }
}
