//! The paper's policies, and how they differ.

use serde::Deserialize;

/// A control policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Maximum multicast throughput (III-C): receivers have no utilities.
    Mmt,
    /// Maximum multicast utility (IV-C).
    Mmu,
    /// MMU without drop queues (V-E).
    MmuQ,
    /// MMU for radios (V-B): a node serves one of its wireless links at a time.
    MmuW,
}

impl Policy {
    /// Returns whether receivers push back by virtual queues.
    #[must_use]
    pub fn has_utilities(self) -> bool {
        self != Self::Mmt
    }

    /// Returns whether drop queues count dropped packets before they are discarded.
    #[must_use]
    pub fn has_drop_queues(self) -> bool {
        self != Self::MmuQ
    }

    /// Returns whether links of a node may share one radio.
    #[must_use]
    pub fn has_radios(self) -> bool {
        self == Self::MmuW
    }
}
