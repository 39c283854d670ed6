//! Settings of both engines: `[stream_tree]` and `[smf]` in configuration files.

ncmesh_engine::settings! {
    /// Settings of an engine.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LiveConfig {
        /// Age at which packets of this node's own streams are of no use any more. Every node
        /// drops a packet then.
        pub deadline_ms: u16 = 1000, within 20..=5000, unit "ms";
    }
}
