//! Settings of the cascade.

use ncmesh_transfer::PacketConfig;

ncmesh_engine::settings! {
    /// `[cascade]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CascadeConfig {
        /// Packets of a generation (k). Larger generations cost more header and more work per
        /// packet.
        pub generation: u8 = 64, within 1..=128, unit "packets";
        /// Payload of a packet.
        pub symbol_size: Option<u16> = None, absent "as large as fits", within 64..=65_535,
            unit "bytes";
    }
}

impl CascadeConfig {
    pub(super) fn packets(&self) -> PacketConfig {
        PacketConfig { generation: self.generation, symbol_size: self.symbol_size }
    }
}
