//! Settings of MORE.

use crate::config::check_packets;
use ncmesh_engine::topology::Metric;
use serde::Deserialize;

/// Rule by which nodes of a belt are pruned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub enum Prune {
    /// Prunes nodes that make less than 0.1 of its transmissions, or less than the largest share
    /// below that which cuts no receiver off (MORE_new; Pacifier, IV-B.1).
    #[default]
    Connected,
    /// Prunes nodes that make less than this share (MORE_orig: 0.1). A receiver that this cuts off
    /// never gets the file, and holds up the others.
    Below(f64),
}

/// `[more]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MoreConfig {
    /// Rule by which nodes are pruned.
    pub prune: Prune,
    /// Packets of a batch, 1 to 255 (k).
    pub batch_size: u8,
    /// Payload of a packet, bytes. If left out, packets fit the radio's MTU.
    pub symbol_size: Option<u16>,
    /// ETX that says which of two nodes is nearer to a receiver.
    pub metric: Metric,
}

impl TryFrom<toml::Value> for Prune {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::String(s) if s == "connected" => Ok(Self::Connected),
            toml::Value::Float(share) => Ok(Self::Below(share)),
            toml::Value::Integer(share) => Ok(Self::Below(share as f64)),
            other => Err(format!("prune = {other}: allowed is 0 to 1, or \"connected\"")),
        }
    }
}

impl Default for MoreConfig {
    fn default() -> Self {
        Self {
            prune: Prune::default(),
            batch_size: 32,
            symbol_size: None,
            metric: Metric::default(),
        }
    }
}

impl MoreConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if let Prune::Below(share) = self.prune
            && !(0.0..=1.0).contains(&share)
        {
            return Err(format!("prune = {share}: allowed is 0 to 1, or \"connected\""));
        }
        check_packets(self.batch_size, self.symbol_size)
    }
}
