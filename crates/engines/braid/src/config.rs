//! Settings of the engine: `[braid]` in configuration files.

use ncmesh_engine::time::Duration;

ncmesh_engine::settings! {
    /// Settings of the engine.
    #[derive(Clone, Debug, PartialEq)]
    pub struct BraidConfig {
        /// Packets that may wait at the next hop before a node waits for room there. More fill
        /// gaps in the channel and delay packets.
        pub backlog: u8 = 8, within 1..=32, unit "packets";
        /// Time after which a node gives up a packet of real-time traffic.
        // A conversation bears 150 ms one way without harm, and 400 ms at most (ITU-T G.114).
        pub deadline_ms: u16 = 200, within 10..=2000, unit "ms";
    }
}

impl BraidConfig {
    /// Returns the time after which a packet of real-time traffic is given up.
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.into())
    }
}
