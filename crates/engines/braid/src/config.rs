//! Settings of the engine: `[braid]` in configuration files.

use ncmesh_engine::time::Duration;
use serde::Deserialize;

/// Settings of the engine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BraidConfig {
    /// Packets that may wait at the next hop, 1 to 32. A longer queue fills gaps in the channel and
    /// delays packets.
    pub backlog: u8,
    /// Time after which a node gives up a packet of real-time traffic, ms, 10 to 2000.
    pub deadline_ms: u16,
}

impl Default for BraidConfig {
    fn default() -> Self {
        // A conversation bears 150 ms one way without harm, and 400 ms at most (ITU-T G.114).
        Self { backlog: 8, deadline_ms: 200 }
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
        if !(10..=2000).contains(&self.deadline_ms) {
            let deadline = self.deadline_ms;
            return Err(format!("deadline_ms = {deadline}: allowed is 10 to 2000"));
        }
        Ok(())
    }

    /// Returns the time after which a packet of real-time traffic is given up.
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.into())
    }
}
