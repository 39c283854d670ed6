//! The paper's policies, and how they differ.

ncmesh_engine::choices! {
    /// A control policy.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Policy {
        /// MMU for radios (V-B): a node serves one of its wireless links at a time.
        MmuW = "mmu_w",
        /// Maximum multicast utility (IV-C).
        Mmu = "mmu",
        /// MMU without drop queues (V-E).
        MmuQ = "mmu_q",
        /// Maximum multicast throughput (III-C): receivers have no utilities.
        Mmt = "mmt",
    }
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
