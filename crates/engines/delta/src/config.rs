//! Settings of the engine: `[delta]` in configuration files.

ncmesh_engine::settings! {
    /// Settings of the engine.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DeltaConfig {
        /// Age at which packets of this node's own streams are of no use any more. Every node
        /// gives a packet up then. A longer one leaves more time to repair losses.
        pub deadline_ms: u16 = 1000, within 20..=5000, unit "ms";
    }
}
