//! Settings of the baselines without coding.

use serde::Deserialize;

/// `[etx_unicast]` and `[tree_flood]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UncodedConfig {
    /// Packets of a batch, 1 to 255: what a node on the way holds at most of a transfer.
    pub batch_size: u8,
    /// Payload of a packet, bytes; left out, packets fit the radio's MTU.
    pub symbol_size: Option<u16>,
}

impl Default for UncodedConfig {
    fn default() -> Self {
        // Without a coding vector a large batch costs memory only, and there are fewer ends to wait for.
        Self { batch_size: 255, symbol_size: None }
    }
}

impl UncodedConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.batch_size == 0 {
            return Err("batch_size = 0: allowed is 1 to 255 packets".into());
        }
        if self.symbol_size.is_some_and(|s| s < 64) {
            return Err("symbol_size: allowed is 64 to 65535 bytes".into());
        }
        Ok(())
    }
}
