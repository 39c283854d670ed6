//! Settings of the baselines without coding.

use crate::config::check_packets;
use serde::Deserialize;

/// `[etx_unicast]` and `[tree_flood]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UncodedConfig {
    /// Packets of a batch, 1 to 255. A forwarder holds one batch of each transfer.
    pub batch_size: u8,
    /// Payload of a packet, bytes. If left out, packets fit the radio's MTU.
    pub symbol_size: Option<u16>,
}

impl Default for UncodedConfig {
    fn default() -> Self {
        // There is no coding vector, so a large batch costs only memory. Fewer batches mean fewer
        // waits for the last packets of one.
        Self { batch_size: 255, symbol_size: None }
    }
}

impl UncodedConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn check(&self) -> Result<(), String> {
        check_packets(self.batch_size, self.symbol_size)
    }
}
