//! Settings of the cascade.

use crate::config::check_packets;
use crate::multicast::PacketConfig;
use serde::Deserialize;

/// `[cascade]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CascadeConfig {
    /// Packets of a generation, 1 to 128 (k).
    pub batch_size: u8,
    /// Payload of a packet, bytes. If left out, packets fit the radio's MTU.
    pub symbol_size: Option<u16>,
}

impl Default for CascadeConfig {
    fn default() -> Self {
        Self { batch_size: 64, symbol_size: None }
    }
}

impl CascadeConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=128).contains(&self.batch_size) {
            return Err(format!("batch_size = {}: allowed is 1 to 128 packets", self.batch_size));
        }
        check_packets(self.batch_size, self.symbol_size)
    }

    pub(super) fn packets(&self) -> PacketConfig {
        PacketConfig { batch_size: self.batch_size, symbol_size: self.symbol_size }
    }
}
