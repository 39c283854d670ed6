//! Settings of the engine: `[forward]` in configuration files.

ncmesh_engine::settings! {
    /// Settings of plain forwarding.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ForwardConfig {
        /// Most packets that a node queues. Packets that find it full are dropped; nodes before it
        /// are asked to wait from three eighths of that on.
        // The traditional length of drop-tail queues in ns-3 and mac80211.
        pub queue: usize = 64, within 1..=10_000, unit "packets";
    }
}
