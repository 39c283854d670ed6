//! Settings of Pacifier.

use crate::config::check_packets;
use ncmesh_engine::topology::Metric;
use serde::Deserialize;

/// Building blocks of the paper that are in use (Table I).
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
    /// Round-robin batching without source rate limiting. For radios that do not share a channel,
    /// where the wait for a child's transmission only costs time. Not in the paper.
    TreeRrb,
}

/// `[pacifier]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PacifierConfig {
    /// Building blocks in use.
    pub variant: Variant,
    /// Transmissions of a node, from the fewest (0) to the most (1) that any of its
    /// children needs (III-C.2).
    pub knob: f64,
    /// Packets of a batch, 1 to 255 (k).
    pub batch_size: u8,
    /// Payload of a packet, bytes. If left out, packets fit the radio's MTU.
    pub symbol_size: Option<u16>,
    /// Time that the source waits for a child to forward, in packet times for each transmission
    /// that a packet triggers at its children, 0 to 1000 (III-B; see ERRATA.md).
    pub timeout_factor: f64,
    /// Whether the source learns how long its children take and waits no longer, at most for
    /// `timeout_factor`. Not in the paper.
    pub learned_wait: bool,
    /// ETX by which the tree is built and ordered. The paper leaves it open (see ERRATA.md).
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
            learned_wait: false,
            metric: Metric::default(),
        }
    }
}

impl PacifierConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.knob) {
            return Err(format!("knob = {}: allowed is 0 to 1", self.knob));
        }
        if !(0.0..=1000.0).contains(&self.timeout_factor) {
            return Err(format!("timeout_factor = {}: allowed is 0 to 1000", self.timeout_factor));
        }
        check_packets(self.batch_size, self.symbol_size)
    }
}
