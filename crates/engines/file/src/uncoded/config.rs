//! Settings of the baselines without coding.

ncmesh_engine::settings! {
    /// `[etx_unicast]` and `[tree_flood]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct UncodedConfig {
        /// Packets of a batch. A relay holds one batch of each transfer.
        // There is no coding vector, so a large batch costs only memory. Fewer batches mean fewer
        // waits for the last packets of one.
        pub batch_size: u8 = 255, within 1..=255, unit "packets";
        /// Payload of a packet.
        pub symbol_size: Option<u16> = None, absent "as large as fits", within 64..=65_535,
            unit "bytes";
    }
}
