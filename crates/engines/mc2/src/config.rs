//! Settings of MC2: the table `[protocol.mc2]` in configuration files.

use crate::frame::MAX_GENERATION_SIZE;

ncmesh_engine::settings! {
    /// Settings of MC2.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Mc2Config {
        /// Paths of each flow, the best by product of delivery probabilities.
        pub paths: usize = 4, within 1..=8, unit "paths";
        /// Gain over the best path that the link state must promise before further paths are used,
        /// as a share. 0 uses them always.
        pub least_gain: f64 = 0.1, within 0..=10;
        /// Most packets of a generation. Larger ones cost a longer coding vector in every frame.
        pub generation: u8 = 32, within 1..=MAX_GENERATION_SIZE, unit "packets";
        /// K: a source with C credits accepts K/C packets in the time of one frame. Larger values
        /// come nearer to the optimum and make queues longer.
        pub k: f64 = 3.0, within 0.1..=1000.0;
        /// Packets that a source queues for each destination; more are refused.
        pub queue: usize = 64, within 1..=10_000, unit "packets";
        /// Time without a packet after which a generation that is not full is closed.
        pub flush_ms: u32 = 20, within 1..=10_000, unit "ms";
        /// Time without news after which a destination requests what a generation lacks. It
        /// grows with pauses that ended by themselves and doubles with each request, up to 32
        /// times, until a generation completes without a request.
        pub request_ms: u32 = 300, within 10..=60_000, unit "ms";
        /// Requests for a generation after which the destination continues without it.
        pub requests: u32 = 6, within 0..=100, unit "requests";
    }
}
