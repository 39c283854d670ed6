//! Settings of the baselines without coding.

ncmesh_engine::settings! {
    /// `[etx_unicast]` and `[tree_flood]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct UncodedConfig {
        /// Packets of a generation. A relay holds one generation of each transfer.
        // There is no coding vector, so a large generation costs only memory. Fewer generations
        // mean fewer waits for the last packets of one.
        pub generation: u8 = 255, within 1..=255, unit "packets";
        /// Payload of a packet.
        pub symbol_size: Option<u16> = None, absent "as large as fits", within 64..=65_535,
            unit "bytes";
    }
}
