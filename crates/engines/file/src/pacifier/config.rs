//! Settings of Pacifier.

use ncmesh_engine::topology::Metric;
use serde::Deserialize;

/// Which of the paper's building blocks are in use (Table I).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// Tree-based opportunistic routing alone: TREE.
    Tree,
    /// With source rate limiting: TREE+RL.
    TreeRl,
    /// With round-robin batching too: TREE+RL+RRB, the whole of Pacifier.
    #[default]
    TreeRlRrb,
    /// Round-robin batching without source rate limiting, for radios that do not share one channel (the
    /// wait for a child's transmission then only costs time). Not in the paper.
    TreeRrb,
}

/// `[pacifier]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PacifierConfig {
    /// Building blocks in use.
    pub variant: Variant,
    /// Between the fewest (0) and the most (1) transmissions any child needs (III-C.2).
    pub knob: f64,
    /// Packets of a batch, 1 to 255 (k).
    pub batch_size: u8,
    /// Payload of a packet, bytes; left out, packets fit the radio's MTU.
    pub symbol_size: Option<u16>,
    /// How long the source waits for a child to forward, in packet times for each packet its children owe, 0
    /// to 1000 (III-B; see ERRATA.md).
    pub timeout_factor: f64,
    /// ETX of the tree and its order (the paper leaves it open; see ERRATA.md).
    pub metric: Metric,
}

impl Default for PacifierConfig {
    fn default() -> Self {
        Self {
            variant: Variant::default(),
            knob: 1.0,
            batch_size: 32,
            symbol_size: None,
            timeout_factor: 8.0,
            metric: Metric::default(),
        }
    }
}

impl PacifierConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.knob) {
            return Err(format!("knob = {}: allowed is 0 to 1", self.knob));
        }
        if !(0.0..=1000.0).contains(&self.timeout_factor) {
            return Err(format!("timeout_factor = {}: allowed is 0 to 1000", self.timeout_factor));
        }
        if self.batch_size == 0 {
            return Err("batch_size = 0: allowed is 1 to 255 packets".into());
        }
        if self.symbol_size.is_some_and(|s| s < 64) {
            return Err("symbol_size: allowed is 64 to 65535 bytes".into());
        }
        Ok(())
    }
}
